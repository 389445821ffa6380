//! The loop of a receiver, and what it keeps.

use super::check::{Checked, Checks, Found};
use super::commit::{Key, Stored};
use super::metrics::{self, Ended};
use super::once::Once;
use super::outbox::{Outbox, Reply};
use super::pipe::{Pipe, WINDOW, Writer};
use super::store::{Existing, Store};
use super::transfer::{Due, Outcome, Rival, Sink, Transfer};
use super::vitals;
use crate::Exit;
use crate::courier::Event;
use crate::plan::ReceivePlan;
use crate::protocol::{Body, Entry, Frame, FrameError, InvocationId, Offer, Reason};
use crate::signals::Interrupts;
use crate::text;
use crate::ui::Ui;
use cloudburst_net::{DEFAULT_DSCP, Endpoint, Message};
use core::time::Duration;
use crossbeam_channel::{Receiver, Sender, never, select};
use sd_notify::NotifyState;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread;
use std::time::Instant;

/// The most concurrent transfers.
const MAX_TRANSFERS: usize = 64;
/// The most messages to handle before other events.
const BATCH: usize = 64;
const TICK: Duration = Duration::from_millis(200);
/// How long the last answers may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// How long to wait for files that only need to be renamed.
const RENAME_TIMEOUT: Duration = Duration::from_millis(250);
/// The shortest time between two notices of handshakes with another key.
const NOTICE_EVERY: Duration = Duration::from_secs(5);
/// The time between two searches for old partial files.
const SWEEP_EVERY: Duration = Duration::from_secs(3_600);

/// Where files go.
#[derive(Debug)]
pub(super) enum Output {
    Directory(Store),
    Pipe(Writer),
}

/// A running receiver.
pub(super) struct Server {
    outbox: Outbox,
    output: Output,
    transfers: HashMap<Key, Transfer>,
    once: Option<Once>,
    patience: Duration,
    max_size: u64,
    dscp: u8,
    interrupts: Interrupts,
    ui: Ui,
    stored: Receiver<Stored>,
    store: Sender<Stored>,
    checks: Checks,
    /// When old parts are removed next.
    sweep_at: Instant,
    /// Handshakes with another key that were reported to the user.
    reported_refusals: u64,
    /// When that was.
    refusals_reported_at: Option<Instant>,
    /// Whether it was reported that a sender uses an address which is not known here.
    has_reported_address: bool,
}

impl Server {
    pub(super) fn new(
        plan: &ReceivePlan,
        endpoint: Endpoint,
        output: Output,
        store: Sender<Stored>,
        stored: Receiver<Stored>,
        interrupts: Interrupts,
        ui: Ui,
    ) -> Self {
        let patience = plan.common.deadline;
        Self {
            outbox: Outbox::new(endpoint, patience),
            output,
            transfers: HashMap::new(),
            once: plan.once.then(|| Once::new(patience)),
            patience,
            max_size: plan.max_size,
            dscp: plan.common.dscps.first().copied().unwrap_or(DEFAULT_DSCP),
            interrupts,
            ui,
            stored,
            store,
            checks: Checks::new(),
            sweep_at: Instant::now() + SWEEP_EVERY,
            reported_refusals: 0,
            refusals_reported_at: None,
            has_reported_address: false,
        }
    }

    /// Serves until the program is stopped or, with `--once` and `--stdout`, until the one sender has ended.
    pub(super) fn run(mut self) -> Exit {
        let nothing = never();
        let exit = loop {
            let busy = self.handle_events();
            let now = Instant::now();
            self.handle_timeouts(now, busy);
            let is_full = self.is_output_full();
            if !busy && !is_full {
                let result = self.once.as_ref().and_then(|once| once.result(now));
                if let Some(all_done) = result.filter(|_| self.transfers.is_empty()) {
                    break if all_done { Exit::Done } else { Exit::Failed };
                }
            }
            let pause = if busy && !is_full { Duration::ZERO } else { self.pause() };
            let written = match &self.output {
                Output::Pipe(writer) => writer.progress(),
                Output::Directory(_) => &nothing,
            };
            select! {
                recv(self.interrupts.stopped()) -> _ => break Exit::Interrupted,
                recv(self.stored) -> stored => {
                    if let Ok(stored) = stored {
                        self.handle_stored(Instant::now(), stored);
                    }
                }
                recv(self.checks.results()) -> checked => {
                    if let Ok(checked) = checked {
                        self.checks.note_end();
                        self.handle_checked(Instant::now(), checked);
                    }
                }
                recv(written) -> _ => {}
                recv(self.outbox.woken()) -> _ => {}
                default(pause) => {}
            }
        };
        // This does nothing without a service manager.
        let _ = sd_notify::notify(&[NotifyState::Stopping]);
        self.end_all();
        self.outbox.close(CLOSE_TIMEOUT);
        exit
    }

    /// Ends all transfers. Files that are being stored have [`CLOSE_TIMEOUT`] to complete.
    fn end_all(&mut self) {
        let whole = self.keys(|_, transfer| transfer.is_storing());
        for key in self.keys(|key, _| !whole.contains(key)) {
            self.fail(key, Reason::Interrupted, "interrupted");
        }
        self.await_stored(CLOSE_TIMEOUT);
        for key in self.keys(|_, transfer| transfer.revoke()) {
            self.fail(key, Reason::Interrupted, "interrupted");
        }
        // The remaining files are just being renamed.
        self.await_stored(RENAME_TIMEOUT);
        for (key, transfer) in self.transfers.drain() {
            let why = Outcome::Unknown("interrupted while it was renamed: check there");
            transfer.report(&self.ui, key.peer, transfer.name.as_str(), why);
        }
    }

    /// Waits until all files are stored, for at most `within`.
    fn await_stored(&mut self, within: Duration) {
        let deadline = Instant::now() + within;
        while !self.transfers.is_empty() && Instant::now() < deadline {
            let left = deadline.saturating_duration_since(Instant::now());
            if let Ok(stored) = self.stored.recv_timeout(left.min(self.pause())) {
                self.handle_stored(Instant::now(), stored);
            }
            self.handle_timeouts(Instant::now(), true);
        }
    }

    /// Returns the keys of the transfers that `selects` selects.
    fn keys(&self, selects: impl Fn(&Key, &Transfer) -> bool) -> Vec<Key> {
        let selected = self.transfers.iter().filter(|(key, transfer)| selects(key, transfer));
        selected.map(|(key, _)| *key).collect()
    }

    /// Returns how long the loop may wait.
    fn pause(&self) -> Duration {
        let is_full = self.is_output_full();
        let waiting = |transfer: &&Transfer| is_full || transfer.is_storing();
        self.transfers
            .values()
            .filter(waiting)
            .map(|transfer| transfer.pause(self.patience))
            .fold(TICK, Duration::min)
    }

    /// Whether standard output accepts no more data for now. The receiver then takes no messages either.
    fn is_output_full(&self) -> bool {
        matches!(&self.output, Output::Pipe(writer) if writer.is_full())
    }

    /// Handles a batch of messages, or those that fit into the loop's pause. Returns whether there may be more.
    fn handle_events(&mut self) -> bool {
        let until = Instant::now() + self.pause();
        for _ in 0..BATCH {
            if Instant::now() >= until {
                break;
            }
            let is_full = self.is_output_full();
            match self.outbox.poll(!is_full) {
                Some(Event::Message(message)) => self.handle_message(&message),
                Some(Event::Ended(Reply { peer, stored: Some(path) }, Err(_))) => {
                    let peer = text::peer(peer);
                    self.ui.status(&format!("{path}: {peer} may not know that it is stored"));
                }
                Some(Event::Ended(..)) => {}
                None => return is_full,
            }
        }
        true
    }

    fn handle_message(&mut self, message: &Message) {
        let now = Instant::now();
        let peer = message.peer;
        let Frame { transfer, body } = match Frame::decode(&message.bytes) {
            Ok(frame) => frame,
            Err(FrameError::Version { transfer, got }) => {
                return self.outbox.refuse_version(peer, transfer, got);
            }
            // No correct sender sends such a frame, and no other gets an answer.
            Err(_) => return,
        };
        let key = Key { peer, transfer };
        if let Some(once) = &mut self.once {
            once.on_frame(now, peer, transfer.session);
        }
        if let Some(transfer) = self.transfers.get_mut(&key) {
            transfer.last_heard = now;
        }
        let is_storing = self.transfers.get(&key).is_some_and(Transfer::is_storing);
        match body {
            // The file may be renamed at any moment: its sender can no longer change it.
            Body::Chunk { .. } | Body::Resume { .. } | Body::Finish { .. } | Body::Failed(_)
                if is_storing => {}
            Body::Offer(offer) => self.handle_offer(now, key, &offer),
            Body::Chunk { number, bytes } => match self.transfers.get_mut(&key) {
                Some(transfer) => {
                    if let Err(reason) = transfer.take_chunk(number, &bytes) {
                        self.fail(key, reason, &reason.to_string());
                    }
                }
                None => self.outbox.reply(key, Body::Failed(Reason::Unknown)),
            },
            Body::Finish { size, digest } => self.handle_finish(now, key, size, digest),
            Body::Resume { len } => self.handle_resume(key, len),
            Body::Failed(reason) => {
                self.drop_transfer(now, key, &reason.to_string(), reason.is_interruption());
            }
            Body::Bye => self.handle_bye(now, peer, transfer.session),
            // A sign of life, and frames that only receivers send.
            Body::Alive
            | Body::Accept { .. }
            | Body::Done
            | Body::Vitals(_)
            | Body::Examine { answer: false, .. } => {}
            Body::Examine { answer: true, answer_to, addressed, .. } => {
                let vitals = vitals::of(self.outbox.endpoint(), self.dscp, peer, addressed);
                let mut to = peer;
                if answer_to != 0 {
                    to.set_port(answer_to);
                }
                self.outbox.reply(Key { peer: to, transfer }, Body::Vitals(vitals));
            }
        }
    }

    fn handle_offer(&mut self, now: Instant, key: Key, offer: &Offer) {
        let Key { peer, transfer } = key;
        if self.transfers.contains_key(&key) {
            return;
        }
        let is_again =
            self.transfers.values().any(|other| other.rival.is_some_and(|rival| rival.key == key));
        match self.admit(now, key, offer) {
            Ok((admitted, existing)) => {
                self.transfers.insert(key, admitted);
                metrics::set_transfers(self.transfers.len());
                self.compare(now, key, offer, existing);
            }
            // It tries again, and was reported once.
            Err(reason @ Reason::NameInUse(1..)) if is_again => {
                self.outbox.reply(key, Body::Failed(reason));
            }
            Err(reason) => {
                let name = match &offer.name {
                    Ok(name) => name.to_string(),
                    Err(error) => format!("a file whose name is not allowed: {error}"),
                };
                let from = text::peer(peer);
                self.ui.status(&format!("refused {name} from {from}: {reason}"));
                self.outbox.reply(key, Body::Failed(reason));
                Ended::Refused.count();
                if let Some(once) = &mut self.once
                    && !matches!(reason, Reason::NameInUse(_))
                {
                    once.on_ended(now, peer, transfer.session, false);
                }
            }
        }
    }

    /// Accepts the file, at once or after the bytes of it that exist here have been hashed.
    fn compare(&mut self, now: Instant, key: Key, offer: &Offer, existing: Option<Existing>) {
        let (Some(existing), Some(size)) = (existing, offer.size) else {
            return self.accept(now, key, Found::default());
        };
        let Some(transfer) = self.transfers.get_mut(&key) else { return };
        let token = transfer.begin_check();
        if let Err(found) = self.checks.start(key, token, existing, size, offer.chunk.into()) {
            self.accept(now, key, found);
        }
    }

    fn handle_checked(&mut self, now: Instant, checked: Checked) {
        let Checked { key, token, result } = checked;
        // The transfer may have ended meanwhile, and another one have its number.
        if self.transfers.get(&key).is_some_and(|transfer| transfer.awaits(&token)) {
            match result {
                Ok(found) => self.accept(now, key, found),
                Err(reason) => self.fail(key, reason, &reason.to_string()),
            }
        }
    }

    fn accept(&mut self, now: Instant, key: Key, found: Found) {
        // The transfer may have ended meanwhile.
        let Some(transfer) = self.transfers.get_mut(&key) else { return };
        match transfer.accept(now, found) {
            Ok(prefixes) => {
                let window = WINDOW;
                let patience = self.patience;
                self.outbox.reply(key, Body::Accept { window, patience, prefixes });
            }
            Err(reason) => self.fail(key, reason, &reason.to_string()),
        }
    }

    fn handle_resume(&mut self, key: Key, len: u64) {
        let Some(transfer) = self.transfers.get_mut(&key) else {
            return self.outbox.reply(key, Body::Failed(Reason::Unknown));
        };
        if let Err(reason) = transfer.resume(len) {
            self.fail(key, reason, &reason.to_string());
        }
    }

    fn admit(
        &mut self,
        now: Instant,
        key: Key,
        offer: &Offer,
    ) -> Result<(Transfer, Option<Existing>), Reason> {
        let Key { peer, transfer } = key;
        if let Some(once) = &mut self.once
            && !once.admits(now, peer, transfer.session, offer.files)
        {
            return Err(Reason::Taken);
        }
        let name = offer.name.clone().map_err(|_| Reason::BadName)?;
        if offer.size.is_some_and(|size| size > self.max_size) {
            return Err(Reason::TooLarge(self.max_size));
        }
        let most = if matches!(self.output, Output::Pipe(_)) { 1 } else { MAX_TRANSFERS };
        // A thread may still be waiting for the disk after its transfer has ended.
        let used = self.transfers.len().max(self.checks.running());
        if used >= most {
            return Err(Reason::Busy(used as u64));
        }
        let mut transfers = self.transfers.values_mut();
        if let Some(transfer) = transfers.find(|transfer| transfer.name == name) {
            // The sender retries until the earlier transfer ends. Giving that up at once could lose
            // chunks of it that have arrived but are not read yet.
            transfer.rival = Some(Rival { key, asked: now });
            let left = transfer.left(now, self.patience);
            return Err(Reason::NameInUse(left.max(TICK).as_millis() as u64));
        }
        let (sink, existing) = match &self.output {
            Output::Directory(store) => {
                let Offer { entry, sparse, attributes, size, .. } = *offer;
                let (mut partial, existing) = store.begin(&name, entry, attributes, size)?;
                // Only if the sender's file has holes: zeros in other files may be space that was
                // reserved on purpose.
                partial.set_sparse(sparse);
                (Sink::File(partial), existing)
            }
            Output::Pipe(_) if offer.entry != Entry::File => return Err(Reason::FilesAlone),
            Output::Pipe(writer) => (Sink::Pipe(Pipe::new(writer.clone(), key)), None),
        };
        let progress = self.ui.progress(name.as_str(), offer.size);
        Ok((Transfer::new(now, offer, name, self.max_size, sink, progress), existing))
    }

    fn handle_finish(&mut self, now: Instant, key: Key, size: u64, digest: [u8; 32]) {
        let Some(transfer) = self.transfers.get_mut(&key) else {
            return self.outbox.reply(key, Body::Failed(Reason::Unknown));
        };
        match transfer.finish(now, size, digest) {
            Ok((Sink::File(partial), right)) => {
                self.run_store(key, size, move || partial.commit(size, &right));
            }
            Ok((Sink::Existing(partial), right)) => {
                self.run_store(key, size, move || partial.confirm(&right));
            }
            Ok((Sink::Pipe(pipe), right)) => pipe.end(right),
            Err(reason) => self.fail(key, reason, &reason.to_string()),
        }
    }

    /// Runs `job`, which may wait for the disk, in a thread. It stores a file of `size` bytes.
    fn run_store(
        &mut self,
        key: Key,
        size: u64,
        job: impl FnOnce() -> Result<PathBuf, Reason> + Send + 'static,
    ) {
        let stored = self.store.clone();
        let run = move || {
            let _ = stored.send(Stored { key, result: job() });
        };
        if let Err(error) = thread::Builder::new().name("store".into()).spawn(run) {
            let reason = Reason::of_write_error(&error, size);
            self.fail(key, reason, &error.to_string());
        }
    }

    /// Ends a transfer whose file was stored under its name, or was not.
    fn handle_stored(&mut self, now: Instant, stored: Stored) {
        let Stored { key, result } = stored;
        if !self.transfers.contains_key(&key) {
            return;
        }
        let path = match result {
            Ok(path) => path.display().to_string(),
            Err(reason) => return self.fail(key, reason, &reason.to_string()),
        };
        let Some(transfer) = self.remove(key, Ended::Done) else { return };
        transfer.report(&self.ui, key.peer, &path, Outcome::Done);
        self.outbox.confirm(key, path);
        if let Some(once) = &mut self.once {
            once.on_ended(now, key.peer, key.transfer.session, true);
        }
    }

    fn handle_bye(&mut self, now: Instant, peer: SocketAddr, session: InvocationId) {
        let unfinished = |key: &Key, transfer: &Transfer| {
            key.peer == peer && key.transfer.session == session && !transfer.is_storing()
        };
        for key in self.keys(unfinished) {
            self.drop_transfer(now, key, &Reason::Interrupted.to_string(), true);
        }
        if let Some(once) = &mut self.once {
            once.on_bye(peer, session);
        }
    }

    /// Ends a transfer, and sends its sender the reason.
    fn fail(&mut self, key: Key, reason: Reason, why: &str) {
        self.drop_transfer(Instant::now(), key, why, reason.is_interruption());
        self.outbox.reply(key, Body::Failed(reason));
    }

    /// Removes a transfer, and counts it.
    fn remove(&mut self, key: Key, ended: Ended) -> Option<Transfer> {
        let transfer = self.transfers.remove(&key)?;
        ended.count();
        if ended == Ended::Done {
            let (transferred, resumed) = transfer.bytes();
            metrics::count_bytes(transferred, resumed);
        }
        metrics::set_transfers(self.transfers.len());
        Some(transfer)
    }

    /// Ends a transfer. If `keeps` is set, the data that arrived is kept for resumption.
    fn drop_transfer(&mut self, now: Instant, key: Key, why: &str, keeps: bool) {
        let Some(mut transfer) = self.remove(key, Ended::Failed) else { return };
        // Before it is reported to the user and the sender, so that both find it done.
        let kept = if transfer.discard(keeps) { "; the part that arrived is kept" } else { "" };
        let why = format!("{why}{kept}");
        transfer.report(&self.ui, key.peer, transfer.name.as_str(), Outcome::Failed(&why));
        if let Some(once) = &mut self.once {
            once.on_ended(now, key.peer, key.transfer.session, false);
        }
    }

    /// Shows progress, sends signs of life, and gives up silent senders. The latter only if all messages have been
    /// read, since any of them may be a sign of life.
    fn handle_timeouts(&mut self, now: Instant, busy: bool) {
        let endpoint = self.outbox.endpoint();
        for (key, transfer) in &mut self.transfers {
            let from_peer = || endpoint.peer(key.peer).map(|peer| peer.received.symbols_received);
            transfer.show(now, || from_peer().unwrap_or_default());
        }
        let patience = self.patience;
        let is_full = self.is_output_full();
        let due: Vec<(Key, Due)> = self
            .transfers
            .iter_mut()
            .map(|(key, transfer)| (*key, transfer.due(now, patience, is_full)))
            .collect();
        for (key, due) in due {
            match due {
                Due::Nothing => {}
                Due::SignOfLife => self.outbox.reply(key, Body::Alive),
                Due::GiveUp if busy => {}
                Due::GiveUp => {
                    let limit = self.transfers.get(&key).map_or(patience, |it| it.limit(patience));
                    let reason = Reason::Unresponsive(limit.as_millis() as u64);
                    self.fail(key, reason, &reason.to_string());
                }
            }
        }
        self.report_unserved(now);
        if now >= self.sweep_at
            && let Output::Directory(store) = &self.output
            && let Some(sweep) = store.sweep()
        {
            self.sweep_at = now + SWEEP_EVERY;
            // Next time, if there is no thread.
            let _ = thread::Builder::new().name("sweep".into()).spawn(sweep);
        }
    }

    /// Reports senders that cannot be served: they use another key, or an address that is not known here.
    fn report_unserved(&mut self, now: Instant) {
        let counters = self.outbox.endpoint().counters().receiver;
        if counters.misdirected > 0 && !self.has_reported_address {
            self.has_reported_address = true;
            self.ui.status(
                "a sender with the key uses an address that is not known here, and was not answered: \
                 if a device on the way translates addresses, name the one it uses by --known-as",
            );
        }
        let refused = counters.refused_handshakes;
        let last = self.refusals_reported_at;
        if refused > self.reported_refusals
            && last.is_none_or(|last| now.duration_since(last) >= NOTICE_EVERY)
        {
            self.reported_refusals = refused;
            self.refusals_reported_at = Some(now);
            let from = self.outbox.endpoint().refused_from();
            let from = from.map_or_else(String::new, |from| format!(" from {}", text::peer(from)));
            self.ui.status(&format!("a sender{from} tried with another key, and was not answered"));
        }
    }
}
