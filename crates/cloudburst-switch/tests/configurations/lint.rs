//! Which files and forms of a configuration are judged together, and which parts are skipped.

use crate::common::*;
use std::fs;

#[test]
fn one_form_of_a_configuration_does_not_hide_the_mistakes_of_the_other() {
    for (file, from, to) in [
        ("qos.cfg", " service-policy output CLOUDBURST-OUT\n", ""),
        ("qos.cfg", "  queue-limit 12112 bytes\n", ""),
        (
            "qos.native.json",
            ", \"Cisco-IOS-XE-policy:service-policy\": {\"output\": \"CLOUDBURST-OUT\"}",
            "",
        ),
        ("qos.native.json", "\"dscp\": [43]", "\"dscp\": [42]"),
        ("qos.cfg", "", "! nothing\n"),
        ("qos.native.json", "", "{}"),
    ] {
        let rendered = Rendered::of(&find("iosxe").leaf(1));
        let text = fs::read_to_string(rendered.path(file)).unwrap();
        assert!(text.contains(from), "{text}");
        let text = if from.is_empty() { to.into() } else { text.replace(from, to) };
        fs::write(rendered.path(file), text).unwrap();
        assert_eq!(rendered.check().code, Some(1), "{file}: {from:?}");
    }
    // A file is the form that its name says, whatever is left in it.
    let rendered = Rendered::of(&find("iosxe").leaf(1));
    let text = fs::read_to_string(rendered.path("qos.cfg")).unwrap();
    let is_left = |line: &&str| !line.contains("class-map") && !line.contains("service-policy");
    let text: Vec<&str> = text.lines().filter(is_left).collect();
    fs::write(rendered.path("qos.cfg"), text.join("\n")).unwrap();
    assert_eq!(rendered.check().code, Some(1));
    // A switch's configuration is one text, with settings that exist only as commands. The model is judged separately.
    let rendered = Rendered::of(&find("iosxe").leaf(1));
    let running = ["qos.cfg", "aeolus.cfg", "ecmp.cfg", "paths.cfg"]
        .map(|name| fs::read_to_string(rendered.path(name)).unwrap());
    fs::write(rendered.path("running"), running.concat()).unwrap();
    let both = ["running", "qos.native.json"].map(|name| rendered.path(name));
    let ended = rendered.check_files(&both);
    assert_eq!(ended.code, Some(0), "{}", String::from_utf8_lossy(&ended.stdout));
    // Either form alone is complete. The hash exists only as commands.
    let rendered = Rendered::of(&find("iosxe").many());
    for form in ["qos.cfg", "qos.native.json"] {
        let ended = rendered.check_files(&[form, "ecmp.cfg"].map(|name| rendered.path(name)));
        assert_eq!(ended.code, Some(0), "{}", String::from_utf8_lossy(&ended.stdout));
    }
}

#[test]
fn a_configuration_without_an_ecmp_hash_is_incomplete() {
    for platform in &PLATFORMS {
        let rendered = Rendered::of(&platform.leaf(1));
        let files = rendered.files().into_iter().map(|(name, _)| name);
        let files: Vec<_> = files
            .filter(|name| !name.starts_with("ecmp."))
            .map(|name| rendered.path(&name))
            .collect();
        let ended = rendered.check_files(&files);
        let printed = String::from_utf8_lossy(&ended.stdout);
        // Its models have no field for the hash.
        if platform.name == "openconfig" {
            assert_eq!(ended.code, Some(0), "{printed}");
        } else {
            assert_eq!(ended.code, Some(1), "{}", platform.name);
            assert!(printed.contains("ECMP hash"), "{}: {printed}", platform.name);
        }
    }
}

#[test]
fn a_patch_is_read_as_the_tables_that_it_adds() {
    let rendered = Rendered::of(&find("sonic").leaf(1));
    let patch = rendered.path("qos.patch.json");
    let files = ["qos.patch.json", "ecmp.json", "paths.json", "aeolus.json"];
    let files = files.map(|name| rendered.path(name));
    assert_eq!(rendered.check_files(&files).code, Some(0));
    let text = fs::read_to_string(&patch).unwrap();
    fs::write(&patch, text.replace("\"static_th\": \"13312\"", "\"static_th\": \"0\"")).unwrap();
    let ended = rendered.check_files(&files);
    let printed = String::from_utf8_lossy(&ended.stdout);
    assert!(
        printed.contains("qos.patch.json:4: the tiny queue's limit is static_th 0"),
        "{printed}"
    );
}

#[test]
fn the_operations_of_a_patch_are_applied() {
    for (operation, finding) in [
        (
            r#"{"op": "replace", "path": "/BUFFER_QUEUE", "value": {}}"#,
            "Ethernet0 and 7 more ports without a limit",
        ),
        (
            r#"{"op": "replace", "path": "/DSCP_TO_TC_MAP/CLOUDBURST", "value": {"43": "5"}}"#,
            "63 DSCPs have no class",
        ),
        (
            r#"{"op": "add", "path": "/QUEUE/Ethernet4|5", "value": {}}"#,
            "Ethernet4 without the shares",
        ),
        (
            r#"{"op": "move", "from": "/BUFFER_QUEUE/Ethernet4|5", "path": "/BUFFER_QUEUE/Ethernet4|4"}"#,
            "Ethernet4 without a limit",
        ),
        (
            r#"{"op": "copy", "from": "/SCHEDULER/cloudburst_default", "path": "/SCHEDULER/cloudburst_tiny"}"#,
            "share of the tiny queue is 3",
        ),
        (
            r#"{"op": "test", "path": "/BUFFER_QUEUE/Ethernet4|5/profile", "value": "other"}"#,
            "test /BUFFER_QUEUE/Ethernet4|5/profile fails: value did not match",
        ),
        (r#"{"op": "remove", "path": "/QUEUE/Ethernet4|7"}"#, "remove /QUEUE/Ethernet4|7 fails"),
        (
            r#"{"op": "replace", "path": "/QUEUE/Ethernet4|7", "value": {}}"#,
            "replace /QUEUE/Ethernet4|7 fails",
        ),
        (
            r#"{"op": "merge", "path": "/QUEUE", "value": {}}"#,
            "merge /QUEUE fails: unknown variant",
        ),
        (r#"{"op": "add", "path": "/QUEUE"}"#, "add /QUEUE fails: missing field"),
    ] {
        let mut parameters = find("sonic").leaf(1);
        parameters = parameters.replace("aeolus = \"6144 bytes\"\n", "");
        let rendered = Rendered::of(&parameters);
        let patch = rendered.path("qos.patch.json");
        let text = fs::read_to_string(&patch).unwrap();
        let end = text.rfind(']').unwrap();
        fs::write(&patch, format!("{},{operation}]", &text[..end])).unwrap();
        let ended = rendered.check();
        let printed = String::from_utf8_lossy(&ended.stdout);
        assert_eq!(ended.code, Some(1), "{operation}");
        assert!(printed.contains(finding), "{operation} should say {finding:?}, not:\n{printed}");
    }
}

#[test]
fn a_patch_of_a_whole_configuration_needs_the_tables_that_it_adds_to() {
    let rendered = Rendered::of(&find("sonic").leaf(1));
    let whole = rendered.path("config_db.json");
    let files = ["aeolus.json", "ecmp.json", "paths.json", "qos.patch.json", "config_db.json"];
    let files = files.map(|name| rendered.path(name));
    let table = "{\"Ethernet0\": {}, \"Ethernet4\": {}, \"Ethernet8\": {}, \"Ethernet12\": {}, \"Ethernet16\": {}, \
                 \"Ethernet20\": {}, \"Ethernet24\": {}, \"Ethernet28\": {}}";
    let tables = ["DSCP_TO_TC_MAP", "TC_TO_QUEUE_MAP", "BUFFER_PROFILE", "SCHEDULER", "QUEUE"];
    let tables: String = tables.iter().map(|name| format!("\"{name}\": {{}}, ")).collect();
    for (more, code, finding) in [
        ("\"BUFFER_QUEUE\": {},", 0, "confirmed"),
        ("", 1, "add /BUFFER_QUEUE/Ethernet0|5 fails: path is invalid"),
    ] {
        let text =
            format!("{{\"DEVICE_METADATA\": {{}}, {tables} {more} \"PORT_QOS_MAP\": {table}}}");
        fs::write(&whole, text).unwrap();
        let ended = rendered.check_files(&files);
        let printed = String::from_utf8_lossy(&ended.stdout);
        assert_eq!(ended.code, Some(code), "{printed}");
        assert!(printed.contains(finding), "{printed}");
    }
}

#[test]
fn ports_may_be_configured_in_ranges() {
    for (platform, range) in [
        ("nxos", "interface Ethernet1/1-4, ethernet1/5 - 1/8\n"),
        ("iosxe", "interface range Gi1-4 , TenGigabitEthernet0/0/1 - 4\n"),
        ("os10", "interface range ethernet1/1/1-1/1/8\n"),
        ("eos", "interface Ethernet1-8\n"),
    ] {
        let rendered = Rendered::of(&find(platform).leaf(1));
        let text = fs::read_to_string(rendered.path("qos.cfg")).unwrap();
        let port = find(platform).ports[0];
        let (before, of_ports) = text.split_once(&format!("interface {port}\n")).unwrap();
        let one = of_ports.split("interface ").next().unwrap();
        fs::write(rendered.path("qos.cfg"), format!("{before}{range}{one}")).unwrap();
        let names = ["qos.cfg", "aeolus.cfg", "ecmp.cfg", "paths.cfg"];
        let ended = rendered.check_files(&names.map(|name| rendered.path(name)));
        assert_eq!(ended.code, Some(0), "{}", String::from_utf8_lossy(&ended.stdout));
    }
}

#[test]
fn an_endless_json_path_is_reported_and_not_followed() {
    let rendered = Rendered::of(&find("sonic").leaf(1));
    let path = "/a".repeat(200_000);
    let patch = format!("[{{\"op\": \"add\", \"path\": \"{path}\", \"value\": 1}}]");
    fs::write(rendered.path("qos.patch.json"), patch).unwrap();
    let ended = rendered.check();
    let printed = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(
        printed.contains("qos.patch.json: operation 1: a path of more than 16 parts"),
        "{printed}"
    );
}

#[test]
fn one_file_can_be_given_by_a_flag() {
    let rendered = Rendered::of(&find("nxos").many());
    let all: String = ["qos.cfg", "ecmp.cfg"]
        .map(|name| fs::read_to_string(rendered.path(name)).unwrap())
        .concat();
    let running = rendered.dir().join("running-config");
    fs::write(&running, all).unwrap();
    let mut check = command(&["--check"]);
    check.arg(&running).arg("--params").arg(rendered.dir().join("params.toml"));
    let ended = run(&mut check);
    assert_eq!(ended.code, Some(0), "{}", String::from_utf8_lossy(&ended.stdout));
}

#[test]
fn a_route_may_have_a_name_and_a_port_any_case() {
    for (platform, file, from, to) in [
        ("nxos", "paths.cfg", " 10.3.0.1\n", " 10.3.0.1 name cloudburst\n"),
        ("eos", "paths.cfg", " 10.3.0.1\n", " 10.3.0.1 name cloudburst\n"),
        ("iosxe", "paths.cfg", " 10.3.0.1\n", " 10.3.0.1 permanent\n"),
        ("os10", "paths.cfg", " 10.3.0.1\n", " 10.3.0.1 5\n"),
        ("os10", "qos.cfg", "interface ethernet", "interface Ethernet"),
    ] {
        let rendered = Rendered::of(&find(platform).leaf(1));
        let text = fs::read_to_string(rendered.path(file)).unwrap();
        assert!(text.contains(from), "{platform}");
        fs::write(rendered.path(file), text.replace(from, to)).unwrap();
        let ended = rendered.check();
        assert_eq!(ended.code, Some(0), "{}", String::from_utf8_lossy(&ended.stdout));
    }
}

#[test]
fn the_linux_class_that_shares_a_link_may_have_any_number() {
    for parameters in [find("linux").many(), find("linux").classes()] {
        let rendered = Rendered::of(&parameters);
        let text = fs::read_to_string(rendered.path("qos.sh")).unwrap();
        let other =
            text.replace("classid 1:1 ", "classid 1:ff ").replace("parent 1:1 ", "parent 1:ff ");
        assert_ne!(text, other);
        fs::write(rendered.path("qos.sh"), other).unwrap();
        let ended = rendered.check();
        assert_eq!(ended.code, Some(0), "{}", String::from_utf8_lossy(&ended.stdout));
    }
}

#[test]
fn other_classes_may_take_their_share_from_the_default_queue() {
    let rendered = Rendered::of(&find("nxos").leaf(1));
    let text = fs::read_to_string(rendered.path("qos.cfg")).unwrap();
    let share = |queue: &str| {
        let class = format!("  class type queuing {queue}\n    bandwidth remaining percent ");
        let at = text.find(&class).unwrap() + class.len();
        let percent: u64 = text[at..].lines().next().unwrap().parse().unwrap();
        (class, percent)
    };
    let (six, old) = share("c-out-8q-q6");
    let (default, all) = share("c-out-8q-q-default");
    let more = text.replace(&format!("{six}{old}\n"), &format!("{six}{}\n", old + 10));
    fs::write(
        rendered.path("qos.cfg"),
        more.replace(&format!("{default}{all}\n"), &format!("{default}{}\n", all - 10)),
    )
    .unwrap();
    let ended = rendered.check();
    assert_eq!(ended.code, Some(0), "{}", String::from_utf8_lossy(&ended.stdout));
}

#[test]
fn selective_dropping_without_a_parameter_is_reported() {
    for platform in PLATFORMS.iter().filter(|each| each.leaf(1).contains("aeolus")) {
        let rendered = Rendered::of(&platform.leaf(1));
        let parameters = platform.leaf(1);
        let without = parameters.lines().filter(|line| !line.starts_with("aeolus"));
        let without: Vec<&str> = without.collect();
        fs::write(rendered.dir().join("params.toml"), without.join("\n")).unwrap();
        let printed = String::from_utf8_lossy(&rendered.check().stdout).into_owned();
        let is_found =
            |line: &str| line.contains("selective dropping from") && line.contains("expected none");
        assert!(printed.lines().any(is_found), "{}: {printed}", platform.name);
    }
}

#[test]
fn unrelated_configuration_is_ignored() {
    let rendered = Rendered::of(&find("iosxe").many());
    let running = rendered.path("qos.cfg");
    let text = fs::read_to_string(&running).unwrap();
    let more =
        "hostname r1\nrouter bgp 65000\n neighbor 10.0.0.1 remote-as 65001\n!\nline vty 0 4\n";
    fs::write(&running, format!("{more}{text}end\n")).unwrap();
    assert_eq!(rendered.check().code, Some(0));
}

#[test]
fn truncated_files_are_reported_and_never_panic() {
    for platform in &PLATFORMS {
        let rendered = Rendered::of(&platform.leaf(1));
        // Other forms of the queue would be complete.
        let is_other = |name: &String| matches!(&**name, "qos.patch.json" | "qos.native.json");
        let is_queue = |name: &&String| name.starts_with("qos.");
        let names = rendered.files().into_iter().map(|(name, _)| name);
        let names: Vec<_> = names.filter(|name| !is_other(name)).collect();
        let files: Vec<_> = names.iter().map(|name| rendered.path(name)).collect();
        for name in names.iter().filter(is_queue) {
            let text = fs::read_to_string(rendered.path(name)).unwrap();
            for tenth in 0..=10 {
                fs::write(rendered.path(name), &text[..text.len() * tenth / 10]).unwrap();
                let ended = rendered.check_files(&files);
                let printed = String::from_utf8_lossy(&ended.stdout);
                let code = i32::from(tenth < 10);
                assert_eq!(ended.code, Some(code), "{} {name} {tenth}: {printed}", platform.name);
            }
        }
    }
}

#[test]
fn large_and_deep_configurations_are_read_to_the_end() {
    let rendered = Rendered::of(&find("eos").leaf(1));
    let text = fs::read_to_string(rendered.path("qos.cfg")).unwrap();
    let list: String =
        (0..200_000).map(|number| format!("   {number} permit ip any any log\n")).collect();
    fs::write(rendered.path("qos.cfg"), format!("ip access-list A\n{list}{text}")).unwrap();
    assert_eq!(rendered.check().code, Some(0));
    let deep: String = (0..400).map(|depth| format!("{:depth$}a\n", "")).collect();
    fs::write(rendered.path("qos.cfg"), format!("{deep}{text}")).unwrap();
    let ended = rendered.check();
    let printed = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(printed.contains("qos.cfg:17: `a` is not understood"), "{printed:.500}");
}

#[test]
fn senders_of_decapsulated_packets_are_rendered_and_a_wider_rule_is_reported() {
    let from = "decapsulate_from = [\"10.1.0.0/16\", \"10.2.0.0/16\"]\n";
    let parameters = format!("{from}{}", find("linux").spine(1));
    let rendered = Rendered::of(&parameters);
    assert!(!rendered.printed.contains("from any sender"), "{}", rendered.printed);
    assert_eq!(rendered.check().code, Some(0));
    let right = fs::read_to_string(rendered.path("paths.sh")).unwrap();
    for (from, to) in [
        ("10.1.0.0/16, ", ""),
        ("10.1.0.0/16", "0.0.0.0/0"),
        ("daddr 10.3.0.1", "daddr 10.3.0.2"),
        ("ip link set cloudburst up", "nft delete table ip cloudburst"),
        (" drop\n", " accept\n"),
    ] {
        assert!(right.contains(from), "{from}");
        fs::write(rendered.path("paths.sh"), right.replace(from, to)).unwrap();
        let ended = rendered.check();
        let printed = String::from_utf8_lossy(&ended.stdout);
        assert_eq!(ended.code, Some(1), "{from}: {printed}");
        assert!(printed.contains("are decapsulated from unintended senders"), "{from}: {printed}");
    }
    let open = Rendered::of(&find("linux").spine(1));
    assert!(open.printed.contains("are decapsulated from any sender"), "{}", open.printed);
}
