//! Compares facts with the intent, in the same way for all platforms.

use super::facts::{
    Aeolus, Bindings, Cap, EVERY_PORT, Facts, Field, Located, Queue, Schedule, Share, Trimming,
};
use super::finding::Finding;
use super::text::Location;
use crate::intent::Intent;
use crate::platform::Platform;
use std::collections::BTreeSet;

pub(super) fn judge(intent: &Intent, facts: &Facts, file: &str) -> Vec<Finding> {
    let mut judge =
        Judge { intent, whole_file: Location { file: file.into(), line: 0 }, findings: Vec::new() };
    judge.findings.extend(facts.findings.iter().cloned());
    judge.classifiers(facts);
    for name in judge.bound(&facts.queues, "a limit for the tiny queue") {
        judge.queue(&name, &facts.queues.named[&name]);
    }
    for name in judge.bound(&facts.schedules, "the shares of its queues") {
        judge.schedule(&name, &facts.schedules.named[&name]);
    }
    judge.pfc(facts);
    judge.hash(facts);
    judge.routes(facts);
    judge.aeolus(facts);
    judge.trimming(&facts.trimming);
    judge.findings
}

struct Judge<'a> {
    intent: &'a Intent,
    /// The location of findings about missing lines.
    whole_file: Location,
    findings: Vec<Finding>,
}

impl Judge<'_> {
    fn report(&mut self, at: &Location, found: impl Into<String>, expected: String, remedy: &str) {
        self.findings.push(Finding::new(at, found, expected, remedy));
    }

    fn missing(&mut self, found: impl Into<String>, expected: String, remedy: &str) {
        let at = self.whole_file.clone();
        self.report(&at, found, expected, remedy);
    }

    /// Returns the existing names that the intended ports refer to. Reports ports without one.
    fn bound<T>(&mut self, given: &Bindings<T>, what: &str) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        let mut without = Vec::new();
        let is_of = |bound: &&Located<(String, String)>, port: &str| {
            let of = bound.value.0.as_str();
            of == EVERY_PORT || of == port
        };
        for port in &self.intent.ports {
            let mut of_port = given.bound.iter().filter(|bound| is_of(bound, port)).peekable();
            if of_port.peek().is_none() {
                without.push(port.as_str());
            }
            for Located { value: (_, name), at } in of_port {
                if given.named.contains_key(name) {
                    names.insert(name.clone());
                } else {
                    let found = format!("{port} refers to {name}, which is not there");
                    let finding = Finding::new(at, found, what, "define it, or correct the name");
                    self.findings.push(finding);
                }
            }
        }
        if let Some(first) = without.first() {
            let more = without.len() - 1;
            let others = if more > 0 { format!(" and {more} more ports") } else { String::new() };
            let found = format!("{first}{others} without {what}");
            let expected = format!("it at each of {} ports", self.intent.ports.len());
            self.missing(found, expected, "add it there, or take the port off the list");
        }
        names
    }

    fn classifiers(&mut self, facts: &Facts) {
        let Intent { dscp, queue, .. } = *self.intent;
        let names = self.bound(&facts.classifiers, "a classifier by DSCP");
        for name in names {
            let maps = &facts.classifiers.named[&name].maps;
            // The last entry for a DSCP counts.
            let last = |dscp: u8| maps.iter().rev().find(|map| map.value.0 == dscp);
            match last(dscp) {
                Some(Located { value: (_, to), at }) if *to != queue => self.report(
                    at,
                    format!("DSCP {dscp} goes to queue {to}"),
                    format!("queue {queue}"),
                    "Cloudburst's packets would wait with others: correct the queue",
                ),
                Some(_) => {}
                None => self.missing(
                    format!("{name} does not map DSCP {dscp}"),
                    format!("it in queue {queue}"),
                    "without it the tiny queue stays empty: add it",
                ),
            }
            let others = (0..64).filter(|&other| self.intent.class_of(other) != queue);
            // Some platforms put eight DSCPs into each class by default.
            let others: Vec<_> = others.filter_map(last).collect();
            for Located { value: (other, _), at } in
                others.into_iter().filter(|map| map.value.1 == queue)
            {
                self.report(
                    at,
                    format!("DSCP {other} goes to queue {queue} too"),
                    format!("nothing there but DSCP {dscp}"),
                    "other traffic would be dropped from a queue this small: move it elsewhere",
                );
            }
        }
    }

    fn queue(&mut self, name: &str, queue: &Queue) {
        let (value, unit) = self.intent.limit_with_unit();
        let expected = if unit == "packets" { Cap::Packets(value) } else { Cap::Bytes(value) };
        match &queue.cap {
            None => self.missing(
                format!("{name} has a queue {} without limit", self.intent.queue),
                expected.to_string(),
                "without it Cloudburst floods the shared buffer: set it",
            ),
            Some(Located { value: cap, at }) if *cap != expected => self.report(
                at,
                format!("the tiny queue's limit is {cap}"),
                expected.to_string(),
                "set it, or change the parameters if this was meant",
            ),
            Some(_) => {}
        }
        for Located { value, at } in &queue.borrows {
            self.report(
                at,
                format!("the tiny queue borrows: {value}"),
                "nothing beyond its limit".into(),
                "a burst would take the buffer of all other traffic: turn it off",
            );
        }
    }

    fn schedule(&mut self, name: &str, schedule: &Schedule) {
        let (tiny, default) = self.intent.shares;
        let queues = [
            ("the tiny queue", tiny, &schedule.tiny, 0),
            // The shares of other classes are taken from the default queue.
            ("the default queue", default, &schedule.default, schedule.others),
        ];
        for (whose, share, seen, others) in queues {
            match seen {
                None => self.missing(
                    format!("{name} has no share for {whose}"),
                    format!("{share}, in weighted round robin"),
                    "add it: without one it may be starved, or starve the other",
                ),
                Some(Located { value: Share::Strict, at }) => self.report(
                    at,
                    format!("{whose} has strict priority"),
                    format!("weighted round robin with {share}"),
                    "one would starve the other: make it weighted",
                ),
                Some(Located { value: Share::Weighted(found), at })
                    if *found > share || found.saturating_add(others) < share =>
                {
                    self.report(
                        at,
                        format!("the share of {whose} is {found}"),
                        share.to_string(),
                        "set it, or change the parameters if this was meant",
                    );
                }
                Some(_) => {}
            }
        }
    }

    fn pfc(&mut self, facts: &Facts) {
        let queue = self.intent.queue;
        for Located { at, .. } in facts.pfc.iter().filter(|seen| seen.value == queue) {
            self.report(
                at,
                format!("priority flow control for queue {queue}"),
                "none: its packets are to be dropped".into(),
                "it would stop the senders' links instead: take the queue out",
            );
        }
    }

    fn hash(&mut self, facts: &Facts) {
        if self.intent.platform == Platform::OpenConfig {
            return;
        }
        match &facts.hash {
            None => self.missing(
                "no ECMP hash",
                "addresses, protocol and both ports".into(),
                "without the ports, all packets of two hosts take one path: give the ecmp file too",
            ),
            Some(Located { value: fields, at }) => {
                let lacks = Field::ALL.iter().filter(|field| !fields.contains(field));
                let lacks: Vec<String> = lacks.map(ToString::to_string).collect();
                if !lacks.is_empty() {
                    self.report(
                        at,
                        format!("the ECMP hash lacks {}", lacks.join(", ")),
                        "addresses, protocol and both ports".into(),
                        "Cloudburst's paths differ by ports: add the missing fields",
                    );
                }
            }
        }
        let Some(expected) = self.intent.seed else { return };
        match &facts.seed {
            None => self.missing(
                "the ECMP hash has no seed",
                expected.to_string(),
                "switches with the same seed send everything the same way: set it",
            ),
            Some(Located { value, at }) if *value != u64::from(expected) => self.report(
                at,
                format!("the ECMP hash's seed is {value}"),
                expected.to_string(),
                "set it, or change the parameters if this was meant",
            ),
            Some(_) => {}
        }
    }

    fn routes(&mut self, facts: &Facts) {
        for route in &self.intent.routes {
            let via = route.via.to_string();
            let ways: Vec<_> =
                facts.routes.iter().filter(|seen| seen.value.0 == route.to).collect();
            if ways.is_empty() {
                self.missing(
                    format!("no route to {}", route.to),
                    format!("one by way of {via}"),
                    "the path would go wherever other routes lead: add it",
                );
            }
            for Located { value: (_, hop), at } in ways.into_iter().filter(|way| way.value.1 != via)
            {
                self.report(
                    at,
                    format!("{} is reached by way of {hop}", route.to),
                    format!("{via}, and nothing else"),
                    "an explicit path has one next hop: correct or remove it",
                );
            }
        }
        let Some(address) = self.intent.decapsulate else { return };
        let address = address.to_string();
        if !facts.decapsulates.iter().any(|seen| seen.value == address) {
            self.missing(
                format!("nothing decapsulates IP-in-IP packets to {address}"),
                "a tunnel that does".into(),
                "packets that are to bounce here would be lost: add it",
            );
        }
        let from: BTreeSet<String> = self.intent.decapsulate_from.iter().cloned().collect();
        let guard = (address, from);
        if !guard.1.is_empty() && !facts.decapsulates_from.iter().any(|seen| seen.value == guard) {
            let (address, from) = guard;
            let from: Vec<String> = from.into_iter().collect();
            self.missing(
                format!("IP-in-IP packets to {address} are decapsulated from unintended senders"),
                format!("a rule that drops all that are not from {}", from.join(", ")),
                "the inner packet can claim any source: add it",
            );
        }
    }

    fn trimming(&mut self, trimming: &Trimming) {
        let Some(trim) = self.intent.trim else {
            for Located { value: (port, _), at } in &trimming.eligible.bound {
                self.report(
                    at,
                    format!("packets of the tiny queue of {port} are trimmed"),
                    "none".into(),
                    "endpoints that do not expect it drop them: take it out, or give `trim`",
                );
            }
            return;
        };
        self.bound(&trimming.eligible, "trimming of the tiny queue");
        if trimming.is_off {
            self.missing("trimming is off", "on".into(), "turn it on");
        }
        for (what, expected, found) in [
            ("bytes of trimmed packets", u64::from(trim.bytes), &trimming.size),
            ("DSCP of trimmed packets", trim.dscp.into(), &trimming.dscp),
            ("queue of trimmed packets", trim.queue.into(), &trimming.queue),
        ] {
            match found {
                Some(Located { value, .. }) if *value == expected => {}
                Some(Located { value, at }) => self.report(
                    at,
                    format!("{what}: {value}"),
                    expected.to_string(),
                    "correct it, or `trim`: endpoints must know the DSCP too",
                ),
                None => self.missing(
                    format!("no {what}"),
                    expected.to_string(),
                    "give the trim file too",
                ),
            }
        }
    }

    fn aeolus(&mut self, facts: &Facts) {
        let Some(threshold) = self.intent.aeolus else {
            let all = facts.aeolus.named.values().filter_map(|each| each.bounds.as_ref());
            for Located { value: (low, _), at } in all {
                self.report(
                    at,
                    format!("selective dropping from {low} bytes"),
                    "none".into(),
                    "packets would be dropped before the queue is full: take it out",
                );
            }
            return;
        };
        for name in self.bound(&facts.aeolus, "selective dropping") {
            let Aeolus { bounds, spares_ecn, drops_all } = &facts.aeolus.named[&name];
            let Some(Located { value: (low, high), at }) = bounds else {
                self.missing(
                    format!("{name} has no selective dropping"),
                    format!("one ECN threshold at {threshold} bytes"),
                    "give the aeolus file too",
                );
                continue;
            };
            // OS10 counts whole kilobytes; some platforms do not take two equal thresholds.
            let less = if self.intent.platform == Platform::Os10 { 1023 } else { 0 };
            let close =
                |found: u64| (threshold.saturating_sub(less)..=threshold + 1).contains(&found);
            if !(close(*low) && close(*high)) {
                self.report(
                    at,
                    format!("selective dropping from {low} to {high} bytes"),
                    format!("{threshold} and {threshold}"),
                    "two thresholds that differ drop at random: make them one",
                );
            }
            if !spares_ecn {
                self.report(
                    at,
                    "selective dropping without ECN",
                    "ECN".into(),
                    "packets that are to be spared would be dropped too: turn ECN on for them",
                );
            }
            if !drops_all {
                self.report(
                    at,
                    "selective dropping by chance, by average, or off",
                    "all that are not spared, 100 percent".into(),
                    "new messages would fill the queue before others: set it",
                );
            }
        }
    }
}
