//! Runs `cbrst-send`: sends one file after the other, in one session.

pub(crate) mod address;
mod failure;
mod session;
mod source;
mod transfer;
mod unresponsive;

pub(crate) use self::failure::Failure;
use self::session::Session;
use self::transfer::Cost;
use crate::Exit;
use crate::plan::{Input, SendPlan};
use crate::protocol::{Reason, TransferId};
use crate::text;
use crate::ui::{JsonTo, Report, Ui};
use core::time::Duration;
use crossbeam_channel::select;
use data_encoding::HEXLOWER;
use std::path::Path;
use std::time::Instant;

/// From how many needed packets on the share of further ones is shown: a few are sent with every file, and would
/// look like a fault beside the one packet of a short file.
const FEW_PACKETS: u64 = 20;

/// The longest wait for a name that the receiver still uses, whatever time it reports.
const MAX_WAIT: Duration = Duration::from_secs(600);
/// The time between two offers of such a file.
const RETRY_EVERY: Duration = Duration::from_millis(500);

/// Sends all files of the plan.
pub(crate) fn run(plan: &SendPlan) -> Exit {
    let ui = Ui::new(
        "cbrst-send",
        plan.common.quiet,
        plan.common.json.then_some(JsonTo::StandardOutput),
    );
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
    fn send_all(&mut self, inputs: &[Input]) -> Exit {
        let mut exit = Exit::Done;
        let mut fatal = None::<String>;
        let mut is_interrupted = false;
        let mut is_kept = false;
        for (file, input) in (0..).zip(inputs) {
            let started = Instant::now();
            let mut cost = Cost::default();
            let transfer = TransferId { session: self.id, file };
            let result = match &fatal {
                Some(reason) => Err(Failure::NotTried(reason.clone())),
                None => self.send(transfer, inputs.len() as u32, input, &mut cost),
            };
            self.report(input, &result, &cost, started.elapsed());
            is_kept |= cost.can_resume && (result.is_ok() || cost.bytes + cost.resumed > 0);
            if let Err(failure) = result {
                if fatal.is_none() && failure.is_fatal() {
                    fatal = Some(failure.to_string());
                }
                is_interrupted |= failure.is_interruption();
                exit = match (exit, failure) {
                    (Exit::Interrupted, _)
                    | (_, Failure::Interrupted | Failure::InterruptedAfterFinish) => {
                        Exit::Interrupted
                    }
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
    /// tries again until it gives that up.
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
                let given = input.given.display();
                let seconds = wait.as_secs_f64();
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

    fn report(&self, input: &Input, result: &Result<(), Failure>, cost: &Cost, took: Duration) {
        let given = input.given.display();
        let redundancy = cost.packets as f64 / cost.needed.max(1) as f64;
        match result {
            Ok(()) => {
                let transferred = text::transferred(cost.bytes, cost.resumed);
                let seconds = took.as_secs_f64();
                let mut line = format!("{given}: {transferred} in {seconds:.2} s");
                if cost.bytes > 0 || cost.resumed == 0 {
                    let rate = text::bytes((cost.bytes as f64 / seconds.max(1e-9)) as u64);
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
