//! The program as a user runs it: in namespaces of its own, and with agents on hosts of a fabric.
//!
//! Needs root, iproute2, nftables and ethtool. Where they are missing the tests are ignored, and
//! the reason is printed.

use cloudburst_eval::Run;
use cloudburst_testbed::{Fabric, Topology, available};
use libtest_mimic::{Arguments, Failed, Trial};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cbrst-eval");
const PORT: u16 = 7200;

type Test = fn() -> Result<(), Failed>;

fn main() {
    let mut args = Arguments::from_args();
    // As with the standard harness. `.cargo/config.toml` sets it.
    let threads = || env::var("RUST_TEST_THREADS").ok()?.parse().ok();
    args.test_threads = args.test_threads.or_else(threads);
    let available = if args.list { Ok(()) } else { available() };
    if let Err(reason) = &available {
        println!("evaluations: ignored: {reason}");
    }
    let tests: &[(&str, Test)] = &[
        ("an_incast_has_no_background", an_incast_has_no_background),
        ("rivals_are_compared_and_reported", rivals_are_compared_and_reported),
        ("designs_are_compared_and_reported", designs_are_compared_and_reported),
        ("dead_paths_stop_tcp_alone", dead_paths_stop_tcp_alone),
        ("a_run_reports_each_fabric_that_it_built", a_run_reports_each_fabric_that_it_built),
        ("agents_run_the_trials_of_a_controller", agents_run_the_trials_of_a_controller),
        ("ctrl_c_keeps_what_was_measured", ctrl_c_keeps_what_was_measured),
        ("invalid_arguments_are_refused_at_once", invalid_arguments_are_refused_at_once),
    ];
    let trial =
        |&(name, run): &(&str, Test)| Trial::test(name, run).with_ignored_flag(available.is_err());
    libtest_mimic::run(&args, tests.iter().map(trial).collect()).exit();
}

fn run(out: &Path, arguments: &str) -> Result<Output, Failed> {
    let mut command = Command::new(PROGRAM);
    command.args(arguments.split_whitespace()).arg("--out").arg(out);
    Ok(command.output()?)
}

fn succeeded(output: &Output) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn read(out: &Path) -> Result<Run, Failed> {
    Ok(serde_json::from_slice(&fs::read(out.join("run.json"))?)?)
}

/// Too short for meaningful figures. With `--short`, no trial is repeated because it was disturbed.
const BRIEF: &str = "--short --seconds 0.3 --warm-up 0.1";
const OURS: &str = "d:paths=explicit";

fn rivals_are_compared_and_reported() -> Result<(), Failed> {
    are_compared_and_reported(
        "tcp-cubic tcp-bbr tcp-short pias replicated-2 replicated-4 mptcp quic d",
    )
}

fn designs_are_compared_and_reported() -> Result<(), Failed> {
    are_compared_and_reported(
        "a b c d none d:code=lt,policy=until-stop d:order=rb,train=1,paths=explicit,weight=2",
    )
}

fn are_compared_and_reported(schemes: &str) -> Result<(), Failed> {
    let out = tempfile::tempdir()?;
    let mut arguments = format!("run compare {BRIEF} --load 400");
    for scheme in schemes.split_whitespace() {
        write!(arguments, " --scheme {scheme}")?;
    }
    succeeded(&run(out.path(), &arguments)?);
    let run = read(out.path())?;
    let mut names: Vec<_> = run.trials.iter().map(|trial| trial.scheme.as_str()).collect();
    let mut expected: Vec<_> = schemes.split_whitespace().collect();
    names.sort_unstable();
    expected.sort_unstable();
    assert_eq!(names, expected);
    let mut asked = None;
    for trial in run.trials.iter().filter(|trial| trial.scheme != "none") {
        assert!(!trial.messages.is_empty(), "{}", trial.scheme);
        let what: Vec<_> =
            trial.messages.iter().map(|m| (m.id, m.from, m.to, m.bytes, m.at_us)).collect();
        assert_eq!(
            *asked.get_or_insert(what.clone()),
            what,
            "{}: its requests differ from those of the others",
            trial.scheme
        );
        for message in &trial.messages {
            assert!(message.took_us.is_some(), "{}: {message:?}", trial.scheme);
        }
        let is_ours = trial.scheme.starts_with(['a', 'b', 'c', 'd']);
        let known = trial.messages.iter().filter(|message| message.packets.is_some()).count();
        assert_eq!(known, if is_ours { trial.messages.len() } else { 0 }, "{}", trial.scheme);
        let is_marked =
            is_ours || ["tcp-short", "pias", "mptcp", "quic"].contains(&trial.scheme.as_str());
        assert_eq!(trial.tiny_sent > 0, is_marked, "{}", trial.scheme);
        assert!(trial.background_bytes > 0, "{}", trial.scheme);
    }
    for file in ["index.html", "tables.md", "messages.csv", "trials.csv"] {
        assert!(fs::metadata(out.path().join(file))?.len() > 0, "{file}");
    }
    let again = Command::new(PROGRAM).arg("report").arg(out.path()).output()?;
    succeeded(&again);
    opens_in_a_browser(&out.path().join("index.html"))
}

/// Prints `SKIPPED` without a browser.
fn opens_in_a_browser(page: &Path) -> Result<(), Failed> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../scripts/checks/report");
    let checked = Command::new(script).arg(page).output()?;
    print!("{}", String::from_utf8_lossy(&checked.stdout));
    succeeded(&checked);
    Ok(())
}

/// The number of messages of a scheme that arrived, and of all its messages.
fn count(run: &Run, experiment: &str, scheme: &str, x: f64) -> Result<(usize, usize), Failed> {
    let trial = run.trials.iter().find(|trial| {
        (trial.experiment.as_str(), trial.scheme.as_str(), trial.x) == (experiment, scheme, x)
    });
    let trial = trial.ok_or_else(|| format!("{experiment} has no {scheme} at {x}"))?;
    let arrived = trial.messages.iter().filter(|message| message.took_us.is_some()).count();
    Ok((arrived, trial.messages.len()))
}

/// Runs experiments with TCP and with Cloudburst on explicit paths, on links of so many Mb/s. All messages of the latter
/// must arrive at the points.
fn all_arrive(points: &[(&str, f64)], link: u32) -> Result<Run, Failed> {
    let out = tempfile::tempdir()?;
    let mut arguments =
        format!("run {BRIEF} --link {link} --load 400 --scheme {OURS} --scheme tcp-cubic");
    for (experiment, _) in points {
        write!(arguments, " {experiment}")?;
    }
    succeeded(&run(out.path(), &arguments)?);
    let run = read(out.path())?;
    for &(experiment, x) in points {
        let (arrived, all) = count(&run, experiment, OURS, x)?;
        assert!(arrived == all && all > 0, "{experiment}: {arrived} of {all}");
    }
    Ok(run)
}

fn dead_paths_stop_tcp_alone() -> Result<(), Failed> {
    let run = all_arrive(&[("failures", 3.0)], 50)?;
    // Three of four spines are dead, and connections are hashed onto all four.
    let (arrived, all) = count(&run, "failures", "tcp-cubic", 3.0)?;
    assert!(arrived < all, "{arrived} of {all}");
    Ok(())
}

fn an_incast_has_no_background() -> Result<(), Failed> {
    // Its duration is inverse to the rate of the link.
    let run = all_arrive(&[("incast", 16.0)], 400)?;
    assert!(count(&run, "incast", OURS, 16.0)?.1.is_multiple_of(16));
    assert_eq!(run.trials.iter().map(|trial| trial.background_bytes).sum::<u64>(), 0);
    Ok(())
}

fn a_run_reports_each_fabric_that_it_built() -> Result<(), Failed> {
    let run = all_arrive(&[("loss", 1.0), ("rate", 0.5)], 50)?;
    assert!(run.about.network.contains("For `rate`: 8 hosts"), "{}", run.about.network);
    Ok(())
}

/// An agent process. [`Agent::end`] must stop it.
struct Agent(Child);

impl Agent {
    fn start(fabric: &Fabric, host: u16, key: &Path) -> Result<Self, Failed> {
        let host = fabric.host(host)?;
        let mut command = host.command(PROGRAM);
        command.args(["agent", "--bind", &format!("{}:{PORT}", host.v4()), "--key-file"]);
        let mut child = command.arg(key).stdout(Stdio::piped()).spawn()?;
        let mut said = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut said)?;
        }
        assert!(said.starts_with("listening at 10.1."), "{said:?}");
        Ok(Self(child))
    }

    fn end(mut self) -> Result<(), Failed> {
        kill(Pid::from_raw(self.0.id() as i32), Signal::SIGTERM)?;
        assert!(self.0.wait()?.success());
        Ok(())
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn key(directory: &Path, name: &str, digit: char) -> Result<PathBuf, Failed> {
    let path = directory.join(name);
    fs::write(&path, digit.to_string().repeat(64))?;
    Ok(path)
}

fn agents_run_the_trials_of_a_controller() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let path = |name: &str| directory.path().join(name);
    let key_file = key(directory.path(), "key", '5')?;
    let fabric = Fabric::up(&Topology { hosts: 4, ..Topology::default() })?;
    let mut cluster = format!("link_rate = {}\n", fabric.topology().rate);
    let mut agents = Vec::new();
    for index in 1..=4 {
        agents.push(Agent::start(&fabric, index, &key_file)?);
        let host = fabric.host(index)?;
        let paths: Vec<_> =
            host.path_addresses().iter().map(|path| format!("\"{path}\"")).collect();
        let address = host.v4();
        let rack = index.div_ceil(2);
        let paths = paths.join(", ");
        write!(
            cluster,
            "[[host]]\nagent = \"{address}:{PORT}\"\nrack = {rack}\npath_addresses = [{paths}]\n"
        )?;
    }
    fs::write(path("cluster.toml"), cluster)?;
    let control = |arguments: &str, key: &Path, out: &str| {
        // On a host of the fabric, because nothing else reaches the agents.
        let mut command = fabric.host(1)?.command(PROGRAM);
        command.arg("run").args(arguments.split_whitespace()).arg("--out").arg(path(out));
        command.arg("--cluster").arg(path("cluster.toml")).arg("--key-file").arg(key);
        command.stderr(Stdio::piped());
        Ok::<_, Failed>(command.spawn()?)
    };
    let other = key(directory.path(), "other", '6')?;
    let stranger = control(&format!("compare {BRIEF} --scheme d"), &other, "stranger")?;
    let schemes = "--scheme d --scheme d:paths=explicit --scheme replicated-2 --scheme quic";
    let arguments = format!("compare {BRIEF} {schemes} --load 400");
    succeeded(&control(&arguments, &key_file, "out")?.wait_with_output()?);
    let run = read(&path("out"))?;
    assert_eq!(run.trials.len(), 4);
    for trial in &run.trials {
        assert!(!trial.messages.is_empty() && trial.background_bytes > 0, "{}", trial.scheme);
        assert!(trial.messages.iter().all(|message| message.took_us.is_some()), "{}", trial.scheme);
    }
    // Agents ignore it, while they serve the other controller.
    let stranger = stranger.wait_with_output()?;
    assert_eq!(stranger.status.code(), Some(1));
    let said = String::from_utf8_lossy(&stranger.stderr).into_owned();
    assert!(said.contains("is `cbrst-eval agent` running there, with the same key?"), "{said}");
    let refused = control("failures", &key_file, "out")?.wait_with_output()?;
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("`failures` changes the network"), "{said}");
    agents.into_iter().try_for_each(Agent::end)
}

fn ctrl_c_keeps_what_was_measured() -> Result<(), Failed> {
    let out = tempfile::tempdir()?;
    // The tests may have been started where Ctrl-C is ignored, which child processes inherit.
    let mut command = Command::new("env");
    command.args(["--default-signal=INT", PROGRAM]);
    command.args(format!("run compare {BRIEF} --load 400 --scheme none").split_whitespace());
    // So many repetitions never end by themselves.
    command.args(["--repetitions", "1000"]).arg("--out").arg(out.path()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let mut said = child.stderr.take().map(BufReader::new).ok_or("no standard error")?;
    let mut line = String::new();
    while !line.contains("repetition 2/1000") {
        line.clear();
        assert!(said.read_line(&mut line)? > 0, "the program ended early");
    }
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT)?;
    std::io::copy(&mut said, &mut std::io::sink())?;
    assert_eq!(child.wait()?.code(), Some(130));
    let run = read(out.path())?;
    assert!(run.trials.len() >= 2, "{}", run.trials.len());
    Ok(())
}

fn invalid_arguments_are_refused_at_once() -> Result<(), Failed> {
    let out = tempfile::tempdir()?;
    for (arguments, why) in [
        ("run compare", "`compare` needs schemes: name them with --scheme"),
        ("run nothing", "no experiment is called \"nothing\": expected schemes"),
        ("run --scheme d:train=0", "setting `tuning.train` is 0: it must be"),
        ("run --link 0", "0 is not in 1..=10000"),
        ("run schemes --cluster /nonexistent --key-file /nonexistent", "cannot read /nonexistent"),
    ] {
        let output = run(out.path(), arguments)?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(why), "{arguments}: {said}");
    }
    let page = Command::new(PROGRAM).args(["--generate", "man"]).output()?;
    succeeded(&page);
    assert!(String::from_utf8_lossy(&page.stdout).contains("THE SUBCOMMAND AGENT"));
    let report = Command::new(PROGRAM).args(["report", "/nonexistent"]).output()?;
    assert!(String::from_utf8_lossy(&report.stderr).contains("cannot read /nonexistent/run.json"));
    Ok(())
}
