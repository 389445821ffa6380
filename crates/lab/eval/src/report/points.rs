//! Results by experiment and point, with their statistics.

use super::names;
use crate::{Message, Run, Trial};
use cloudburst_report::statistics::{Estimate, Summary, mean};
use std::collections::BTreeMap;

/// The results of one experiment.
#[derive(Debug)]
pub(super) struct ExperimentResults<'a> {
    pub(super) name: &'a str,
    /// The points, sorted by scheme, then load, then x.
    pub(super) points: Vec<Point<'a>>,
}

/// One scheme at one point, in all its repetitions.
#[derive(Debug)]
pub(super) struct Point<'a> {
    pub(super) scheme: &'a str,
    pub(super) load: f64,
    pub(super) x: f64,
    pub(super) trials: Vec<&'a Trial>,
    /// The summary of all messages; `None` without messages.
    pub(super) all: Option<Summary>,
    /// The summary of the messages of each size in bytes.
    pub(super) sizes: BTreeMap<u32, Summary>,
}

impl<'a> ExperimentResults<'a> {
    /// All experiments of a run, in the order in which they ran.
    pub(super) fn of(run: &'a Run) -> Vec<Self> {
        let mut experiments: Vec<Self> = Vec::new();
        for trial in &run.trials {
            let at = experiments.iter().position(|experiment| experiment.name == trial.experiment);
            let at = at.unwrap_or_else(|| {
                experiments.push(Self { name: &trial.experiment, points: Vec::new() });
                experiments.len() - 1
            });
            let points = &mut experiments[at].points;
            match points.iter_mut().find(|point| point.is_of(trial)) {
                Some(point) => point.trials.push(trial),
                None => points.push(Point::new(trial)),
            }
        }
        for experiment in &mut experiments {
            let points = &mut experiment.points;
            points.iter_mut().for_each(|point| point.summarise(run.about.seed));
            points.sort_by(|a, b| {
                let by_scheme = names::order(a.scheme).cmp(&names::order(b.scheme));
                by_scheme.then(a.load.total_cmp(&b.load)).then(a.x.total_cmp(&b.x))
            });
        }
        experiments
    }

    /// The schemes that were compared, in their usual order.
    pub(super) fn schemes(&self) -> Vec<&'a str> {
        let mut schemes: Vec<_> = self.points.iter().map(|point| point.scheme).collect();
        schemes.dedup();
        schemes
    }

    /// The settings of Cloudburst that were compared, where `""` are its defaults.
    pub(super) fn settings(&self) -> Vec<&'a str> {
        let cloudburst = self.schemes().into_iter().filter(|scheme| names::is_cloudburst(scheme));
        let mut settings: Vec<_> = cloudburst.map(|scheme| names::split(scheme).1).collect();
        settings.sort_unstable();
        settings.dedup();
        settings
    }

    pub(super) fn loads(&self) -> Vec<f64> {
        distinct(self.points.iter().map(|point| point.load))
    }

    pub(super) fn highest_load(&self) -> f64 {
        self.loads().last().copied().unwrap_or(0.0)
    }

    pub(super) fn xs(&self) -> Vec<f64> {
        distinct(self.points.iter().map(|point| point.x))
    }

    /// The message sizes in bytes.
    pub(super) fn sizes(&self) -> Vec<u32> {
        let mut sizes: Vec<_> =
            self.points.iter().flat_map(|point| point.sizes.keys().copied()).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// Whether a point has so few messages of a size that their p99 is the longest time.
    pub(super) fn has_longest_for_p99(&self) -> bool {
        let mut sizes = self.points.iter().flat_map(|point| point.sizes.values());
        sizes.any(|size| size.is_longest(0.99))
    }

    pub(super) fn at(&self, scheme: &str, load: f64, x: f64) -> Option<&Point<'a>> {
        self.points
            .iter()
            .find(|point| point.scheme == scheme && point.load == load && point.x == x)
    }
}

impl<'a> Point<'a> {
    fn new(trial: &'a Trial) -> Self {
        let load = trial.load;
        let x = trial.x;
        Self {
            scheme: &trial.scheme,
            load,
            x,
            trials: vec![trial],
            all: None,
            sizes: BTreeMap::new(),
        }
    }

    fn is_of(&self, trial: &Trial) -> bool {
        self.scheme == trial.scheme && self.load == trial.load && self.x == trial.x
    }

    fn summarise(&mut self, seed: u64) {
        self.trials.sort_by_key(|trial| trial.repetition);
        self.all = Summary::of(&self.times(|_| true), seed);
        let sizes: std::collections::BTreeSet<u32> =
            self.messages().map(|message| message.bytes).collect();
        for bytes in sizes {
            let summary = Summary::of(&self.times(|message| message.bytes == bytes), seed);
            self.sizes.extend(summary.map(|summary| (bytes, summary)));
        }
    }

    /// The completion times of the messages that `of` selects, by repetition.
    fn times(&self, of: impl Fn(&Message) -> bool) -> Vec<Vec<f64>> {
        let time = |message: &Message| message.took_us.map_or(f64::INFINITY, |took| took as f64);
        let times = |trial: &&Trial| trial.messages.iter().filter(|m| of(m)).map(time).collect();
        self.trials.iter().map(times).collect()
    }

    pub(super) fn messages(&self) -> impl Iterator<Item = &'a Message> {
        self.trials.iter().flat_map(|trial| &trial.messages)
    }

    /// The number of messages that did not arrive within the deadline.
    pub(super) fn late(&self) -> usize {
        self.all.map_or(0, |all| all.late)
    }

    /// The mean over sizes of a figure of each, in microseconds. Infinite if one of them is. `None`
    /// without messages.
    pub(super) fn over_sizes(&self, figure: impl Fn(&Summary) -> f64) -> Option<f64> {
        mean(&self.sizes.values().map(figure).collect::<Vec<_>>())
    }

    /// The mean over sizes of the p99. The ends of its interval are the means of the ends, which makes
    /// it a little too wide, because the errors of different sizes partly cancel.
    pub(super) fn p99_over_sizes(&self) -> Option<Estimate> {
        Some(Estimate {
            value: self.over_sizes(|size| size.p99.value)?,
            low: self.over_sizes(|size| size.p99.low)?,
            high: self.over_sizes(|size| size.p99.high)?,
        })
    }

    /// Packets sent over packets of the messages themselves, for one size or all.
    pub(super) fn sent_over_original(&self, bytes: Option<u32>) -> Option<f64> {
        let mut sent = 0_u64;
        let mut original = 0_u64;
        for message in self.messages().filter(|m| bytes.is_none_or(|bytes| m.bytes == bytes)) {
            if let (Some(packets), Some(source)) = (message.packets, message.source_packets) {
                sent += u64::from(packets);
                original += u64::from(source);
            }
        }
        (original > 0).then(|| sent as f64 / original as f64)
    }

    /// The goodput of the background flows, in bits per second.
    pub(super) fn goodput(&self) -> Option<Estimate> {
        let goodput = |trial: &&Trial| trial.background_bytes as f64 * 8.0 / trial.seconds;
        let timed = self.trials.iter().filter(|trial| trial.seconds > 0.0);
        Estimate::mean_of(&timed.map(goodput).collect::<Vec<_>>())
    }

    /// The mean over trials of a share of the processors.
    pub(super) fn processors(&self, share: impl Fn(&Trial) -> f64) -> f64 {
        mean(&self.trials.iter().map(|trial| share(trial)).collect::<Vec<_>>()).unwrap_or(0.0)
    }

    /// The counters that `of` selects, as (sent, dropped), summed over all repetitions.
    pub(super) fn queue(&self, of: impl Fn(&Trial) -> (u64, u64)) -> (u64, u64) {
        let counts = self.trials.iter().map(|trial| of(trial));
        counts.fold((0, 0), |sum, next| (sum.0 + next.0, sum.1 + next.1))
    }

    /// The time from the common start of an incast's flows until the last one has arrived, in
    /// microseconds: the mean over the incasts of a repetition, then over repetitions. Incasts with a
    /// flow that did not arrive are left out here, and counted by [`incomplete`](Self::incomplete).
    pub(super) fn completion(&self) -> Option<Estimate> {
        let each = |trial: &&Trial| {
            let complete: Vec<f64> = instants(trial).into_iter().flatten().collect();
            mean(&complete)
        };
        Estimate::mean_of(&self.trials.iter().filter_map(each).collect::<Vec<_>>())
    }

    /// The number of incasts with a flow that did not arrive.
    pub(super) fn incomplete(&self) -> usize {
        let incomplete =
            |trial: &&Trial| instants(trial).iter().filter(|last| last.is_none()).count();
        self.trials.iter().map(incomplete).sum()
    }
}

/// The longest time of the messages that were due at each instant; `None` if one did not arrive.
fn instants(trial: &Trial) -> Vec<Option<f64>> {
    let mut last: BTreeMap<u64, Option<u64>> = BTreeMap::new();
    for message in &trial.messages {
        let latest = last.entry(message.at_us).or_insert(Some(0));
        *latest = latest.zip(message.took_us).map(|(a, b)| a.max(b));
    }
    last.into_values().map(|latest| latest.map(|us| us as f64)).collect()
}

fn distinct(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    values
}

#[cfg(test)]
mod tests {
    use super::super::synthetic;
    use super::*;

    #[test]
    fn repetitions_of_a_point_are_grouped() {
        let run = synthetic::run(3, &["schemes"]);
        let experiments = ExperimentResults::of(&run);
        let schemes = &experiments[0];
        assert_eq!(schemes.loads(), [800.0, 1600.0, 2000.0]);
        assert_eq!(schemes.schemes()[0], "tcp-cubic");
        assert!(schemes.points.iter().all(|point| point.trials.len() == 3));
        assert_eq!(schemes.settings(), ["", "code=lt,policy=until-stop"]);
    }

    #[test]
    fn an_incast_lasts_until_its_last_flow_is_complete() {
        let message = |at_us, took_us| Message { at_us, took_us, ..synthetic::message() };
        let trial = Trial {
            messages: vec![
                message(0, Some(10)),
                message(0, Some(30)),
                message(9, Some(50)),
                message(20, Some(5)),
                message(20, None),
            ],
            ..synthetic::trial("incast", "d")
        };
        let point = Point::new(&trial);
        assert_eq!(point.completion().unwrap().value, 40.0);
        assert_eq!(point.incomplete(), 1);
    }

    #[test]
    fn the_redundancy_covers_only_messages_with_packet_counts() {
        let message =
            |packets, source_packets| Message { packets, source_packets, ..synthetic::message() };
        let messages =
            vec![message(Some(15), Some(10)), message(Some(9), Some(10)), message(None, None)];
        let trial = Trial { messages, ..synthetic::trial("schemes", "d") };
        assert_eq!(Point::new(&trial).sent_over_original(None), Some(1.2));
        assert_eq!(Point::new(&trial).sent_over_original(Some(1)), None);
    }
}
