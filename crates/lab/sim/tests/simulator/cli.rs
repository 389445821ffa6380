//! `cbrst-sim`: complete, interrupted, sharded and merged runs, traces, and invalid input.

use cloudburst_sim::experiment::{Cell, Failure, Outcome, Record, Run, Scale, Store, sweep};
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_cbrst-sim");

fn directory() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// Runs the program in `place` with the space-separated arguments of `line`.
fn sim(place: &Path, line: &str) -> Output {
    Command::new(PROGRAM).args(line.split_whitespace()).current_dir(place).output().unwrap()
}

/// Runs the program, which must succeed. Returns its standard output.
fn done(place: &Path, line: &str) -> String {
    let output = sim(place, line);
    assert_eq!(output.status.code(), Some(0), "{line}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// Runs the program, which must exit with `code` and one line of error. Returns that line.
fn refused(place: &Path, line: &str, code: i32) -> String {
    let output = sim(place, line);
    let why = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{line}: {why}");
    let first = why.lines().next().unwrap().to_owned();
    assert!(why.lines().count() == 1 || why.contains("--help"), "{why}");
    first
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn lines(directory: &Path) -> Vec<String> {
    let cells = fs::read_to_string(directory.join("cells.jsonl")).unwrap();
    let mut lines: Vec<String> = cells.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

const SHORT: &str = "run incast-bound --short --scheme burst";

#[test]
fn the_manual_page_and_completions_have_every_subcommand() {
    for (form, begins) in [
        ("man", ".TH cbrst-sim 1"),
        ("bash", "-o default cbrst-sim\n"),
        ("zsh", "#compdef cbrst-sim"),
        ("fish", "complete -c cbrst-sim"),
    ] {
        let text = done(Path::new("."), &format!("--generate {form}"));
        assert!(text.contains(begins), "{form}: {text}");
        for name in ["run", "trace", "merge", "report"] {
            let name = if form == "man" { name.to_uppercase() } else { name.to_owned() };
            assert!(text.contains(&name), "{name} in {form}: {text}");
        }
    }
}

#[test]
fn a_run_keeps_its_cells_and_writes_a_report() {
    let place = directory();
    let place = place.path();
    assert_eq!(done(place, &format!("{SHORT} --out a")), "a/index.html\n");
    assert_eq!(lines(&place.join("a")).len(), 7);
    for name in ["index.html", "claims.md", "tables.md", "values.csv", "figures/incast-bound.svg"] {
        assert!(place.join("a").join(name).is_file(), "{name}");
    }
    let claims = fs::read_to_string(place.join("a/claims.md")).unwrap();
    assert!(claims.contains("- burst: **holds**"), "{claims}");
    // The cells are the same with --quiet and another number of threads.
    assert_eq!(done(place, &format!("{SHORT} -q --jobs 1 --out b")), "");
    assert_eq!(lines(&place.join("a")), lines(&place.join("b")));
    // The report alone, again.
    fs::remove_file(place.join("a/index.html")).unwrap();
    assert_eq!(done(place, "report a"), "a/index.html\n");
    assert!(place.join("a/index.html").is_file());
}

#[test]
fn two_shards_and_a_merge_are_one_run() {
    let place = directory();
    let place = place.path();
    done(place, &format!("{SHORT} --out whole"));
    done(place, &format!("{SHORT} --shard 1/2 --out part1"));
    assert!(!place.join("part1/index.html").exists());
    let why = refused(place, "merge out part1", 1);
    let missing = "cbrst-sim: out: 3 of 7 cells are missing, the first is \
                   incast-bound/burst/x=2/load=0/0: run the missing shards and merge again";
    assert_eq!(why, missing);
    done(place, &format!("{SHORT} --shard 2/2 --out part2"));
    assert_eq!(lines(&place.join("part2")).len(), 3);
    // Into the earlier merge, with a shard that it already has.
    assert_eq!(done(place, "merge out part2 part1"), "out/index.html\n");
    assert_eq!(lines(&place.join("out")), lines(&place.join("whole")));
    assert_eq!(lines(&place.join("out")).len(), 7);
}

#[test]
fn cells_that_differ_are_not_merged() {
    let place = directory();
    let place = place.path();
    done(place, &format!("{SHORT} --out a"));
    done(place, &format!("{SHORT} --out b"));
    let cells = fs::read_to_string(place.join("b/cells.jsonl")).unwrap();
    fs::write(place.join("b/cells.jsonl"), cells.replace("81.8", "81.9")).unwrap();
    let why = refused(place, "merge out a b", 2);
    assert!(why.contains("incast-bound/burst/x=1/load=0/0 differs between a and b"), "{why}");
    assert!(!place.join("out").exists());
    done(place, &format!("{SHORT} --seed 2 --out c"));
    let why = refused(place, "merge out a c", 2);
    assert!(why.contains("c has a run with seed 2, this one has seed 1"), "{why}");
}

#[test]
fn a_killed_run_is_resumed() {
    let place = directory();
    let place = place.path();
    done(place, &format!("{SHORT} --out a"));
    let whole = lines(&place.join("a"));
    // The file of a process that is killed while writing its fourth line.
    let path = place.join("a/cells.jsonl");
    let cells = fs::read_to_string(&path).unwrap();
    let ends: Vec<usize> = cells.match_indices('\n').map(|(at, _)| at).collect();
    fs::write(&path, &cells[..ends[2] + 40]).unwrap();
    let output = sim(place, &format!("{SHORT} --out a"));
    assert_eq!(text(&output.stderr), "a has 3 cells; 4 are left to run\n");
    assert_eq!(lines(&place.join("a")), whole);
}

#[test]
fn ctrl_c_keeps_what_is_finished() {
    let place = directory();
    let place = place.path();
    // The tests may have been started where Ctrl-C is ignored, which child processes inherit.
    let mut child = Command::new("env")
        .args(["--default-signal=INT", PROGRAM])
        .args(["run", "incast-bound", "--scheme", "burst", "--jobs", "1", "--out", "a"])
        .current_dir(place)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let path = place.join("a/cells.jsonl");
    while !fs::read_to_string(&path).is_ok_and(|cells| cells.lines().count() >= 3) {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it could be interrupted");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let kill = format!("kill -INT {}", child.id());
    assert!(Command::new("bash").args(["-c", &kill]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let why = text(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{why}");
    assert!(why.starts_with("cbrst-sim: interrupted: a has "), "{why}");
    assert!(why.ends_with(" of 192 cells; repeat the command to resume\n"), "{why}");
    let kept = lines(&place.join("a"));
    assert!((3..192).contains(&kept.len()));
    // The report of an incomplete run says what is missing.
    done(place, "report a");
    let page = fs::read_to_string(place.join("a/index.html")).unwrap();
    let lack = format!("{} of 192 cells have not been run yet.", 192 - kept.len());
    assert!(page.contains(&lack), "{lack}");
}

#[test]
fn a_directory_of_another_run_is_refused() {
    let place = directory();
    let place = place.path();
    done(place, &format!("{SHORT} --out a"));
    let why = refused(place, &format!("{SHORT} --seed 2 --out a"), 2);
    assert!(why.contains("a has a run with seed 1, this one has seed 2: use another directory"));
    let why = refused(place, "run incast-bound --out a", 2);
    assert!(why.contains("a has a run with scale short, this one has scale full"), "{why}");
    let run = fs::read_to_string(place.join("a/run.json")).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    fs::write(place.join("a/run.json"), run.replace(version, "0.0.7")).unwrap();
    let why = refused(place, &format!("{SHORT} --out a"), 2);
    assert!(why.contains("a has a run with version 0.0.7, this one has version"), "{why}");
    fs::remove_file(place.join("a/run.json")).unwrap();
    let why = refused(place, &format!("{SHORT} --out a"), 1);
    assert!(why.contains("a/cells.jsonl: there is no run.json beside it"), "{why}");
    fs::write(place.join("a/run.json"), "{}").unwrap();
    let why = refused(place, &format!("{SHORT} --out a"), 1);
    assert!(why.contains("a/run.json: expected a run of cbrst-sim: missing field"), "{why}");
    assert_eq!(
        refused(place, "report nothing", 1),
        "cbrst-sim: cannot read nothing/run.json: No such file or directory (os error 2)"
    );
}

#[test]
fn a_directory_has_one_writer_at_a_time() {
    let place = directory();
    let run = Run {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: String::new(),
        seed: 1,
        scale: Scale::Short,
        date: String::new(),
        wanted: [("incast-bound".to_owned(), ["burst".to_owned()].into())].into(),
    };
    let store = Store::open(place.path(), run).unwrap();
    assert_eq!((store.missing().0.len(), store.missing().1), (7, 7));
    let why = refused(place.path(), &format!("{SHORT} --out ."), 1);
    assert!(why.contains("in use by another process"), "{why}");
    drop(store);
    done(place.path(), &format!("{SHORT} --out ."));
}

#[test]
fn a_full_disk_is_reported_and_earlier_cells_are_kept() {
    let place = directory();
    let place = place.path();
    // Files are limited to 1 KiB: a write fails after some lines, as on a full disk.
    let line = format!("ulimit -f 1; trap '' XFSZ; exec '{PROGRAM}' {SHORT} --jobs 1 --out a");
    let output = Command::new("bash").args(["-c", &line]).current_dir(place).output().unwrap();
    let why = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{why}");
    let full = "cbrst-sim: cannot write a/cells.jsonl: File too large (os error 27); the cells in it \
                are intact: free some space and repeat the command\n";
    assert_eq!(why, full);
    let kept = fs::read_to_string(place.join("a/cells.jsonl")).unwrap();
    let kept = kept.matches('\n').count();
    assert!((1..7).contains(&kept));
    let output = sim(place, &format!("{SHORT} --out a"));
    assert_eq!(text(&output.stderr), format!("a has {kept} cells; {} are left to run\n", 7 - kept));
    assert_eq!(lines(&place.join("a")).len(), 7);
}

#[test]
fn unknown_names_are_refused_with_a_suggestion() {
    let place = directory();
    let refused = |line| refused(place.path(), line, 2);
    assert_eq!(
        refused("run incast-bund"),
        "cbrst-sim: unknown experiment `incast-bund`: did you mean `incast-bound`?"
    );
    assert_eq!(
        refused("run incast-bound --scheme homa"),
        "cbrst-sim: unknown scheme `homa`: expected one of burst, \
         cloudburst, cloudburst-paper, cloudburst-pull, cloudburst-trim, dctcp, expresspass, mptcp, pfabric, tcp"
    );
    assert_eq!(
        refused("trace 0:1:5 --transport brust"),
        "cbrst-sim: unknown transport `brust`: did you mean `burst`?"
    );
    let long = refused("trace 0:1:18446744073709551615");
    assert!(long.ends_with("bytes, expected at most 16777216"), "{long}");
    assert!(refused("run all --shard 3/2").ends_with("I from 1 to N, such as 3/16"));
    assert!(!place.path().join("simulation").exists());
}

#[test]
fn invalid_topologies_are_refused() {
    let place = directory();
    let refused = |line: &str| refused(place.path(), &format!("trace 0:1:5 {line}"), 2);
    assert!(refused("--topology ring:8").contains("expected switch:HOSTS, leaf-spine:"));
    assert!(
        refused("--topology fat-tree:7").ends_with("got 7, expected an even number of 2 or more")
    );
    assert_eq!(
        refused("--topology leaf-spine:4x2x0"),
        "cbrst-sim: topology: switches above a leaf: got 0, expected 1 or more if there are several \
         leaves"
    );
    assert_eq!(
        refused("--topology leaf-spine:1x60000x60000"),
        "cbrst-sim: topology: links: got 3600060000, expected 1048576 or fewer"
    );
    assert!(refused("--edge 7,2us").contains("topology: rate: got 7, expected"));
    assert_eq!(
        refused("--topology switch:1"),
        "cbrst-sim: host 1 does not exist: the topology has hosts 0 to 0"
    );
}

#[test]
fn a_trace_shows_every_packet_at_every_port() {
    let place = directory();
    let trace = done(place.path(), "trace 0:143:1460");
    let first: Vec<_> = trace.lines().take(6).collect();
    assert_eq!(
        first,
        [
            "# us event place from to flow sequence size class kind marks",
            "0.000000 sent host0->leaf0 0 143 0 0 1500 0 data -",
            "1.200000 sent host0->leaf0 0 143 0 1 1500 0 data -",
            "2.400000 sent host0->leaf0 0 143 0 2 1500 0 data -",
            "3.200000 sent leaf0->spine1 0 143 0 0 1500 0 data -",
            "3.600000 sent host0->leaf0 0 143 0 3 1500 0 data -",
        ]
    );
    // 1.2 us, four links of 2 us, and 0.3, 0.3 and 1.2 us to be forwarded.
    assert!(trace.contains(
        "started at 0.000000 us, delivered at 11.000000 us, acknowledged at 19.080000 us"
    ));
    assert_eq!(trace, done(place.path(), "trace 0:143:1460"));
}

#[test]
fn a_trace_ends_with_its_reader_and_reports_a_full_disk() {
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let output = Command::new(PROGRAM)
        .args(["trace", "0:143:87600"])
        .stdout(full)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let why = "cbrst-sim: cannot write to standard output: No space left on device (os error 28)\n";
    assert_eq!(text(&output.stderr), why);
    let line = format!("set -o pipefail; '{PROGRAM}' trace 0:143:876000 | head -n 1");
    let output = Command::new("bash").args(["-c", &line]).output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
}

#[test]
fn an_idle_message_is_traced_over_every_transport() {
    let place = directory();
    for transport in cloudburst_sim::scheme::SCHEMES.each_ref().map(|scheme| scheme.name) {
        let trace = done(place.path(), &format!("trace 0:143:5000 --transport {transport}"));
        let end = trace.lines().find(|line| line.starts_with("# flow 0: ")).unwrap();
        assert!(!end.contains("never"), "{transport}: {end}");
    }
}

#[test]
fn experiments_are_listed() {
    let list = done(directory().path(), "list");
    assert!(list.contains("incast-bound: Incast and its bound\n"), "{list}");
    for scale in ["--short: 70 cells, ", "--medium: 1920 cells, ", "--full: 1920 cells, "] {
        assert!(list.contains(scale), "{list}");
    }
}

/// An experiment whose cells fail.
mod broken {
    use super::*;
    use cloudburst_sim::experiment::{Case, Experiment, Part, Results, Todo};
    use core::sync::atomic::AtomicBool;
    use std::error::Error;

    static BROKEN: Experiment = Experiment {
        name: "broken",
        title: "",
        description: "",
        minutes: [0.0; 3],
        cells,
        run,
        report,
    };

    fn cells(_: Scale) -> Vec<Cell> {
        Cell::all("broken", &["fails", "panics", "works"], &[0.0], &[0.0], 1)
    }

    fn run(case: &Case<'_>) -> Result<Outcome, Box<dyn Error + Send + Sync>> {
        match case.cell.scheme.as_str() {
            "fails" => Err("no flow was delivered".into()),
            "panics" => panic!("it does"),
            _ => Ok(Outcome::default()),
        }
    }

    fn report(_: &Results<'_>) -> Part {
        Part::default()
    }

    fn sweep_of(schemes: &[&str]) -> (Result<bool, Failure>, Vec<Record>) {
        let cells = cells(Scale::Short).into_iter();
        let cells = cells.filter(|cell| schemes.contains(&cell.scheme.as_str()));
        let todo =
            cells.map(|cell| Todo { experiment: &BROKEN, cell, scale: Scale::Short, seed: 1 });
        let mut records = Vec::new();
        let result = sweep(todo.collect(), 2, &AtomicBool::new(false), |record| {
            records.push(record);
            Ok(())
        });
        (result, records)
    }

    #[test]
    fn a_failed_cell_is_named_after_the_others_have_run() {
        let (result, records) = sweep_of(&["works"]);
        assert!(result.unwrap() && records.len() == 1);
        let (result, records) = sweep_of(&["fails", "works"]);
        assert_eq!(
            result.unwrap_err().to_string(),
            "broken/fails/x=0/load=0/0: no flow was delivered; this is a bug in the simulator"
        );
        assert_eq!(records.len(), 1);
        assert_eq!(
            sweep_of(&["panics"]).0.unwrap_err().to_string(),
            "broken/panics/x=0/load=0/0: it panicked; this is a bug in the simulator"
        );
    }
}
