//! The loop of a receiver, and what it keeps.

use super::Place;
use super::metrics::{self, Ended};
use super::once::Once;
use super::outbox::{Outbox, Reply};
use super::parts;
use super::pipe::{Pipe, WINDOW};
use super::store::{Base, Key, Stored};
use super::transfer::{Due, Outcome, Sink, Transfer};
use super::vitals;
use crate::Exit;
use crate::courier::News;
use crate::plan::ReceivePlan;
use crate::prefix::{self, Known};
use crate::protocol::{Body, Entry, Frame, FrameError, InvocationId, Offer, Reason};
use crate::signals::Interrupts;
use crate::text;
use crate::ui::Ui;
use cloudburst_net::{DEFAULT_DSCP, Endpoint, Message};
use core::time::Duration;
use crossbeam_channel::{Receiver, Sender, never, select, unbounded};
use nix::unistd::fsync;
use sd_notify::NotifyState;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Weak;
use std::thread;
use std::time::{Instant, SystemTime};

/// The most concurrent transfers.
const MAX_TRANSFERS: usize = 64;
/// The most messages to handle before other events.
const BATCH: usize = 64;
const TICK: Duration = Duration::from_millis(200);
/// How long the last answers may take.
const FAREWELL: Duration = Duration::from_secs(1);
/// How long to wait for files that only need to be renamed.
const NAMING: Duration = Duration::from_millis(250);
/// The shortest time between two notices of handshakes with another key.
const NOTICE_EVERY: Duration = Duration::from_secs(5);

/// The time between two searches for old partial files.
const SWEEP_EVERY: Duration = Duration::from_secs(3_600);

/// The result of a check, and the token that identifies it: the hashed prefixes of a file that exist, and whether it
/// exists under its name.
type Checked = (Key, Weak<()>, Result<(Vec<Known>, bool), Reason>);

/// A running receiver.
pub(super) struct Server {
    outbox: Outbox,
    place: Place,
    transfers: HashMap<Key, Transfer>,
    once: Option<Once>,
    patience: Duration,
    max_size: u64,
    dscp: u8,
    interrupts: Interrupts,
    ui: Ui,
    stored: Receiver<Stored>,
    store: Sender<Stored>,
    checked: Receiver<Checked>,
    check: Sender<Checked>,
    /// The number of threads that hash existing bytes.
    checks: usize,
    /// When old partial files are removed next.
    sweep_at: Instant,
    /// Handshakes with another key that the user was told of, and when.
    strangers: (u64, Option<Instant>),
    /// The user was told that a sender uses an address which is not known here.
    told_of_address: bool,
}

impl Server {
    pub(super) fn new(
        plan: &ReceivePlan,
        endpoint: Endpoint,
        place: Place,
        (store, stored): (Sender<Stored>, Receiver<Stored>),
        interrupts: Interrupts,
        ui: Ui,
    ) -> Self {
        let patience = plan.common.deadline;
        let (check, checked) = unbounded();
        Self {
            outbox: Outbox::new(endpoint, patience),
            place,
            transfers: HashMap::new(),
            once: plan.once.then(|| Once::new(patience)),
            patience,
            max_size: plan.max_size,
            dscp: plan.common.dscps.first().copied().unwrap_or(DEFAULT_DSCP),
            interrupts,
            ui,
            stored,
            store,
            checked,
            check,
            checks: 0,
            sweep_at: Instant::now() + SWEEP_EVERY,
            strangers: (0, None),
            told_of_address: false,
        }
    }

    /// Serves until the program is stopped or, with `--once` and `--stdout`, until the one sender has ended.
    pub(super) fn run(mut self) -> Exit {
        let nothing = never();
        let exit = loop {
            let busy = self.take_news();
            let now = Instant::now();
            self.keep_watch(now, busy);
            let clogged = self.is_clogged();
            if !busy && !clogged {
                let result = self.once.as_ref().and_then(|once| once.result(now));
                if let Some(all_done) = result.filter(|_| self.transfers.is_empty()) {
                    break if all_done { Exit::Done } else { Exit::Failed };
                }
            }
            let pause = if busy && !clogged { Duration::ZERO } else { self.pause() };
            let written = match &self.place {
                Place::Pipe(writer) => writer.progress(),
                Place::Directory(_) => &nothing,
            };
            select! {
                recv(self.interrupts.stopped()) -> _ => break Exit::Interrupted,
                recv(self.stored) -> stored => {
                    if let Ok((key, result)) = stored {
                        self.conclude(Instant::now(), key, result);
                    }
                }
                recv(self.checked) -> checked => {
                    if let Ok(checked) = checked {
                        self.checks -= 1;
                        self.handle_checked(Instant::now(), checked);
                    }
                }
                recv(written) -> _ => {}
                recv(self.outbox.woken()) -> _ => {}
                default(pause) => {}
            }
        };
        // Without a service manager, nothing is told.
        let _ = sd_notify::notify(&[NotifyState::Stopping]);
        self.give_up_all();
        self.outbox.close(FAREWELL);
        exit
    }

    /// Ends all transfers. Files that are being stored have [`FAREWELL`] to complete.
    fn give_up_all(&mut self) {
        let whole = self.keys(|_, transfer| transfer.is_storing());
        for key in self.keys(|key, _| !whole.contains(key)) {
            self.fail(key, Reason::Interrupted, "interrupted");
        }
        self.await_stored(FAREWELL);
        for key in self.keys(|_, transfer| transfer.say.take()) {
            self.fail(key, Reason::Interrupted, "interrupted");
        }
        // The remaining files are just being renamed.
        self.await_stored(NAMING);
        for ((peer, _), transfer) in self.transfers.drain() {
            let why = Outcome::Unknown("interrupted while it was renamed: check there");
            transfer.tell(&self.ui, peer, transfer.name.as_str(), why);
        }
    }

    /// Waits until all files are stored, for at most `within`.
    fn await_stored(&mut self, within: Duration) {
        let deadline = Instant::now() + within;
        while !self.transfers.is_empty() && Instant::now() < deadline {
            let left = deadline.saturating_duration_since(Instant::now());
            if let Ok((key, result)) = self.stored.recv_timeout(left.min(self.pause())) {
                self.conclude(Instant::now(), key, result);
            }
            self.keep_watch(Instant::now(), true);
        }
    }

    /// Returns the keys of the transfers of which `are_so` is true.
    fn keys(&self, are_so: impl Fn(&Key, &Transfer) -> bool) -> Vec<Key> {
        let so = self.transfers.iter().filter(|(key, transfer)| are_so(key, transfer));
        so.map(|(key, _)| *key).collect()
    }

    /// Returns how long the loop may wait.
    fn pause(&self) -> Duration {
        let clogged = self.is_clogged();
        let waiting = |transfer: &&Transfer| clogged || transfer.is_storing();
        self.transfers
            .values()
            .filter(waiting)
            .map(|transfer| transfer.pause(self.patience))
            .fold(TICK, Duration::min)
    }

    /// Whether standard output accepts no more data for now. The receiver then takes no messages either.
    fn is_clogged(&self) -> bool {
        matches!(&self.place, Place::Pipe(writer) if writer.is_full())
    }

    /// Handles a batch of messages, or those that fit into the loop's pause. Returns whether there may be more.
    fn take_news(&mut self) -> bool {
        let until = Instant::now() + self.pause();
        for _ in 0..BATCH {
            if Instant::now() >= until {
                break;
            }
            let clogged = self.is_clogged();
            match self.outbox.poll(!clogged) {
                Some(News::Message(message)) => self.handle_message(&message),
                Some(News::Ended(Reply { peer, stored: Some(path) }, Err(_))) => {
                    let peer = text::peer(peer);
                    self.ui.status(&format!("{path}: {peer} may not know that it is stored"));
                }
                Some(News::Ended(..)) => {}
                None => return clogged,
            }
        }
        true
    }

    fn handle_message(&mut self, message: &Message) {
        let (now, peer) = (Instant::now(), message.peer);
        let Frame { transfer, body } = match Frame::decode(&message.bytes) {
            Ok(frame) => frame,
            Err(FrameError::Version { transfer, got }) => {
                return self.outbox.refuse_version(peer, transfer, got);
            }
            // No correct sender sends such a frame, and no other gets an answer.
            Err(_) => return,
        };
        let key = (peer, transfer);
        if let Some(once) = &mut self.once {
            once.on_heard(now, peer, transfer.session);
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
                None => self.outbox.reply(peer, transfer, Body::Failed(Reason::Unknown)),
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
                self.outbox.reply(to, transfer, Body::Vitals(vitals));
            }
        }
    }

    fn handle_offer(&mut self, now: Instant, key: Key, offer: &Offer) {
        let (peer, transfer) = key;
        if self.transfers.contains_key(&key) {
            return;
        }
        let is_again =
            self.transfers.values().any(|other| other.rival.is_some_and(|(rival, _)| rival == key));
        match self.admit(now, key, offer) {
            Ok((admitted, base)) => {
                self.transfers.insert(key, admitted);
                metrics::set_transfers(self.transfers.len());
                self.compare(now, key, offer, base);
            }
            // It tries again, and was told of once.
            Err(reason @ Reason::NameInUse(1..)) if is_again => {
                self.outbox.reply(peer, transfer, Body::Failed(reason));
            }
            Err(reason) => {
                let name = match &offer.name {
                    Ok(name) => name.to_string(),
                    Err(error) => format!("a file whose name is not allowed: {error}"),
                };
                let from = text::peer(peer);
                self.ui.status(&format!("refused {name} from {from}: {reason}"));
                self.outbox.reply(peer, transfer, Body::Failed(reason));
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
    fn compare(&mut self, now: Instant, key: Key, offer: &Offer, base: Base) {
        let (file, lengths, present_in) = match (base, offer.size) {
            (Base::Part(file, have), Some(size)) => {
                (file, prefix::lengths(have, size, offer.chunk.into(), WINDOW), None)
            }
            (Base::Present(file, directory), Some(size)) => (file, vec![size], Some(directory)),
            _ => return self.accept(now, key, Vec::new(), false),
        };
        let Some(transfer) = self.transfers.get_mut(&key) else { return };
        let (mut file, is_present) = (transfer.check(file), present_in.is_some());
        let check = self.check.clone();
        let hash = move || {
            let token = file.token();
            // Bytes that cannot be read are sent again.
            let known = prefix::hash_all(&mut file, &lengths).unwrap_or_default();
            let synced = present_in.map_or(Ok(()), |directory| {
                // Whoever stored it may not have synced it. Some file systems cannot sync a directory.
                let _ = fsync(&directory);
                file.sync()
            });
            // Close the part first: its lock must be free when the transfer ends.
            drop(file);
            let failed = |error| Reason::of_write_error(&error, 0);
            let _ = check.send((key, token, synced.map(|()| (known, is_present)).map_err(failed)));
        };
        match thread::Builder::new().name("check".into()).spawn(hash) {
            Ok(_) => self.checks += 1,
            Err(_) => self.accept(now, key, Vec::new(), is_present),
        }
    }

    fn handle_checked(&mut self, now: Instant, (key, token, result): Checked) {
        // The transfer may have ended meanwhile, and another one have its number.
        if self.transfers.get(&key).is_some_and(|transfer| transfer.awaits(&token)) {
            match result {
                Ok((known, is_present)) => self.accept(now, key, known, is_present),
                Err(reason) => self.fail(key, reason, &reason.to_string()),
            }
        }
    }

    fn accept(&mut self, now: Instant, key: Key, known: Vec<Known>, is_present: bool) {
        // The transfer may have ended meanwhile.
        let Some(transfer) = self.transfers.get_mut(&key) else { return };
        let is_new = known.is_empty();
        let prefixes = transfer.offer(now, known, is_present);
        if is_new && let Err(reason) = transfer.resume(0) {
            return self.fail(key, reason, &reason.to_string());
        }
        let (window, patience) = (WINDOW, self.patience);
        self.outbox.reply(key.0, key.1, Body::Accept { window, patience, prefixes });
    }

    fn handle_resume(&mut self, key: Key, len: u64) {
        let Some(transfer) = self.transfers.get_mut(&key) else {
            return self.outbox.reply(key.0, key.1, Body::Failed(Reason::Unknown));
        };
        if let Err(reason) = transfer.take_resume(len) {
            self.fail(key, reason, &reason.to_string());
        }
    }

    fn admit(&mut self, now: Instant, key: Key, offer: &Offer) -> Result<(Transfer, Base), Reason> {
        let (peer, transfer) = key;
        if let Some(once) = &mut self.once
            && !once.admits(now, peer, transfer.session, offer.files)
        {
            return Err(Reason::Taken);
        }
        let name = offer.name.clone().map_err(|_| Reason::BadName)?;
        if offer.size.is_some_and(|size| size > self.max_size) {
            return Err(Reason::TooLarge(self.max_size));
        }
        let most = if matches!(self.place, Place::Pipe(_)) { 1 } else { MAX_TRANSFERS };
        // A thread may still be waiting for the disk after its transfer has ended.
        let used = self.transfers.len().max(self.checks);
        if used >= most {
            return Err(Reason::Busy(used as u64));
        }
        let mut transfers = self.transfers.values_mut();
        if let Some(transfer) = transfers.find(|transfer| transfer.name == name) {
            transfer.rival = Some((key, now));
            let left = transfer.left(now, self.patience);
            return Err(Reason::NameInUse(left.max(TICK).as_millis() as u64));
        }
        let (sink, base) = match &self.place {
            Place::Directory(store) => {
                let Offer { entry, sparse, attributes, size, .. } = *offer;
                let (mut partial, base) = store.begin(&name, entry, attributes, size)?;
                partial.set_sparse(sparse);
                (Sink::File(partial), base)
            }
            Place::Pipe(_) if offer.entry != Entry::File => return Err(Reason::FilesAlone),
            Place::Pipe(writer) => (Sink::Pipe(Pipe::new(writer.clone(), key)), Base::Nothing),
        };
        let progress = self.ui.progress(name.as_str(), offer.size);
        Ok((Transfer::new(now, offer, name, self.max_size, sink, progress), base))
    }

    fn handle_finish(&mut self, now: Instant, key: Key, size: u64, digest: [u8; 32]) {
        let (peer, id) = key;
        let Some(transfer) = self.transfers.get_mut(&key) else {
            return self.outbox.reply(peer, id, Body::Failed(Reason::Unknown));
        };
        let say = transfer.say.clone();
        match transfer.finish(now, size, digest) {
            Ok(Sink::File(partial)) => {
                self.run_store(key, size, move || partial.commit(size, &say))
            }
            Ok(Sink::Present(partial)) => self.run_store(key, size, move || partial.confirm(&say)),
            Ok(Sink::Pipe(pipe)) => pipe.end(say),
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
            let _ = stored.send((key, job()));
        };
        if let Err(error) = thread::Builder::new().name("store".into()).spawn(run) {
            let reason = Reason::of_write_error(&error, size);
            self.fail(key, reason, &error.to_string());
        }
    }

    /// Ends a transfer whose file was stored under its name, or was not.
    fn conclude(&mut self, now: Instant, key: Key, result: Result<PathBuf, Reason>) {
        let (peer, id) = key;
        if !self.transfers.contains_key(&key) {
            return;
        }
        let path = match result {
            Ok(path) => path.display().to_string(),
            Err(reason) => return self.fail(key, reason, &reason.to_string()),
        };
        let Some(transfer) = self.remove(key, Ended::Done) else { return };
        transfer.tell(&self.ui, peer, &path, Outcome::Done);
        self.outbox.confirm(peer, id, path);
        if let Some(once) = &mut self.once {
            once.on_ended(now, peer, id.session, true);
        }
    }

    fn handle_bye(&mut self, now: Instant, peer: SocketAddr, session: InvocationId) {
        let unfinished = |key: &Key, transfer: &Transfer| {
            key.0 == peer && key.1.session == session && !transfer.is_storing()
        };
        for key in self.keys(unfinished) {
            self.drop_transfer(now, key, &Reason::Interrupted.to_string(), true);
        }
        if let Some(once) = &mut self.once {
            once.on_bye(peer, session);
        }
    }

    /// Ends a transfer and tells its sender why.
    fn fail(&mut self, key: Key, reason: Reason, why: &str) {
        self.drop_transfer(Instant::now(), key, why, reason.is_interruption());
        self.outbox.reply(key.0, key.1, Body::Failed(reason));
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
        // Before the user and the sender are told, so that both find it done.
        let kept = if transfer.discard(keeps) { "; the part that arrived is kept" } else { "" };
        let why = format!("{why}{kept}");
        transfer.tell(&self.ui, key.0, transfer.name.as_str(), Outcome::Failed(&why));
        if let Some(once) = &mut self.once {
            once.on_ended(now, key.0, key.1.session, false);
        }
    }

    /// Shows progress, sends signs of life, and gives up silent senders. The latter only if all messages have been
    /// read, since any of them may be a sign of life.
    fn keep_watch(&mut self, now: Instant, busy: bool) {
        let endpoint = self.outbox.endpoint();
        for ((peer, _), transfer) in &mut self.transfers {
            let from_peer = || endpoint.peer(*peer).map(|peer| peer.received.symbols_received);
            transfer.show(now, || from_peer().unwrap_or_default());
        }
        let (patience, clogged) = (self.patience, self.is_clogged());
        let watch =
            |(key, transfer): (&Key, &mut Transfer)| (*key, transfer.due(now, patience, clogged));
        let due: Vec<(Key, Due)> = self.transfers.iter_mut().map(watch).collect();
        for (key, due) in due {
            match due {
                Due::Nothing => {}
                Due::SignOfLife => self.outbox.reply(key.0, key.1, Body::Alive),
                Due::GiveUp if busy => {}
                Due::GiveUp => {
                    let limit = self.transfers.get(&key).map_or(patience, |it| it.limit(patience));
                    let reason = Reason::Silence(limit.as_millis() as u64);
                    self.fail(key, reason, &reason.to_string());
                }
            }
        }
        self.notice_strangers(now);
        if now >= self.sweep_at
            && let Place::Directory(store) = &self.place
            && let Some(parts) = store.parts().map(ToOwned::to_owned)
        {
            self.sweep_at = now + SWEEP_EVERY;
            let sweep = move || parts::remove_old(&parts, SystemTime::now());
            // Next time, if there is no thread.
            let _ = thread::Builder::new().name("sweep".into()).spawn(sweep);
        }
    }

    fn notice_strangers(&mut self, now: Instant) {
        let counters = self.outbox.endpoint().counters().receiver;
        if counters.misdirected > 0 && !self.told_of_address {
            self.told_of_address = true;
            self.ui.status(
                "a sender with the key uses an address that is not known here, and was not answered: \
                 if a device on the way translates addresses, name the one it uses by --known-as",
            );
        }
        let refused = counters.refused_handshakes;
        let (told, last) = self.strangers;
        if refused > told && last.is_none_or(|last| now.duration_since(last) >= NOTICE_EVERY) {
            self.strangers = (refused, Some(now));
            let from = self.outbox.endpoint().refused_from();
            let from = from.map_or_else(String::new, |from| format!(" from {}", text::peer(from)));
            self.ui.status(&format!("a sender{from} tried with another key, and was not answered"));
        }
    }
}
