//! The experiments of section V and some of our own: their schemes and points.

use crate::Failure;
use crate::scheme::{CloudburstSettings, Scheme};
use crate::site::Faults;
use cloudburst_workload::paper::LOADS;
use core::fmt;
use core::str::FromStr;

/// The highest load.
pub(crate) const HIGHEST: f64 = LOADS[2];
/// The length in packets of the queue in front of the receiver of an incast: the paper's 100 KB (V-C).
const INCAST_QUEUE_PACKETS: u32 = 66;

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
    /// The goodput that is left to background flows.
    Friendly,
    /// Schemes that the user names.
    Compare,
}

/// One scheme at one point of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Case {
    pub(crate) experiment: Experiment,
    /// The name of the scheme, without the setting that `x` determines.
    pub(crate) name: String,
    pub(crate) scheme: Scheme,
    /// The load, as in the paper; 0 for an incast.
    pub(crate) load: f64,
    pub(crate) x: f64,
    /// The number of flows that start at once, instead of a load.
    pub(crate) incast: Option<u32>,
    pub(crate) faults: Faults,
    /// The length of the switches' default queues, if it differs from the usual one.
    pub(crate) default_packets: Option<u32>,
}

/// Schemes, loads and values of x, in all combinations.
type Points = Vec<(&'static [&'static str], &'static [f64], Vec<f64>)>;

/// The user's choice of points and schemes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Choice {
    /// Fewer points.
    pub(crate) is_short: bool,
    /// The schemes to run instead of those of the experiment, if any.
    pub(crate) schemes: Vec<Scheme>,
    /// The loads to run instead of those of the experiment, if any.
    pub(crate) loads: Vec<f64>,
}

impl Experiment {
    /// All experiments that need only a name.
    pub(crate) const ALL: [Self; 7] = [
        Self::Schemes,
        Self::DesignChoices,
        Self::Incast,
        Self::Failures,
        Self::Rate,
        Self::Loss,
        Self::Friendly,
    ];

    /// Whether it changes the network, which is possible only in namespaces.
    pub(crate) const fn changes_the_network(self) -> bool {
        matches!(self, Self::Failures | Self::Rate | Self::Loss)
    }

    /// The over-subscription of its fabric, as a ratio to 1.
    pub(crate) const fn over_subscription(self) -> u64 {
        if matches!(self, Self::Rate) { 2 } else { 1 }
    }

    /// The cases of a repetition, each once.
    pub(crate) fn cases(self, choice: &Choice) -> Result<Vec<Case>, Failure> {
        if self == Self::Compare && choice.schemes.is_empty() {
            return Err(Failure::Usage("`compare` needs schemes: name them with --scheme".into()));
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
            "a:code=lt,policy=until-stop",
            "b:code=lt,policy=until-stop",
            "c:code=lt,policy=until-stop",
            "d:code=lt,policy=until-stop",
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
                (&["d:code=lt", "d:policy=until-stop"], ONE, vec![0.0]),
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
                    // With the weight of PIAS; with the paper's code and policy; TCP with Cloudburst's weight.
                    let more = &["d:weight=100", "d:code=lt,policy=until-stop", "tcp-short"];
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
                // Hashed ports may all lead to dead paths: (3/4)^16 of the time with three of four dead.
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
                vec![(&["none", "tcp-cubic", "pias", "d", "d:policy=until-stop"], ONE, vec![0.0])]
            }
            Self::Compare => vec![(&[], ONE, vec![0.0])],
        }
    }

    fn case(self, scheme: &Scheme, load: f64, x: f64) -> Option<Case> {
        let mut scheme = scheme.clone();
        if let (Self::Rate, Scheme::Cloudburst(cloudburst)) = (self, &mut scheme) {
            // It is given by x.
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
            Self::Incast if case.scheme == Scheme::BackgroundAlone => return None,
            Self::Incast => {
                case.incast = Some(x as u32);
                case.default_packets = Some(INCAST_QUEUE_PACKETS);
            }
            Self::Failures => case.faults.dead = x as u16,
            Self::Loss => case.faults.loss = x,
            Self::Rate => {
                // Only Cloudburst has an r; the others run once for comparison.
                match &mut case.scheme {
                    Scheme::Cloudburst(CloudburstSettings { rate, .. }) => *rate = x,
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
            format!("no experiment is called {text:?}: expected {}", names.join(", "))
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
    fn schemes_and_loads_of_the_user_replace_those_of_the_experiment() {
        let schemes = vec!["d:train=8".parse().unwrap()];
        let choice = Choice { schemes, loads: vec![400.0], ..Choice::default() };
        let cases = Experiment::Schemes.cases(&choice).unwrap();
        assert_eq!(cases.len(), 1);
        assert_eq!((cases[0].scheme.to_string().as_str(), cases[0].load), ("d:train=8", 400.0));
        assert!(Experiment::Incast.cases(&choice).unwrap().iter().all(|case| case.load == 0.0));
        assert!(Experiment::Compare.cases(&Choice::default()).unwrap_err().is_usage());
    }

    #[test]
    fn only_cloudburst_runs_with_different_rates_r() {
        let cases = Experiment::Rate.cases(&Choice::default()).unwrap();
        let names: Vec<_> = cases.iter().map(|case| case.scheme.to_string()).collect();
        assert_eq!(names.iter().filter(|name| *name == "tcp-cubic").count(), 1);
        assert!(names.contains(&"d:rate=0.5".to_owned()) && names.contains(&"d".to_owned()));
        assert!(cases.iter().all(|case| ["d", "tcp-cubic"].contains(&case.name.as_str())));
    }
}
