//! Invalid parameters are refused in one line, before anything is written, and rounding is reported.

use crate::common::*;

/// Valid parameters, in which `lines` replace those with the same keys.
fn with(platform: &str, lines: &str) -> String {
    let mut text = find(platform).many();
    if lines.contains("dscps") {
        text = text.replace("dscp = 43\n", "");
    }
    for line in lines.lines() {
        let key = line.split('=').next().unwrap_or("");
        let kept: Vec<&str> = text.lines().filter(|line| !line.starts_with(key)).collect();
        text = format!("{line}\n{}\n", kept.join("\n"));
    }
    text
}

fn refusal(parameters: &str) -> String {
    let (dir, ended) = render(parameters, &[]);
    assert_eq!(ended.code, Some(2), "{parameters}\n{}", String::from_utf8_lossy(&ended.stdout));
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    assert!(!dir.path().join("out").exists());
    ended.stderr
}

#[test]
fn parameters_that_would_break_the_network_are_refused() {
    for (platform, lines, printed) in [
        ("eos", "limit = \"1000 bytes\"", "a packet of MTU 1500 takes 1664"),
        ("nxos", "limit = \"0 packets\"", "would drop everything"),
        ("sonic", "limit = \"0 bytes\"", "SONiC takes a static threshold of 0 as no limit"),
        ("sonic", "limit = \"100 bytes\"", "would drop everything"),
        ("linux", "limit = \"1000 bytes\"", "takes 1514"),
        ("os10", "limit = \"1800 bytes\"\nmtu = 1600", "units of 1024 bytes"),
        ("eos", "limit = \"5M bytes\"", "more than the whole buffer of 4000000"),
        ("eos", "limit = \"eight\"", "expected \"8 packets\""),
        ("eos", "classes = { 43 = 3 }", "dscp = 43 is in use already"),
        ("eos", "dscp = 0", "the DSCP of all unmarked packets"),
        ("nxos", "dscp = 46", "has a name, ef, and nxos prints the name"),
        ("iosxe", "dscp = 40", "has a name, cs5"),
        ("eos", "trim = { bytes = 256, dscp = 49, queue = 6 }", "no template for packet trimming"),
        ("sonic", "trim = { bytes = 64, dscp = 49, queue = 6 }", "expected 112 to 1024"),
        ("cumulus5", "trim = { bytes = 128, dscp = 49, queue = 6 }", "expected 256 to 1024"),
        ("cumulus5", "trim = { bytes = 258, dscp = 49, queue = 6 }", "a multiple of 4"),
        ("sonic", "trim = { bytes = 128, dscp = 43, queue = 6 }", "trim.dscp = 43"),
        ("sonic", "trim = { bytes = 128, dscp = 49, queue = 5 }", "trim.queue = 5"),
        ("sonic", "trim = { bytes = 128, dscp = 49, queue = 0 }", "the default queue"),
        ("eos", "dscp = 43\ndscps = [43, 45]", "expected it or `dscp`, and not both"),
        ("eos", "dscps = [43, 45, 43]", "dscps = [43, 45, 43]: expected each once"),
        ("eos", "dscps = [41, 42, 43, 45, 47]", "expected at most four"),
        ("eos", "dscps = [43, 0]", "the DSCP of all unmarked packets"),
        ("eos", "dscps = [43, 45]\nqueue = 2", "queue = 1 is the default queue"),
        ("sonic", "dscps = [43, 45, 47]\npfc = [3]\nclasses = { 3 = 3 }", "puts DSCP 3 there too"),
        ("nxos", "dscps = [43, 46]", "has a name, ef"),
        (
            "picos",
            "dscps = [41, 43, 45, 47]\nweights = { tiny = 1, default = 2 }",
            "4 DSCPs need [8, 4, 2, 1] to 30",
        ),
        (
            "os10",
            "dscps = [43, 45, 47]\nweights = { tiny = 1, default = 49 }",
            "this is 2 %; give each queue",
        ),
        ("eos", "dscp = 64", "dscp = 64: expected 0 to 63"),
        ("sonic", "classes = { 46 = 5 }", "puts DSCP 46 there too"),
        ("sonic", "classes = { 99 = 1 }", "expected a DSCP"),
        ("sonic", "pfc = [3]", "no entry of `classes` is 3: sonic is given the class of all 64"),
        ("cumulus4", "pfc = [4]\nclasses = { 3 = 3 }", "no entry of `classes` is 4"),
        ("iosxe", "classes = { 46 = 6 }", "iosxe has no template for the classes of other DSCPs"),
        ("linux", "classes = { 46 = 6 }", "omit classes"),
        ("openconfig", "classes = { 46 = 6 }", "omit classes"),
        ("os10", "limit = \"2000 bytes\"\nmtu = 576", "takes 2048"),
        ("os10", "aeolus = \"1800 bytes\"", "is 1024 bytes: expected at least a packet"),
        ("linux", "limit = \"5000000 packets\"\nbuffer = \"900G\"", "no tiny queue"),
        ("iosxe", "limit = \"5M bytes\"\nbuffer = \"9M\"", "give at most 4000000 bytes"),
        ("sonic", "rate = \"18446744073709551615\"", "expected 8000 to 10000000000000"),
        ("sonic", "name = \"{{lookup}}\"", "expected letters, digits, dots"),
        ("nxos", "ports = [\"Ethernet1/1\", \"ethernet1/1\"]", "ethernet1/1 is listed twice"),
        ("sonic", "pfc = [3, 5]", "queue = 5 has PFC"),
        ("sonic", "queue = 0", "the default queue"),
        ("eos", "queue = 1", "EOS puts DSCP 0 into class 1"),
        ("cumulus4", "queue = 3", "packets of the switch's CPU"),
        ("sonic", "queue = 8", "queue = 8: expected 1 to 7"),
        ("sonic", "weights = { tiny = 101, default = 1 }", "sonic takes 1 to 100"),
        ("cumulus4", "weights = { tiny = 0, default = 1 }", "strict priority"),
        ("cumulus4", "weights = { tiny = 1, default = 128 }", "cumulus4 takes 1 to 127"),
        ("picos", "weights = { tiny = 1, default = 16 }", "picos takes 1 to 15"),
        ("nxos", "weights = { tiny = 1, default = 300 }", "this is 0 %"),
        (
            "linux",
            "weights = { tiny = 1, default = 40 }\nmtu = 9000",
            "1 to 22 with frames of 9014",
        ),
        ("eos", "ports = [\"Ethernet[1-4]\", \"Ethernet3\"]", "port Ethernet3 is listed twice"),
        ("eos", "ports = []", "there are no ports"),
        ("linux", "ports = [\"eth0; reboot\"]", "expected a name, or a range"),
        ("eos", "seed = 6", "eos takes 1 to 5"),
        ("nxos", "seed = 0", "nxos takes 1 to"),
        ("cumulus4", "aeolus = \"6144 bytes\"", "cumulus4 has no template for selective dropping"),
        ("eos", "aeolus = \"1000 bytes\"", "at least a packet"),
        ("eos", "aeolus = \"50 %\"", "aeolus = 50 %: expected packets or bytes"),
        ("iosxe", "decapsulate = \"10.3.0.1\"", "iosxe has no template for decapsulating IP-in-IP"),
        ("eos", "name = \"a\\nreload\"", "name = "),
        (
            "eos",
            "chip = \"trident5\"",
            "chip = trident5: expected one of bcm56538, trident+, trident2, tomahawk, tofino",
        ),
        ("linux", "chip = \"trident2\"", "linux has queues in software"),
        ("sonic", "mmus = 0", "mmus = 0: expected 1 to 64"),
        ("eos", "platform = \"junos\"", "junos: expected a platform"),
        ("eos", "speed = 3", "unknown field `speed`"),
        ("eos", "rate = \"fast\"", "rate = fast: expected at least 8k"),
    ] {
        let refusal = refusal(&with(platform, lines));
        assert!(refusal.contains(printed), "{platform}, {lines}: {refusal}");
    }
}

#[test]
fn missing_parameters_are_named() {
    for key in ["platform", "rate", "limit", "seed"] {
        let text = find("nxos").many();
        let kept: Vec<&str> = text.lines().filter(|line| !line.starts_with(key)).collect();
        let refusal = refusal(&kept.join("\n"));
        assert!(refusal.contains(&format!("{key} is not given")), "{refusal}");
    }
    let text = find("sonic").many();
    let kept: Vec<&str> = text.lines().filter(|line| !line.starts_with("buffer")).collect();
    assert!(refusal(&kept.join("\n")).contains("whose size is not given"));
}

#[test]
fn routes_are_complete_and_unique() {
    let route = |to: &str, port: &str| {
        format!("[[routes]]\nto = \"{to}\"\nvia = \"10.3.0.1\"\nport = \"{port}\"\n")
    };
    let start = find("eos").many();
    for (routes, printed) in [
        (route("10.1.0.0/16", "Ethernet1"), "expected an IPv4 prefix of 32 bits"),
        (route("10.101.2.5/32", "Ethernet99"), "port Ethernet99 is not among"),
        (route("10.101.2.5/32", "Ethernet1").repeat(2), "is listed twice: a path has one next hop"),
    ] {
        let refusal = refusal(&format!("{start}{routes}"));
        assert!(refusal.contains(printed), "{refusal}");
    }
}

#[test]
fn a_file_that_is_not_toml_is_named_with_its_line() {
    let refusal = refusal("platform = \"eos\"\nports = [\n\"Ethernet1\"\nrate = 3\n");
    assert!(refusal.contains("params.toml: line "), "{refusal}");
}

#[test]
fn options_take_precedence_and_the_delay_is_reported() {
    let flags = ["--limit", "1 %", "--buffer", "4M", "--rate", "1G", "--weights", "1:3"];
    let (dir, ended) = render(&find("sonic").leaf(1).replace("aeolus", "#"), &flags);
    let printed = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(
        printed.contains("holds 39936 bytes: 192 cells of 208 bytes, 24 packets of MTU 1500"),
        "{printed}"
    );
    // 39,936 bytes at 1 Gb/s, and at a quarter of it.
    assert!(printed.contains("319.5 us with the link to itself, 1278.0 us beside"), "{printed}");
    let qos = std::fs::read_to_string(dir.path().join("out/qos.json")).unwrap();
    assert!(qos.contains("\"static_th\": \"39936\""), "{qos}");
}

#[test]
fn a_chip_sets_defaults_that_parameters_replace() {
    let start = find("sonic").many().replace("buffer = \"4M\"\n", "");
    let printed = |lines: &str, flags: &[&str]| {
        let (_, ended) = render(&format!("{lines}\n{start}"), flags);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        String::from_utf8_lossy(&ended.stdout).into_owned()
    };
    for (lines, flags, expected) in [
        (
            "chip = \"trident2\"",
            &[][..],
            &[
                "chip trident2: 12000000 bytes of buffer in cells of 208 bytes\n",
                "holds 119808 bytes: 576 cells of 208 bytes",
            ][..],
        ),
        (
            "chip = \"tomahawk\"",
            &[],
            &["chip tomahawk: 4 MMUs, each with 4000000 bytes of buffer", "holds 39936 bytes"],
        ),
        (
            "chip = \"tomahawk\"\nbuffer = \"8M\"\ncell = 256\nmmus = 2",
            &[],
            &[
                "chip tomahawk: 2 MMUs, each with 4000000 bytes of buffer in cells of 256 bytes\n",
                "buffer = 8000000 is given, and replaces tomahawk's 16000000\n",
                "mmus = 2 is given, and replaces tomahawk's 4\n",
                "cell = 256 is given, and replaces tomahawk's 208\n",
                "holds 39936 bytes: 156 cells of 256 bytes",
            ],
        ),
        ("chip = \"trident2\"", &["--chip", "trident+"], &["chip trident+: 9000000 bytes"]),
        ("chip = \"tofino\"", &[], &["no public source has the cell size of tofino"]),
        ("buffer = \"16M\"\nmmus = 4", &[], &["holds 39936 bytes"]),
    ] {
        let printed = printed(lines, flags);
        for expected in expected {
            assert!(printed.contains(expected), "{lines}: {printed}");
        }
        assert_eq!(printed.contains("is given"), lines.contains("cell"), "{printed}");
    }
}

#[test]
fn edited_files_are_kept_and_stale_ones_removed_only_by_force() {
    let (dir, ended) = render(&find("sonic").leaf(1), &[]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let out = dir.path().join("out");
    let again = |parameters: &str, flags: &[&str]| {
        let params = dir.path().join("params.toml");
        std::fs::write(&params, parameters).unwrap();
        let mut again = command(&["render", "--params"]);
        again.arg(&params).arg("--out").arg(&out).args(flags);
        run(&mut again)
    };
    assert_eq!(again(&find("sonic").leaf(1), &[]).code, Some(0), "the same, once more");
    std::fs::write(out.join("qos.json"), "edited").unwrap();
    std::fs::write(out.join("notes"), "the operator's own").unwrap();
    let refused = again(&find("sonic").leaf(1), &[]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("qos.json exists and is not"), "{}", refused.stderr);
    assert_eq!(std::fs::read_to_string(out.join("qos.json")).unwrap(), "edited");
    // Without routes and thresholds, two files are no longer part of it.
    assert_eq!(again(&find("sonic").many(), &["--force"]).code, Some(0));
    for (file, is_there) in
        [("qos.json", true), ("notes", true), ("aeolus.json", false), ("paths.json", false)]
    {
        assert_eq!(out.join(file).exists(), is_there, "{file}");
    }
}

#[test]
fn senders_of_decapsulated_packets_are_prefixes_on_platforms_that_can_filter_them() {
    let refused = |platform: &str, from: &str| {
        refusal(&format!("decapsulate_from = [{from:?}]\n{}", find(platform).spine(1)))
    };
    for from in ["10.1.0.0", "10.1.0.1/16", "10.1.0.0/33", "::/0", "all"] {
        assert!(refused("linux", from).contains("such as 10.1.0.0/16"), "{from}");
    }
    assert!(refused("eos", "10.1.0.0/16").contains("decapsulate_from"));
    let many = format!("decapsulate_from = [\"10.1.0.0/16\"]\n{}", find("linux").many());
    assert!(refusal(&many).contains("decapsulate"));
}

#[test]
fn a_key_that_does_not_exist_is_named_with_its_line() {
    let printed = refusal("platform = \"linux\"\nprots = []\n");
    assert!(printed.contains("line 2: unknown field `prots`"), "{printed}");
}

#[test]
fn all_platforms_are_listed() {
    let mut list = command(&["platforms"]);
    let ended = run(&mut list);
    let printed = String::from_utf8_lossy(&ended.stdout);
    for platform in &PLATFORMS {
        assert!(printed.lines().any(|line| line.starts_with(platform.name)), "{printed}");
    }
}

#[test]
fn control_characters_in_parameters_are_escaped() {
    let hidden = "x\x1b[2J\u{202e}";
    for mut command in [
        command(&["check", "--params", hidden, hidden]),
        command(&["render", "--params", "x", "--out", "y", "--weights", hidden]),
    ] {
        let ended = run(&mut command);
        let acts = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
        assert!(
            !ended.stderr.contains(acts) && ended.stderr.contains("\\u{"),
            "{:?}",
            ended.stderr
        );
    }
}

#[test]
fn the_manual_page_and_completions_have_every_option() {
    for (form, begins) in [
        ("man", ".TH cbrst-switch 1"),
        ("bash", "-o default cbrst-switch\n"),
        ("zsh", "#compdef cbrst-switch"),
        ("fish", "complete -c cbrst-switch"),
    ] {
        let ended = run(&mut command(&["--generate", form]));
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
        let text = String::from_utf8(ended.stdout).unwrap();
        assert!(text.contains(begins), "{begins} in {text}");
        for option in ["params", "force", "weights"] {
            assert!(text.contains(option), "{option} in {form}");
        }
    }
}
