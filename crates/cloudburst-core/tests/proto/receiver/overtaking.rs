//! A long message waits for room, and later short ones cannot overtake it for ever.

use super::crowd::{Crowd, Says, Voice};
use cloudburst_core::config::{Config, Tuning};
use cloudburst_core::id::MessageId;
use cloudburst_core::wire::{Role, Verdict};
use core::time::Duration;
use std::collections::VecDeque;

/// The number of short messages that could overtake the long one.
const SHORT: u64 = 5_000;
/// The number of them that may.
const FEW: u64 = 40;

#[test]
fn messages_that_wait_for_the_application_are_delivered_in_order() {
    let mut crowd = Crowd::unpaced(Config {
        tuning: Tuning { receive_bytes: Some(20_000), ..Tuning::default() },
        ..Config::default()
    });
    let mut peer = crowd.meet(1);
    crowd.fill(&mut peer, 0..20, 1_000);
    assert_eq!(crowd.say(&mut peer, Says::whole(20, 10_000)), Some(Verdict::Held));
    let overtaken = (21..21 + SHORT).take_while(|id| {
        crowd.hear(&mut peer, Says { age: 30, ..Says::whole(*id, 1_000) });
        crowd.discard_answers();
        crowd.receiver.recv().unwrap();
        crowd.receiver.queued().all(|message| message.id != MessageId(20))
    });
    let overtaken = overtaken.count() as u64;
    assert!(overtaken <= FEW, "overtaken by {overtaken} of {SHORT}");
}

/// Messages of two symbols that a peer keeps under way, as many as fit.
struct Stream {
    voice: Voice,
    next: u64,
    under_way: VecDeque<u64>,
}

impl Stream {
    fn new(voice: Voice) -> Self {
        Self { voice, next: 1, under_way: VecDeque::new() }
    }

    /// Begins messages until there is no capacity. Returns their number. Message 0 is not completed.
    fn begin(&mut self, crowd: &mut Crowd) -> u64 {
        let before = self.next;
        loop {
            let id = self.next;
            let says = Says { age: id as u32, ..Says::part(id, 2_000) };
            if crowd.say(&mut self.voice, says) == Some(Verdict::Busy) {
                return self.next - before;
            }
            self.under_way.push_back(id);
            self.next += 1;
        }
    }

    fn finish_oldest(&mut self, crowd: &mut Crowd) {
        let Some(id) = self.under_way.pop_front() else { return };
        let says = Says { age: id as u32, symbol: 1, ..Says::part(id, 2_000) };
        assert!(crowd.delivers(&mut self.voice, says));
        crowd.take_all();
    }
}

fn small() -> Config {
    Config {
        max_message: 10_000,
        tuning: Tuning {
            decode_bytes: Some(400_000),
            decode_bytes_per_peer: Some(400_000),
            ..Tuning::default()
        },
        ..Config::default()
    }
}

#[test]
fn a_message_that_waits_for_its_peers_capacity_gets_it() {
    let mut crowd = Crowd::unpaced(Config {
        tuning: Tuning { decode_bytes: Some(1 << 20), ..small().tuning },
        ..small()
    });
    let mut stream = Stream::new(crowd.meet(1));
    stream.begin(&mut crowd);
    let mut overtaken = 0;
    while overtaken < SHORT
        && crowd.say(&mut stream.voice, Says::part(0, 10_000)) == Some(Verdict::Busy)
    {
        stream.finish_oldest(&mut crowd);
        overtaken += stream.begin(&mut crowd);
        crowd.wait(Duration::from_millis(10));
    }
    assert!(overtaken <= FEW, "overtaken by {overtaken} of {SHORT}");
}

#[test]
fn messages_that_wait_for_shared_capacity_get_it_in_turn() {
    let mut crowd = Crowd::unpaced(small());
    let mut streams: Vec<Stream> = (1..=10).map(|who| Stream::new(crowd.meet(who))).collect();
    let mut long: VecDeque<Voice> = (11..=13).map(|who| crowd.meet(who)).collect();
    for stream in &mut streams {
        stream.begin(&mut crowd);
    }
    let mut overtaken = 0;
    while overtaken < SHORT && !long.is_empty() {
        long.retain_mut(|peer| crowd.say(peer, Says::part(0, 10_000)) == Some(Verdict::Busy));
        for stream in &mut streams {
            stream.finish_oldest(&mut crowd);
            overtaken += stream.begin(&mut crowd);
        }
        crowd.wait(Duration::from_millis(10));
    }
    assert!(overtaken <= 3 * FEW, "{} of 3 overtaken by {overtaken} of {SHORT}", long.len());
}

#[test]
fn a_refused_message_that_is_no_longer_retried_keeps_no_capacity() {
    let mut crowd = Crowd::unpaced(Config {
        tuning: Tuning { decode_bytes: Some(1 << 20), ..small().tuning },
        ..small()
    });
    let mut stream = Stream::new(crowd.meet(1));
    stream.begin(&mut crowd);
    let full = stream.under_way.len();
    for _ in 0..FEW {
        assert_eq!(crowd.say(&mut stream.voice, Says::part(0, 10_000)), Some(Verdict::Busy));
        stream.finish_oldest(&mut crowd);
        stream.begin(&mut crowd);
        if stream.under_way.len() + 3 < full {
            break;
        }
    }
    assert!(stream.under_way.len() + 3 < full, "room is kept");
    crowd.wait(Duration::from_secs(2));
    stream.begin(&mut crowd);
    // Records of ended messages take some room as well.
    assert!(stream.under_way.len() + 3 > full, "{} of {full}", stream.under_way.len());
}

#[test]
fn no_capacity_is_kept_for_a_message_that_waits_only_for_the_application() {
    let mut crowd = Crowd::unpaced(Config {
        max_message: 10_000,
        tuning: Tuning {
            decode_bytes: Some(20_000),
            decode_bytes_per_peer: Some(20_000),
            receive_messages: Some(1),
            ..Tuning::default()
        },
        ..Config::default()
    });
    // Requests that the application does not serve, and whose sender keeps asking.
    let mut requests = crowd.meet(1);
    requests.role = Role::Request;
    let ask = |crowd: &mut Crowd, requests: &mut Voice| {
        for (id, len) in [(0, 10), (1, 4_000), (2, 10_000)] {
            crowd.say(requests, Says { age: id as u32, ..Says::whole(id, len) });
        }
    };
    ask(&mut crowd, &mut requests);
    let mut plain = crowd.meet(2);
    let mut callee = crowd.meet(3);
    callee.role = Role::Response;
    for id in 0..200 {
        ask(&mut crowd, &mut requests);
        assert!(crowd.delivers(&mut plain, Says::whole(id, 10_000)), "its host holds less");
        assert!(crowd.receiver.recv().is_some());
        let says = Says { age: id as u32, ..Says::whole(id, 100) };
        assert!(crowd.delivers(&mut callee, says), "response {id}");
        crowd.wait(Duration::from_millis(100));
    }
}
