//! Runs `cbrst-send`: sends one file after the other, in one session.

pub(crate) mod address;
mod failure;
mod silence;
mod source;
mod transfer;

use self::address::ResolveError;
pub(crate) use self::failure::Failure;
use self::silence::Silence;
use self::transfer::{Cost, FAREWELL, Tag};
use crate::Exit;
use crate::courier::Courier;
use crate::pairing::{self, PairingError};
use crate::plan::{Input, SendPlan};
use crate::protocol::{Body, Frame, InvocationId, Reason, TransferId, What};
use crate::signals::Interrupts;
use crate::ui::{self, JsonTo, Report, Ui};
use cloudburst_net::{BuildError, BurstPolicy, Security, SendOptions};
use core::time::Duration;
use crossbeam_channel::select;
use data_encoding::HEXLOWER;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Instant;

/// From how many needed packets on the share of further ones is shown: a few are sent with every file, and would
/// look like a fault beside the one packet of a short file.
const FEW_PACKETS: u64 = 20;

/// The longest wait for a name that the receiver still uses, whatever it says.
const MAX_WAIT: Duration = Duration::from_secs(600);
/// The time between two offers of such a file.
const RETRY_EVERY: Duration = Duration::from_millis(500);

/// Why the program could not start to send.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    #[error("{peer} cannot be reached: {source}{}", address::after_connect(source))]
    NoRoute { peer: SocketAddr, source: io::Error },
    #[error("{}", ui::not_built(.0, "ADDR"))]
    Endpoint(#[from] BuildError),
    #[error(transparent)]
    Pairing(#[from] PairingError),
    #[error("cannot wait for signals: {0}")]
    Signals(io::Error),
}

/// One run of `cbrst-send`: the state that all its transfers share.
struct Session {
    id: InvocationId,
    peer: SocketAddr,
    deadline: Duration,
    /// Bytes in a chunk.
    chunk: usize,
    /// The burst policy of chunks.
    policy: BurstPolicy,
    courier: Courier<Tag>,
    /// Whether to resume from the prefixes that the receiver has.
    resumes: bool,
    /// Whether a message was ever delivered to the receiver.
    is_known: bool,
    silence: Silence,
    interrupts: Interrupts,
    ui: Ui,
}

/// Sends all files of the plan.
pub(crate) fn run(plan: &SendPlan) -> Exit {
    let ui = Ui::new("cbrst-send", &plan.common, JsonTo::StandardOutput);
    if let Some(path) = plan.common.key.exposed_file() {
        ui.status(&format!("others can read the key: chmod 600 {}", path.display()));
    }
    for path in &plan.left_out.special {
        ui.notice(&format!("{}: skipped: not a file, directory or link", path.display()));
    }
    let mut session = match Session::start(plan, ui.clone()) {
        Ok(session) => session,
        Err(error) => {
            ui.error(&error.to_string());
            report_left_out(plan, &ui);
            for input in &plan.inputs {
                let name = Some(input.name.as_str());
                report_unsent(plan, &ui, &input.given, name, &error);
            }
            return Exit::Failed;
        }
    };
    let all_found = report_left_out(plan, &ui);
    let exit = session.send_all(&plan.inputs);
    session.end();
    ui.exit(if all_found { exit } else { exit.max(Exit::Failed) })
}

impl Session {
    fn start(plan: &SendPlan, ui: Ui) -> Result<Self, StartError> {
        let interrupts = Interrupts::install().map_err(StartError::Signals)?;
        let deadline = plan.common.deadline;
        let peer = address::resolve(&plan.host, deadline)?;
        // The source address of packets determines the interface, and so the capacity.
        let local =
            address::local_for(peer).map_err(|source| StartError::NoRoute { peer, source })?;
        let security = match plan.pair {
            Some(code) => Security::pre_shared(pairing::ask(peer, code, deadline)?),
            None => plan.common.key.security(),
        };
        let builder = plan.common.builder(local, plan.code.unwrap_or_default());
        let courier = Courier::new(builder.order(plan.order).security(security).build()?);
        Ok(Self {
            id: InvocationId(rand::random()),
            peer,
            deadline,
            chunk: transfer::chunk_for(plan.common.capacity, plan.common.rate),
            policy: transfer::chunk_policy(plan.pull),
            courier,
            resumes: plan.common.resumes,
            is_known: false,
            silence: Silence::new(Instant::now(), deadline),
            interrupts,
            ui,
        })
    }

    /// Tells the user early why the receiver may be silent, without ending the transfer: an attacker that forges
    /// or suppresses the evidence only changes a line on the screen.
    fn notice_silence(&mut self, now: Instant) {
        let counters = self.courier.endpoint().counters().sender;
        let signs = counters.sessions_opened
            + counters.stops_received
            + counters.nacks_received
            + counters.pulls_received
            + counters.busy_received;
        let owes = self.courier.under_way().next().is_some();
        if let Some(cause) = self.silence.look(now, self.peer, signs, owes) {
            let (peer, deadline) = (self.peer, self.deadline.as_secs_f64());
            self.ui.status(&format!(
                "{cause}; trying for {deadline} s in all; cbrst-doctor {peer} examines the network"
            ));
        }
    }

    fn send_all(&mut self, inputs: &[Input]) -> Exit {
        let (mut exit, mut fatal) = (Exit::Done, None::<String>);
        let (mut is_interrupted, mut is_kept) = (false, false);
        for (file, input) in (0..).zip(inputs) {
            let started = Instant::now();
            let mut cost = Cost::default();
            let transfer = TransferId { session: self.id, file };
            let result = match &fatal {
                Some(reason) => Err(Failure::NotTried(reason.clone())),
                None => self.send(transfer, inputs.len() as u32, input, &mut cost),
            };
            self.tell(input, &result, &cost, started.elapsed());
            is_kept |= cost.can_resume && (result.is_ok() || cost.bytes + cost.resumed > 0);
            if let Err(failure) = result {
                if fatal.is_none() && failure.is_fatal() {
                    fatal = Some(failure.to_string());
                }
                is_interrupted |= failure.is_interruption();
                exit = match (exit, failure) {
                    (Exit::Interrupted, _)
                    | (_, Failure::Interrupted | Failure::InterruptedLate) => Exit::Interrupted,
                    _ => Exit::Failed,
                };
            }
        }
        if is_interrupted && is_kept {
            self.ui.status("run the same command again to continue");
        }
        exit
    }

    /// Sends a file. If the receiver still has a transfer of this name, such as that of a sender that was killed,
    /// tries again until it gives that up, as it says.
    fn send(
        &mut self,
        transfer: TransferId,
        files: u32,
        input: &Input,
        cost: &mut Cost,
    ) -> Result<(), Failure> {
        let mut until = None;
        loop {
            let result = transfer::send(self, transfer, files, input, cost);
            let Err(Failure::Refused(Reason::NameInUse(millis))) = result else {
                return result;
            };
            let now = Instant::now();
            if until.is_some_and(|until| now >= until) {
                return result;
            }
            if until.is_none() {
                // And a little longer, as it takes the receiver a moment.
                let wait = Duration::from_millis(millis).min(MAX_WAIT) + 4 * RETRY_EVERY;
                until = Some(now + wait);
                let (given, seconds) = (input.given.display(), wait.as_secs_f64());
                self.ui.status(&format!(
                    "{given}: the receiver may be waiting for an earlier sender of this name: retrying for \
                     {seconds:.0} s"
                ));
            }
            select! {
                recv(self.interrupts.stopped()) -> _ => return Err(Failure::Interrupted),
                default(RETRY_EVERY) => {}
            }
        }
    }

    fn tell(&self, input: &Input, result: &Result<(), Failure>, cost: &Cost, took: Duration) {
        let given = input.given.display();
        let redundancy = cost.packets as f64 / cost.needed.max(1) as f64;
        match result {
            Ok(()) => {
                let (transferred, seconds) =
                    (ui::transferred(cost.bytes, cost.resumed), took.as_secs_f64());
                let mut line = format!("{given}: {transferred} in {seconds:.2} s");
                if cost.bytes > 0 || cost.resumed == 0 {
                    let rate = ui::bytes((cost.bytes as f64 / seconds.max(1e-9)) as u64);
                    line += &format!(", {rate}/s");
                    if cost.needed >= FEW_PACKETS {
                        line += &format!("; {redundancy:.2} packets sent for each needed");
                    }
                }
                self.ui.status(&line);
            }
            Err(failure) => self.ui.error(&format!("{given}: {failure}")),
        }
        self.ui.report(&Report {
            file: Some(given.to_string()),
            name: Some(input.name.as_str()),
            peer: Some(self.peer.to_string()),
            outcome: result.as_ref().map_or_else(Failure::outcome, |()| "done"),
            error: result.as_ref().err().map(ToString::to_string),
            bytes: cost.bytes,
            resumed: cost.resumed,
            seconds: took.as_secs_f64(),
            digest: cost.digest.map(|digest| HEXLOWER.encode(&digest)),
            packets: Some(cost.packets),
            redundancy: Some(redundancy),
        });
    }

    /// Sends a frame whose delivery does not matter.
    fn say(&mut self, transfer: TransferId, body: Body) {
        let frame = Frame { transfer, body }.encode();
        let options = SendOptions::default().deadline(FAREWELL);
        let _ = self.courier.send((transfer, What::Alive, 0), self.peer, frame, options);
    }

    /// Ends the session, with a BYE if the receiver has answered.
    fn end(mut self) {
        if self.is_known {
            self.say(TransferId { session: self.id, file: 0 }, Body::Bye);
            self.courier.close(FAREWELL);
        }
    }
}

/// Reports the entries of directories that cannot be sent. Returns whether there are none.
fn report_left_out(plan: &SendPlan, ui: &Ui) -> bool {
    for (path, error) in &plan.left_out.failed {
        ui.error(&format!("{}: {error}", path.display()));
        report_unsent(plan, ui, path, None, error);
    }
    plan.left_out.failed.is_empty()
}

fn report_unsent(
    plan: &SendPlan,
    ui: &Ui,
    given: &Path,
    name: Option<&str>,
    error: &dyn core::error::Error,
) {
    ui.report(&Report {
        file: Some(given.display().to_string()),
        name,
        peer: Some(plan.host.clone()),
        packets: Some(0),
        redundancy: Some(0.0),
        ..Report::of_no_file(error.to_string())
    });
}
