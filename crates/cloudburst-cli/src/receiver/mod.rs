//! The receiver, `cbrst-recv`: one loop that serves all senders.
//!
//! # The states of a received file
//!
//! ```text
//!                       OFFER
//!                         |
//!        bytes exist here | none do
//!             +-----------+-----------+
//!             v                       |
//!         Checking                    |         a thread hashes them (check)
//!             |                       |
//!             +-- none is readable ---+
//!             v                       |
//!          Offered -- RESUME(len) --->|         ACCEPT lists their prefixes
//!                                     v
//!                                 Receiving     chunks are written into the sink (store, pipe);
//!                                     |         a file with the same bytes has none
//!                                     | FINISH, with the right size and digest
//!                                     v
//!                                  Storing      a thread makes the file durable and gives it its name
//!                                     |
//!                         +-----------+-----------+
//!                         v                       v
//!                      stored                  not stored, and nothing remains
//! ```
//!
//! [`transfer::Transfer`] owns these states and all steps between them. Each state but the last may end early, by
//! FAILED, BYE, silence or a signal: then [`transfer::Transfer::discard`] removes the bytes, or keeps them as a part
//! that a later OFFER finds. In `Storing`, the thread and the loop share a [`commit::CommitRight`]: whoever claims it
//! first decides whether the file gets its name. Where the bytes are on the disk is known to [`store`] alone, and
//! which session is served, with `--once`, to [`once`].

mod activation;
mod check;
mod commit;
mod hint;
mod metrics;
mod once;
mod outbox;
mod pipe;
mod serve;
mod store;
mod transfer;
mod vitals;

use self::activation::NotUdp;
use self::pipe::Writer;
use self::serve::{Output, Server};
use self::store::Store;
use crate::Exit;
use crate::pairing::{Pairing, PairingError};
use crate::plan::{Destination, Key, ReceivePlan};
use crate::signals::Interrupts;
use crate::text;
use crate::ui::{JsonTo, Report, Ui};
use cloudburst_net::{BuildError, Endpoint, Order};
use crossbeam_channel::unbounded;
use sd_notify::NotifyState;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::path::PathBuf;

/// Why the receiver did not start.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error("cannot write to {}: {source}", dir.display())]
    Store { dir: PathBuf, source: io::Error },
    #[error("cannot use standard output: {0}")]
    Pipe(io::Error),
    #[error("cannot listen on {addr}: {source}{advice}", advice = after_bind(source))]
    Bind { addr: SocketAddr, source: io::Error },
    #[error("{}", text::not_built(.0, "--listen"))]
    Endpoint(BuildError),
    #[error(transparent)]
    NotUdp(#[from] NotUdp),
    #[error("{0}; see --listen and --paths here, and ListenDatagram= in the socket unit")]
    Sockets(BuildError),
    #[error(
        "the service manager handed over sockets, and --pair listens by itself: drop --pair, or start \
         cbrst-recv by hand"
    )]
    PairedSockets,
    #[error(transparent)]
    Pairing(#[from] PairingError),
    #[error(
        "cannot serve metrics at {addr}: {reason}; choose an address of this host by --metrics"
    )]
    Metrics { addr: SocketAddr, reason: String },
    #[error("cannot wait for signals: {0}")]
    Signals(io::Error),
}

/// Receives files as planned.
pub(crate) fn run(plan: ReceivePlan) -> Exit {
    let json = match plan.destination {
        Destination::Directory { .. } => JsonTo::StandardOutput,
        Destination::StandardOutput => JsonTo::StandardError,
    };
    let ui = Ui::new("cbrst-recv", plan.common.quiet, plan.common.json.then_some(json));
    match start(plan, ui.clone()) {
        Ok(server) => ui.exit(server.run()),
        Err(error) => {
            ui.error(&error.to_string());
            ui.report(&Report::of_no_file(error.to_string()));
            match error {
                StartError::Pairing(PairingError::Interrupted) => Exit::Interrupted,
                _ => Exit::Failed,
            }
        }
    }
}

fn start(mut plan: ReceivePlan, ui: Ui) -> Result<Server, StartError> {
    let sockets = activation::sockets()?;
    if plan.pair && !sockets.is_empty() {
        return Err(StartError::PairedSockets);
    }
    let interrupts = Interrupts::install().map_err(StartError::Signals)?;
    if plan.pair {
        pair(&mut plan, &interrupts, &ui)?;
    }
    // Before the directory is touched, which another receiver at this port may be using.
    let endpoint = listen(&plan, sockets)?;
    let (store, stored) = unbounded();
    let output = match &plan.destination {
        Destination::Directory { dir, overwrite } => {
            let failed = |source| StartError::Store { dir: dir.clone(), source };
            let store =
                Store::open(dir.clone(), *overwrite, plan.common.resumes).map_err(failed)?;
            interrupts.clean_up(store.private().to_owned());
            if let Some(error) = store.no_parts() {
                ui.status(&format!("interrupted transfers begin again: {error}"));
            }
            Output::Directory(store)
        }
        Destination::StandardOutput => {
            let out = io::stdout().as_fd().try_clone_to_owned().map_err(StartError::Pipe)?;
            Output::Pipe(Writer::start(out.into(), store.clone()).map_err(StartError::Pipe)?)
        }
    };
    let local = endpoint.local_addr();
    ui.status(&format!("listening on {local}"));
    if let Some(addr) = plan.metrics {
        metrics::serve(&endpoint, addr).map_err(|reason| StartError::Metrics { addr, reason })?;
        ui.status(&format!("metrics at http://{addr}/metrics"));
    }
    let keys = plan.also_accept.iter().chain([&plan.common.key]);
    for path in keys.filter_map(Key::exposed_file) {
        ui.status(&format!("others can read the key: chmod 600 {}", path.display()));
    }
    let lines = hint::lines(&plan.common.key, plan.known_as.first().copied().unwrap_or(local));
    // The one sender that the code is for has the key already.
    for line in lines.into_iter().filter(|_| !plan.pair) {
        // A generated key is useless to senders that do not know it.
        if matches!(plan.common.key, Key::Made(_)) {
            ui.notice(&line);
        } else {
            ui.status(&line);
        }
    }
    // If a service manager started this process, it waits for this.
    if let Err(error) = sd_notify::notify(&[NotifyState::Ready]) {
        ui.notice(&format!("cannot notify the service manager of readiness: {error}"));
    }
    Ok(Server::new(&plan, endpoint, output, store, stored, interrupts, ui))
}

/// Waits for the sender that has the code, and sets the key that both agree on.
fn pair(plan: &mut ReceivePlan, interrupts: &Interrupts, ui: &Ui) -> Result<(), PairingError> {
    let pairing = Pairing::listen(plan.listen)?;
    plan.listen = pairing.local_addr();
    let address = plan.known_as.first().copied().unwrap_or(plan.listen);
    let key = pairing.wait(interrupts, |code, guesser| {
        if let Some(guesser) = guesser {
            ui.notice(&format!(
                "the sender at {} used a wrong code, which ends this one: here is another",
                text::peer(guesser)
            ));
        }
        hint::pairing(code, address).iter().for_each(|line| ui.notice(line));
    })?;
    plan.common.key = Key::Made(key);
    Ok(())
}

fn listen(plan: &ReceivePlan, sockets: Vec<UdpSocket>) -> Result<Endpoint, StartError> {
    let builder = plan.common.builder(plan.listen, Order::default());
    let builder = builder
        .known_as(plan.known_as.iter().copied())
        .security(plan.common.key.security_with(&plan.also_accept));
    builder.build_on(sockets).map_err(|error| match error {
        BuildError::Sockets { .. } | BuildError::UnfitSocket { .. } => StartError::Sockets(error),
        BuildError::Bind { addr, source } if !after_bind(&source).is_empty() => {
            StartError::Bind { addr, source }
        }
        other => StartError::Endpoint(other),
    })
}

/// Returns what to do about an address that cannot be bound; empty if no other address would help.
fn after_bind(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::AddrInUse => "; another program has the port: choose one by --listen",
        ErrorKind::AddrNotAvailable => {
            "; no interface of this host has the address: see `ip address`, and choose one by --listen"
        }
        ErrorKind::PermissionDenied => {
            "; low ports need a privilege: choose one from 1024 on by --listen, or have systemd bind it (cbrst-recv.socket)"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_to_bind_names_its_cause_and_remedy() {
        let line = |kind: ErrorKind| {
            let addr = "10.0.0.1:7".parse().unwrap();
            StartError::Bind { addr, source: kind.into() }.to_string()
        };
        assert!(line(ErrorKind::AddrInUse).contains("another program"));
        assert!(line(ErrorKind::AddrNotAvailable).contains("no interface of this host"));
        assert!(line(ErrorKind::PermissionDenied).contains("from 1024 on"));
        assert_eq!(after_bind(&ErrorKind::OutOfMemory.into()), "");
    }
}
