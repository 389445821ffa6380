//! Lines that take back other lines: what is left of these, and which negations must not be skipped.

use super::blocks::numbers;
use super::facts::{Facts, Place};
use crate::intent::Intent;

/// The words that begin a negation, on any platform.
pub(super) const VERBS: [&str; 7] =
    ["no", "default", "del", "delete", "unset", "remove", "deactivate"];

/// What the checks read, by the words with which it begins: `no` and these words must be understood.
const SUBJECTS: [&str; 32] = [
    "bandwidth percent",
    "bandwidth remaining",
    "class",
    "class-of-service",
    "hash-algorithm",
    "interface ecmp",
    "ip cef load-sharing",
    "ip decap-group",
    "ip load-sharing",
    "load-balancing",
    "match dscp",
    "packet-trim",
    "platform trident mmu",
    "qos advance-buffer-config",
    "qos congestion-control",
    "qos egress-queue-mapping",
    "qos egress-scheduler",
    "qos map",
    "qos mapping",
    "qos trust",
    "qos-map traffic-class",
    "queue-limit",
    "random-detect drop",
    "random-detect dscp",
    "service-policy input",
    "service-policy output",
    "service-policy type",
    "set qos-group",
    "system forwarding",
    "trust-map dscp",
    "uc-tx-queue",
    "wred",
];

/// Whether two lines, without `no` or `set`, are about the same subject that the checks read. Command lines take
/// abbreviated words.
pub(super) fn are_related(intent: &Intent, one: &[&str], other: &[&str]) -> bool {
    // One letter is enough, except that many lines begin with the same one.
    let is_word = |(at, (word, full)): (usize, (&&str, &str))| {
        full == *word || (at > 0 || word.len() >= 2) && full.starts_with(word)
    };
    let is_about = |words: &[&str], subject: &str| {
        let of_interface = if let ["interface", _, rest @ ..] = words { rest } else { &[] };
        [words, of_interface].into_iter().any(|words| {
            let mut pairs = words.iter().zip(subject.split(' ')).enumerate();
            !words.is_empty() && pairs.all(is_word)
        })
    };
    let is_route = |words: &[&str], to: &str| {
        words.contains(&to) || words.contains(&to.trim_end_matches("/32"))
    };
    SUBJECTS.into_iter().any(|subject| is_about(one, subject) && is_about(other, subject))
        || intent.routes.iter().any(|route| is_route(one, &route.to) && is_route(other, &route.to))
}

/// Reports a line that this check cannot follow.
pub(super) fn not_understood(facts: &mut Facts, at: &Place, line: &str) {
    let remedy = "it may undo part of this configuration: write it like the line that it takes back, or remove it";
    facts.find(
        at,
        format!("`{line}` is not understood"),
        "a line of this configuration to take back",
        remedy,
    );
}

/// Returns what a negation leaves of a line or command if it names that: nothing, or, of a list such as `40-47`, the
/// numbers that are not named.
pub(super) fn remains(told: &[&str], taken: &[&str]) -> Option<Vec<String>> {
    // Names and limits need not be given in full.
    match (told, taken) {
        (["class" | "class-map" | "policy-map", ..], [_, ..]) => {
            return is_same_map(told, taken).then(Vec::new);
        }
        (["queue-limit", ..], ["queue-limit", ..]) => return Some(Vec::new()),
        (["bandwidth", ..], ["bandwidth", ..]) => {
            let is_keyword = |word: &&&str| !word.starts_with(|c: char| c.is_ascii_digit());
            let mut keywords = told.iter().filter(is_keyword);
            let mut taken = taken.iter().filter(is_keyword);
            return taken.all(|word| keywords.next() == Some(word)).then(Vec::new);
        }
        _ => {}
    }
    let mut parts = Vec::new();
    for (at, word) in taken.iter().enumerate() {
        let list = *told.get(at)?;
        if list.eq_ignore_ascii_case(word) {
            continue;
        }
        if !(is_list(list) && is_list(word)) {
            return None;
        }
        let (listed, taken) = (numbers(list), numbers(word));
        let kept: Vec<_> = listed.iter().filter(|number| !taken.contains(number)).collect();
        if kept.len() == listed.len() && !listed.is_empty() {
            return None;
        }
        if !kept.is_empty() {
            let kept: Vec<String> = kept.into_iter().map(ToString::to_string).collect();
            parts.push((at, kept.join(",")));
        }
    }
    let mut rest: Vec<String> = Vec::new();
    if !parts.is_empty() {
        rest.extend(told.iter().map(ToString::to_string));
        parts.into_iter().for_each(|(at, kept)| rest[at] = kept);
    }
    Some(rest)
}

/// Whether two lines name the same class or policy: kind and name, where `match-any` or the type may be left out.
pub(super) fn is_same_map(one: &[&str], other: &[&str]) -> bool {
    let kind = |words: &[&str]| -> Option<String> {
        let at = words.iter().position(|word| *word == "type")?;
        words.get(at + 1).map(|&kind| kind.to_owned())
    };
    let is_same_kind = kind(one).zip(kind(other)).is_none_or(|(one, other)| one == other);
    one.first() == other.first() && one.last() == other.last() && is_same_kind
}

/// Whether a negation is plainly for another thing of the same kind: a class or policy with another name, or the first
/// words that differ are numbers.
pub(super) fn is_for_another(told: &[&str], taken: &[&str]) -> bool {
    if let ["class" | "class-map" | "policy-map", .., name] = taken {
        return told.first() == taken.first() && told.last() != Some(name);
    }
    let differ = told.iter().zip(taken).find(|(one, other)| !one.eq_ignore_ascii_case(other));
    differ.is_some_and(|(one, other)| {
        let taken = numbers(other);
        is_list(one) && is_list(other) && numbers(one).iter().all(|number| !taken.contains(number))
    })
}

fn is_list(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
        && word.chars().all(|c| c.is_ascii_digit() || ",-".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_negation_takes_back_what_it_names_in_full_or_in_part() {
        for (told, taken, left) in [
            ("class-map match-any A", "class-map A", ""),
            ("class-map match-any A", "class-map B", "class-map match-any A"),
            ("policy-map type queuing A", "policy-map type qos A", "policy-map type queuing A"),
            ("queue-limit 8 packets", "queue-limit 9 bytes", ""),
            ("bandwidth percent 25", "bandwidth percent", ""),
            ("bandwidth percent 25", "bandwidth guaranteed", "bandwidth percent 25"),
            ("fields ip a", "fields ipv6", "fields ip a"),
            ("match dscp 43", "match dscp 40-47", ""),
            ("match dscp 40-43", "match dscp 41-42", "match dscp 40,43"),
            ("uc-tx-queue 5", "uc-tx-queue 4", "uc-tx-queue 5"),
            ("a", "a b", "a"),
        ] {
            let words = |text: &'static str| text.split(' ').collect::<Vec<_>>();
            let rest = remains(&words(told), &words(taken)).map(|rest| rest.join(" "));
            assert_eq!(rest.as_deref().unwrap_or(told), left, "{told}: no {taken}");
        }
    }
}
