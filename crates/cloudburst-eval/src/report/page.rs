//! The page: everything in one file, for people.

use super::claims::{self, Claim};
use super::figures::Figure;
use super::names::figure;
use super::tables::Table;
use crate::{About, Failure};
use minijinja::Environment;
use minijinja::value::Serde;
use serde::Serialize;
use std::path::Path;

/// An experiment's part of the report.
pub(super) struct Section {
    /// As the command line has it; its anchor too.
    pub(super) name: String,
    pub(super) title: &'static str,
    /// What was done.
    pub(super) what: &'static str,
    pub(super) figures: Vec<Figure>,
    pub(super) tables: Vec<Table>,
}

/// What the template is filled with.
#[derive(Serialize)]
struct Page<'a> {
    date: &'a str,
    lacks: &'a [String],
    /// What ran where: names and values.
    facts: [(&'static str, String); 10],
    notes: &'a [String],
    claims: &'a [Claim],
    /// The settings of Cloudburst that claims are judged for.
    judged: Vec<&'a str>,
    /// How verdicts are found.
    how: &'a str,
    sections: Vec<Shown<'a>>,
}

#[derive(Serialize)]
struct ShownFigure {
    id: String,
    /// Markup; the words in it are escaped.
    svg: String,
    caption: String,
}

#[derive(Serialize)]
struct Shown<'a> {
    name: &'a str,
    title: &'a str,
    what: &'a str,
    figures: Vec<ShownFigure>,
    tables: &'a [Table],
}

/// The page as HTML.
pub(super) fn html(
    about: &About,
    notes: &[String],
    claims: &[Claim],
    sections: &[Section],
) -> Result<String, Failure> {
    let sections = sections.iter().map(shown).collect::<Result<_, _>>()?;
    let mut judged: Vec<&str> = Vec::new();
    for each in claims.iter().flat_map(|claim| &claim.judged) {
        if !judged.contains(&&*each.of) {
            judged.push(&each.of);
        }
    }
    let filling = Page {
        date: &about.date,
        lacks: &about.lacks,
        facts: facts(about),
        notes,
        claims,
        judged,
        how: claims::HOW,
        sections,
    };
    let page = || {
        let mut environment = Environment::new();
        // Names that end in .html are escaped.
        environment.add_template("page.html", include_str!("page.html"))?;
        let page = environment.get_template("page.html")?;
        page.render(Serde(&filling))
    };
    page().map_err(|error: minijinja::Error| Failure::File {
        path: Path::new("index.html").to_owned(),
        reason: format!("cannot be made: {error:#}"),
    })
}

fn facts(about: &About) -> [(&'static str, String); 10] {
    let About { link_rate, scale, repetitions, seconds, warm_up_seconds, .. } = about;
    let rate = figure(*link_rate as f64 / 1e6);
    let minutes = figure(about.took_s / 60.0);
    let repeated = format!(
        "{repetitions}, each {seconds} s after {warm_up_seconds} s of warm-up; {} turns were \
         taken again, as others had more than 1 % of the processors",
        about.retaken
    );
    [
        ("Day", about.date.clone()),
        ("Command", about.command.clone()),
        ("Version", about.version.clone()),
        ("Machine", about.machine.clone()),
        ("Kernel", about.kernel.clone()),
        ("Network", about.network.clone()),
        ("Links", format!("{rate} Mb/s; request rates are the paper's divided by {scale}")),
        ("Repetitions", repeated),
        ("Seed", about.seed.to_string()),
        ("Took", format!("{minutes} min")),
    ]
}

fn shown(section: &Section) -> Result<Shown<'_>, Failure> {
    let figure = |figure: &Figure| -> Result<ShownFigure, Failure> {
        let svg = figure
            .drawing
            .svg()
            .map_err(|reason| Failure::Drawing { figure: figure.stem.clone(), reason })?;
        let (id, caption) = (figure.stem.clone(), figure.caption.clone());
        Ok(ShownFigure { id, svg, caption })
    };
    Ok(Shown {
        name: &section.name,
        title: section.title,
        what: section.what,
        figures: section.figures.iter().map(figure).collect::<Result<_, _>>()?,
        tables: &section.tables,
    })
}
