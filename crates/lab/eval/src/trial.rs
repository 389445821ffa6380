//! One trial: one measurement of a scheme at a point.

use crate::Failure;
use crate::agent::{self, Answer, Command, Listen, Workload, WorkloadResults};
use crate::background::Background;
use crate::experiment::Case;
use crate::record::{Message, Trial};
use crate::scheme::Congestion;
use crate::site::Site;
use crate::transport::{Listening, Peer, Reply};
use crate::workload::{INCAST, Request, incast, poisson};
use cloudburst_core::rng::SplitMix64;
use cloudburst_testbed::Queues;
use cloudburst_workload::paper;
use core::time::Duration;
use std::collections::{BTreeMap, HashMap};
use std::time::{SystemTime, UNIX_EPOCH};

/// The deadline of a response.
const WITHIN: Duration = Duration::from_secs(5);
/// The number of incasts in a trial, after a first one that is not counted.
const ROUNDS: u32 = 3;
/// How long an agent may take for a quick command, and to open connections to all hosts.
const SOON: Duration = Duration::from_secs(10);
const CONNECTED: Duration = Duration::from_secs(60);

/// The parameters that all trials of an experiment share.
#[derive(Clone, Debug)]
pub(crate) struct Measure {
    pub(crate) seed: u64,
    pub(crate) seconds: f64,
    pub(crate) warm_up: f64,
    /// The paper's link rate over this one.
    pub(crate) scale: f64,
    /// The switches' queues, for Cloudburst.
    pub(crate) queues: Queues,
    pub(crate) background: Congestion,
}

/// A trial, and the reasons of the calls that failed in it.
pub(crate) struct Taken {
    pub(crate) trial: Trial,
    pub(crate) failures: BTreeMap<String, u32>,
}

struct Schedule {
    requests: Vec<Request>,
    /// The measured window, in microseconds after the beginning.
    window_us: (u64, u64),
    has_background: bool,
}

/// Runs one trial.
pub(crate) fn take(
    site: &mut Site,
    case: &Case,
    repetition: u32,
    measure: &Measure,
) -> Result<Taken, Failure> {
    // The same for all schemes at a point.
    let seed = seed(&[measure.seed, case.load as u64, u64::from(repetition)]);
    let schedule = schedule(site, case, measure, seed)?;
    let default_packets = case.default_packets.unwrap_or(measure.queues.default_packets);
    site.set_queues(case.scheme.queues(Queues { default_packets, ..measure.queues }))?;
    // Connections are opened in a network without faults.
    site.set_faults(Default::default())?;
    let sinks = open(site, case)?;
    site.set_faults(case.faults)?;
    let before = site.counters()?;
    let ran = run(site, &schedule, &sinks, measure.background, case.faults.dead, seed)?;
    let counted = site.counters()? - before;
    let replies = stop(site)?;
    let window_us = ran.iter().map(|ran| ran.window_us).max().unwrap_or_default();
    let background_flows = if schedule.has_background { site.sides().0.len() as u32 } else { 0 };
    let trial = Trial {
        experiment: case.experiment.to_string(),
        scheme: case.name.clone(),
        load: case.load,
        x: case.x,
        repetition,
        seconds: window_us as f64 / 1e6,
        background_bytes: ran.iter().map(|ran| ran.background_bytes).sum(),
        background_flows,
        busy: ran.iter().map(|ran| ran.busy).fold(0.0, f64::max),
        stolen: ran.iter().map(|ran| ran.stolen).fold(0.0, f64::max),
        tiny_sent: counted.tiny_sent,
        tiny_dropped: counted.tiny_dropped,
        default_sent: counted.default_sent,
        default_dropped: counted.default_dropped,
        messages: messages(&schedule, &ran, &replies),
    };
    let mut failures = BTreeMap::new();
    for (why, count) in ran.into_iter().flat_map(|ran| ran.failures) {
        *failures.entry(why).or_default() += count;
    }
    Ok(Taken { trial, failures })
}

fn schedule(site: &Site, case: &Case, measure: &Measure, seed: u64) -> Result<Schedule, Failure> {
    let micros = |seconds: f64| (seconds * 1e6) as u64;
    let Some(flows) = case.incast else {
        let warm_up = measure.warm_up;
        let end = measure.warm_up + measure.seconds;
        let hosts = site.hosts.len() as u16;
        let rate = case.load / measure.scale;
        let requests = match case.scheme {
            crate::scheme::Scheme::BackgroundAlone => Vec::new(),
            _ => poisson(hosts, rate, Duration::from_secs_f64(end), seed)?,
        };
        let window_us = (micros(warm_up), micros(end));
        return Ok(Schedule { requests, window_us, has_background: true });
    };
    let (senders, receivers) = site.sides();
    let receiver = receivers.first().copied().unwrap_or(1);
    let senders: Vec<_> = senders.into_iter().filter(|sender| *sender != receiver).collect();
    // Four times as long as the link needs for all flows, and 0.4 s.
    let link = f64::from(flows) * f64::from(INCAST) * 8.0 / site.link_rate as f64;
    let gap = Duration::from_secs_f64(4.0 * link + 0.4);
    let requests = incast(flows, &senders, receiver, ROUNDS + 1, gap);
    let gap = micros(gap.as_secs_f64());
    let window_us = (gap, gap * u64::from(ROUNDS + 1));
    Ok(Schedule { requests, window_us, has_background: false })
}

/// Starts the scheme on all hosts. Returns the ports of their sinks.
fn open(site: &Site, case: &Case) -> Result<Vec<u16>, Failure> {
    // Only hosts of this trial have the key, so no other traffic is measured.
    let key = rand::random();
    let listen = |me: u16| {
        Command::Listen(Listen {
            me,
            scheme: case.scheme.clone(),
            hosts: site.hosts.clone(),
            dscp: site.dscp,
            low_dscps: site.low_dscps.clone(),
            link_rate: site.link_rate,
            key,
        })
    };
    let answers = site.send_commands((1..).map(listen).take(site.hosts.len()).collect(), SOON)?;
    let mut all = Vec::<Listening>::new();
    let mut sinks = Vec::new();
    for (answer, host) in answers.into_iter().zip(&site.hosts) {
        let Answer::Listening { listening, sink } = answer else {
            return Err(confused(host, &answer));
        };
        all.push(listening);
        sinks.push(sink);
    }
    let connect = Command::Connect { listening: all };
    site.send_commands(vec![connect; site.hosts.len()], CONNECTED)?;
    Ok(sinks)
}

fn run(
    site: &Site,
    schedule: &Schedule,
    sinks: &[u16],
    congestion: Congestion,
    dead: u16,
    seed: u64,
) -> Result<Vec<WorkloadResults>, Failure> {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let begin_us = (since_1970 + site.lead()).as_micros() as u64;
    let (senders, receivers) = site.sides();
    let numbered: Vec<(&Peer, u16)> = site.hosts.iter().zip(sinks.iter().copied()).collect();
    let theirs: Vec<_> = receivers.iter().map(|host| numbered[usize::from(*host) - 1]).collect();
    let run = |me: u16| {
        let sends = schedule.has_background && senders.contains(&me);
        let background = sends.then(|| Background {
            sinks: agent::sinks(&site.hosts[usize::from(me) - 1], &theirs, dead),
            bytes: paper::BACKGROUND,
            congestion,
            seed: self::seed(&[seed, u64::from(me)]),
        });
        let own = schedule.requests.iter().filter(|request| request.from == me);
        Command::Run(Workload {
            begin_us,
            window_us: schedule.window_us,
            requests: own.copied().collect(),
            within_us: WITHIN.as_micros() as u64,
            background,
        })
    };
    let commands = (1..).map(run).take(site.hosts.len()).collect();
    let end = Duration::from_micros(schedule.window_us.1);
    let answers = site.send_commands(commands, end + WITHIN + SOON)?;
    let ran = answers.into_iter().zip(&site.hosts).map(|(answer, host)| match answer {
        Answer::Ran(ran) => Ok(ran),
        answer => Err(confused(host, &answer)),
    });
    ran.collect()
}

fn stop(site: &Site) -> Result<Vec<Vec<Reply>>, Failure> {
    let answers = site.send_commands(vec![Command::Stop; site.hosts.len()], SOON)?;
    let stopped = answers.into_iter().zip(&site.hosts).map(|(answer, host)| match answer {
        Answer::Stopped { replies } => Ok(replies),
        answer => Err(confused(host, &answer)),
    });
    stopped.collect()
}

fn confused(host: &Peer, answer: &Answer) -> Failure {
    Failure::Agent {
        agent: host.address.to_string(),
        reason: format!("unexpected answer: {answer:.60?}"),
    }
}

/// The results of the requests in the window.
fn messages(schedule: &Schedule, ran: &[WorkloadResults], replies: &[Vec<Reply>]) -> Vec<Message> {
    let took: HashMap<u32, Option<u64>> =
        ran.iter().flat_map(|ran| ran.took_us.iter().copied()).collect();
    // Keyed by the host that sent the response, the host that requested it, and the ID.
    let by_all = |(host, replies): (u16, &Vec<Reply>)| -> Vec<_> {
        replies.iter().map(|reply| ((host, reply.from, reply.id), reply.clone())).collect()
    };
    let sent: HashMap<(u16, u16, u32), Reply> = (1..).zip(replies).flat_map(by_all).collect();
    let counts =
        |request: &&Request| (schedule.window_us.0..schedule.window_us.1).contains(&request.at_us);
    let message = |request: &Request| {
        let sent = sent.get(&(request.to, request.from, request.id));
        Message {
            id: request.id,
            from: request.from,
            to: request.to,
            bytes: request.response,
            at_us: request.at_us,
            took_us: took.get(&request.id).copied().flatten(),
            packets: sent.map(|reply| reply.packets),
            source_packets: sent.map(|reply| reply.source_packets),
        }
    };
    schedule.requests.iter().filter(counts).map(message).collect()
}

/// Derives a seed from several numbers, whose order matters.
fn seed(parts: &[u64]) -> u64 {
    parts.iter().fold(0, |seed, part| SplitMix64::new(seed ^ part).next_u64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requests_within_the_measured_window_count() {
        let request = |id, at_us| Request { id, at_us, from: 1, to: 2, request: 64, response: 9 };
        let requests = vec![request(0, 5), request(1, 10), request(2, 19), request(3, 20)];
        let schedule = Schedule { requests, window_us: (10, 20), has_background: false };
        let ran = WorkloadResults {
            took_us: vec![(0, Some(1)), (1, Some(7)), (2, None)],
            ..WorkloadResults::default()
        };
        let reply = Reply { from: 1, id: 1, packets: 3, source_packets: 2 };
        let messages = messages(&schedule, &[ran], &[Vec::new(), vec![reply]]);
        assert_eq!(messages.iter().map(|message| message.id).collect::<Vec<_>>(), [1, 2]);
        assert_eq!((messages[0].took_us, messages[0].packets), (Some(7), Some(3)));
        assert_eq!((messages[1].took_us, messages[1].packets), (None, None));
    }

    #[test]
    fn seeds_differ_if_one_of_their_parts_does() {
        let seeds = [seed(&[1, 2, 3]), seed(&[1, 3, 2]), seed(&[2, 2, 3]), seed(&[1, 2, 4])];
        for (at, seed) in seeds.iter().enumerate() {
            assert!(!seeds[..at].contains(seed));
        }
    }
}
