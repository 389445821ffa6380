//! Settings files: options of the command line, given once for all runs. Settings become defaults of the options, so
//! the command line takes precedence, and only options on the command line conflict with each other.

use crate::args::{DoctorArgs, RecvArgs, SendArgs};
use clap::{Arg, ArgAction, Command, CommandFactory};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::{env, fs};
use toml::{Table, Value};

const SYSTEM: &str = "/etc/cloudburst/config.toml";
const OF_USER: &str = "cloudburst/config.toml";

/// Options that cannot be settings: they concern one run, or must be visible on the command line.
const NOT_SETTINGS: [&str; 10] = [
    "config",
    "help",
    "insecure",
    "mesh",
    "name",
    "once",
    "pair",
    "recursive",
    "stdout",
    "version",
];

/// Settings in a table with the name of a program, without `cbrst-`, apply to that program only.
const PROGRAMS: [&str; 3] = ["send", "recv", "doctor"];

/// Why a settings file is invalid. The user is to blame.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error("cannot read the settings file {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{}: line {line}: {reason}", path.display())]
    Syntax { path: PathBuf, line: usize, reason: String },
    #[error("{}: there is no setting {key:?}{whose}{advice}", path.display())]
    Unknown { path: PathBuf, key: String, whose: String, advice: String },
    #[error("{}: {key} = {value}: {reason}", path.display())]
    Value { path: PathBuf, key: String, value: String, reason: String },
}

/// Sets the defaults of `command` from the file `given`, or else from those of the system and the user. Ignores the
/// settings in `replaced`, which the environment makes instead.
///
/// # Errors
///
/// The first error in a file.
pub(crate) fn with_settings(
    command: Command,
    given: Option<&Path>,
    replaced: &[&str],
) -> Result<Command, ConfigError> {
    let mut settings = BTreeMap::new();
    for path in given.map_or_else(default_paths, |path| vec![path.to_owned()]) {
        match fs::read_to_string(&path) {
            Ok(text) => read(&command, &path, &text, &mut settings)?,
            Err(_) if given.is_none() && fs::metadata(&path).is_err() => {}
            Err(source) => return Err(ConfigError::Unreadable { path, source }),
        }
    }
    let mut settings = settings.into_iter().filter(|(key, _)| !replaced.contains(&key.as_str()));
    settings.try_fold(command, |command, (key, (value, path))| {
        let Some(option) = option(&command, &key) else { return Ok(command) };
        let words = words(option, &path, &key, &value)?;
        let id = option.get_id().clone();
        // Clap keeps words for as long as the program runs; they are few.
        let words = words.into_iter().map(|word| &*word.leak());
        // Defaults of the options themselves, so that their names and checks apply: a second set
        // would drift from them.
        Ok(command.mut_arg(id, |option| option.default_values(words)))
    })
}

/// Whether the same files ask for JSON. Ignores errors, which have been reported.
pub(crate) fn wants_json(program: &str, given: Option<&Path>) -> bool {
    let paths = given.map_or_else(default_paths, |path| vec![path.to_owned()]);
    let tables = paths.iter().filter_map(|path| fs::read_to_string(path).ok()?.parse().ok());
    let values = tables.flat_map(|table: Table| {
        let own = table.get(own_table(program)).and_then(|own| own.get("json")).cloned();
        [table.get("json").cloned(), own]
    });
    values.flatten().filter_map(|value| value.as_bool()).next_back().unwrap_or(false)
}

/// Returns the name of the table with settings of this program alone.
fn own_table(program: &str) -> &str {
    program.strip_prefix("cbrst-").unwrap_or_default()
}

/// Returns the files that are read if none is given. Later files take precedence.
fn default_paths() -> Vec<PathBuf> {
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|at| at.is_absolute());
    let home = || absolute("HOME").map(|home| home.join(".config"));
    let user = absolute("XDG_CONFIG_HOME").or_else(home).map(|at| at.join(OF_USER));
    [PathBuf::from(SYSTEM)].into_iter().chain(user).collect()
}

/// Adds the settings in `text` that apply to `command`.
fn read(
    command: &Command,
    path: &Path,
    text: &str,
    settings: &mut BTreeMap<String, (Value, PathBuf)>,
) -> Result<(), ConfigError> {
    let table: Table = text.parse().map_err(|error: toml::de::Error| ConfigError::Syntax {
        path: path.to_owned(),
        line: error
            .span()
            .map_or(1, |span| text.as_bytes()[..span.start].split(|byte| *byte == b'\n').count()),
        reason: error.message().replace('\n', " "),
    })?;
    let all = [SendArgs::command(), RecvArgs::command(), DoctorArgs::command()];
    let own = own_table(command.get_name());
    let (tables, general): (Vec<_>, Vec<_>) =
        table.into_iter().partition(|(key, value)| PROGRAMS.contains(&&**key) && value.is_table());
    let mut found = Vec::new();
    for (key, value) in general {
        let tables = if value.is_table() { &PROGRAMS[..] } else { &[] };
        known(path, &all, tables, &key, "")?;
        found.push((key, value));
    }
    for (program, value) in tables {
        let Value::Table(table) = value else { continue };
        let at = PROGRAMS.iter().position(|name| *name == program).unwrap_or_default();
        for (key, value) in table {
            known(path, &all[at..=at], &[], &key, &program)?;
            if program == own {
                found.push((key, value));
            }
        }
    }
    settings.extend(found.into_iter().map(|(key, value)| (key, (value, path.to_owned()))));
    Ok(())
}

/// Returns the option that a setting belongs to.
fn option<'a>(command: &'a Command, key: &str) -> Option<&'a Arg> {
    settings(command).find(|option| option.get_long() == Some(key))
}

fn settings(command: &Command) -> impl Iterator<Item = &Arg> {
    let is_setting =
        |option: &&Arg| option.get_long().is_some_and(|long| !NOT_SETTINGS.contains(&long));
    command.get_arguments().filter(is_setting)
}

/// Checks that at least one of the programs has the setting. `tables` are names that it may have been meant to have,
/// besides those of settings.
fn known(
    path: &Path,
    programs: &[Command],
    tables: &[&str],
    key: &str,
    of: &str,
) -> Result<(), ConfigError> {
    if programs.iter().any(|program| option(program, key).is_some()) {
        return Ok(());
    }
    let whose = if of.is_empty() { String::new() } else { format!(" of cbrst-{of}") };
    let advice = if NOT_SETTINGS.contains(&key) {
        ": it can be given only on the command line".into()
    } else {
        let names = programs.iter().flat_map(settings).filter_map(Arg::get_long);
        let names = names.chain(tables.iter().copied());
        let apart = names.map(|name| (strsim::osa_distance(key, name), name));
        // One slip for each three letters.
        let closest = apart.min().filter(|(slips, _)| *slips <= (key.len() / 3).max(1));
        closest.map_or_else(
            || ": the long options that --help lists are settings".into(),
            |(_, name)| format!(": did you mean {name:?}?"),
        )
    };
    Err(ConfigError::Unknown { path: path.to_owned(), key: key.to_owned(), whose, advice })
}

/// Returns the value as words of the command line, each of them checked.
fn words(option: &Arg, path: &Path, key: &str, value: &Value) -> Result<Vec<String>, ConfigError> {
    let wrong = |value: &Value, reason: &str| ConfigError::Value {
        path: path.to_owned(),
        key: key.to_owned(),
        value: shown(value),
        reason: reason.to_owned(),
    };
    let is_flag = matches!(option.get_action(), ArgAction::SetTrue);
    let is_optional = option.get_num_args().is_some_and(|range| range.min_values() == 0);
    let takes_many = matches!(option.get_action(), ArgAction::Append);
    let values = match value {
        Value::Boolean(value) if is_flag => return Ok(vec![value.to_string()]),
        Value::Boolean(true) if is_optional => return Ok(without_value(option, key)),
        Value::Boolean(false) if is_optional => return Ok(Vec::new()),
        _ if is_flag => return Err(wrong(value, "expected true or false")),
        Value::Array(values) if takes_many => values.iter().collect(),
        Value::Array(_) => return Err(wrong(value, "expected one value")),
        value => vec![value],
    };
    let mut words = Vec::new();
    for value in values {
        let word = match value {
            Value::String(text) => text.clone(),
            Value::Integer(_) | Value::Float(_) => shown(value),
            _ => return Err(wrong(value, "expected a string or a number")),
        };
        let parser = option.get_value_parser().clone();
        let alone =
            Command::new("setting").arg(Arg::new("value").long("value").value_parser(parser));
        let parsed = alone.try_get_matches_from(["setting".into(), format!("--value={word}")]);
        parsed.map_err(|error| {
            let reason = cloudburst_program::reason(&error);
            let reason = reason.split_once("'--value <value>': ").map_or(&*reason, |(_, why)| why);
            wrong(value, reason)
        })?;
        words.push(word);
    }
    Ok(words)
}

/// Returns the words that an option has if the command line gives it without a value.
fn without_value(option: &Arg, key: &str) -> Vec<String> {
    let alone = Command::new("setting").arg(option.clone());
    let parsed = alone.try_get_matches_from(["setting".into(), format!("--{key}")]).ok();
    let words = parsed.as_ref().and_then(|parsed| parsed.get_raw(option.get_id().as_str()));
    words.into_iter().flatten().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Formats a value as in TOML, and tables as `{...}`.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text:?}"),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Boolean(value) => value.to_string(),
        Value::Datetime(time) => time.to_string(),
        Value::Array(values) => {
            format!("[{}]", values.iter().map(shown).collect::<Vec<_>>().join(", "))
        }
        Value::Table(_) => "{...}".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use cloudburst_net::{Capacity, EcnMode};

    /// Parses the command line `line` of a program, with a settings file that holds `text`.
    fn parse<A: Parser>(text: &str, line: &str) -> Result<A, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.toml");
        fs::write(&path, text).unwrap();
        let command = with_settings(A::command(), Some(&path), &[]);
        let mut command = command.map_err(|error| error.to_string())?;
        let matches = command.try_get_matches_from_mut(line.split(' ').map(str::to_owned));
        Ok(A::from_arg_matches(&matches.map_err(|error| error.to_string())?).unwrap())
    }

    const TEXT: &str = "\
key-file = \"/etc/cloudburst/key\"
dscp = [43, 45]
ecn = \"on\"
deadline = 2.5
paths = \"ecmp:4\"
also-accept = [\"a\", \"b\"]
[doctor]
dscp = 44
capacity = \"10G\"
";

    #[test]
    fn each_program_takes_the_settings_that_it_has_options_for() {
        let send: SendArgs = parse(TEXT, "cbrst-send h:1 file").unwrap();
        assert_eq!(send.common.dscp, [43, 45]);
        assert_eq!(send.common.key_file.as_deref(), Some(Path::new("/etc/cloudburst/key")));
        assert!(send.common.ecn == EcnMode::On && send.common.capacity == Capacity::Auto);
        assert_eq!(send.common.deadline.0.as_millis(), 2_500);
        let recv: RecvArgs = parse(TEXT, "cbrst-recv").unwrap();
        assert_eq!(recv.also_accept, [Path::new("a"), Path::new("b")]);
        let doctor: DoctorArgs = parse(TEXT, "cbrst-doctor h:1").unwrap();
        let ten_gigabits = Capacity::BitsPerSecond(10_000_000_000);
        assert_eq!((doctor.dscp, doctor.capacity), (Some(44), ten_gigabits));
    }

    #[test]
    fn the_command_line_takes_precedence_over_settings() {
        let send: SendArgs = parse(TEXT, "cbrst-send --dscp 7 --insecure h:1 file").unwrap();
        assert_eq!((send.common.dscp, send.common.insecure), (vec![7], true));
        let recv: RecvArgs = parse("out = \"/srv\"", "cbrst-recv --stdout").unwrap();
        assert!(recv.stdout);
    }

    #[test]
    fn an_option_whose_value_may_be_left_out_is_set_by_true() {
        let metrics = |text: &str| parse::<RecvArgs>(text, "cbrst-recv").map(|recv| recv.metrics);
        assert_eq!(metrics("metrics = true"), Ok("127.0.0.1:9464".parse().ok()));
        assert_eq!(metrics("metrics = \"[::1]:1\""), Ok("[::1]:1".parse().ok()));
        assert_eq!(metrics("metrics = false"), Ok(None));
        assert!(metrics("metrics = 1").is_err());
    }

    #[test]
    fn settings_that_the_environment_replaces_are_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.toml");
        fs::write(&path, TEXT).unwrap();
        let mut command = with_settings(SendArgs::command(), Some(&path), &["key-file"]).unwrap();
        let matches = command.try_get_matches_from_mut(["cbrst-send", "h:1", "file"]).unwrap();
        assert!(matches.get_one::<PathBuf>("key_file").is_none());
    }

    #[test]
    fn mistakes_in_settings_are_named_with_file_and_remedy() {
        for (text, expected) in [
            ("dcsp = 43", "no setting \"dcsp\": did you mean \"dscp\"?"),
            ("key_file = \"k\"", "did you mean \"key-file\"?"),
            ("[send]\nlisten = \"h:1\"", "no setting \"listen\" of cbrst-send"),
            ("insecure = true", "\"insecure\": it can be given only on the command line"),
            ("[recv]\nxyzzy = 1", "the long options that --help lists are settings"),
            ("dscp = 64", "c.toml: dscp = 64: 64 is not in 0..64"),
            ("json = 1", "json = 1: expected true or false"),
            ("paths = [\"ecmp:4\"]", "expected one value"),
            ("paths = \"ecmp:0\"", "1 to 64"),
            ("deadline = true", "expected a string or a number"),
            ("dscp = 43\ndscp = 44", "c.toml: line 2: "),
            ("[sned]\ndscp = 43", "no setting \"sned\": did you mean \"send\"?"),
            ("[Recv]\ndscp = 43", "no setting \"Recv\": did you mean \"recv\"?"),
            ("Recv = 1", "no setting \"Recv\": the long options that"),
            ("bogus = 1", "no setting \"bogus\": the long options that"),
            ("no_resumes = true", "did you mean \"no-resume\"?"),
        ] {
            let error = parse::<SendArgs>(text, "cbrst-send h:1 file").unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
