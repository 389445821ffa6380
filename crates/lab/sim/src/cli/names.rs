//! Error messages for unknown names.

/// Returns an error message for an unknown name, which suggests a similar name or lists all names.
pub(super) fn unknown(what: &str, given: &str, names: &[&str]) -> String {
    let near = |name: &&&str| strsim::damerau_levenshtein(given, name);
    // A name is similar if the edits that it takes are at most a third of its length.
    let nearest = names.iter().min_by_key(near).filter(|name| 3 * near(name) <= name.len());
    match nearest {
        Some(name) => format!("unknown {what} `{given}`: did you mean `{name}`?"),
        None => format!("unknown {what} `{given}`: expected one of {}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_similar_name_is_suggested_otherwise_all_are_listed() {
        let names = ["incast-bound", "rate"];
        let line = |given| unknown("experiment", given, &names);
        assert_eq!(
            line("incst-buond"),
            "unknown experiment `incst-buond`: did you mean `incast-bound`?"
        );
        assert_eq!(
            line("everything"),
            "unknown experiment `everything`: expected one of incast-bound, rate"
        );
    }
}
