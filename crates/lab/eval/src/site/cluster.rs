//! Hosts of a real network, whose agents are controlled over Cloudburst itself, with a shared key.

use super::{LOW_DSCPS, Network, Site};
use crate::Failure;
use crate::agent::{Agent, Answer, Command};
use crate::transport::{Listening, Peer};
use cloudburst_net::{Endpoint, Security, SendOptions};
use core::ops::RangeInclusive;
use core::time::Duration;
use serde::Deserialize;
use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// How often an agent checks whether it was interrupted.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

pub(crate) struct Cluster {
    endpoint: Endpoint,
    agents: Vec<SocketAddr>,
}

/// The file that describes a cluster.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    /// The rate of a host's link, in bits per second.
    link_rate: u64,
    /// The DSCP of short messages.
    #[serde(default = "usual_dscp")]
    dscp: u8,
    /// The DSCPs of the classes after the first, with `classes=`. Default: that of the first.
    #[serde(default)]
    low_dscps: Vec<u8>,
    host: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    agent: SocketAddr,
    /// The address of the measured traffic. Default: that of the agent.
    address: Option<IpAddr>,
    rack: u16,
    #[serde(default)]
    path_addresses: Vec<IpAddr>,
}

/// The valid rates of a link, in bits per second.
const RATES: RangeInclusive<u64> = 1_000_000..=1_000_000_000_000;

const fn usual_dscp() -> u8 {
    cloudburst_net::DEFAULT_DSCP
}

impl Document {
    fn check(&self) -> Result<(), String> {
        if !RATES.contains(&self.link_rate) {
            let low = RATES.start();
            let high = RATES.end();
            return Err(format!("link_rate {}: expected {low} to {high} bit/s", self.link_rate));
        }
        if self.low_dscps.len() > LOW_DSCPS.len() {
            let count = self.low_dscps.len();
            let most = LOW_DSCPS.len();
            return Err(format!("{count} low_dscps: expected at most {most}"));
        }
        let low = self.low_dscps.iter().map(|&dscp| ("low_dscps", dscp));
        if let Some((key, dscp)) = [("dscp", self.dscp)].into_iter().chain(low).find(|of| of.1 > 63)
        {
            return Err(format!("{key} {dscp}: expected 0 to 63"));
        }
        let of_first_rack = self.host.iter().filter(|row| row.rack == self.host[0].rack).count();
        if of_first_rack == self.host.len() {
            return Err("all hosts are in one rack: background flows need another one".into());
        }
        let mut known = HashSet::new();
        for row in &self.host {
            let addresses = row.address.iter().chain(&row.path_addresses);
            if let Some(address) = addresses.chain([&row.agent.ip()]).find(|ip| ip.is_ipv6()) {
                return Err(format!("{address}: expected an IPv4 address"));
            }
            if !known.insert(row.agent) {
                return Err(format!("agent {} is listed twice", row.agent));
            }
        }
        Ok(())
    }
}

impl Cluster {
    /// Reads the file of a cluster. Does not contact its agents yet.
    pub(crate) fn join(path: &Path, security: Security) -> Result<Site, Failure> {
        let text = std::fs::read_to_string(path)
            .map_err(Failure::io(format!("cannot read {}", path.display())))?;
        let wrong = |reason: String| Failure::File { path: path.to_owned(), reason };
        let document: Document =
            toml::from_str(&text).map_err(|error| wrong(error.to_string().trim_end().into()))?;
        document.check().map_err(wrong)?;
        let agents: Vec<_> = document.host.iter().map(|row| row.agent).collect();
        let endpoint = Endpoint::builder().security(security).build()?;
        let racks = document.host.iter().map(|row| row.rack).collect();
        let peer = |row: Row| Peer {
            address: row.address.unwrap_or(row.agent.ip()),
            path_addresses: row.path_addresses,
            listening: Listening::default(),
        };
        let hosts = document.host.into_iter().map(peer).collect();
        let network = Network::Cluster(Self { endpoint, agents });
        let link_rate = document.link_rate;
        let dscp = document.dscp;
        let low_dscps = document.low_dscps;
        Ok(Site { hosts, racks, link_rate, dscp, low_dscps, network })
    }

    pub(super) fn send_commands(
        &self,
        commands: Vec<Command>,
        within: Duration,
    ) -> Vec<Result<Answer, Failure>> {
        thread::scope(|scope| {
            let send =
                |(&agent, command)| scope.spawn(move || self.send_command(agent, &command, within));
            let running: Vec<_> = self.agents.iter().zip(commands).map(send).collect();
            let joined = running.into_iter().map(|thread| thread.join());
            joined
                .map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        })
    }

    fn send_command(
        &self,
        agent: SocketAddr,
        command: &Command,
        within: Duration,
    ) -> Result<Answer, Failure> {
        let failed = |reason: String| Failure::Agent { agent: agent.to_string(), reason };
        let command = serde_json::to_vec(command).map_err(|error| failed(error.to_string()))?;
        let options = SendOptions::default().deadline(within);
        let answer = self.endpoint.call(agent, command).options(options).wait();
        let answer = answer.map_err(|error| {
            failed(format!("{error}; is `cbrst-eval agent` running there, with the same key?"))
        })?;
        serde_json::from_slice(&answer).map_err(|error| failed(format!("invalid answer: {error}")))
    }
}

/// Carries out a controller's commands, one at a time, until the program is interrupted.
pub(crate) fn serve(
    bind: SocketAddr,
    security: Security,
    ready: impl FnOnce(SocketAddr),
    interrupted: &Arc<AtomicBool>,
) -> Result<(), Failure> {
    let endpoint = Endpoint::builder().bind(bind).security(security).build()?;
    let agent = Agent::new(interrupted.clone());
    ready(endpoint.local_addr());
    while !interrupted.load(Ordering::SeqCst) {
        let Some(request) = endpoint.recv_request().wait_for(POLL_INTERVAL) else { continue };
        let Ok(request) = request else { break };
        let answer = match serde_json::from_slice(request.bytes()) {
            Ok(command) => agent.handle(command),
            Err(error) => Answer::Failed(format!("invalid command: {error}")),
        };
        let answer = serde_json::to_vec(&answer).unwrap_or_default();
        if let Err(error) = request.reply(answer).wait() {
            eprintln!("cbrst-eval: cannot deliver the answer to the controller: {error}");
        }
    }
    endpoint.blocking_shutdown(Duration::ZERO);
    Ok(())
}
