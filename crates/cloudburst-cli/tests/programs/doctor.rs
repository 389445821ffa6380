//! What `cbrst-doctor` reports of a receiver on this host, and where there is none.

use crate::common::*;
use cloudburst_cli::protocol::{Body, Frame, Vitals};
use cloudburst_net::{Endpoint, Security};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::net::UdpSocket;
use std::thread;
use std::time::Duration;

fn doctor(addr: &str, key: &str, args: &[&str]) -> Ended {
    let mut command = command(DOCTOR, args);
    if !args.contains(&"--deadline") {
        // This host may be busy.
        command.args(["--deadline", "20"]);
    }
    if !key.is_empty() {
        command.env("CBRST_KEY", key);
    }
    Running::start(command.arg(addr)).end()
}

fn json(ended: &Ended) -> Value {
    serde_json::from_slice(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
}

/// Problems other than this host's limits on buffers, which tests cannot know.
fn problems(report: &Value) -> Vec<&str> {
    let all = report["problems"].as_array().unwrap().iter();
    let what = all.map(|problem| problem["what"].as_str().unwrap());
    what.filter(|what| !what.contains("buffers")).collect()
}

#[test]
fn a_receiver_on_this_host_has_no_problems_and_no_routers() {
    let receiver = Receiver::start(&[]);
    let ended = doctor(&receiver.addr, &receiver.key, &["--json", "--ports", "4"]);
    let report = json(&ended);
    assert_eq!(problems(&report), [""; 0], "{report}");
    let healthy = report["problems"].as_array().unwrap().is_empty();
    assert_eq!(ended.code, Some(if healthy { 0 } else { 1 }));
    assert_eq!((&report["here"]["dscp"], &report["there"]["dscp"]), (&43.into(), &43.into()));
    assert_eq!((&report["paths"], &report["burst_arrived"]), (&Value::Null, &true.into()));
    let ports = report["ports"].as_array().unwrap();
    assert_eq!(ports.len(), 4);
    for port in ports {
        let found = &port["found"];
        assert!(found["sent"].as_u64() >= Some(32), "{port}");
        assert_eq!(found["lost_there"], 0, "{port}");
        assert_eq!(found["lost_back"], 0, "{port}");
        assert_eq!(found["foreign_dscp_there"], 0, "{port}");
        assert_eq!(found["foreign_dscp_back"], 0, "{port}");
        assert!(found["round_trip_seconds"].as_f64() > Some(0.0), "{port}");
    }
    assert_eq!(receiver.names(), [""; 0], "it stores nothing");
}

#[test]
fn the_text_has_a_line_for_each_port_and_what_to_do_about_each_problem() {
    let receiver = Receiver::start(&["--dscp", "10"]);
    let ended = doctor(&receiver.addr, &receiver.key, &["--ports", "3", "--packets", "8"]);
    assert_eq!((ended.code, &*ended.stderr), (Some(1), ""));
    let text = String::from_utf8(ended.stdout).unwrap();
    assert!(text.starts_with("from 127.0.0.1 to 127.0.0.1:"), "{text}");
    assert_eq!(text.lines().filter(|line| line.ends_with("no router")).count(), 3, "{text}");
    assert!(text.contains("1. the ends have different DSCPs: 43 here and 10 at the"), "{text}");
    let remedies = text.lines().filter(|line| line.starts_with("   -> ")).count();
    let numbered =
        |line: &&str| line.split_once(". ").is_some_and(|(n, _)| n.parse::<u8>().is_ok());
    let problems = text.lines().filter(numbered).count();
    assert!(remedies > 0 && remedies == problems, "{text}");
}

#[test]
fn an_unanswered_examination_reports_the_cause() {
    let args = ["--json", "--ports", "2", "--deadline", "0.3"];
    let key = "00".repeat(32);
    let ended = doctor(CLOSED, &key, &args);
    assert_eq!(ended.code, Some(1));
    let expected = format!("no receiver listens at {CLOSED}: start cbrst-recv there");
    assert!(ended.stderr.contains(&expected), "{}", ended.stderr);
    assert!(json(&ended)["error"].as_str().unwrap().contains(&expected));

    let receiver = Receiver::start(&[]);
    let ended = doctor(&receiver.addr, &key, &args);
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("may have another key"), "{}", ended.stderr);
}

#[test]
fn a_receiver_that_cannot_answer_is_distinguished_from_none() {
    let endpoint = Endpoint::builder()
        .bind("127.0.0.1:0".parse().unwrap())
        .security(Security::trusted_network())
        .build()
        .unwrap();
    let addr = endpoint.local_addr().to_string();
    let ended = doctor(&addr, "", &["--insecure", "--deadline", "0.5"]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("it is not a cbrst-recv of this version"), "{}", ended.stderr);
}

#[test]
fn absurd_counters_of_a_receiver_do_no_harm() {
    let endpoint = Endpoint::builder()
        .bind("127.0.0.1:0".parse().unwrap())
        .security(Security::trusted_network())
        .build()
        .unwrap();
    let addr = endpoint.local_addr().to_string();
    let receiver = endpoint.clone();
    let answering = thread::spawn(move || {
        let mut wild = [0, u64::MAX].into_iter().cycle();
        while let Ok(message) = receiver.recv().wait() {
            let Ok(Frame { transfer, body: Body::Examine { answer: true, answer_to, .. } }) =
                Frame::decode(&message.bytes)
            else {
                continue;
            };
            let Some(n) = wild.next() else { return };
            let vitals = Vitals {
                foreign_dscp: n,
                symbols: u64::MAX - n,
                answers: n,
                datagrams: n,
                batches: u64::MAX - n,
                // Whichever answers are compared, this is a problem.
                kernel_drops: n.max(1),
                buffers_wanted: n,
                ..Vitals { dscp: 43, ..Vitals::default() }
            };
            let answer = Frame { transfer, body: Body::Vitals(vitals) }.encode();
            let mut to = message.peer;
            if answer_to != 0 {
                to.set_port(answer_to);
            }
            let _ = receiver.send(to, answer).wait();
        }
    });
    for args in [&["--insecure", "--ports", "4"][..], &["--insecure", "--ports", "3", "--json"]] {
        let ended = doctor(&addr, "", args);
        assert_eq!((ended.code, &*ended.stderr), (Some(1), ""));
    }
    endpoint.blocking_shutdown(Duration::ZERO);
    answering.join().unwrap();
}

#[test]
fn a_receiver_of_one_sender_still_waits_for_it_after_an_examination() {
    let receiver = Receiver::start(&["--once"]);
    let ended = doctor(&receiver.addr, &receiver.key, &["--json", "--ports", "1"]);
    assert_eq!(problems(&json(&ended)), [""; 0]);
    let (_dir, paths) = files(&[("a", b"abc")]);
    assert_eq!(receiver.send(&[], &[&paths[0]]).code, Some(0));
    assert_eq!(receiver.running.end().code, Some(0));
}

#[test]
fn packets_may_have_any_size_that_fits() {
    let receiver = Receiver::start(&[]);
    for mtu in ["576", "1280", "1500"] {
        let ended =
            doctor(&receiver.addr, &receiver.key, &["--json", "--ports", "1", "--mtu", mtu]);
        let report = json(&ended);
        assert_eq!(problems(&report), [""; 0], "{report}");
        assert_eq!(report["mtu"].to_string(), mtu, "{report}");
        assert!(report["path_mtu"].as_u64() >= Some(65_535), "{report}");
    }
}

#[test]
fn a_signal_that_stops_it_has_the_exit_code_of_the_other_programs() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    silent.set_read_timeout(Some(PATIENCE)).unwrap();
    let addr = silent.local_addr().unwrap().to_string();
    for signal in [Signal::SIGTERM, Signal::SIGHUP] {
        let args = ["--insecure", "--deadline", "300", &addr];
        let examining = Running::start(&mut command(DOCTOR, &args));
        silent.recv(&mut [0; 2048]).unwrap();
        examining.signal(signal);
        assert_eq!(examining.end().code, Some(130), "{signal}");
        silent.set_nonblocking(true).unwrap();
        while silent.recv(&mut [0; 2048]).is_ok() {}
        silent.set_nonblocking(false).unwrap();
    }
}

#[test]
fn invalid_command_lines_are_refused() {
    for args in [
        &["--insecure", "--ports", "0"][..],
        &["--insecure", "--ports", "65"],
        &["--insecure", "--packets", "7"],
        &["--insecure", "--dscp", "64"],
        &["--insecure", "--mtu", "575"],
        &[],
    ] {
        assert_eq!(doctor("127.0.0.1:1", "", args).code, Some(2), "{args:?}");
    }
    assert_eq!(doctor("127.0.0.1", "", &["--insecure"]).code, Some(2));
}

#[test]
fn mesh_prints_a_line_for_each_receiver_even_if_one_is_absent() {
    let receiver = Receiver::start(&[]);
    let mesh = format!("{CLOSED},{}", receiver.addr);
    let args = |more: &[&'static str]| {
        let args = ["--ports", "2", "--packets", "8", "--deadline", "0.5"];
        let mut command = command(DOCTOR, &args);
        command.args(more).arg("--mesh").arg(&mesh).env("CBRST_KEY", &receiver.key);
        Running::start(&mut command).end()
    };
    let ended = args(&[]);
    assert_eq!((ended.code, &*ended.stderr), (Some(1), ""));
    let text = String::from_utf8(ended.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[1].starts_with(CLOSED) && lines[1].ends_with("not examined"), "{text}");
    assert!(lines[2].starts_with(&receiver.addr) && lines[2].contains("2/2"), "{text}");
    assert!(lines[2].contains("kept"), "{text}");
    assert!(text.contains(&format!("{CLOSED}: no receiver listens at")), "{text}");
    let object = json(&args(&["--json"]));
    assert!(object["receivers"][0]["error"].as_str().unwrap().contains("no receiver listens"));
    assert_eq!(object["receivers"][1]["ports"].as_array().unwrap().len(), 2);
}
