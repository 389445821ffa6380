//! Joins what all processes report, in all their lives: what was promised of each message, and what became of it.

use crate::record::{Key, Kind, Promise, Record, TIMEOUT};
use core::time::Duration;
use std::collections::{BTreeMap, HashMap, VecDeque};

/// Records that are kept to show what came before a violation.
const KEPT: usize = 2_000_000;
/// Violations that are shown in full.
const SHOWN: usize = 20;
/// A process may end this long after its application could have taken what its endpoint has.
const TAKES: u64 = 5_000_000;

// What is remembered of a message in a byte, for as long as the run lasts.
const BEGUN: u8 = 1;
const CALL: u8 = 2;
const PROMISE: u32 = 2;
const TAKEN: u8 = 16;
const TAKEN_AGAIN: u8 = 32;

/// A process, from its start to its end.
#[derive(Debug, Default)]
struct Life {
    node: u8,
    killed: bool,
    port: Option<u16>,
    messages: Vec<u8>,
    /// Counts that it has reported: the first, and the last.
    counts: BTreeMap<String, (u64, u64)>,
    memory: Vec<Memory>,
}

/// Memory in KiB, descriptors and threads of a process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Memory {
    pub resident: u64,
    pub descriptors: u64,
    pub threads: u64,
}

/// Something that was done to nodes, and when, in microseconds.
#[derive(Clone, Debug)]
struct Span {
    name: &'static str,
    nodes: Vec<u8>,
    from: u64,
    until: u64,
    kills: bool,
}

/// A message that was delivered, or a call that was answered, and that no application has reported yet: reports of
/// different processes overtake each other.
#[derive(Clone, Copy, Debug)]
struct Pending {
    node: u8,
    call: bool,
    from: u64,
    until: u64,
}

#[derive(Debug)]
pub struct Checker {
    lives: BTreeMap<u32, Life>,
    pending: HashMap<Key, Pending>,
    spans: Vec<Span>,
    recent: VecDeque<Record>,
    pub violations: u64,
    shown: Vec<String>,
    outcomes: BTreeMap<(u8, u8, String), u64>,
    begun: u64,
    taken: u64,
    excused: u64,
    orphans: u64,
    /// The longest that an outcome came after its deadline.
    latest: u64,
    /// How long a message may stay undelivered although nothing is wrong, and an outcome may be late.
    patience: Duration,
}

impl Checker {
    pub fn new(patience: Duration) -> Self {
        Self {
            lives: BTreeMap::new(),
            pending: HashMap::new(),
            spans: Vec::new(),
            recent: VecDeque::new(),
            violations: 0,
            shown: Vec::new(),
            outcomes: BTreeMap::new(),
            begun: 0,
            taken: 0,
            excused: 0,
            orphans: 0,
            latest: 0,
            patience,
        }
    }

    pub fn on_started(&mut self, life: u32, node: u8) {
        self.lives.insert(life, Life { node, ..Life::default() });
    }

    /// The port at which a process takes messages, once it has reported it.
    pub fn port(&self, life: u32) -> Option<u16> {
        self.lives.get(&life)?.port
    }

    pub fn on_killed(&mut self, life: u32) {
        if let Some(life) = self.lives.get_mut(&life) {
            life.killed = true;
        }
    }

    /// Something is done to `nodes` from now on. Returns its number.
    pub fn on_fault(&mut self, at: u64, name: &'static str, nodes: &[u8], kills: bool) -> usize {
        self.spans.push(Span { name, nodes: nodes.to_vec(), from: at, until: u64::MAX, kills });
        self.spans.len() - 1
    }

    pub fn on_fault_ended(&mut self, at: u64, number: usize) {
        self.spans[number].until = at;
    }

    pub fn on_memory(&mut self, life: u32, memory: Memory) {
        if let Some(life) = self.lives.get_mut(&life) {
            life.memory.push(memory);
        }
    }

    pub fn on_record(&mut self, life: u32, record: Record) {
        if self.recent.len() == KEPT {
            self.recent.pop_front();
        }
        if record.kind != Kind::Count {
            self.recent.push_back(record);
        }
        match record.kind {
            Kind::Open => {
                if let Some(life) = self.lives.get_mut(&life) {
                    life.port = Some(record.value as u16);
                }
            }
            Kind::Begin => self.on_begin(&record),
            Kind::End => self.on_end(&record),
            Kind::Taken => self.on_taken(&record),
            Kind::Altered => {
                let what = record.name();
                self.violate(record.key, &format!("a {what} of {} bytes is altered", record.len));
            }
            Kind::Count => {
                let Some(life) = self.lives.get_mut(&life) else { return };
                let value = record.value;
                life.counts.entry(record.name()).or_insert((value, value)).1 = value;
            }
            Kind::Bye if record.value > 0 => {
                let what = format!("{} messages have no outcome at the end of life", record.value);
                self.violate(Key { life, number: u32::MAX }, &what);
            }
            Kind::Bye => {}
        }
    }

    fn message(&mut self, key: Key) -> Option<&mut u8> {
        let messages = &mut self.lives.get_mut(&key.life)?.messages;
        let at = key.number as usize;
        if at >= messages.len() {
            messages.resize(at + 1, 0);
        }
        Some(&mut messages[at])
    }

    fn on_begin(&mut self, record: &Record) {
        self.begun += 1;
        let call = if record.detail == 1 { CALL } else { 0 };
        if let Some(message) = self.message(record.key) {
            *message |= BEGUN | call;
        }
    }

    fn on_end(&mut self, record: &Record) {
        let Record { key, detail, node, at, .. } = *record;
        let (took, deadline) = record.times();
        let promise = detail & !TIMEOUT;
        let Some(message) = self.message(key) else { return };
        let twice = *message >> PROMISE & 3 != 0;
        *message |= promise << PROMISE;
        let state = *message;
        let is_call = state & CALL != 0;
        *self.outcomes.entry((is_call.into(), promise, record.name())).or_insert(0) += 1;
        if twice {
            self.violate(key, "a message has two outcomes");
        }
        let from = at.saturating_sub(took * 1_000);
        match (promise, state & TAKEN != 0) {
            (of, true) if of == Promise::Never as u8 => {
                self.violate(key, "said to be never delivered, and taken before");
            }
            (of, false) if of == Promise::Delivered as u8 => {
                self.pending.insert(key, Pending { node, call: is_call, from, until: at });
            }
            _ => {}
        }
        // Measured by the sender's own clock, which may run on while it is stopped.
        let late = took.saturating_sub(deadline + self.stopped(key, from, at));
        self.latest = self.latest.max(late);
        if late > self.patience.as_millis() as u64 {
            self.violate(key, &format!("the outcome came {late} ms after the deadline"));
        }
        if detail & TIMEOUT != 0 {
            self.check_cause(record, from);
        }
    }

    /// For how many milliseconds the sender of a message was stopped.
    fn stopped(&self, key: Key, from: u64, until: u64) -> u64 {
        let Some(node) = self.lives.get(&key.life).map(|life| life.node) else { return 0 };
        let stops =
            self.spans.iter().filter(|span| span.name == "stop" && span.nodes.contains(&node));
        let stopped = stops.map(|span| span.until.min(until).saturating_sub(span.from.max(from)));
        stopped.sum::<u64>() / 1_000
    }

    /// Checks that something was in the way of a message that failed for lack of time.
    fn check_cause(&mut self, record: &Record, from: u64) {
        let Record { key, node, at, .. } = *record;
        let own = self.lives.get(&key.life).map_or(node, |life| life.node);
        let concerns = |span: &&Span| span.nodes.contains(&node) || span.nodes.contains(&own);
        // A callee that is killed takes the request with it.
        let killed = |span: &Span| span.kills && span.nodes.contains(&node) && span.until >= from;
        if record.name() == "NoResponse" && self.spans.iter().any(killed) {
            return;
        }
        let spans = self.spans.iter().filter(concerns);
        let undisturbed = spans.map(|span| span.until).max().unwrap_or(0).max(from);
        let quiet = at.saturating_sub(undisturbed);
        if quiet > self.patience.as_micros() as u64 {
            let what =
                format!("{} though nothing was wrong for {} ms", record.name(), quiet / 1_000);
            self.violate(key, &what);
        }
    }

    fn on_taken(&mut self, record: &Record) {
        let key = record.key;
        self.taken += 1;
        self.pending.remove(&key);
        let Some(message) = self.message(key) else {
            return self.violate(key, "taken, but no process of this number was started");
        };
        let before = *message;
        *message |= if before & TAKEN == 0 { TAKEN } else { TAKEN_AGAIN };
        if before & TAKEN != 0 {
            self.violate(key, "taken twice");
        }
        if before >> PROMISE & 3 == Promise::Never as u8 {
            self.violate(key, "said to be never delivered, and taken after that");
        }
    }

    /// Counts a violation, and keeps what is known of the message.
    pub fn violate(&mut self, key: Key, what: &str) {
        self.violations += 1;
        if self.shown.len() >= SHOWN {
            return;
        }
        let mut text = format!("{what}: message {} of life {}", key.number, key.life);
        let own = self.lives.get(&key.life).map(|life| life.node);
        text += &own.map_or(String::new(), |node| format!(" (node {node})"));
        let records: Vec<Record> = self.recent.iter().filter(|r| r.key == key).copied().collect();
        let mut nodes: Vec<u8> = own.into_iter().collect();
        for record in &records {
            let Record { kind, detail, node, len, at, value, .. } = record;
            nodes.push(*node);
            let at = *at as f64 / 1e6;
            let name = record.name();
            text += &format!(
                "\n    {at:10.3} s {kind:?} {name} {len} bytes, node {node}, {detail} {value}"
            );
        }
        let from = records.first().map_or(u64::MAX, |record| record.at);
        let until = records.last().map_or(u64::MAX, |record| record.at);
        for span in &self.spans {
            let touches = span.nodes.iter().any(|node| nodes.contains(node));
            let is_near = span.until >= from.saturating_sub(5_000_000) && span.from <= until;
            if touches && is_near {
                let (from, until) =
                    (span.from as f64 / 1e6, span.until.min(u64::MAX / 2) as f64 / 1e6);
                text += &format!(
                    "\n    {from:10.3} s to {until:.3} s: {} of {:?}",
                    span.name, span.nodes
                );
            }
        }
        eprintln!("soak: violation: {text}");
        self.shown.push(text);
    }

    /// Judges what is left at the end, when no process runs any more.
    pub fn finish(&mut self) {
        let pending: Vec<(Key, Pending)> = self.pending.drain().collect();
        for (key, Pending { node, call, from, until }) in pending {
            // A process that is killed takes with it what its application had not taken from its endpoint.
            let kills = |span: &Span| {
                span.kills
                    && span.nodes.contains(&node)
                    && span.until >= from
                    && span.from <= until + TAKES
            };
            if call {
                self.violate(key, "a call is answered whose request was never taken");
            } else if self.spans.iter().any(kills) {
                self.excused += 1;
            } else {
                self.violate(key, "said to be delivered, and never taken");
            }
        }
        let mut lost = Vec::new();
        for (&number, life) in &self.lives {
            for (at, message) in life.messages.iter().enumerate() {
                let key = Key { life: number, number: at as u32 };
                match (message & BEGUN != 0, message >> PROMISE & 3 != 0) {
                    (true, false) if life.killed => self.orphans += 1,
                    (true, false) => lost.push((key, "no outcome")),
                    (false, _) if *message != 0 => {
                        lost.push((key, "taken or ended, and never begun"))
                    }
                    _ => {}
                }
            }
        }
        lost.into_iter().for_each(|(key, what)| self.violate(key, what));
        self.check_memory();
    }

    /// Checks that no process that lived for long enough takes more and more.
    fn check_memory(&mut self) {
        let mut growing = Vec::new();
        for (&number, life) in &self.lives {
            let samples = life.memory.len();
            // A process warms up: histories of paths and peers fill, and pools grow to what the load needs.
            if samples < 120 {
                continue;
            }
            let most =
                |part: &[Memory], of: fn(&Memory) -> u64| part.iter().map(of).max().unwrap_or(0);
            let (middle, last) =
                (&life.memory[samples / 3..2 * samples / 3], &life.memory[2 * samples / 3..]);
            let grown = |of: fn(&Memory) -> u64| (most(middle, of), most(last, of));
            let (before, after) = grown(|memory| memory.resident);
            if after > before + before / 4 + 32_768 {
                growing.push((number, format!("memory grew from {before} to {after} KiB")));
            }
            for (name, of) in [
                ("descriptors", (|m| m.descriptors) as fn(&Memory) -> u64),
                ("threads", |m| m.threads),
            ] {
                let (before, after) = grown(of);
                if after > before + 8 {
                    growing.push((number, format!("{name} grew from {before} to {after}")));
                }
            }
        }
        for (life, what) in growing {
            self.violate(Key { life, number: u32::MAX }, &what);
        }
    }

    /// The sum of a count over all lives, since each began.
    pub fn counted(&self, name: &str) -> u64 {
        let lives = self.lives.values().filter_map(|life| life.counts.get(name));
        lives.map(|(_, last)| last).sum()
    }

    /// By how much a count has changed, in all lives.
    pub fn changed(&self, name: &str) -> u64 {
        let lives = self.lives.values().filter_map(|life| life.counts.get(name));
        lives.map(|(first, last)| last.saturating_sub(*first)).sum()
    }

    pub const fn messages(&self) -> (u64, u64) {
        (self.begun, self.taken)
    }

    /// A table of what happened.
    pub fn print(&self) {
        println!("\n| messages begun | {} |\n|---|---|", self.begun);
        println!("| taken by applications, requests among them | {} |", self.taken);
        println!("| under way in a process that was killed | {} |", self.orphans);
        println!("| delivered to one that was killed before it took them | {} |", self.excused);
        println!("| latest outcome after its deadline | {} ms |", self.latest);
        let most = |of: fn(&Memory) -> u64| {
            self.lives.values().flat_map(|life| &life.memory).map(of).max().unwrap_or(0)
        };
        let (kib, descriptors, threads) =
            (most(|m| m.resident), most(|m| m.descriptors), most(|m| m.threads));
        println!("| most memory, descriptors, threads | {kib} KiB, {descriptors}, {threads} |");
        let needed = self.counted("symbols needed").max(1);
        let ratio = self.counted("symbols sent") as f64 / needed as f64;
        println!("| symbols sent for each that was needed | {ratio:.2} |");
        println!("| **violations** | **{}** |", self.violations);
        println!("\n| outcome | promise | messages | calls |\n|---|---|---|---|");
        let mut rows: BTreeMap<(u8, &str), [u64; 2]> = BTreeMap::new();
        for ((call, promise, name), count) in &self.outcomes {
            rows.entry((*promise, name)).or_default()[usize::from(*call)] += count;
        }
        for ((promise, name), [messages, calls]) in rows {
            let promise = match promise {
                1 => "delivered",
                2 => "never delivered",
                _ => "perhaps delivered",
            };
            println!("| {name} | {promise} | {messages} | {calls} |");
        }
    }
}
