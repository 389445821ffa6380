//! Whole reports, of synthetic runs.

use super::{report, synthetic};
use crate::Run;
use std::collections::BTreeMap;
use std::path::Path;

/// Every file of a report, by name.
fn files(run: &Run) -> BTreeMap<String, Vec<u8>> {
    let directory = tempfile::tempdir().unwrap();
    report(run, directory.path()).unwrap();
    let mut files = BTreeMap::new();
    for folder in [directory.path().to_owned(), directory.path().join("figures")] {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                files.insert(name, std::fs::read(path).unwrap());
            }
        }
    }
    files
}

fn text(files: &BTreeMap<String, Vec<u8>>, name: &str) -> String {
    let file = files.get(name).unwrap_or_else(|| panic!("{name} not in {:?}", files.keys()));
    String::from_utf8(file.clone()).unwrap()
}

#[test]
fn each_experiment_has_its_figures_with_their_labels() {
    let files = files(&synthetic::run(1, &synthetic::EXPERIMENTS));
    let labels = [
        (
            "figures-9-10-11",
            &["5 KB", "20 KB", "93 KB", "p99 completion time (ms)", "Cloudburst A"][..],
        ),
        ("figure-12", &["mean completion time (ms)", "QUIC (quinn)", "Replicated TCP x4", "50 KB"]),
        ("figure-13", &["p99 completion time (ms)", "PIAS-like", "Cloudburst D (lt, until-stop)"]),
        ("figure-15", &["flows at once (N)", "last flow complete (ms)", "48"]),
        ("figure-16", &["dead paths, of four", "2000 r/s"]),
        ("figure-18", &["p99 over that of TCP cubic", "0.25", "10 KB"]),
        ("loss", &["packets lost at random on each link between racks (%)", "TCP cubic"]),
        ("friendly", &["background alone", "100.0 %", "% of that beside TCP cubic short flows"]),
        ("compare-2000", &["MPTCP", "sent/original", "mean over sizes (ms)"]),
    ];
    let page = text(&files, "index.html");
    for (stem, words) in labels {
        let svg = text(&files, &format!("{stem}.svg"));
        for word in words {
            assert!(svg.contains(word), "{stem} has no {word:?}");
        }
        assert!(page.contains(&svg), "{stem} is not in the page");
        let png = png::Decoder::new(std::io::Cursor::new(&files[&format!("{stem}.png")]));
        assert_eq!(png.read_info().unwrap().info().width, 2000);
    }
}

#[test]
fn the_same_run_gives_the_same_files() {
    let run = synthetic::run(2, &["schemes", "friendly"]);
    assert!(files(&run) == files(&run));
}

#[test]
fn a_run_without_trials_has_a_page_that_says_so() {
    let files = files(&synthetic::run(1, &[]));
    for name in ["index.html", "tables.md"] {
        assert!(text(&files, name).contains("The run has no trials: nothing was measured."));
    }
    assert_eq!(text(&files, "messages.csv"), "");
}

#[test]
fn text_of_the_run_is_escaped_in_the_page() {
    let mut run = synthetic::run(1, &["friendly"]);
    run.trials.iter_mut().filter(|trial| trial.scheme == "pias").for_each(|trial| {
        trial.scheme = "<script>alert(1)</script>".to_owned();
    });
    run.trials[0].experiment = "<i>".to_owned();
    let page = text(&files(&run), "index.html");
    assert!(!page.contains("<script") && !page.contains("<b>DCTCP") && !page.contains("<i>"));
    assert!(page.contains("The kernel has no &lt;b&gt;DCTCP&lt;") && page.contains("&lt;script"));
    assert!(page.contains("run --all &lt;here&gt; &amp; "));
}

#[test]
fn the_page_loads_nothing_from_other_hosts() {
    let page = text(&files(&synthetic::run(1, &["schemes", "incast"])), "index.html");
    let elsewhere = page.replace("http://www.w3.org/2000/svg", "");
    for mark in ["http:", "https:", "src=", "@import", "url(", "<link"] {
        assert!(!elsewhere.contains(mark), "{mark}");
    }
}

#[test]
fn a_report_of_one_trial_is_complete() {
    for experiment in synthetic::EXPERIMENTS {
        let mut run = synthetic::run(1, &[experiment]);
        run.trials.truncate(1);
        assert!(files(&run).contains_key("index.html"));
        run.trials[0].messages.clear();
        run.trials[0].seconds = 0.0;
        assert!(files(&run).contains_key("index.html"));
    }
}

#[test]
fn a_size_without_deliveries_is_shown_as_past_the_deadline() {
    let mut run = synthetic::run(1, &synthetic::EXPERIMENTS);
    for message in run.trials.iter_mut().flat_map(|trial| &mut trial.messages) {
        message.took_us = None;
    }
    let files = files(&run);
    assert!(text(&files, "tables.md").contains("> deadline"));
    assert!(text(&files, "index.html").contains("An arrow at the top: past the deadline."));
}

#[test]
fn the_error_names_a_directory_that_cannot_be_created() {
    let failure = report(&synthetic::run(1, &[]), Path::new("/dev/null/report")).unwrap_err();
    assert!(failure.to_string().contains("/dev/null/report/figures"));
}
