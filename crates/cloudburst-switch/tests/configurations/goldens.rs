//! Pins the files rendered for every platform: a leaf, a spine and a spine with three DSCPs word by word, a
//! switch of 32 ports by digest. The lint has no findings in any of them.
//!
//! After a template was changed on purpose, `SWITCH_GOLDENS=write cargo test -p cloudburst-switch --test
//! configurations goldens` rewrites them; read the difference before it is committed.

use crate::common::{PLATFORMS, Rendered, find};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

fn compare(name: &str, rendered: &str) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/switch-goldens");
    let path = directory.join(name);
    if std::env::var_os("SWITCH_GOLDENS").is_some_and(|value| value == "write") {
        fs::create_dir_all(&directory).unwrap();
        fs::write(&path, rendered).unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    let differ = golden.lines().zip(rendered.lines()).find(|(old, new)| old != new);
    assert!(golden == rendered, "{} is not what is rendered: {differ:?}", path.display());
}

/// The report, without paths of this machine, and all files.
fn text(rendered: &Rendered) -> String {
    let printed = rendered.printed.lines().filter(|line| !line.starts_with("wrote "));
    let mut all: String = printed.map(|line| format!("{line}\n")).collect();
    for (name, text) in rendered.files() {
        let _ = write!(all, "=== {name}\n{text}");
    }
    all
}

fn assert_clean(rendered: &Rendered) {
    let ended = rendered.check();
    let printed = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(ended.code, Some(0), "{printed}{}", ended.stderr);
}

#[test]
fn leaves_and_spines_match_their_golden_files() {
    for platform in &PLATFORMS {
        compare(&format!("{}-leaf.txt", platform.name), &text(&Rendered::of(&platform.leaf(1))));
        compare(&format!("{}-spine.txt", platform.name), &text(&Rendered::of(&platform.spine(1))));
    }
}

#[test]
fn three_dscps_have_three_queues() {
    for platform in &PLATFORMS {
        let rendered = Rendered::of(&platform.classes());
        compare(&format!("{}-classes.txt", platform.name), &text(&rendered));
        assert_clean(&rendered);
    }
}

/// Spine 1 of a platform that trims.
fn trimming(name: &str) -> String {
    format!("trim = {{ bytes = 256, dscp = 49, queue = 6 }}\n{}", find(name).spine(1))
}

#[test]
fn rendered_trimming_passes_the_check() {
    for name in ["sonic", "cumulus5"] {
        let rendered = Rendered::of(&trimming(name));
        compare(&format!("{name}-trim.txt"), &text(&rendered));
        assert_clean(&rendered);
    }
}

#[test]
fn mistakes_in_trimming_are_reported() {
    for (name, file, from, to, finding) in [
        ("sonic", "trim.json", "\"256\"", "\"128\"", "bytes of trimmed packets: 128"),
        ("sonic", "trim.json", "\"49\"", "\"48\"", "DSCP of trimmed packets: 48; expected 49"),
        ("sonic", "trim.json", "_index\": \"6\"", "_index\": \"5\"", "queue of trimmed packets: 5"),
        ("sonic", "trim.json", "\"trim\"", "\"drop\"", "without trimming of the tiny queue"),
        ("sonic", "trim.json", "SWITCH_TRIMMING", "OTHER", "no bytes of trimmed packets"),
        ("sonic", "qos.json", "\"49\": \"6\"", "\"49\": \"5\"", "DSCP 49 goes to queue 5 too"),
        ("cumulus5", "trim.nv", "state enabled", "state disabled", "trimming is off"),
        ("cumulus5", "trim.nv", "size 256", "size 512", "bytes of trimmed packets: 512"),
        ("cumulus5", "trim.nv", "dscp 49", "dscp 11", "DSCP of trimmed packets: 11"),
        ("cumulus5", "trim.nv", "swp2 packet-trim", "swp9 packet-trim", "swp2 without trimming"),
    ] {
        let rendered = Rendered::of(&trimming(name));
        let right = fs::read_to_string(rendered.path(file)).unwrap();
        assert!(right.contains(from), "{file}: {from}");
        fs::write(rendered.path(file), right.replace(from, to)).unwrap();
        let ended = rendered.check();
        let printed = String::from_utf8_lossy(&ended.stdout);
        assert_eq!(ended.code, Some(1), "{file}: {to}: {printed}{}", ended.stderr);
        assert!(printed.contains(finding), "{file}: {to}: {printed}");
    }
}

#[test]
fn one_to_four_rendered_dscps_pass_the_check() {
    let all = [43, 45, 47, 41];
    for platform in &PLATFORMS {
        for count in 1..=all.len() {
            let dscps = format!("dscps = {:?}\n", &all[..count]);
            let rendered = Rendered::of(&platform.many().replace("dscp = 43\n", &dscps));
            assert_clean(&rendered);
            if count == 1 {
                assert_eq!(text(&rendered), text(&Rendered::of(&platform.many())));
            }
        }
    }
}

#[test]
fn a_switch_of_32_ports_matches_its_golden_file() {
    let mut all = String::new();
    for platform in &PLATFORMS {
        let rendered = Rendered::of(&platform.many());
        for (name, text) in rendered.files() {
            let digest = blake3::hash(text.as_bytes()).to_hex();
            let _ = writeln!(
                all,
                "{} {name} {} lines {}",
                platform.name,
                text.lines().count(),
                &digest[..16]
            );
        }
    }
    compare("ports32.txt", &all);
}

#[test]
fn rendered_files_pass_the_check() {
    for platform in &PLATFORMS {
        (1..=2).for_each(|leaf| assert_clean(&Rendered::of(&platform.leaf(leaf))));
        (1..=4).for_each(|spine| assert_clean(&Rendered::of(&platform.spine(spine))));
        assert_clean(&Rendered::of(&platform.many()));
    }
}

#[test]
fn the_shipped_example_renders() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../switch-configs/example.toml");
    assert_clean(&Rendered::of(&fs::read_to_string(example).unwrap()));
}

#[test]
fn platforms_that_name_ports_name_all_32() {
    for platform in &PLATFORMS {
        let qos: String = (Rendered::of(&platform.many()).files().into_iter())
            .filter(|(name, _)| name.starts_with("qos."))
            .map(|(_, text)| text)
            .collect();
        // Both versions of Cumulus Linux set all ports at once.
        if platform.name.starts_with("cumulus") {
            assert!(!qos.contains("swp"), "{qos}");
            continue;
        }
        let (start, range) = platform.many.trim_end_matches(']').split_once('[').unwrap();
        let (bounds, step) = range.split_once('/').unwrap_or((range, "1"));
        let (low, high) = bounds.split_once('-').unwrap();
        let low: usize = low.parse().unwrap();
        let high: usize = high.parse().unwrap();
        let numbers: Vec<usize> = (low..=high).step_by(step.parse().unwrap()).collect();
        assert_eq!(numbers.len(), 32);
        for number in numbers {
            assert!(qos.contains(&format!("{start}{number}")), "{}: {number}", platform.name);
        }
    }
}

#[test]
fn settings_without_a_public_source_are_listed_for_verification_on_the_device() {
    for (platform, file) in [
        ("picos", "qos.cli"),
        ("picos", "ecmp.cli"),
        ("picos", "paths.cli"),
        ("sonic", "verify.txt"),
        ("cumulus4", "qos.datapath.conf"),
        ("cumulus5", "qos.nv"),
        ("os10", "qos.cfg"),
        ("os10", "ecmp.cfg"),
        ("os10", "aeolus.cfg"),
        ("eos", "ecmp.cfg"),
        ("eos", "aeolus.cfg"),
        ("nxos", "aeolus.cfg"),
        ("iosxe", "aeolus.cfg"),
        ("openconfig", "verify.txt"),
        ("linux", "aeolus.sh"),
    ] {
        let rendered = Rendered::of(&find(platform).leaf(1));
        let text = fs::read_to_string(rendered.path(file)).unwrap();
        assert!(text.contains("verify on the device"), "{platform} {file}");
    }
}
