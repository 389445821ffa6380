//! What is claimed, judged by rules that are written beside.

use serde::Serialize;

/// A claim and what was found of it.
#[derive(Clone, Debug, Serialize)]
pub struct Claim {
    /// The experiment that it is judged by: the name of a [`Section`](crate::Section).
    pub experiment: String,
    /// In a sentence.
    pub claim: String,
    /// What the paper gives, if anything.
    pub paper: String,
    /// When it holds; when it holds partly.
    pub rule: String,
    /// Of each that can be judged; at least one.
    pub judged: Vec<Judged>,
}

impl Claim {
    /// A claim with what `experiment` found of it: the sentence, what the paper gives, and the rule that it is
    /// judged by. `None` if nothing could be judged.
    pub fn new(
        experiment: &str,
        [claim, paper, rule]: [&str; 3],
        judged: impl IntoIterator<Item = Option<Judged>>,
    ) -> Option<Self> {
        let judged: Vec<Judged> = judged.into_iter().flatten().collect();
        (!judged.is_empty()).then(|| Self {
            experiment: experiment.to_owned(),
            claim: claim.to_owned(),
            paper: paper.to_owned(),
            rule: rule.to_owned(),
            judged,
        })
    }
}

/// The verdict on one scheme, or on one setting of a scheme.
#[derive(Clone, Debug, Serialize)]
pub struct Judged {
    /// Its name for people; a column of the page's verdicts.
    pub of: String,
    /// The figures that were found; at least one.
    pub findings: Vec<String>,
    /// `holds`, `holds partly` or `does not hold here`.
    pub verdict: &'static str,
}

/// How much of what was asked for a figure shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// All of it.
    Whole,
    /// The direction, or nearly all.
    Part,
    /// Neither.
    No,
}

impl Reached {
    /// Of whether the mark is reached, and whether the part is.
    pub fn of(whole: bool, part: bool) -> Self {
        match (whole, part) {
            (true, _) => Self::Whole,
            (false, true) => Self::Part,
            (false, false) => Self::No,
        }
    }
}

/// A figure in words, and how much it shows.
pub type Finding = (Reached, String);

impl Judged {
    /// A claim holds if all findings reach their marks, does not hold here if none reaches even the
    /// part, and holds partly otherwise. `None` of no finding.
    pub fn new(of: impl Into<String>, findings: Vec<Finding>) -> Option<Self> {
        let all = |reached| findings.iter().all(|finding| finding.0 == reached);
        let verdict = match (all(Reached::Whole), all(Reached::No)) {
            // All of nothing.
            (true, true) => return None,
            (true, false) => "holds",
            (false, true) => "does not hold here",
            (false, false) => "holds partly",
        };
        let findings = findings.into_iter().map(|finding| finding.1).collect();
        Some(Self { of: of.into(), findings, verdict })
    }
}

/// Claims as Markdown, after a word on `how` verdicts are found.
pub fn markdown(how: &str, claims: &[Claim]) -> String {
    let mut text = format!("# Claims\n\n{how}\n\n");
    if claims.is_empty() {
        text.push_str("The run has no experiment by which a claim can be judged.\n");
    }
    for claim in claims {
        text.push_str(&format!("## {}\n\n", claim.claim));
        text.push_str(&format!("- Experiment: `{}`\n", claim.experiment));
        text.push_str(&format!("- Rule: {}\n- Paper: {}\n", claim.rule, claim.paper));
        for judged in &claim.judged {
            text.push_str(&format!("- {}: **{}**\n", judged.of, judged.verdict));
            for finding in &judged.findings {
                text.push_str(&format!("  - {finding}\n"));
            }
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(reached: &[Reached]) -> Option<Judged> {
        let finding = |reached: &Reached| (*reached, format!("{reached:?}"));
        Judged::new("ours", reached.iter().map(finding).collect())
    }

    #[test]
    fn a_verdict_is_that_of_all_findings() {
        use Reached::{No, Part, Whole};
        let verdict = |reached: &[Reached]| judged(reached).unwrap().verdict;
        assert_eq!(verdict(&[Whole, Whole]), "holds");
        assert_eq!(verdict(&[No, No]), "does not hold here");
        for partly in [&[Part][..], &[Whole, No], &[Part, No], &[Whole, Part]] {
            assert_eq!(verdict(partly), "holds partly");
        }
        assert!(judged(&[]).is_none());
    }

    #[test]
    fn claims_are_written_with_their_figures() {
        let claim = Claim {
            experiment: "incast".to_owned(),
            claim: "It grows linearly".to_owned(),
            paper: "almost linear".to_owned(),
            rule: "R²".to_owned(),
            judged: judged(&[Reached::Whole]).into_iter().collect(),
        };
        let text = markdown("By rules.", &[claim]);
        let all = "# Claims\n\nBy rules.\n\n## It grows linearly\n\n- Experiment: `incast`\n\
                   - Rule: R²\n- Paper: almost linear\n- ours: **holds**\n  - Whole\n\n";
        assert_eq!(text, all);
        assert!(markdown("", &[]).contains("no experiment"));
    }
}
