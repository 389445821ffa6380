//! The claims of the paper and the aims of the project, judged by stated rules.

mod judges;
mod rules;

use super::names;
use super::points::ExperimentResults;
use cloudburst_report::claims::{Claim, Judged};

/// The claims that these experiments can judge, each for all settings of Cloudburst.
pub(super) fn of(experiments: &[ExperimentResults<'_>]) -> Vec<Claim> {
    let judge = |rule: &rules::Rule| {
        let experiment =
            experiments.iter().find(|experiment| experiment.name == rule.experiment)?;
        let judged =
            |settings| Judged::new(display_settings(settings), (rule.judge)(experiment, settings));
        let judged = experiment.settings().into_iter().map(judged);
        Claim::new(rule.experiment, [rule.claim, rule.paper, rule.rule], judged)
    };
    rules::RULES.iter().filter_map(judge).collect()
}

/// The displayed name of settings, without a design: a claim may be about any of A to D.
fn display_settings(settings: &str) -> String {
    let all = names::display(&names::with_settings("d", settings));
    all.replace("Cloudburst D", "Cloudburst")
}

/// How verdicts follow from findings.
pub(super) const HOW: &str = "Each finding reaches its target, or only its partial target, or \
     neither. A claim holds if all its findings reach their targets, does not hold here if none \
     reaches even its partial target, and holds partly otherwise. Verdicts compare figures without \
     regard to their intervals, which are in the tables: with fewer than five repetitions, take \
     verdicts as hints. Fewer than 100 messages have no p99, and judge no claim about it. A \
     quantile that falls on a message that did not arrive is longer than any other time.";

#[cfg(test)]
mod tests {
    use super::super::synthetic;
    use super::*;
    use crate::Run;

    fn verdicts(run: &Run) -> Vec<(String, &'static str)> {
        let first = |claim: Claim| {
            assert_eq!(claim.judged[0].of, "Cloudburst");
            (claim.claim, claim.judged[0].verdict)
        };
        of(&ExperimentResults::of(run)).into_iter().map(first).collect()
    }

    fn verdict(run: &Run, claim: &str) -> &'static str {
        let all = verdicts(run);
        all.iter().find(|(name, _)| name.contains(claim)).unwrap_or_else(|| panic!("{all:?}")).1
    }

    /// Multiplies all times of the selected trials.
    fn stretch(run: &mut Run, of: impl Fn(&crate::Trial) -> bool, by: f64) {
        for trial in run.trials.iter_mut().filter(|trial| of(trial)) {
            for took in trial.messages.iter_mut().filter_map(|message| message.took_us.as_mut()) {
                *took = (*took as f64 * by) as u64;
            }
        }
    }

    #[test]
    fn every_rule_is_judged_by_its_experiment() {
        let run = synthetic::run(2, &synthetic::EXPERIMENTS);
        let claims = of(&ExperimentResults::of(&run));
        assert_eq!(claims.len(), rules::RULES.len());
        let judged: Vec<_> = claims.iter().flat_map(|claim| &claim.judged).collect();
        assert!(judged.iter().all(|judged| !judged.findings.is_empty()));
        assert!(judged.iter().any(|judged| judged.of == "Cloudburst (lt, until-stop)"));
    }

    #[test]
    fn claims_about_experiments_that_did_not_run_are_not_judged() {
        assert_eq!(of(&ExperimentResults::of(&synthetic::run(1, &[]))).len(), 0);
        let run = synthetic::run(1, &["friendly"]);
        assert_eq!(verdicts(&run).len(), 1);
    }

    #[test]
    fn the_verdict_on_the_tail_follows_the_measured_times() {
        let mut run = synthetic::run(2, &["schemes"]);
        let tail = "60 % below";
        stretch(&mut run, |trial| trial.scheme == "d", 0.2);
        assert_eq!(verdict(&run, tail), "holds");
        // Less than 60 % below PIAS, but still below.
        stretch(&mut run, |trial| trial.scheme == "pias", 0.2);
        assert_eq!(verdict(&run, tail), "holds partly");
        stretch(&mut run, |trial| trial.scheme == "d", 1000.0);
        // MPTCP's quantiles fall on messages that did not arrive.
        assert_eq!(verdict(&run, tail), "holds partly");
        run.trials.retain(|trial| trial.scheme != "mptcp");
        assert_eq!(verdict(&run, tail), "does not hold here");
    }

    #[test]
    fn undelivered_messages_of_cloudburst_count_against_its_claims() {
        let mut run = synthetic::run(1, &["schemes"]);
        run.trials.retain(|trial| trial.scheme != "mptcp");
        for trial in run.trials.iter_mut().filter(|trial| trial.scheme == "d") {
            trial.messages.iter_mut().for_each(|message| message.took_us = None);
        }
        assert_eq!(verdict(&run, "60 % below"), "does not hold here");
        assert_eq!(verdict(&run, "The median"), "does not hold here");
    }

    #[test]
    fn redundancy_is_compared_with_the_papers() {
        let mut run = synthetic::run(1, &["schemes"]);
        assert_eq!(verdict(&run, "packets per packet needed"), "holds");
        let packets = run.trials.iter_mut().flat_map(|trial| &mut trial.messages);
        packets.filter_map(|message| message.packets.as_mut()).for_each(|packets| *packets *= 2);
        assert_eq!(verdict(&run, "packets per packet needed"), "does not hold here");
    }

    #[test]
    fn the_claim_on_dead_paths_allows_half_as_much_again() {
        let mut run = synthetic::run(2, &["failures"]);
        assert_eq!(verdict(&run, "dead"), "holds");
        stretch(&mut run, |trial| trial.x == 3.0, 1.35);
        assert_eq!(verdict(&run, "dead"), "holds partly");
        stretch(&mut run, |trial| trial.x == 3.0, 2.0);
        assert_eq!(verdict(&run, "dead"), "does not hold here");
    }

    #[test]
    fn an_incast_that_grows_faster_than_linearly_fails_its_claim() {
        let mut run = synthetic::run(2, &["incast"]);
        let linear = "grows linearly";
        let below = "less time than TCP";
        assert_eq!((verdict(&run, linear), verdict(&run, below)), ("holds", "holds"));
        stretch(&mut run, |trial| trial.scheme == "d" && trial.x == 16.0, 40.0);
        assert_ne!(verdict(&run, linear), "holds");
        assert_eq!(verdict(&run, below), "holds partly");
    }

    #[test]
    fn too_few_messages_for_a_p99_judge_no_claim_about_it() {
        let mut run = synthetic::run(2, &["schemes", "failures"]);
        run.trials.iter_mut().for_each(|trial| trial.messages.truncate(30));
        let claims = verdicts(&run);
        assert!(claims.iter().all(|(claim, _)| !claim.contains("p99")), "{claims:?}");
        assert_eq!(claims.len(), 2, "only the median and the packets are judged: {claims:?}");
    }

    #[test]
    fn a_starved_background_fails_its_claim() {
        let mut run = synthetic::run(2, &["friendly"]);
        assert_eq!(verdict(&run, "background"), "holds");
        let ours = run.trials.iter_mut().filter(|trial| trial.scheme == "d");
        ours.for_each(|trial| trial.background_bytes /= 2);
        assert_eq!(verdict(&run, "background"), "does not hold here");
    }

    #[test]
    fn the_claim_on_the_best_rate_follows_the_measured_times() {
        let mut run = synthetic::run(2, &["rate"]);
        assert_eq!(verdict(&run, "r near"), "holds");
        stretch(&mut run, |trial| trial.scheme == "d" && trial.x == 1.0, 0.01);
        assert_eq!(verdict(&run, "r near"), "holds partly");
    }

    #[test]
    fn claims_are_written_with_their_figures() {
        let claims = of(&ExperimentResults::of(&synthetic::run(1, &["friendly"])));
        let text = cloudburst_report::claims::markdown(HOW, &claims);
        assert!(
            text.contains("- Cloudburst: **holds**")
                && text.contains("- Rule: ")
                && text.contains("Mb/s"),
            "{text}"
        );
    }
}
