//! Configurations that are lists of commands, where a later one may take back earlier ones:
//! `set` and `delete`, `nv set` and `nv unset`.

use super::facts::Facts;
use super::negations::{self, VERBS, are_related, is_for_another, remains};
use super::text::Place;
use crate::intent::Intent;

/// Returns the commands that remain in the end, in order. Taking back a path takes back everything below it.
pub(super) fn read(
    intent: &Intent,
    commands: impl Iterator<Item = (Place, String)>,
    (set, take_back): (&str, &str),
    facts: &mut Facts,
) -> Vec<(Place, String)> {
    let start = set.strip_suffix("set").unwrap_or("");
    let mut told: Vec<(Place, String)> = Vec::new();
    for (at, line) in commands {
        let mut words = line.strip_prefix(start).unwrap_or("").split_whitespace();
        if !words.next().is_some_and(|verb| VERBS.contains(&verb)) {
            told.push((at, line));
            continue;
        }
        let path: Vec<&str> = words.collect();
        let mut is_taken = false;
        let is_read = are_related(intent, &path, &path);
        let mut is_given = false;
        told.retain_mut(|(_, earlier)| {
            if !path.first().is_none_or(|first| earlier.contains(first)) {
                return true;
            }
            let Some(told) = after(earlier, set) else { return true };
            is_given |=
                is_read && are_related(intent, &told, &path) && !is_for_another(&told, &path);
            // In another's words, the device takes nothing back.
            let is_of_device = after(&line, take_back).is_some();
            let Some(rest) = remains(&told, &path).filter(|_| is_of_device) else { return true };
            is_taken = true;
            let is_left = !rest.is_empty();
            *earlier = format!("{set} {}", rest.join(" "));
            is_left
        });
        if is_given && !is_taken {
            negations::not_understood(facts, &at, &line);
        }
    }
    told
}

/// Returns the words that follow `verb`, if the line begins with it.
fn after<'a>(line: &'a str, verb: &str) -> Option<Vec<&'a str>> {
    let mut words = line.split_whitespace();
    verb.split(' ').all(|word| words.next() == Some(word)).then(|| words.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<String> {
        let params = "platform = \"cumulus5\"\nports = [\"swp1\"]\n\
                      limit = \"8 packets\"\nrate = \"10G\"\nseed = 1\n";
        let intent = Intent::new(toml::from_str(params).unwrap()).unwrap();
        let mut facts = Facts::default();
        let lines = text.lines().map(|line| (Place::default(), line.to_owned()));
        let told = read(&intent, lines, ("nv set", "nv unset"), &mut facts);
        let found = facts.findings.iter().map(ToString::to_string);
        told.into_iter().map(|(_, line)| line).chain(found).collect()
    }

    #[test]
    fn what_is_below_a_path_goes_with_it() {
        let set = "nv set qos a 1\nnv set qos a 2 b\nnv set qos ab\n";
        assert_eq!(told(&format!("{set}nv unset qos a\n")), ["nv set qos ab"]);
        assert_eq!(told(&format!("{set}nv unset qos c\n")).len(), 3);
        assert_eq!(told(&format!("nv unset qos\n{set}")).len(), 3, "what follows counts");
    }

    #[test]
    fn numbers_that_are_not_named_remain() {
        let set = "nv set qos dscp 40-43,50 priority 5\nnv set qos dscp 9 priority 1\n";
        let rest = ["nv set qos dscp 40,43,50 priority 5", "nv set qos dscp 9 priority 1"];
        assert_eq!(told(&format!("{set}nv unset qos dscp 41-42\n")), rest);
        assert_eq!(told(&format!("{set}nv unset qos dscp 1-63\n")).len(), 0);
        assert_eq!(told(&format!("{set}nv unset qos dscp 41 priority 4\n")).len(), 2);
    }

    #[test]
    fn what_takes_nothing_back_of_what_was_given_is_found() {
        let set = "nv set qos mapping default-global dscp 43 switch-priority 5\n";
        for (negation, count) in [
            ("nv unset qos mapping default-global dscp af11\n", 1),
            ("nv delete qos mapping\n", 1),
            ("nv unset qos remark\nnv unset system ntp\n", 0),
        ] {
            let found = told(&format!("{set}{negation}"));
            assert_eq!(found.len(), 1 + count, "{found:?}");
        }
    }
}
