//! Commands of Linux in their normal form: without options, with full words.

use super::shell::Command;
use super::text::after;
use crate::intent::Intent;
use std::net::IpAddr;

/// The commands that set anything of interest.
pub(super) const WATCHED: [&str; 6] = ["dcb", "ethtool", "ip", "nft", "sysctl", "tc"];

/// Keys of `sysctl` that the checks read, and of their files.
const HASH: &str = "fib_multipath_hash";

/// What a command means to the checks.
#[derive(Debug, PartialEq)]
pub(super) enum Meaning {
    /// Nothing.
    Nothing,
    /// Something unknown, such as the commands in another file.
    Unknown,
    Known(Vec<String>),
}
use Meaning::{Known, Nothing, Unknown};

/// Returns the meaning of a command.
pub(super) fn read(intent: &Intent, command: &Command) -> Meaning {
    let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
    if command.files.iter().any(|file| file.contains(HASH)) {
        return Unknown;
    }
    match words[..] {
        // It may be any of them.
        [first, ref rest @ ..] if first.starts_with('$') => {
            let is_any = |name| of_words(intent, &[&[name], rest].concat()) != Nothing;
            if WATCHED.into_iter().any(is_any) { Unknown } else { Nothing }
        }
        _ => match of_words(intent, &words) {
            // It removes nothing.
            Known(words) if words.starts_with(&UP.map(Into::into)) && !command.is_certain => {
                Nothing
            }
            meaning => meaning,
        },
    }
}

/// The start of a command that turns a device on.
const UP: [&str; 3] = ["ip", "link", "up"];

fn of_words(intent: &Intent, words: &[&str]) -> Meaning {
    // A device that is a variable may be any.
    let is_other = |port: &str| !port.contains('$') && !intent.ports.iter().any(|own| own == port);
    match *words {
        ["tc", ref rest @ ..] => tc(rest, is_other),
        ["ip", ref rest @ ..] => ip(intent, rest),
        ["sysctl", ref rest @ ..] => sysctl(rest),
        ["ethtool", "-K" | "--features" | "--offload", port, ref features @ ..]
            if !is_other(port) =>
        {
            known(["ethtool", "-K", port].into_iter().chain(features.chunks(2).flat_map(offload)))
        }
        ["dcb", ref rest @ ..] => match without_options(rest)[..] {
            ["pfc", "set" | "replace", "dev", port, ..] if is_other(port) => Nothing,
            ["pfc", "set" | "replace", ..] => {
                known(["dcb"].into_iter().chain(without_options(rest)))
            }
            _ => Nothing,
        },
        ["nft", ..] if intent.decapsulate_from.is_empty() => Nothing,
        ["nft", ref rest @ ..] => {
            // Words may be quoted, one by one or all of them.
            let words: Vec<&str> = rest.iter().flat_map(|word| word.split_whitespace()).collect();
            let is_guard =
                words.last() == Some(&"drop") && words.join(" ").contains("ip protocol 4 ");
            let plain = without_options(&words);
            let removes = |word: &&str| matches!(*word, "flush" | "delete" | "destroy" | "replace");
            // In one word, there may be several commands.
            let is_list = rest.iter().any(|word| word.contains([';', '\n']));
            match plain[..] {
                _ if is_list && plain.iter().any(removes) => Unknown,
                ["add", "rule", ..] if is_guard => known(["nft"].into_iter().chain(plain)),
                [verb, ..] if removes(&verb) => known(["nft"].into_iter().chain(plain)),
                _ if words.iter().any(|word| matches!(*word, "-f" | "--file")) => Unknown,
                _ => Nothing,
            }
        }
        // A line of /etc/sysctl.d.
        [first, ..] if first.trim_start_matches('-').starts_with("net.") => {
            sysctl(&[words.concat().trim_start_matches('-')])
        }
        _ if words.iter().any(|word| word.contains(HASH)) && words.contains(&"tee") => Unknown,
        _ => Nothing,
    }
}

fn known<'a>(words: impl IntoIterator<Item = &'a str>) -> Meaning {
    Known(words.into_iter().map(Into::into).collect())
}

/// Returns the name that a word abbreviates. The first counts, as in iproute2.
fn full(word: &str, names: &[&'static str]) -> Option<&'static str> {
    names.iter().copied().find(|name| name.starts_with(word))
}

/// Returns the words after the options.
fn without_options<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let mut words = words.iter().copied().peekable();
    while let Some(option) = words.next_if(|word| word.starts_with('-')) {
        if ["-f", "-family", "-l", "-loops", "-n", "-netns", "-rc", "-rcvbuf"].contains(&option) {
            words.next();
        }
    }
    words.collect()
}

/// Whether the command is for another network namespace, or reads commands from a file.
fn is_elsewhere(words: &[&str]) -> bool {
    let is_option = |word: &&&str| word.starts_with('-') || word.starts_with("inet");
    words
        .iter()
        .take_while(is_option)
        .any(|option| ["-n", "-netns", "-b", "-batch", "-a", "-all"].contains(option))
}

fn tc(words: &[&str], is_other: impl Fn(&str) -> bool) -> Meaning {
    if is_elsewhere(words) {
        return Unknown;
    }
    let words = without_options(words);
    let (Some(kind), Some(verb)) = (words.first(), words.get(1)) else { return Nothing };
    let Some(kind) = full(kind, &["qdisc", "class", "filter"]) else {
        return if kind.contains('$') { Unknown } else { Nothing };
    };
    let device = after(&words, "dev");
    let is_inward =
        |word: &&str| matches!(*word, "ingress" | "clsact") || word.starts_with("ffff:");
    if device.is_some_and(is_other) || words.iter().any(is_inward) {
        return Nothing;
    }
    let verbs =
        ["add", "change", "replace", "link", "delete", "get", "list", "show", "lst", "help"];
    match full(verb, &verbs) {
        Some("get" | "list" | "show" | "lst" | "help") => Nothing,
        Some(verb) => {
            let rest = words[2..].iter().map(|word| handle(word));
            known(["tc", kind, verb].into_iter().chain(rest))
        }
        None => Unknown,
    }
}

/// Returns a handle without the number that may be left out: `1:0` is `1:`.
fn handle(word: &str) -> &str {
    match word.split_once(':') {
        Some((major, minor)) if minor.chars().all(|c| c == '0') => &word[..=major.len()],
        _ => word,
    }
}

fn ip(intent: &Intent, words: &[&str]) -> Meaning {
    let options: Vec<&&str> = words.iter().take_while(|word| word.starts_with('-')).collect();
    let is_ipv6 = options.iter().any(|option| **option == "-6") || words.contains(&"inet6");
    let is_foreign = is_elsewhere(words);
    let words = without_options(words);
    let Some(object) = words.first() else { return if is_foreign { Unknown } else { Nothing } };
    // As many as it takes to resolve abbreviations.
    let objects = ["address", "route", "rule", "neighbor", "link", "tunnel", "netns"];
    let object = full(object, &objects).unwrap_or(object);
    let verb = words.get(1).copied().unwrap_or("show");
    let rest = words.get(2..).unwrap_or(&[]);
    let is_set = match object {
        "route" if is_ipv6 => return Nothing,
        "route" => route(intent, verb, rest),
        "link" | "tunnel" => link(intent, object, verb, rest),
        "netns" if full(verb, &["list", "add", "set", "delete", "exec"]) == Some("exec") => {
            let is_watched = rest.iter().any(|word| WATCHED.contains(word));
            return if is_watched { Unknown } else { Nothing };
        }
        _ if object.contains('$') => Unknown,
        _ => Nothing,
    };
    if is_foreign && is_set != Nothing { Unknown } else { is_set }
}

/// Returns a command for intended routes as verb, prefix, device and protocol, and `via` with each next hop. A route
/// without a next hop, such as `blackhole`, has its kind in place of it.
fn route(intent: &Intent, verb: &str, words: &[&str]) -> Meaning {
    let verbs = [
        "list", "show", "lst", "get", "add", "change", "replace", "prepend", "append", "test",
        "delete", "save", "restore", "showdump", "flush", "help",
    ];
    let Some(verb) = full(verb, &verbs) else { return Unknown };
    if matches!(verb, "list" | "show" | "lst" | "get" | "test" | "save" | "showdump" | "help") {
        return Nothing;
    }
    if verb == "restore" {
        return Unknown;
    }
    let value = |key: &str| after(words, key);
    let is_main = |table: &str| matches!(table, "main" | "254" | "all");
    if value("vrf").is_some() || value("table").is_some_and(|table| !is_main(table)) {
        return Nothing;
    }
    let kinds = ["blackhole", "unreachable", "prohibit", "throw", "local", "broadcast", "nat"];
    let keys = ["dev", "from", "metric", "src", "table", "type", "via"];
    let mut to = None;
    let mut before = "";
    for &word in words {
        let address = word.split('/').next().unwrap_or(word);
        if to.is_none() && !keys.contains(&before) && address.parse::<IpAddr>().is_ok() {
            to = Some(if word.contains('/') { word.to_owned() } else { format!("{word}/32") });
        }
        before = word;
    }
    if to.is_none() && words.contains(&"default") {
        return Nothing;
    }
    let is_wider = words.iter().any(|word| matches!(*word, "root" | "match"));
    let to = match to {
        // It may be any route.
        None if verb != "flush" && !intent.routes.is_empty() => return Unknown,
        None if intent.routes.is_empty() || words == ["cache"] => return Nothing,
        _ if verb == "flush" && is_wider => None,
        Some(to) if intent.routes.iter().all(|route| route.to != to) => return Nothing,
        to => to,
    };
    let hops: Vec<&str> = match words.iter().find(|word| kinds.contains(word)) {
        Some(kind) => vec![kind],
        None => {
            let pairs = words.iter().zip(words.iter().skip(1));
            pairs.filter(|(key, _)| **key == "via").map(|(_, hop)| *hop).collect()
        }
    };
    let verb = if verb == "flush" && to.is_some() { "delete" } else { verb };
    let device = value("dev").filter(|_| !words.contains(&"nexthop"));
    let proto = value("proto").or(value("protocol")).filter(|proto| *proto != "all");
    let proto = proto.map(|proto| match proto {
        "3" => "boot",
        "4" => "static",
        proto => proto,
    });
    let pairs = [("to", to.as_deref()), ("dev", device), ("proto", proto)];
    let pairs = pairs.into_iter().filter_map(|(key, value)| Some([key, value?]));
    let hops = hops.into_iter().map(|hop| ["via", hop]);
    known(["ip", "route", verb].into_iter().chain(pairs.chain(hops).flatten()))
}

/// Returns a command for intended ports and tunnels as verb and name, and the local address of a tunnel.
fn link(intent: &Intent, object: &str, verb: &str, words: &[&str]) -> Meaning {
    let name = after(words, "dev").or(after(words, "name")).or(words.first().copied());
    let name = name.unwrap_or("");
    let start = |verb| ["ip", "link", verb, name].into_iter();
    let is_tunnel = intent.decapsulate.is_some();
    let is_port = name.contains('$') || intent.ports.iter().any(|own| own == name);
    let state = words.iter().rev().find(|word| matches!(**word, "up" | "down"));
    match full(verb, &["add", "set", "change", "delete", "show"]) {
        Some("delete") if is_tunnel || is_port => known(start("delete")),
        _ if !is_tunnel => Nothing,
        Some("add") if words.contains(&"ipip") => known(start("add").chain(words.iter().copied())),
        Some("set") if object == "link" => state.map_or(Nothing, |state| known(start(state))),
        _ => Nothing,
    }
}

fn sysctl(words: &[&str]) -> Meaning {
    let is_file = |option: &&str| {
        matches!(*option, "--system" | "--load")
            || option.starts_with("--load=")
            || option.starts_with('-') && !option.starts_with("--") && option.contains(['p', 'f'])
    };
    if words.iter().any(is_file) {
        return Unknown;
    }
    let mut settings = vec!["sysctl".to_owned()];
    for word in words.iter().filter(|word| !word.starts_with('-')) {
        let Some((key, value)) = word.split_once('=') else { continue };
        let key = key.trim().replace('/', ".");
        let value = value.trim();
        if key.contains('$') {
            return Unknown;
        }
        if key.contains(HASH) {
            settings.push(format!("{key}={value}"));
        }
    }
    if words.contains(&"=") && words.iter().any(|word| word.contains(HASH)) {
        return Unknown;
    }
    if settings.len() > 1 { Known(settings) } else { Nothing }
}

/// Returns the short name and the state of an offload. A part of one in the kernel's words turns it on, and not off.
fn offload<'a>(pair: &[&'a str]) -> Vec<&'a str> {
    let name = pair[0];
    let state = pair.get(1).copied().unwrap_or("");
    let name = match name {
        "tcp-segmentation-offload" => "tso",
        "generic-segmentation-offload" => "gso",
        "generic-receive-offload" | "rx-gro" => "gro",
        "tx-tcp-segmentation" | "tx-tcp6-segmentation" if state != "off" => "tso",
        "tx-generic-segmentation" if state != "off" => "gso",
        name => name,
    };
    vec![name, state]
}

#[cfg(test)]
mod tests {
    use super::super::facts::Facts;
    use super::super::shell;
    use super::super::text::File;
    use super::*;

    fn meanings(text: &str) -> Vec<String> {
        let params = "platform = \"linux\"\nports = [\"h1\"]\n\
                      limit = \"8 packets\"\nrate = \"10G\"\nseed = 1\ndecapsulate = \"10.0.0.1\"\n\
                      decapsulate_from = [\"10.0.0.0/8\"]\n\
                      [[routes]]\nto = \"10.1.1.1/32\"\nvia = \"10.2.0.1\"\nport = \"h1\"\n";
        let intent = Intent::new(toml::from_str(params).unwrap()).unwrap();
        let files = [File { name: "x".into(), text: text.into() }];
        let commands = shell::read(&files, &WATCHED, &mut Facts::default());
        let meaning = |command: &Command| match read(&intent, command) {
            Nothing => None,
            Known(words) if command.is_certain => Some(words.join(" ")),
            _ => Some("?".into()),
        };
        commands.iter().filter_map(meaning).collect()
    }

    #[test]
    fn a_command_has_one_normal_form() {
        for (text, expected) in [
            (
                "sudo -n /sbin/tc -force q d root dev h1 2>/dev/null || true",
                "tc qdisc delete root dev h1",
            ),
            ("tc filter del dev h1 parent 1:0 prio 1", "tc filter delete dev h1 parent 1: prio 1"),
            ("ip -4 -f inet ro del 10.1.1.1", "ip route delete to 10.1.1.1/32"),
            (
                "ip route replace to 10.1.1.1 nexthop via 10.0.0.1 nexthop via 10.0.0.2",
                "ip route replace to 10.1.1.1/32 via 10.0.0.1 via 10.0.0.2",
            ),
            ("ip r replace blackhole 10.1.1.1/32", "ip route replace to 10.1.1.1/32 via blackhole"),
            (
                "ip route add 10.1.1.1 via 10.0.0.1 dev h1 protocol 4 onlink",
                "ip route add to 10.1.1.1/32 dev h1 proto static via 10.0.0.1",
            ),
            ("ip route flush table main", "ip route flush"),
            ("ip route flush dev h1 proto boot", "ip route flush dev h1 proto boot"),
            ("ip route flush 10.1.1.1", "ip route delete to 10.1.1.1/32"),
            ("ip route flush root 10.0.0.0/8", "ip route flush"),
            ("ip link set down dev t; ip l del t", "ip link down t|ip link delete t"),
            (
                "sysctl -qw net/ipv4/fib_multipath_hash_policy=0 net.ipv4.ip_forward=1",
                "sysctl net.ipv4.fib_multipath_hash_policy=0",
            ),
            (
                "net.ipv4.fib_multipath_hash_policy = 0",
                "sysctl net.ipv4.fib_multipath_hash_policy=0",
            ),
            (
                "ethtool --offload h1 generic-receive-offload on tx-tcp-segmentation off",
                "ethtool -K h1 gro on tx-tcp-segmentation off",
            ),
            ("dcb -N pfc set dev h1 prio-pfc all:on", "dcb pfc set dev h1 prio-pfc all:on"),
            (
                "nft 'add rule ip a b ip protocol 4 ip daddr 10.0.0.1' drop",
                "nft add rule ip a b ip protocol 4 ip daddr 10.0.0.1 drop",
            ),
        ] {
            assert_eq!(meanings(text).join("|"), expected, "{text}");
        }
    }

    #[test]
    fn commands_without_effect_on_the_checks_are_ignored() {
        for text in [
            "tc qdisc show dev h1 # tc qdisc del dev h1 root",
            "tc qdisc del dev eth9 root",
            "tc qdisc add dev h1 clsact",
            "tc qdisc ls dev h1; tc filter lst dev h1; tc help; ip route help; ip route showdump",
            "ip route del 10.9.9.9; [ -e x ] && ip route flush 10.9.0.0/16",
            "ip route get 10.1.1.1; ip route flush cache; ip addr add 10.0.0.1/24 dev h1",
            "ip -6 route flush table main",
            "ip route add 10.1.1.1/32 via 10.0.0.9 table 7",
            "for port in h1; do ip link set $port up; done",
            "echo tc qdisc del dev h1 root; logger tc qdisc del dev h1 root; apt install ethtool nft",
            "sysctl net.ipv4.fib_multipath_hash_policy; sysctl -w net.ipv4.ip_forward=1",
            "ethtool -k h1; dcb pfc show dev h1",
        ] {
            assert_eq!(meanings(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn commands_that_a_check_cannot_follow_are_unknown() {
        for text in [
            "for d in h1; do tc qdisc del dev $d root; done",
            "if true; then tc qdisc del dev h1 root; fi",
            "f() { tc qdisc del dev h1 root; }",
            "function f { tc qdisc del dev h1 root; }",
            "(tc qdisc del dev h1 root)",
            "[ -e x ] && tc qdisc del dev h1 root",
            "true ||\ntc qdisc del dev h1 root",
            "exit 0\ntc qdisc del dev h1 root",
            "tc qdisc del dev \"$d\" root",
            "x=$(tc qdisc del dev h1 root)",
            "x=`tc qdisc del dev h1 root`",
            "$TC qdisc del dev h1 root",
            "run tc qdisc del dev h1 root",
            "sh -c 'tc qdisc del dev h1 root'",
            "echo h1 | xargs -n 1 tc qdisc del root dev",
            "cat <<EOF | sh\ntc qdisc del dev h1 root\nEOF",
            "tc -batch x",
            "ip -n a link del h1",
            "ip netns exec a tc qdisc del dev h1 root",
            "ip $verb",
            "tc filter flush dev h1",
            "sysctl -p x",
            "sysctl --system",
            "sysctl -w net.ipv4.$x=0",
            "echo 0 > /proc/sys/net/ipv4/fib_multipath_hash_policy",
            "echo 0 | sudo tee /proc/sys/net/ipv4/fib_multipath_hash_policy",
            "nft -f x",
            "nft 'add table a; delete table b'",
            "echo $((1 << $(tc qdisc del dev h1 root)))",
        ] {
            assert_eq!(meanings(text), ["?"], "{text}");
        }
        let script = "if a; then\n  b\nfi\nx=$((1<<(2+3)))\n((x<<=1))\n\
                      cat <<EOF\nfor all\nEOF\ntc qdisc del \\\n  dev h1 root && tc qdisc del dev h1 root\n";
        let all = ["tc qdisc delete dev h1 root"; 2];
        assert_eq!(meanings(script), all, "what follows is followed");
    }
}
