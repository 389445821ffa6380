//! Generates manual pages and completions, for packages to install.

use clap::{Arg, Command, ValueEnum};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use std::ffi::OsString;
use std::io::{self, Write};

const OPTION: &str = "generate";

/// The form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    Man,
    Bash,
    Zsh,
    Fish,
}

/// Returns the form that `--generate FORM` requests, if that is the command line. It replaces all arguments that
/// `command` requires.
pub(crate) fn wanted(command: &Command, args: &[OsString]) -> Option<Result<Form, clap::Error>> {
    let first = args.get(1)?.to_str()?.strip_prefix("--")?;
    if first.split('=').next() != Some(OPTION) {
        return None;
    }
    let form = Arg::new(OPTION).long(OPTION).value_name("FORM").required(true);
    let form = form.value_parser(clap::value_parser!(Form));
    let program = Command::new("program").bin_name(command.get_name());
    let matches = program.arg(form).try_get_matches_from(args);
    matches.map(|matches| matches.get_one(OPTION).copied()).transpose()
}

/// Writes the manual page or the completions of `command`.
///
/// # Errors
///
/// If `out` cannot be written to.
pub(crate) fn write(mut command: Command, form: Form, out: &mut dyn Write) -> io::Result<()> {
    let name = command.get_name().to_owned();
    let mut text = Vec::new();
    match form {
        Form::Man => man(command, &mut text)?,
        Form::Bash => clap_complete::generate(Shell::Bash, &mut command, name, &mut text),
        Form::Zsh => clap_complete::generate(Shell::Zsh, &mut command, name, &mut text),
        Form::Fish => clap_complete::generate(Shell::Fish, &mut command, name, &mut text),
    }
    out.write_all(&text)
}

/// Writes one manual page, which includes the options of the subcommands.
fn man(mut command: Command, out: &mut Vec<u8>) -> io::Result<()> {
    command.build();
    let subcommands: Vec<Command> =
        command.get_subcommands().filter(|each| each.get_name() != "help").cloned().collect();
    let more = command.get_after_long_help().or_else(|| command.get_after_help());
    let more = more.map(ToString::to_string).unwrap_or_default();
    let name = command.get_name().to_owned();
    let mut usage = synopsis(&name, &command);
    for subcommand in &subcommands {
        usage += &synopsis(&format!("{name} {}", subcommand.get_name()), subcommand);
    }
    let page = Man::new(command.override_usage(usage));
    page.render_title(out)?;
    page.render_name_section(out)?;
    page.render_synopsis_section(out)?;
    page.render_description_section(out)?;
    page.render_options_section(out)?;
    for subcommand in subcommands {
        let heading = format!("THE SUBCOMMAND {}", subcommand.get_name().to_uppercase());
        let about = subcommand.get_about().map(ToString::to_string).unwrap_or_default();
        let mut roff = Roff::new();
        roff.control("SH", [heading.as_str()]).text([roman(about)]);
        roff.to_writer(out)?;
        let has_options = subcommand.get_arguments().any(|option| option.get_id() != "help");
        if has_options {
            Man::new(subcommand).render_options_section(out)?;
        }
    }
    let mut roff = Roff::new();
    for line in more.lines() {
        // The text after the options in `--help`: headings, and preformatted lines.
        match line.split_once(':') {
            Some((heading, rest))
                if line.starts_with(|c: char| c.is_ascii_uppercase()) && rest.is_empty() =>
            {
                roff.control("SH", [heading.to_uppercase().as_str()]).control("nf", []);
            }
            _ => drop(roff.text([roman(line)])),
        }
    }
    roff.control("fi", []);
    roff.to_writer(out)
}

/// Returns one line of the synopsis, with all arguments and their values.
fn synopsis(name: &str, command: &Command) -> String {
    let mut line = name.to_owned();
    let (arguments, options): (Vec<&Arg>, Vec<&Arg>) = command
        .get_arguments()
        .filter(|each| !each.is_hide_set())
        .partition(|each| each.is_positional());
    for option in options {
        let short = option.get_short().map(|short| format!("-{short}|")).unwrap_or_default();
        line += &match option.is_required_set() {
            true => format!(" {short}{option}"),
            false => format!(" [{short}{option}]"),
        };
    }
    for argument in arguments {
        line += &format!(" {argument}");
    }
    line + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{ArgAction, CommandFactory, Parser};

    #[derive(Debug, Parser)]
    #[command(name = "program", after_long_help = "Exit codes:\n  0    done")]
    struct Arguments {
        #[command(subcommand)]
        command: Sub,
    }

    #[derive(Debug, clap::Subcommand)]
    enum Sub {
        /// Does it
        Run {
            /// Where it goes
            #[arg(long)]
            out: String,
        },
    }

    fn wanted(words: &str) -> Option<Result<Form, clap::Error>> {
        let args: Vec<OsString> = words.split(' ').map(OsString::from).collect();
        super::wanted(&Arguments::command(), &args)
    }

    #[test]
    fn generate_needs_no_other_arguments() {
        assert_eq!(wanted("program --generate man").unwrap().unwrap(), Form::Man);
        assert_eq!(wanted("program --generate=fish").unwrap().unwrap(), Form::Fish);
        for refused in ["--generate", "--generate html", "--generate man run"] {
            assert!(wanted(&format!("program {refused}")).unwrap().is_err(), "{refused}");
        }
        for other in ["run --generate", "--generated", "-- --generate"] {
            assert!(wanted(&format!("program {other}")).is_none(), "{other}");
        }
    }

    #[test]
    fn the_synopsis_shows_the_values_of_options_and_what_may_be_repeated() {
        let command = Command::new("program")
            .arg(Arg::new("recursive").short('r').long("recursive").action(ArgAction::SetTrue))
            .arg(Arg::new("rate").long("rate").value_name("R"))
            .arg(Arg::new("out").long("out").value_name("DIR").required(true))
            .arg(Arg::new("metrics").long("metrics").value_name("ADDR").num_args(0..=1))
            .arg(Arg::new("hidden").long("hidden").hide(true))
            .arg(Arg::new("addr").value_name("ADDR").required(true))
            .arg(Arg::new("files").value_name("FILE").num_args(1..).required(true));
        let mut page = Vec::new();
        write(command, Form::Man, &mut page).unwrap();
        let page = String::from_utf8(page).unwrap();
        let (_, synopsis) = page.split_once(".SH SYNOPSIS\n").unwrap();
        let synopsis = synopsis.lines().next().unwrap();
        let expected = "\\fBprogram\\fR [-r|--recursive] [--rate <R>] --out <DIR> [--metrics [<ADDR>]] \
                        [-h|--help] <ADDR> <FILE>...";
        assert_eq!(synopsis.replace("\\-", "-"), expected);
    }

    #[test]
    fn a_manual_page_has_the_options_of_subcommands_and_the_end_of_the_help() {
        let mut page = Vec::new();
        write(Arguments::command(), Form::Man, &mut page).unwrap();
        let page = String::from_utf8(page).unwrap();
        let synopsis = "\\fBprogram\\fR run \\-\\-out <OUT>";
        let expected =
            [".TH program 1", synopsis, "THE SUBCOMMAND RUN", "\\-\\-out", ".SH \"EXIT CODES\""];
        for part in expected {
            assert!(page.contains(part), "{part} in {page}");
        }
    }
}
