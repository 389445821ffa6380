//! The experiments of section V, and of our own: which schemes, at which points.

use crate::Failure;
use crate::scheme::{Cloudburst, Scheme};
use crate::site::Faults;
use core::fmt;
use core::str::FromStr;

/// Requests a second in all, as the paper has them.
pub(crate) const LOADS: [f64; 3] = [800.0, 1600.0, 2000.0];
/// The highest of them.
pub(crate) const HIGHEST: f64 = LOADS[2];
/// Packets of the queue in front of the receiver of an incast: the paper's 100 KB (V-C).
const INCAST_PACKETS: u32 = 66;

/// An experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Experiment {
    /// Figures 9 to 11.
    DesignChoices,
    /// Figures 12 and 13, Table 14.
    Schemes,
    /// Figure 15.
    Incast,
    /// Figure 16.
    Failures,
    /// Figure 18.
    Rate,
    /// Random loss.
    Loss,
    /// What background flows lose.
    Friendly,
    /// Schemes that the user names.
    Compare,
}

/// One scheme at one point of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Case {
    pub(crate) experiment: Experiment,
    /// The scheme without what `x` says of it.
    pub(crate) name: String,
    pub(crate) scheme: Scheme,
    /// 0 for an incast.
    pub(crate) load: f64,
    pub(crate) x: f64,
    /// Flows that start at once, instead of a load.
    pub(crate) incast: Option<u32>,
    pub(crate) faults: Faults,
    /// Of the switches, if not as usual.
    pub(crate) default_packets: Option<u32>,
}

/// Schemes, loads and other variables; all of one with all of another.
type Points = Vec<(&'static [&'static str], &'static [f64], Vec<f64>)>;

/// What the user may say about experiments.
#[derive(Clone, Debug, Default)]
pub(crate) struct Choice {
    /// Fewer points.
    pub(crate) is_short: bool,
    /// Instead of those of the experiment.
    pub(crate) schemes: Vec<Scheme>,
    /// Instead of those of the experiment.
    pub(crate) loads: Vec<f64>,
}

impl Experiment {
    /// All that need no more than a name.
    pub(crate) const ALL: [Self; 7] = [
        Self::Schemes,
        Self::DesignChoices,
        Self::Incast,
        Self::Failures,
        Self::Rate,
        Self::Loss,
        Self::Friendly,
    ];

    /// Whether it changes the network, which only namespaces allow.
    pub(crate) const fn changes_the_network(self) -> bool {
        matches!(self, Self::Failures | Self::Rate | Self::Loss)
    }

    /// The over-subscription of its fabric.
    pub(crate) const fn over_subscription(self) -> u64 {
        if matches!(self, Self::Rate) { 2 } else { 1 }
    }

    /// Everything to run once in each repetition.
    pub(crate) fn cases(self, choice: &Choice) -> Result<Vec<Case>, Failure> {
        if self == Self::Compare && choice.schemes.is_empty() {
            return Err(Failure::Usage("`compare` wants schemes: --scheme NAME".into()));
        }
        let mut cases = Vec::new();
        for (names, loads, xs) in self.points(choice.is_short) {
            let usual: Result<Vec<Scheme>, String> =
                names.iter().map(|name| name.parse()).collect();
            let usual = usual.map_err(Failure::Usage)?;
            let schemes = if choice.schemes.is_empty() { usual } else { choice.schemes.clone() };
            let loads = match (loads, choice.loads.is_empty()) {
                ([0.0], _) | (_, true) => loads,
                _ => &choice.loads,
            };
            for &load in loads {
                for &x in &xs {
                    cases.extend(schemes.iter().filter_map(|scheme| self.case(scheme, load, x)));
                }
            }
        }
        let mut once: Vec<Case> = Vec::new();
        for case in cases {
            if !once.contains(&case) {
                once.push(case);
            }
        }
        Ok(once)
    }

    fn points(self, is_short: bool) -> Points {
        const ONE: &[f64] = &[HIGHEST];
        const PAPER: [&str; 4] = [
            "a:code=lt,policy=oblivious",
            "b:code=lt,policy=oblivious",
            "c:code=lt,policy=oblivious",
            "d:code=lt,policy=oblivious",
        ];
        let loads: &[f64] = if is_short { ONE } else { &LOADS };
        let list = |short: &[f64], full: &[f64]| if is_short { short } else { full }.to_vec();
        match self {
            Self::DesignChoices if is_short => {
                vec![
                    (&["tcp-cubic", "a", "b", "c", "d"], ONE, vec![0.0]),
                    (&PAPER[3..], ONE, vec![0.0]),
                ]
            }
            Self::DesignChoices => vec![
                (&["tcp-cubic", "a", "b", "c", "d"], loads, vec![0.0]),
                (&PAPER, ONE, vec![0.0]),
                (&["d:code=lt", "d:policy=oblivious"], ONE, vec![0.0]),
            ],
            Self::Schemes => {
                let all = &[
                    "tcp-cubic",
                    "tcp-bbr",
                    "pias",
                    "replicated-2",
                    "replicated-4",
                    "mptcp",
                    "quic",
                    "d",
                ];
                let mut points: Points = vec![(all, loads, vec![0.0])];
                if !is_short {
                    // First in line, as PIAS is; the paper's own; TCP with Cloudburst's weight.
                    let more = &["d:weight=100", "d:code=lt,policy=oblivious", "tcp-short"];
                    points.push((more, ONE, vec![0.0]));
                }
                points
            }
            Self::Incast => vec![(
                &["tcp-cubic", "pias", "d"],
                &[0.0],
                list(&[1.0, 16.0, 40.0], &[1.0, 8.0, 16.0, 24.0, 32.0, 40.0]),
            )],
            Self::Failures => vec![
                // Of hashed ports, all may lead to what is dead: (3/4)^8 with three of four.
                (&["d:paths=explicit"], ONE, list(&[0.0, 3.0], &[0.0, 1.0, 2.0, 3.0])),
                (&["d"], ONE, vec![0.0, 3.0]),
                (&["tcp-cubic"], ONE, list(&[0.0, 1.0], &[0.0, 1.0])),
            ],
            Self::Rate => vec![
                (&["tcp-cubic"], ONE, vec![1.0]),
                (
                    &["d"],
                    ONE,
                    list(&[0.25, 0.5, 1.0], &[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]),
                ),
            ],
            Self::Loss => vec![(
                if is_short { &["tcp-cubic", "d"] } else { &["tcp-cubic", "quic", "d"] },
                ONE,
                list(&[1.0], &[0.1, 1.0, 5.0]),
            )],
            Self::Friendly if is_short => vec![(&["none", "tcp-cubic", "d"], ONE, vec![0.0])],
            Self::Friendly => {
                vec![(&["none", "tcp-cubic", "pias", "d", "d:policy=oblivious"], ONE, vec![0.0])]
            }
            Self::Compare => vec![(&[], ONE, vec![0.0])],
        }
    }

    fn case(self, scheme: &Scheme, load: f64, x: f64) -> Option<Case> {
        let mut scheme = scheme.clone();
        if let (Self::Rate, Scheme::Cloudburst(cloudburst)) = (self, &mut scheme) {
            // It is what x says.
            cloudburst.rate = 1.0;
        }
        let mut case = Case {
            experiment: self,
            name: scheme.to_string(),
            scheme,
            load,
            x,
            incast: None,
            faults: Faults::default(),
            default_packets: None,
        };
        match self {
            Self::Incast if case.scheme == Scheme::Silence => return None,
            Self::Incast => {
                case.incast = Some(x as u32);
                case.default_packets = Some(INCAST_PACKETS);
            }
            Self::Failures => case.faults.dead = x as u16,
            Self::Loss => case.faults.loss = x,
            Self::Rate => {
                // Only Cloudburst has an r; the others stand beside it once.
                match &mut case.scheme {
                    Scheme::Cloudburst(Cloudburst { rate, .. }) => *rate = x,
                    _ if x != 1.0 => return None,
                    _ => {}
                }
            }
            Self::DesignChoices | Self::Schemes | Self::Friendly | Self::Compare => {}
        }
        Some(case)
    }
}

impl fmt::Display for Experiment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DesignChoices => "design-choices",
            Self::Schemes => "schemes",
            Self::Incast => "incast",
            Self::Failures => "failures",
            Self::Rate => "rate",
            Self::Loss => "loss",
            Self::Friendly => "friendly",
            Self::Compare => "compare",
        })
    }
}

impl FromStr for Experiment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = || Self::ALL.into_iter().chain([Self::Compare]);
        all().find(|experiment| experiment.to_string() == text).ok_or_else(|| {
            let names: Vec<_> = all().map(|experiment| experiment.to_string()).collect();
            format!("no experiment is called {text:?}; there are {}", names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cloudburst_program::FatalError;

    #[test]
    fn every_experiment_has_cases_and_none_twice() {
        for is_short in [false, true] {
            let choice = Choice { is_short, ..Choice::default() };
            for experiment in Experiment::ALL {
                let cases = experiment.cases(&choice).unwrap();
                assert!(cases.len() >= 2, "{experiment}");
                for (at, case) in cases.iter().enumerate() {
                    assert!(!cases[..at].contains(case), "{case:?} twice");
                }
            }
        }
    }

    #[test]
    fn schemes_and_loads_of_the_user_take_the_place_of_the_usual() {
        let schemes = vec!["d:train=8".parse().unwrap()];
        let choice = Choice { schemes, loads: vec![400.0], ..Choice::default() };
        let cases = Experiment::Schemes.cases(&choice).unwrap();
        assert_eq!(cases.len(), 1);
        assert_eq!((cases[0].scheme.to_string().as_str(), cases[0].load), ("d:train=8", 400.0));
        assert!(Experiment::Incast.cases(&choice).unwrap().iter().all(|case| case.load == 0.0));
        assert!(Experiment::Compare.cases(&Choice::default()).unwrap_err().is_usage());
    }

    #[test]
    fn r_is_cloudburst_s_alone() {
        let cases = Experiment::Rate.cases(&Choice::default()).unwrap();
        let names: Vec<_> = cases.iter().map(|case| case.scheme.to_string()).collect();
        assert_eq!(names.iter().filter(|name| *name == "tcp-cubic").count(), 1);
        assert!(names.contains(&"d:rate=0.5".to_owned()) && names.contains(&"d".to_owned()));
        assert!(cases.iter().all(|case| ["d", "tcp-cubic"].contains(&case.name.as_str())));
    }
}
