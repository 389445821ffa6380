//! The loop of a receiver, and what it keeps.

use super::Place;
use super::once::Once;
use super::outbox::{Outbox, Reply};
use super::transfer::{Due, Pipe, Sink, Transfer, WINDOW};
use crate::Exit;
use crate::courier::{News, wait_until};
use crate::plan::ReceivePlan;
use crate::protocol::{Body, Frame, FrameError, Offer, Reason, SessionId, TransferId};
use crate::signals::Interrupts;
use crate::ui::Ui;
use cloudburst_net::{Endpoint, Message};
use core::time::Duration;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread::{self, Thread};
use std::time::Instant;

/// Transfers at a time.
const MAX_TRANSFERS: usize = 64;
/// Messages to take between two looks at everything else.
const BATCH: usize = 64;
const TICK: Duration = Duration::from_millis(200);
/// How long the last words may take.
const FAREWELL: Duration = Duration::from_secs(1);
/// The shortest time between two notices of strangers.
const NOTICE_EVERY: Duration = Duration::from_secs(5);

/// A transfer's name: a peer cannot speak for another one's.
type Key = (SocketAddr, TransferId);

/// A receiver at work.
pub(super) struct Server {
    outbox: Outbox,
    place: Place,
    transfers: HashMap<Key, Transfer>,
    once: Option<Once>,
    patience: Duration,
    max_size: u64,
    interrupts: Interrupts,
    ui: Ui,
    stored: mpsc::Receiver<(Key, Result<PathBuf, Reason>)>,
    store: mpsc::Sender<(Key, Result<PathBuf, Reason>)>,
    /// Attempts with other keys that the user was told of, and when.
    strangers: (u64, Option<Instant>),
}

impl Server {
    pub(super) fn new(
        plan: &ReceivePlan,
        endpoint: Endpoint,
        place: Place,
        interrupts: Interrupts,
        ui: Ui,
    ) -> Self {
        let (store, stored) = mpsc::channel();
        let patience = plan.common.deadline;
        Self {
            outbox: Outbox::new(endpoint, patience),
            place,
            transfers: HashMap::new(),
            once: plan.once.then(|| Once::new(patience)),
            patience,
            max_size: plan.max_size,
            interrupts,
            ui,
            stored,
            store,
            strangers: (0, None),
        }
    }

    /// Serves until there is nobody left to serve.
    pub(super) fn run(mut self) -> Exit {
        let exit = loop {
            let busy = self.take_news();
            let now = Instant::now();
            while let Ok((key, result)) = self.stored.try_recv() {
                self.conclude(now, key, result);
            }
            if self.interrupts.is_stopped() {
                break Exit::Interrupted;
            }
            // Only when all that came was read: it may be a sign of life.
            if !busy {
                self.keep_watch(now);
                let result = self.once.as_ref().and_then(|once| once.result(now));
                if let Some(all_done) = result.filter(|_| self.transfers.is_empty()) {
                    break if all_done { Exit::Done } else { Exit::Failed };
                }
                wait_until(Some(now + TICK));
            }
        };
        let unfinished: Vec<Key> = self.transfers.keys().copied().collect();
        for key in unfinished {
            self.fail(key, Reason::Interrupted, "interrupted");
        }
        self.outbox.close(FAREWELL);
        exit
    }

    /// Takes a batch of what came; whether there may be more.
    fn take_news(&mut self) -> bool {
        for _ in 0..BATCH {
            match self.outbox.poll() {
                Some(News::Message(message)) => self.handle_message(&message),
                Some(News::Ended(Reply { peer, stored: Some(path) }, Err(_))) => {
                    self.ui.status(&format!("{path}: {peer} may not know that it is stored"));
                }
                Some(News::Ended(..)) => {}
                None => return false,
            }
        }
        true
    }

    fn handle_message(&mut self, message: &Message) {
        let (now, peer) = (Instant::now(), message.peer);
        let Frame { transfer, body } = match Frame::decode(&message.bytes) {
            Ok(frame) => frame,
            Err(FrameError::Version { transfer, .. }) => {
                let reason = Reason::Version(crate::protocol::VERSION.into());
                return self.outbox.reply(peer, transfer, Body::Failed(reason));
            }
            // Nobody who follows the rules sends that, and nobody else deserves an answer.
            Err(_) => return,
        };
        let key = (peer, transfer);
        if let Some(once) = &mut self.once {
            once.on_heard(now, peer, transfer.session);
        }
        if let Some(transfer) = self.transfers.get_mut(&key) {
            transfer.last_heard = now;
        }
        match body {
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
            Body::Failed(reason) => self.drop_transfer(now, key, &reason.to_string()),
            Body::Bye => self.handle_bye(now, peer, transfer.session),
            // A sign of life, and what only receivers say.
            Body::Alive | Body::Accept { .. } | Body::Done => {}
        }
    }

    fn handle_offer(&mut self, now: Instant, key: Key, offer: &Offer) {
        let (peer, transfer) = key;
        if self.transfers.contains_key(&key) {
            return;
        }
        match self.admit(now, key, offer) {
            Ok(admitted) => {
                self.transfers.insert(key, admitted);
                let accept = Body::Accept { window: WINDOW, patience: self.patience };
                self.outbox.reply(peer, transfer, accept);
            }
            Err(reason) => {
                let name = match &offer.name {
                    Ok(name) => name.to_string(),
                    Err(error) => format!("a file whose name is not allowed, for {error}"),
                };
                self.ui.status(&format!("refused {name} from {peer}: {reason}"));
                self.outbox.reply(peer, transfer, Body::Failed(reason));
                if let Some(once) = &mut self.once {
                    once.on_ended(now, peer, transfer.session, false);
                }
            }
        }
    }

    fn admit(&mut self, now: Instant, key: Key, offer: &Offer) -> Result<Transfer, Reason> {
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
        if self.transfers.len() >= most {
            return Err(Reason::Busy(self.transfers.len() as u64));
        }
        if self.transfers.values().any(|transfer| transfer.name == name) {
            return Err(Reason::NameInUse);
        }
        let sink = match &self.place {
            Place::Directory(store) => Sink::File(store.begin(&name)?),
            Place::Pipe(out) => {
                let out = out.try_clone().map_err(|error| Reason::of_write_error(&error, 0))?;
                Sink::Pipe(Pipe::new(out))
            }
        };
        let bar = self.ui.bar(name.as_str(), offer.size);
        Ok(Transfer::new(now, offer, name, self.max_size, sink, bar))
    }

    fn handle_finish(&mut self, now: Instant, key: Key, size: u64, digest: [u8; 32]) {
        let (peer, id) = key;
        let Some(transfer) = self.transfers.get_mut(&key) else {
            return self.outbox.reply(peer, id, Body::Failed(Reason::Unknown));
        };
        match transfer.finish(now, size, digest) {
            Ok(Sink::File(partial)) => {
                let (stored, main) = (self.store.clone(), thread::current());
                let commit = move || {
                    let _ = stored.send((key, partial.commit(size)));
                    Thread::unpark(&main);
                };
                if let Err(error) = thread::Builder::new().name("store".into()).spawn(commit) {
                    let reason = Reason::of_write_error(&error, size);
                    self.fail(key, reason, &error.to_string());
                }
            }
            Ok(Sink::Pipe(_)) => self.conclude(now, key, Ok(PathBuf::from("-"))),
            Err(reason) => self.fail(key, reason, &reason.to_string()),
        }
    }

    /// A file has its name, or will never have it.
    fn conclude(&mut self, now: Instant, key: Key, result: Result<PathBuf, Reason>) {
        let (peer, id) = key;
        let path = match result {
            Ok(path) => path.display().to_string(),
            Err(reason) => return self.fail(key, reason, &reason.to_string()),
        };
        // Its sender may have given it up meanwhile; it is there all the same.
        let Some(transfer) = self.transfers.remove(&key) else { return };
        transfer.tell(&self.ui, peer, &path, None);
        self.outbox.confirm(peer, id, path);
        if let Some(once) = &mut self.once {
            once.on_ended(now, peer, id.session, true);
        }
    }

    fn handle_bye(&mut self, now: Instant, peer: SocketAddr, session: SessionId) {
        let of_session = |key: &&Key| key.0 == peer && key.1.session == session;
        let unfinished: Vec<Key> = self.transfers.keys().filter(of_session).copied().collect();
        for key in unfinished {
            self.drop_transfer(now, key, &Reason::Interrupted.to_string());
        }
        if let Some(once) = &mut self.once {
            once.on_bye(peer, session);
        }
    }

    /// Ends a transfer, and lets its sender know.
    fn fail(&mut self, key: Key, reason: Reason, why: &str) {
        self.drop_transfer(Instant::now(), key, why);
        self.outbox.reply(key.0, key.1, Body::Failed(reason));
    }

    fn drop_transfer(&mut self, now: Instant, key: Key, why: &str) {
        let Some(mut transfer) = self.transfers.remove(&key) else { return };
        // Before anybody hears of it: whoever then looks finds nothing.
        transfer.discard();
        transfer.tell(&self.ui, key.0, transfer.name.as_str(), Some(why));
        if let Some(once) = &mut self.once {
            once.on_ended(now, key.0, key.1.session, false);
        }
    }

    fn keep_watch(&mut self, now: Instant) {
        let patience = self.patience;
        let watch = |(key, transfer): (&Key, &mut Transfer)| (*key, transfer.due(now, patience));
        let due: Vec<(Key, Due)> = self.transfers.iter_mut().map(watch).collect();
        for (key, due) in due {
            match due {
                Due::Nothing => {}
                Due::SignOfLife => self.outbox.reply(key.0, key.1, Body::Alive),
                Due::GiveUp => {
                    let reason = Reason::Silence(patience.as_millis() as u64);
                    self.fail(key, reason, &reason.to_string());
                }
            }
        }
        self.notice_strangers(now);
    }

    fn notice_strangers(&mut self, now: Instant) {
        let refused = self.outbox.endpoint().counters().receiver.refused_hellos;
        let (told, last) = self.strangers;
        if refused > told && last.is_none_or(|last| now.duration_since(last) >= NOTICE_EVERY) {
            self.strangers = (refused, Some(now));
            self.ui.status("somebody tried with another key, and was not answered");
        }
    }
}
