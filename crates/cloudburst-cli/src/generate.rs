//! Manual pages and completions, which packages of the programs install.

use clap::{Arg, ArgMatches, Command, ValueEnum};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use std::io::{self, Write};

const OPTION: &str = "generate";

/// What to write.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Form {
    Man,
    Bash,
    Zsh,
    Fish,
}

/// The command with the option `--generate FORM`, which excludes all others and is for packagers.
pub(crate) fn with_option(command: Command) -> Command {
    let form = clap::value_parser!(Form);
    command.arg(Arg::new(OPTION).long(OPTION).value_parser(form).exclusive(true).hide(true))
}

/// What the arguments ask for, if they do.
pub(crate) fn wanted(matches: &ArgMatches) -> Option<Form> {
    matches.get_one(OPTION).copied()
}

/// Writes it.
///
/// # Errors
///
/// When `out` cannot be written to.
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

/// One page with the options of the subcommands, too.
fn man(mut command: Command, out: &mut Vec<u8>) -> io::Result<()> {
    command.build();
    let subcommands: Vec<Command> =
        command.get_subcommands().filter(|each| each.get_name() != "help").cloned().collect();
    let more = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let page = Man::new(command);
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
        // What `--help` says after the options: headings, and lines as they are.
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
