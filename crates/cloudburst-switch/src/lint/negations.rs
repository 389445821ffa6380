//! Negations: lines that remove other lines, in whole or in part. Finds which lines still apply, and which negations
//! must not be skipped.

use super::facts::Facts;
use super::text::{Location, after, numbers};
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

/// Words that a name or a further keyword follows: lines that differ in it are about different things.
const NAMED: [&str; 19] = [
    "class-of-service",
    "class-of-service classifier",
    "class-of-service forwarding-class",
    "class-of-service interface",
    "class-of-service scheduler",
    "class-of-service scheduler-profile",
    "ip decap-group",
    "match",
    "platform trident mmu queue profile",
    "qos advance-buffer-config",
    "qos congestion-control",
    "qos egress-queue-mapping",
    "qos egress-scheduler",
    "qos map",
    "qos mapping",
    "qos-map traffic-class",
    "set",
    "trust-map dscp",
    "wred",
];

/// The types of classes and policies that a line can leave out.
pub(super) const TYPES: [&str; 3] = ["qos", "queuing", "network-qos"];

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
pub(super) fn not_understood(facts: &mut Facts, at: &Location, line: &str) {
    // A line that cannot be followed is a finding: compared as text, 40 of 120 seeded mistakes
    // passed.
    let remedy = "it may undo part of this configuration: write it like the line that it takes back, or remove it";
    facts.report(
        at,
        format!("`{line}` is not understood"),
        "a line of this configuration to take back",
        remedy,
    );
}

/// Returns what still applies of a line or command that a negation names: nothing, or, of a list such as `40-47`, the
/// numbers that are not named. Returns `None` if it names another.
pub(super) fn still_applies(line: &[&str], negated: &[&str]) -> Option<Vec<String>> {
    // Names and limits need not be given in full.
    match (line, negated) {
        (["class" | "class-map" | "policy-map", ..], [_, ..]) => {
            return is_same_map(line, negated).then(Vec::new);
        }
        (["queue-limit", ..], ["queue-limit", ..]) => return Some(Vec::new()),
        (["bandwidth", ..], ["bandwidth", ..]) => {
            let is_keyword = |word: &&&str| !word.starts_with(|c: char| c.is_ascii_digit());
            let mut keywords = line.iter().filter(is_keyword);
            let mut negated = negated.iter().filter(is_keyword);
            return negated.all(|word| keywords.next() == Some(word)).then(Vec::new);
        }
        _ => {}
    }
    let mut parts = Vec::new();
    for (at, word) in negated.iter().enumerate() {
        let list = *line.get(at)?;
        if list.eq_ignore_ascii_case(word) {
            continue;
        }
        if !(is_list(list) && is_list(word)) {
            return None;
        }
        let listed = numbers(list);
        let negated = numbers(word);
        let kept: Vec<_> = listed.iter().filter(|number| !negated.contains(number)).collect();
        if kept.len() == listed.len() {
            return None;
        }
        if !kept.is_empty() {
            let kept: Vec<String> = kept.into_iter().map(ToString::to_string).collect();
            parts.push((at, kept.join(",")));
        }
    }
    let mut rest: Vec<String> = Vec::new();
    if !parts.is_empty() {
        rest.extend(line.iter().map(ToString::to_string));
        parts.into_iter().for_each(|(at, kept)| rest[at] = kept);
    }
    Some(rest)
}

/// Whether two lines name the same class or policy: kind and name, where `match-any` or the type may be left out.
pub(super) fn is_same_map(one: &[&str], other: &[&str]) -> bool {
    let is_same_type = match (after(one, "type"), after(other, "type")) {
        (Some(kind), None) | (None, Some(kind)) => TYPES.contains(&kind),
        (one, other) => one == other,
    };
    one.first() == other.first() && one.last() == other.last() && is_same_type
}

/// Whether a negation is plainly for another thing of the same kind: another class or policy, or the first words that
/// differ are numbers or whole names.
pub(super) fn is_for_another(line: &[&str], negated: &[&str]) -> bool {
    if let ["class" | "class-map" | "policy-map", _, ..] = negated {
        return line.first() == negated.first() && !is_same_map(line, negated);
    }
    let mut pairs = line.iter().zip(negated).enumerate();
    let differ = pairs.find(|(_, (one, other))| !one.eq_ignore_ascii_case(other));
    let Some((at, (one, other))) = differ else { return false };
    if is_list(one) && is_list(other) {
        let negated = numbers(other);
        return numbers(one).iter().all(|number| !negated.contains(number));
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_./:".contains(c);
    let is_known = |end: usize| NAMED.contains(&&*negated[..end].join(" "));
    // A word may abbreviate the other, unless it is known to be whole.
    let is_whole = !one.starts_with(other) || is_known(at + 1);
    is_known(at) && is_whole && other.chars().all(is_name)
}

/// Whether a word is a list of DSCPs or queues. Larger numbers are no such list.
fn is_list(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
        && word.chars().all(|c| c.is_ascii_digit() || ",-".contains(c))
        && !numbers(word).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_negation_removes_the_settings_that_it_names_in_full_or_in_part() {
        for (line, negated, left) in [
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
            ("threshold 70", "threshold 80", "threshold 70"),
            ("threshold 64-70", "threshold 80", "threshold 64-70"),
            ("class-map match-any A", "class-map type inspect A", "class-map match-any A"),
            ("class-map type qos A", "class-map A", ""),
            ("a", "a b", "a"),
        ] {
            let words = |text: &'static str| text.split(' ').collect::<Vec<_>>();
            let rest = still_applies(&words(line), &words(negated)).map(|rest| rest.join(" "));
            assert_eq!(rest.as_deref().unwrap_or(line), left, "{line}: no {negated}");
        }
    }

    #[test]
    fn a_negation_with_another_name_or_number_is_for_another_setting() {
        for (line, negated, is_other) in [
            ("uc-tx-queue 5", "uc-tx-queue 4", true),
            ("uc-tx-queue 5", "uc-tx-q 4", false),
            ("universal-id 1", "universal-id 200", false),
            ("universal-id 100", "universal-id 200", false),
            ("qos map dscp 43", "qos map cos 3", true),
            ("qos map dscp 43", "qos map d 3", false),
            ("wred A", "wred B", true),
            ("wred A", "wred", false),
            ("wred CLOUDBURST", "wred CLOUD", false),
            ("class-of-service scheduler-profile A", "class-of-service scheduler B", true),
            ("class-of-service scheduler-profile A", "class-of-service sched B", false),
            (
                "class-of-service interface ge-1/1/1",
                "class-of-service interface ge-1/1/[1-9]",
                false,
            ),
            ("service-policy output A", "service-policy output B", false),
            ("policy-map type queuing A", "policy-map type qos A", true),
            ("class-map match-any A", "class-map B", true),
            ("class-map match-any A", "class-map", false),
        ] {
            let words = |text: &'static str| text.split(' ').collect::<Vec<_>>();
            assert_eq!(
                is_for_another(&words(line), &words(negated)),
                is_other,
                "{line}: no {negated}"
            );
        }
    }
}
