//! Shell scripts, as far as a check can follow them: one command after the other.

use super::facts::Facts;
use super::text::{File, Location};
use std::collections::VecDeque;

/// A simple command.
#[derive(Clone, Debug)]
pub(super) struct Command {
    pub(super) at: Location,
    /// Its words, without quotes. A watched command is the first one, without its directory.
    pub(super) words: Vec<String>,
    /// The files to or from which it is redirected.
    pub(super) files: Vec<String>,
    /// Whether it is certainly run as it is written.
    pub(super) is_certain: bool,
}

/// What ends a command, and so decides whether the next one is run.
#[derive(Clone, Copy, PartialEq)]
enum End {
    Always,
    And,
    Or,
}

/// A command as it is written.
#[derive(Default)]
struct Written {
    line: usize,
    words: Vec<String>,
    files: Vec<String>,
    /// Whether it contains variables or other expansions.
    expands: bool,
    /// Whether it is a line of a document, which may be commands for another shell.
    is_text: bool,
    end: Option<End>,
}

/// Commands that run the command that follows.
const WRAPPERS: [&str; 9] =
    ["builtin", "command", "doas", "env", "exec", "nice", "nohup", "sudo", "time"];
/// Commands whose words are only printed.
const PRINTERS: [&str; 3] = ["echo", "logger", "printf"];

/// Returns all commands that are one of `watched`, or contain one, and all others with redirections. Reports quotes
/// that are not closed.
pub(super) fn read(files: &[File], watched: &[&str], facts: &mut Facts) -> Vec<Command> {
    files.iter().flat_map(|file| of_file(file, watched, facts)).collect()
}

/// Reports a command whose effect is unknown.
pub(super) fn not_followed(facts: &mut Facts, command: &Command) {
    let found = format!("`{}` is not understood", command.words.join(" "));
    let remedy = "a check cannot follow variables, conditions, loops, other files, or what is after an exit: write it out";
    facts.report(&command.at, found, "plain commands", remedy);
}

fn of_file(file: &File, watched: &[&str], facts: &mut Facts) -> Vec<Command> {
    let mut commands = Vec::new();
    // The words that close the open conditions, loops and functions, the outermost first.
    let mut open: Vec<&str> = Vec::new();
    let mut has_ended = false;
    let mut before = End::Always;
    let mut was_certain = true;
    let (all, unclosed) = split(&file.text);
    if let Some(line) = unclosed {
        let at = Location { file: file.name.clone(), line };
        let found = file.text.lines().nth(line - 1).unwrap_or("").trim();
        let remedy = "the rest of the file is inside the quotes: close them";
        facts.report(&at, format!("`{found}` is not understood"), "a closing quote", remedy);
    }
    for written in all {
        let Written { line, mut words, files, expands, is_text, end } = written;
        if !is_text {
            open_and_close(&mut words, &mut open);
        }
        let is_conditional = match before {
            End::Always => false,
            // A watched command is assumed to succeed, other than a test.
            End::And => !was_certain,
            End::Or => true,
        };
        let is_certain = open.is_empty() && !(has_ended || expands || is_text || is_conditional);
        has_ended |= words.first().is_some_and(|word| word == "exit") && is_certain;
        let (words, is_run) = from_watched(words, watched);
        let is_certain = is_certain && is_run;
        was_certain =
            is_certain && words.first().is_some_and(|word| watched.contains(&word.as_str()));
        before = end.unwrap_or(End::Always);
        let at = Location { file: file.name.clone(), line };
        commands.push(Command { at, words, files, is_certain });
    }
    commands
}

/// Takes the words off that open or close conditions, loops and functions.
fn open_and_close(words: &mut Vec<String>, open: &mut Vec<&'static str>) {
    let mut left = VecDeque::from(core::mem::take(words));
    while let Some(first) = left.front() {
        let close = match first.as_str() {
            word if open.last() == Some(&word) => {
                open.pop();
                ""
            }
            "if" => "fi",
            "while" | "until" => "done",
            "{" => "}",
            "(" => ")",
            "then" | "do" | "else" | "elif" | "!" => "",
            word @ ("for" | "select" | "case") => {
                open.push(if word == "case" { "esac" } else { "done" });
                return;
            }
            "function" => {
                left.pop_front();
                ""
            }
            _ => break,
        };
        open.extend(Some(close).filter(|close| !close.is_empty()));
        left.pop_front();
    }
    *words = left.into();
}

/// Returns the words from the watched command on, and whether it is that command that is run.
fn from_watched(words: Vec<String>, watched: &[&str]) -> (Vec<String>, bool) {
    let name = |word: &str| word.rsplit('/').next().unwrap_or(word).to_owned();
    let is_watched = |word: &String| watched.contains(&&*name(word));
    let first = words.iter().position(|word| !is_assignment(word));
    let Some((first, word)) = first.map(|first| (first, &words[first])) else {
        return (words, true);
    };
    if PRINTERS.contains(&word.as_str()) {
        return (words, true);
    }
    // `sh -c` and the like take a command as one word.
    let is_code = |word: &String| word.contains(char::is_whitespace);
    let at = words.iter().position(is_watched);
    let Some(at) = at else {
        let code = words.iter().filter(|word| is_code(word));
        let inner = code.flat_map(|code| code.split([' ', '\t', '\n', ';', '&', '|']));
        let inner: Vec<String> = inner.map(Into::into).collect();
        let at = inner.iter().position(is_watched);
        return at.map_or((words, true), |at| (inner[at..].to_vec(), false));
    };
    let is_run = at == first || WRAPPERS.contains(&name(word).as_str());
    let mut rest = words[at..].to_vec();
    rest[0] = name(&rest[0]);
    (rest, is_run)
}

fn is_assignment(word: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    word.split_once('=').is_some_and(|(name, _)| is_name(name))
}

/// Splits a script into commands. Returns also the line of a quote that is not closed.
fn split(text: &str) -> (Vec<Written>, Option<usize>) {
    let mut splitter = Splitter { line: 1, ..Splitter::default() };
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('\n') => splitter.line += 1,
                Some(next) => splitter.push(next),
                None => {}
            },
            '\'' | '"' => {
                splitter.begin();
                let start = splitter.line;
                loop {
                    let Some(inner) = chars.next() else {
                        splitter.end(End::Always);
                        return (splitter.all, Some(start));
                    };
                    match (inner, c) {
                        _ if inner == c => break,
                        ('\\', '"') => {
                            let next = chars.next();
                            splitter.line += usize::from(next == Some('\n'));
                            next.into_iter().for_each(|next| splitter.push(next));
                        }
                        (inner, _) => {
                            splitter.line += usize::from(inner == '\n');
                            splitter.written.expands |= c == '"' && matches!(inner, '$' | '`');
                            splitter.push(inner);
                        }
                    }
                }
            }
            '#' if splitter.word.is_none() => while chars.next_if(|c| *c != '\n').is_some() {},
            '\n' => {
                splitter.end(End::Always);
                splitter.line += 1;
                if let Some(document) = splitter.document.take() {
                    splitter.read_document(&mut chars, &document);
                }
            }
            '(' if let Some(length) = arithmetic(chars.clone()) => {
                splitter.push(c);
                chars.by_ref().take(length).for_each(|inner| {
                    splitter.line += usize::from(inner == '\n');
                    splitter.push(inner);
                });
            }
            ';' | '(' | ')' => {
                splitter.end(End::Always);
                if c != ';' {
                    splitter.push(c);
                    splitter.end_word();
                    // What follows is a command of its own.
                    if c == ')' {
                        splitter.end(End::Always);
                    }
                }
            }
            '&' | '|' => {
                let is_double = chars.next_if_eq(&c).is_some();
                splitter.end(match (c, is_double) {
                    ('&', true) => End::And,
                    ('|', true) => End::Or,
                    _ => End::Always,
                });
            }
            '<' | '>' => {
                let mut operator = String::from(c);
                while let Some(next) = chars.next_if(|c| "<>&|-".contains(*c)) {
                    operator.push(next);
                }
                // A number in front is that of the file.
                if splitter
                    .word
                    .as_ref()
                    .is_some_and(|word| word.chars().all(|c| c.is_ascii_digit()))
                {
                    splitter.word = None;
                }
                splitter.end_word();
                // `>&-` closes a file, and no name follows.
                let is_closing = operator.ends_with('-') && operator != "<<-";
                splitter.redirects = Some(operator).filter(|_| !is_closing);
            }
            c if c.is_whitespace() => splitter.end_word(),
            '`' => {
                splitter.end(End::Always);
                splitter.is_inner ^= true;
            }
            c => {
                splitter.written.expands |= matches!(c, '$' | '*' | '?');
                splitter.push(c);
            }
        }
    }
    splitter.end(End::Always);
    (splitter.all, None)
}

/// Returns the length of an arithmetic expression, `((...))`, without its first parenthesis. One with commands in it
/// is none.
fn arithmetic(after: impl Iterator<Item = char>) -> Option<usize> {
    let mut open = 1;
    let mut before = '\0';
    for (at, c) in after.enumerate() {
        match (at, c, before) {
            (0, '(', _) => open += 1,
            (0, ..) | (_, '`', _) | (_, '(', '$') => return None,
            (_, '(', _) => open += 1,
            (_, ')', _) => open -= 1,
            _ => {}
        }
        if open == 0 {
            return (before == ')').then_some(at + 1);
        }
        before = c;
    }
    None
}

#[derive(Default)]
struct Splitter {
    all: Vec<Written>,
    line: usize,
    written: Written,
    word: Option<String>,
    /// The redirection whose file is the next word.
    redirects: Option<String>,
    /// Whether it is inside of backticks.
    is_inner: bool,
    /// The delimiter of a document that begins at the next line.
    document: Option<String>,
}

impl Splitter {
    fn begin(&mut self) {
        if self.written.words.is_empty() && self.word.is_none() {
            self.written.line = self.line;
        }
        self.word.get_or_insert_default();
    }

    fn push(&mut self, c: char) {
        self.begin();
        self.word.get_or_insert_default().push(c);
    }

    fn end_word(&mut self) {
        if let Some(word) = self.word.take() {
            match self.redirects.take() {
                Some(operator) if operator.starts_with("<<") && operator != "<<<" => {
                    self.document = Some(word);
                }
                Some(_) => self.written.files.push(word),
                None => self.written.words.push(word),
            }
        }
    }

    fn end(&mut self, end: End) {
        self.end_word();
        let mut written = core::mem::take(&mut self.written);
        written.end = Some(end);
        written.expands |= self.is_inner;
        self.redirects = None;
        if !(written.words.is_empty() && written.files.is_empty()) {
            self.all.push(written);
        }
    }

    /// Reads the lines of a document.
    fn read_document(&mut self, chars: &mut impl Iterator<Item = char>, delimiter: &str) {
        let mut line = String::new();
        loop {
            let end = match chars.next() {
                Some(c) if c != '\n' => {
                    line.push(c);
                    continue;
                }
                end => end,
            };
            let is_last = line.trim() == delimiter;
            if !is_last {
                let words = line.split_whitespace().map(Into::into).collect();
                let at = self.line;
                self.all.push(Written { line: at, words, is_text: true, ..Written::default() });
            }
            self.line += 1;
            line.clear();
            if is_last || end.is_none() {
                return;
            }
        }
    }
}
