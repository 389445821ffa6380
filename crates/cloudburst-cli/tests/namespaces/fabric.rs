//! What `cbrst-doctor` reports of a leaf-spine of network namespaces: two leaves, four spines.
//!
//! The system chooses source ports, and switches hash them: with 64, the probability that some spine gets
//! none of them is one in 25,000,000.

use crate::common::{DOCTOR, Ended, RECV, Running, command, listening};
use cloudburst_testbed::{Error, Fabric, Failure, Node, Target, Topology};
use libtest_mimic::Failed;
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// For ports that all work.
const LONG: &str = "20";

/// Whether a fabric can be created.
pub(crate) fn available() -> Result<(), Error> {
    cloudburst_testbed::available()?;
    Fabric::up(&small()).map(drop)
}

fn small() -> Topology {
    Topology { hosts: 4, ..Topology::default() }
}

/// Runs a receiver at host 3, and returns the report of the doctor at host 1.
fn examine(fabric: &Fabric, v6: bool, deadline: &str) -> Result<Value, Failed> {
    let from = fabric.host(1)?;
    let to = fabric.host(3)?;
    let address: IpAddr = if v6 { to.v6().into() } else { to.v4().into() };
    let dir = tempfile::tempdir()?;
    let listen = if v6 { "[::]:0" } else { "0.0.0.0:0" };
    let out = dir.path().to_str().ok_or("the path is not UTF-8")?;
    let mut receiver = command(RECV, &["--insecure", "--listen", listen, "--out", out]);
    let (receiver, bound, _) = listening(to.run(|| Running::start(&mut receiver))?);
    let port = bound.rsplit(':').next().and_then(|port| port.parse().ok()).ok_or("no port")?;
    let peer = std::net::SocketAddr::new(address, port).to_string();
    // Ports of the fabric report a much higher speed. Each dead port takes the whole deadline.
    let args =
        ["--insecure", "--json", "--ports", "64", "--capacity", "100M", "--deadline", deadline];
    let mut doctor = command(DOCTOR, &args);
    doctor.arg(peer);
    let ended: Ended = from.run(|| Running::start(&mut doctor).end())?;
    drop(receiver);
    let report: Value = serde_json::from_slice(&ended.stdout).map_err(|error| {
        format!("{error}: {}, {}", String::from_utf8_lossy(&ended.stdout), ended.stderr)
    })?;
    let problems = report["problems"].as_array().ok_or_else(|| report.to_string())?;
    assert_eq!(ended.code, Some(if problems.is_empty() { 0 } else { 1 }));
    Ok(report)
}

fn problems(report: &Value) -> Vec<&str> {
    let all = report["problems"].as_array().into_iter().flatten();
    all.filter_map(|problem| problem["what"].as_str()).collect()
}

/// The second router of each path.
fn spines(report: &Value) -> BTreeSet<&str> {
    let paths = report["paths"].as_array().into_iter().flatten();
    paths.filter_map(|path| path["hops"][1].as_str()).collect()
}

fn all_spines_but(fabric: &Fabric, missing: u16, v6: bool) -> Result<BTreeSet<String>, Failed> {
    let address = |spine| {
        let (four, six) = fabric.addresses(Node::Spine(spine))?;
        Ok(if v6 { six.to_string() } else { four.to_string() })
    };
    (1..=4).filter(|spine| *spine != missing).map(address).collect()
}

pub(crate) fn four_spines_are_four_paths() -> Result<(), Failed> {
    let fabric = Fabric::up(&small())?;
    for v6 in [false, true] {
        let report = examine(&fabric, v6, LONG)?;
        let expected = all_spines_but(&fabric, 0, v6)?;
        assert!(spines(&report).into_iter().eq(expected.iter().map(String::as_str)), "{report}");
        assert_eq!(report["paths"].as_array().map(Vec::len), Some(4), "{report}");
        // A busy host may drop answers from its sockets, which the doctor then reports, and rightly.
        let problems: Vec<&str> = problems(&report);
        let of_the_fabric = problems.iter().filter(|what| !what.contains("on the way back"));
        assert_eq!(of_the_fabric.count(), 0, "{report}");
        let ports = report["ports"].as_array().into_iter().flatten();
        let lost = ports.map(|port| port["found"]["lost_there"].as_u64());
        assert!(lost.into_iter().all(|lost| lost == Some(0)), "{report}");
    }
    Ok(())
}

pub(crate) fn a_dead_spine_is_reported() -> Result<(), Failed> {
    let fabric = Fabric::up(&small())?;
    fabric.fail(Target::Node(Node::Spine(2)), Failure::Silent)?;
    let report = examine(&fabric, false, "0.5")?;
    let expected = all_spines_but(&fabric, 2, false)?;
    assert!(spines(&report).into_iter().eq(expected.iter().map(String::as_str)), "{report}");
    let is_reported =
        problems(&report).iter().any(|what| what.contains("source ports get no answer"));
    assert!(is_reported, "{report}");
    Ok(())
}

pub(crate) fn a_spine_that_rewrites_the_dscp_is_named() -> Result<(), Failed> {
    let fabric = Fabric::up(&small())?;
    let rules = "table inet rewrite { chain out { type filter hook postrouting priority 0; \
                 meta l4proto udp ip dscp set 10; }; }";
    let written = fabric.namespace(Node::Spine(3))?.command("nft").arg(rules).status()?;
    assert!(written.success());
    let report = examine(&fabric, false, LONG)?;
    let spine = fabric.addresses(Node::Spine(3))?.0;
    let there = "DSCP 43 does not survive the way there";
    let problem = problems(&report).into_iter().find(|what| what.contains(there));
    let problem = problem.ok_or_else(|| report.to_string())?;
    assert!(problem.contains(&format!("exactly those that cross {spine}")), "{problem}");
    assert!(problem.ends_with("was 10"), "{problem}");
    let back = "DSCP 43 does not survive the way back";
    let problem = problems(&report).into_iter().find(|what| what.contains(back));
    let problem = problem.ok_or_else(|| report.to_string())?;
    assert!(problem.ends_with("it becomes 10"), "{problem}");
    Ok(())
}

pub(crate) fn a_lossy_link_is_reported_with_its_spine() -> Result<(), Failed> {
    let fabric = Fabric::up(&small())?;
    fabric.loss(cloudburst_testbed::Link::between(Node::Leaf(1), Node::Spine(4)), 30.0)?;
    let report = examine(&fabric, false, LONG)?;
    let spine = fabric.addresses(Node::Spine(4))?.0;
    let expected = format!("exactly those that cross {spine}");
    let lost = |what: &&str| what.contains("lost on the way there") && what.contains(&expected);
    assert!(problems(&report).iter().any(lost), "{report}");
    Ok(())
}

pub(crate) fn one_spine_is_one_path() -> Result<(), Failed> {
    let fabric = Fabric::up(&Topology { spines: 1, ..small() })?;
    let report = examine(&fabric, false, LONG)?;
    assert_eq!(report["paths"].as_array().map(Vec::len), Some(1), "{report}");
    assert_eq!(problems(&report).len(), 1, "{report}");
    assert!(problems(&report)[0].starts_with("all source ports take the same path"), "{report}");
    Ok(())
}
