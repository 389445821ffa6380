//! A report: its files, and the page that shows all of it.

use crate::claims::{self, Claim};
use crate::figures::Figure;
use crate::{Error, Table};
use minijinja::Environment;
use minijinja::value::Serde;
use serde::Serialize;
use std::path::Path;

/// A report on some experiments.
#[derive(Clone, Debug)]
pub struct Report {
    /// The title of the page in a browser, to which the date is appended. Title, heading and lead are
    /// HTML from the program itself, and are not escaped.
    pub title: &'static str,
    /// The heading of the page.
    pub heading: &'static str,
    /// The paragraph below the heading.
    pub lead: &'static str,
    /// The day of the experiments, such as `2026-01-31`; see [`today`](crate::today).
    pub date: String,
    /// The text to show if there are no sections.
    pub empty: String,
    /// Facts about the run, such as versions and hosts: names and values.
    pub facts: Vec<(String, String)>,
    /// Settings and measurements that are missing, a sentence each.
    pub lacks: Vec<String>,
    /// Notes on how to read the figures, a paragraph each.
    pub notes: Vec<String>,
    /// How verdicts follow from findings.
    pub how: String,
    /// The claims, in the order in which they are shown.
    pub claims: Vec<Claim>,
    /// A section for each experiment.
    pub sections: Vec<Section>,
}

/// An experiment's part of the report.
#[derive(Clone, Debug)]
pub struct Section {
    /// The experiment's name on the command line, which is also the section's anchor.
    pub name: String,
    /// The heading of the section.
    pub title: String,
    /// A description of the experiment, in whole sentences.
    pub description: String,
    /// The figures. Their stems must be unique in the report.
    pub figures: Vec<Figure>,
    /// The tables, which are shown below the figures.
    pub tables: Vec<Table>,
}

/// The values of the template.
#[derive(Serialize)]
struct Page<'a> {
    title: &'a str,
    heading: &'a str,
    lead: &'a str,
    date: &'a str,
    empty: &'a str,
    lacks: &'a [String],
    facts: &'a [(String, String)],
    notes: &'a [String],
    claims: &'a [Claim],
    /// The names of everything that claims are judged for: the columns of verdicts.
    judged: Vec<&'a str>,
    how: &'a str,
    sections: Vec<Shown<'a>>,
}

#[derive(Serialize)]
struct ShownFigure<'a> {
    id: &'a str,
    /// Markup, with its text escaped.
    svg: String,
    caption: &'a str,
}

#[derive(Serialize)]
struct Shown<'a> {
    name: &'a str,
    title: &'a str,
    description: &'a str,
    figures: Vec<ShownFigure<'a>>,
    tables: &'a [Table],
}

impl Report {
    /// Writes `tables.md`, `claims.md`, `figures/` with an SVG and a PNG of each figure, and
    /// `index.html` into `directory`, which is created if necessary.
    ///
    /// # Errors
    ///
    /// [`Error`]: a file cannot be written, or a figure or the page cannot be rendered.
    pub fn write(&self, directory: &Path) -> Result<(), Error> {
        let figures = directory.join("figures");
        std::fs::create_dir_all(&figures).map_err(Error::file(&figures))?;
        for figure in self.sections.iter().flat_map(|section| &section.figures) {
            let svg = drawn(figure, Figure::svg)?;
            write(&figures.join(format!("{}.svg", figure.stem)), svg)?;
            let png = drawn(figure, Figure::png)?;
            write(&figures.join(format!("{}.png", figure.stem)), png)?;
        }
        write(&directory.join("tables.md"), self.tables())?;
        write(&directory.join("claims.md"), claims::markdown(&self.how, &self.claims))?;
        write(&directory.join("index.html"), self.html()?)
    }

    /// The tables as Markdown.
    fn tables(&self) -> String {
        let mut text = "# Tables\n\n".to_owned();
        self.notes.iter().for_each(|note| text.push_str(&format!("- {note}\n")));
        if self.sections.is_empty() {
            text.push_str(&format!("\n{}\n", self.empty));
        }
        for section in &self.sections {
            text.push_str(&format!("\n## {}\n\n{}\n\n", section.title, section.description));
            section.tables.iter().for_each(|table| text.push_str(&table.markdown()));
        }
        text
    }

    /// The page as HTML.
    fn html(&self) -> Result<String, Error> {
        let mut judged: Vec<&str> = Vec::new();
        for each in self.claims.iter().flat_map(|claim| &claim.judged) {
            if !judged.contains(&&*each.of) {
                judged.push(&each.of);
            }
        }
        let filling = Page {
            title: self.title,
            heading: self.heading,
            lead: self.lead,
            date: &self.date,
            empty: &self.empty,
            lacks: &self.lacks,
            facts: &self.facts,
            notes: &self.notes,
            claims: &self.claims,
            judged,
            how: &self.how,
            sections: self.sections.iter().map(Shown::of).collect::<Result<_, _>>()?,
        };
        let page = || {
            let mut environment = Environment::new();
            // Names that end in .html are escaped.
            environment.add_template("page.html", include_str!("page.html"))?;
            let page = environment.get_template("page.html")?;
            page.render(Serde(&filling))
        };
        page().map_err(|error: minijinja::Error| Error::Page(format!("{error:#}")))
    }
}

fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<(), Error> {
    std::fs::write(path, bytes).map_err(Error::file(path))
}

type Draw<T> = fn(&Figure) -> Result<T, Box<dyn std::error::Error>>;

fn drawn<T>(figure: &Figure, draw: Draw<T>) -> Result<T, Error> {
    draw(figure).map_err(|source| Error::Drawing {
        figure: figure.stem.clone(),
        reason: source.to_string(),
    })
}

impl<'a> Shown<'a> {
    fn of(section: &'a Section) -> Result<Self, Error> {
        Ok(Self {
            name: &section.name,
            title: &section.title,
            description: &section.description,
            figures: section.figures.iter().map(ShownFigure::of).collect::<Result<_, _>>()?,
            tables: &section.tables,
        })
    }
}

impl<'a> ShownFigure<'a> {
    fn of(figure: &'a Figure) -> Result<Self, Error> {
        let svg = drawn(figure, Figure::svg)?;
        Ok(Self { id: &figure.stem, svg, caption: &figure.caption })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::{Judged, Reached};
    use crate::figures::{Bar, Bars, Entry};
    use crate::statistics::Estimate;

    fn report(sections: Vec<Section>) -> Report {
        let judged = Judged::new("a & b", vec![(Reached::Part, "nearly".to_owned())]);
        let claim = Claim {
            experiment: "sweep".to_owned(),
            claim: "It is <less>".to_owned(),
            paper: "less".to_owned(),
            rule: "Less.".to_owned(),
            judged: judged.into_iter().collect(),
        };
        Report {
            title: "A title",
            heading: "A heading",
            lead: "From <cite>a paper</cite>.",
            date: "2026-01-31".to_owned(),
            empty: "Nothing ran.".to_owned(),
            facts: vec![("Seed".to_owned(), "7 < 8".to_owned())],
            lacks: vec!["No <b>switches</b>.".to_owned()],
            notes: vec!["Times are virtual.".to_owned()],
            how: "By rules.".to_owned(),
            claims: vec![claim],
            sections,
        }
    }

    fn section() -> Section {
        let entry = Entry::nth(0, "<scheme>");
        let bar = Bar { entry, value: Estimate::exact(3.0), note: "3.00 ms".to_owned() };
        let bars = Bars { title: "Bars".to_owned(), x: "ms".to_owned(), bars: vec![bar] };
        Section {
            name: "sweep".to_owned(),
            title: "A sweep".to_owned(),
            description: "Everything is tried.".to_owned(),
            figures: vec![bars.figure("sweep-bars", "What it took.")],
            tables: vec![Table::new("All", &["ms"], vec![vec!["3".to_owned()]])],
        }
    }

    fn read(path: &Path) -> String {
        std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"))
    }

    #[test]
    fn a_report_writes_all_its_files_and_escapes_measured_text() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path().join("new");
        report(vec![section()]).write(&directory).unwrap();
        let page = read(&directory.join("index.html"));
        assert!(page.contains("<title>A title, 2026-01-31</title>"));
        assert!(page.contains("<p>From <cite>a paper</cite>.</p>"));
        for escaped in ["7 &lt; 8", "No &lt;b&gt;", "It is &lt;less&gt;", "a &amp; b"] {
            assert!(page.contains(escaped), "{escaped}");
        }
        let svg = read(&directory.join("figures/sweep-bars.svg"));
        assert!(page.contains(&svg) && svg.contains("&lt;scheme&gt;"));
        assert!(std::fs::read(directory.join("figures/sweep-bars.png")).unwrap().len() > 100);
        assert!(read(&directory.join("claims.md")).contains("- a & b: **holds partly**"));
        let tables = "# Tables\n\n- Times are virtual.\n\n## A sweep\n\nEverything is tried.\n\n\
                      All\n\n| ms |\n| --- |\n| 3 |\n\n";
        assert_eq!(read(&directory.join("tables.md")), tables);
    }

    #[test]
    fn a_report_without_measurements_says_so() {
        let directory = tempfile::tempdir().unwrap();
        report(Vec::new()).write(directory.path()).unwrap();
        for name in ["index.html", "tables.md"] {
            assert!(read(&directory.path().join(name)).contains("Nothing ran."), "{name}");
        }
    }

    #[test]
    fn the_error_names_the_path_that_cannot_be_written() {
        let error =
            report(Vec::new()).write(Path::new("/dev/null/report")).unwrap_err().to_string();
        assert!(error.starts_with("/dev/null/report/figures: cannot be written: "), "{error}");
        assert_eq!(error.lines().count(), 1);
    }
}
