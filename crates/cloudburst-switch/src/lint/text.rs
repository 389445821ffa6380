//! The text of a configuration: files, lines and words.

/// A file of a configuration.
#[derive(Clone, Debug)]
pub(crate) struct File {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// A line of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Location {
    pub(super) file: String,
    /// The line, from 1; 0 for something that is missing from the file.
    pub(super) line: usize,
}

/// Returns the word that follows another.
pub(super) fn after<'a>(words: &[&'a str], word: &str) -> Option<&'a str> {
    let found = words.iter().position(|each| *each == word)?;
    words.get(found + 1).copied()
}

/// Returns all lines of all files, each with its location, without comments and blank lines.
pub(super) fn lines<'a>(
    files: &'a [File],
    comment: &'static [char],
) -> impl Iterator<Item = (Location, &'a str)> + 'a {
    files.iter().flat_map(move |file| {
        let numbered = file.text.lines().enumerate();
        numbered
            .map(|(index, line)| (Location { file: file.name.clone(), line: index + 1 }, line))
            .filter(move |(_, line)| {
                let line = line.trim_start();
                !line.is_empty() && !line.starts_with(comment)
            })
    })
}

/// Parses numbers and ranges: `1,3-5 7`.
pub(super) fn numbers(text: &str) -> Vec<u8> {
    let parts = text.split([',', ' ']).filter(|part| !part.is_empty());
    let range = |part: &str| match part.split_once('-') {
        Some((low, high)) => {
            let low = low.parse::<u8>().ok()?;
            let high = high.parse::<u8>().ok()?;
            Some((low..=high.min(63)).collect::<Vec<_>>())
        }
        None => crate::dscp::parse(part).map(|one| vec![one]),
    };
    parts.filter_map(range).flatten().collect()
}
