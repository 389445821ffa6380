//! Claims, and their verdicts by stated rules.

use serde::Serialize;

/// A claim with its verdicts.
#[derive(Clone, Debug, Serialize)]
pub struct Claim {
    /// The experiment by which it is judged: the name of a [`Section`](crate::Section).
    pub experiment: String,
    /// The claim, as a sentence without a full stop.
    pub claim: String,
    /// The paper's figures for it.
    pub paper: String,
    /// The rule by which it is judged, in whole sentences.
    pub rule: String,
    /// The verdicts, at least one.
    pub judged: Vec<Judged>,
}

impl Claim {
    /// A claim about the results of `experiment`: the sentence, the paper's figures, and the rule. `None` without
    /// a verdict.
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
    /// Its name, which is a column of the page's verdicts.
    pub of: String,
    /// The findings, at least one.
    pub findings: Vec<String>,
    /// `holds`, `holds partly` or `does not hold here`.
    pub verdict: &'static str,
}

/// How far a finding reaches its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// It reaches the target.
    Whole,
    /// It reaches the partial target only, such as the right direction.
    Part,
    /// It reaches neither.
    No,
}

impl Reached {
    /// From whether the target is reached, and whether the partial target is.
    pub fn of(whole: bool, part: bool) -> Self {
        match (whole, part) {
            (true, _) => Self::Whole,
            (false, true) => Self::Part,
            (false, false) => Self::No,
        }
    }

    /// Whether a line of this slope and R² grows linearly: R² is at least 0.95, in part 0.8.
    pub fn linear_growth(slope: f64, r_squared: f64) -> Self {
        let grows = slope > 0.0;
        Self::of(grows && r_squared >= 0.95, grows && r_squared >= 0.8)
    }

    /// Whether something holds at all of `points`, in part at `holding` of them, which are some.
    pub fn at(holding: usize, points: usize) -> Self {
        Self::of(holding == points, holding > 0)
    }

    /// Whether the rate `r` is near 0.5, the inverse of an over-subscription of 2:1: within 0.1, in part 0.25.
    pub fn near_half(r: f64) -> Self {
        Self::of((0.4..=0.6).contains(&r), (0.25..=0.75).contains(&r))
    }
}

/// A finding: how far it reaches its target, and a text with its figures.
pub type Finding = (Reached, String);

impl Judged {
    /// The verdict for `of`. The claim holds if all findings reach their targets, does not hold here if
    /// none reaches even its partial target, and otherwise holds partly. `None` without findings.
    pub fn new(of: impl Into<String>, findings: Vec<Finding>) -> Option<Self> {
        let all = |reached| findings.iter().all(|finding| finding.0 == reached);
        let verdict = match (all(Reached::Whole), all(Reached::No)) {
            // There are no findings.
            (true, true) => return None,
            (true, false) => "holds",
            (false, true) => "does not hold here",
            (false, false) => "holds partly",
        };
        let findings = findings.into_iter().map(|finding| finding.1).collect();
        Some(Self { of: of.into(), findings, verdict })
    }
}

/// The claims as Markdown, after the text `how`, which explains how verdicts follow from findings.
pub fn markdown(how: &str, claims: &[Claim]) -> String {
    let mut text = format!("# Claims\n\n{how}\n\n");
    if claims.is_empty() {
        text.push_str("The run has no results that judge a claim.\n");
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
    fn a_line_that_falls_does_not_grow_linearly() {
        assert_eq!(Reached::linear_growth(2.0, 0.96), Reached::Whole);
        assert_eq!(Reached::linear_growth(2.0, 0.9), Reached::Part);
        assert_eq!(Reached::linear_growth(-2.0, 0.96), Reached::No);
    }

    #[test]
    fn a_verdict_follows_from_all_findings() {
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
        assert!(markdown("", &[]).contains("no results that judge a claim"));
    }
}
