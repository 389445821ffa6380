//! Configurations that are lists of commands, where a later one may take back earlier ones:
//! `set` and `delete`, `nv set` and `nv unset`.

use super::blocks::numbers;
use super::facts::Place;
use super::{File, lines};

/// Returns the commands that remain in the end, in order, as written but without quotes. Taking back a path
/// takes back everything below it.
pub(super) fn read(files: &[File], set: &str, take_back: &str) -> Vec<(Place, String)> {
    let mut told: Vec<(Place, String)> = Vec::new();
    for (at, line) in lines(files, &['#']) {
        let line = line.replace('"', "");
        match after(&line, take_back) {
            None => told.push((at, line)),
            Some(path) => told.retain_mut(|(_, earlier)| match after(earlier, set) {
                None => true,
                Some(told) => match remains(&told, &path) {
                    Some(rest) if rest == told => true,
                    Some(rest) => {
                        *earlier = format!("{set} {}", rest.join(" "));
                        true
                    }
                    None => false,
                },
            }),
        }
    }
    told
}

/// Returns the words that follow `verb`, if the line begins with it.
fn after(line: &str, verb: &str) -> Option<Vec<String>> {
    let mut words = line.split_whitespace();
    verb.split(' ').all(|word| words.next() == Some(word)).then(|| words.map(Into::into).collect())
}

/// Returns what is left of a command when `path` is taken back: nothing, all of it if the path is another one, or,
/// of a list such as `40-47`, the numbers that the path does not name.
fn remains(told: &[String], path: &[String]) -> Option<Vec<String>> {
    let mut rest = told.to_vec();
    let mut is_part = false;
    for (at, word) in path.iter().enumerate() {
        match told.get(at) {
            Some(same) if same == word => {}
            Some(list) if is_list(list) && is_list(word) => {
                let taken = numbers(word);
                let mut kept = numbers(list);
                kept.retain(|number| !taken.contains(number));
                is_part |= !kept.is_empty();
                let kept: Vec<String> = kept.iter().map(ToString::to_string).collect();
                if is_part {
                    rest[at] = kept.join(",");
                }
            }
            _ => return Some(told.to_vec()),
        }
    }
    is_part.then_some(rest)
}

fn is_list(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
        && word.chars().all(|c| c.is_ascii_digit() || ",-".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<String> {
        let files = [File { name: "x".into(), text: text.into() }];
        read(&files, "nv set", "nv unset").into_iter().map(|(_, line)| line).collect()
    }

    #[test]
    fn what_is_below_a_path_goes_with_it() {
        let set = "nv set qos a 1\nnv set qos a 2 b\nnv set qos ab\n# nv unset qos\n";
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
}
