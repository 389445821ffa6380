//! Configurations that are lists of commands, where a later one may remove earlier ones:
//! `set` and `delete`, `nv set` and `nv unset`.

use super::facts::Facts;
use super::negations::{self, VERBS, are_related, is_for_another, still_applies};
use super::text::Location;
use crate::intent::Intent;

/// Returns the commands that still apply at the end, in order. Removing a path removes everything below it.
pub(super) fn read(
    intent: &Intent,
    commands: impl Iterator<Item = (Location, String)>,
    set: &str,
    unset: &str,
    facts: &mut Facts,
) -> Vec<(Location, String)> {
    let start = set.strip_suffix("set").unwrap_or("");
    let mut in_effect: Vec<(Location, String)> = Vec::new();
    for (at, line) in commands {
        let mut words = line.strip_prefix(start).unwrap_or("").split_whitespace();
        if !words.next().is_some_and(|verb| VERBS.contains(&verb)) {
            in_effect.push((at, line));
            continue;
        }
        let path: Vec<&str> = words.collect();
        let mut has_removed = false;
        let is_read = are_related(intent, &path, &path);
        let mut is_set = false;
        in_effect.retain_mut(|(_, earlier)| {
            if !path.first().is_none_or(|first| earlier.contains(first)) {
                return true;
            }
            let Some(path_set) = after(earlier, set) else { return true };
            is_set |= is_read
                && are_related(intent, &path_set, &path)
                && !is_for_another(&path_set, &path);
            // The device ignores a negation in the words of another platform.
            let is_of_device = after(&line, unset).is_some();
            let Some(rest) = still_applies(&path_set, &path).filter(|_| is_of_device) else {
                return true;
            };
            has_removed = true;
            let is_left = !rest.is_empty();
            *earlier = format!("{set} {}", rest.join(" "));
            is_left
        });
        if is_set && !has_removed {
            negations::not_understood(facts, &at, &line);
        }
    }
    in_effect
}

/// Returns the words that follow `verb`, if the line begins with it.
fn after<'a>(line: &'a str, verb: &str) -> Option<Vec<&'a str>> {
    let mut words = line.split_whitespace();
    verb.split(' ').all(|word| words.next() == Some(word)).then(|| words.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_effect(text: &str) -> Vec<String> {
        let params = "platform = \"cumulus5\"\nports = [\"swp1\"]\n\
                      limit = \"8 packets\"\nrate = \"10G\"\nseed = 1\n";
        let intent = Intent::new(toml::from_str(params).unwrap()).unwrap();
        let mut facts = Facts::default();
        let lines = text.lines().map(|line| (Location::default(), line.to_owned()));
        let commands = read(&intent, lines, "nv set", "nv unset", &mut facts);
        let found = facts.findings.iter().map(ToString::to_string);
        commands.into_iter().map(|(_, line)| line).chain(found).collect()
    }

    #[test]
    fn removing_a_path_removes_everything_below_it() {
        let set = "nv set qos a 1\nnv set qos a 2 b\nnv set qos ab\n";
        assert_eq!(in_effect(&format!("{set}nv unset qos a\n")), ["nv set qos ab"]);
        assert_eq!(in_effect(&format!("{set}nv unset qos c\n")).len(), 3);
        assert_eq!(in_effect(&format!("nv unset qos\n{set}")).len(), 3, "what follows counts");
    }

    #[test]
    fn numbers_that_a_negation_does_not_name_still_apply() {
        let set = "nv set qos dscp 40-43,50 priority 5\nnv set qos dscp 9 priority 1\n";
        let rest = ["nv set qos dscp 40,43,50 priority 5", "nv set qos dscp 9 priority 1"];
        assert_eq!(in_effect(&format!("{set}nv unset qos dscp 41-42\n")), rest);
        assert_eq!(in_effect(&format!("{set}nv unset qos dscp 1-63\n")).len(), 0);
        assert_eq!(in_effect(&format!("{set}nv unset qos dscp 41 priority 4\n")).len(), 2);
    }

    #[test]
    fn a_negation_that_removes_nothing_of_its_subject_is_reported() {
        let set = "nv set qos mapping default-global dscp 43 switch-priority 5\n";
        for (negation, count) in [
            ("nv unset qos mapping default-global dscp af11\n", 1),
            ("nv delete qos mapping\n", 1),
            ("nv unset qos remark\nnv unset system ntp\n", 0),
        ] {
            let found = in_effect(&format!("{set}{negation}"));
            assert_eq!(found.len(), 1 + count, "{found:?}");
        }
    }
}
