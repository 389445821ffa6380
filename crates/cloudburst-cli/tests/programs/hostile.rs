//! A malicious sender that has the key: the receiver neither crashes, nor runs out of memory, nor writes
//! outside its directory.

use crate::common::*;
use bytes::Bytes;
use cloudburst_cli::protocol::{
    Attributes, Body, Entry, FilePath, Frame, InvocationId, Offer, Reason, TransferId,
};
use cloudburst_net::{Endpoint, PathMap, Security};
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

struct Attacker {
    endpoint: Endpoint,
    victim: SocketAddr,
    session: u8,
}

impl Attacker {
    fn of(receiver: &Receiver) -> Self {
        let digit = |at| u8::from_str_radix(&receiver.key[at..at + 2], 16).unwrap();
        let key = core::array::from_fn(|at| digit(2 * at));
        let endpoint = Endpoint::builder()
            .bind("127.0.0.1:0".parse().unwrap())
            .paths(PathMap::ecmp(1))
            .security(Security::pre_shared(key))
            .build()
            .unwrap();
        Self { endpoint, victim: receiver.addr.parse().unwrap(), session: 0 }
    }

    /// A transfer of a new session.
    fn transfer(&mut self) -> TransferId {
        self.session += 1;
        TransferId { session: InvocationId([self.session; 16]), file: 0 }
    }

    fn send(&self, transfer: TransferId, body: Body) {
        self.send_raw(Frame { transfer, body }.encode());
    }

    fn send_raw(&self, bytes: impl Into<Bytes>) {
        self.endpoint.send(self.victim, bytes).wait().unwrap();
    }

    /// The receiver's next frame about the transfer.
    fn answer(&self, transfer: TransferId) -> Body {
        loop {
            let message = self.endpoint.recv().wait_for(PATIENCE).unwrap().expect("an answer");
            let frame = Frame::decode(&message.bytes).unwrap();
            if frame.transfer == transfer {
                return frame.body;
            }
        }
    }

    fn offer(&mut self, name: &str, size: Option<u64>) -> TransferId {
        self.offer_entry(name, size, Entry::File)
    }

    fn offer_entry(&mut self, name: &str, size: Option<u64>, entry: Entry) -> TransferId {
        let transfer = self.transfer();
        let files = 1;
        let chunk = 1000;
        let patience = PATIENCE;
        let name = FilePath::new(name);
        let attributes = Some(Attributes { permissions: 0o777, seconds: 0, nanoseconds: 0 });
        let sparse = false;
        let offer = Offer { files, chunk, size, patience, entry, sparse, attributes, name };
        self.send(transfer, Body::Offer(offer));
        transfer
    }

    /// Sends a whole file, directory or link, and returns the receiver's last answer.
    fn put(&mut self, name: &str, entry: Entry, bytes: &[u8]) -> Body {
        let transfer = self.offer_entry(name, Some(bytes.len() as u64), entry);
        let answer = self.answer(transfer);
        if !matches!(answer, Body::Accept { .. }) {
            return answer;
        }
        if !bytes.is_empty() {
            self.send(transfer, Body::Chunk { number: 0, bytes: bytes.to_vec().into() });
        }
        let digest = *blake3::hash(bytes).as_bytes();
        self.send(transfer, Body::Finish { size: bytes.len() as u64, digest });
        self.answer(transfer)
    }

    /// An OFFER that was accepted.
    fn accepted(&mut self, name: &str, size: Option<u64>) -> TransferId {
        let transfer = self.offer(name, size);
        let answer = self.answer(transfer);
        assert!(matches!(answer, Body::Accept { .. }), "{name}: {answer:?}");
        transfer
    }

    fn chunk(&self, transfer: TransferId, number: u64, len: usize) {
        let bytes = vec![b'x'; len].into();
        self.send(transfer, Body::Chunk { number, bytes });
    }
}

/// The receiver serves honest senders as if nothing had happened.
fn assert_unharmed(receiver: Receiver, received: &[&str]) {
    let (_dir, paths) = files(&[("honest", b"content")]);
    let sent = receiver.send(&[], &[&paths[0]]);
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    let (ended, left) = receiver.stop();
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    assert_eq!(left, [received, &["honest"]].concat());
}

#[test]
fn names_that_lead_out_of_the_directory_are_refused() {
    let outer = tempfile::tempdir().unwrap();
    let inner = tempfile::tempdir_in(outer.path()).unwrap();
    let receiver = Receiver::start_in(inner, &["--overwrite"]);
    let mut attacker = Attacker::of(&receiver);
    let long = "x".repeat(256);
    let absolute = outer.path().join("escaped").to_str().unwrap().to_owned();
    let names: [&[u8]; 12] = [
        b"../escaped",
        absolute.as_bytes(),
        b"a/../../escaped",
        b"..",
        b".",
        b"",
        b"a//b",
        b"..\\escaped",
        b"a\0b",
        b"\x1b[2Jcleared",
        b"\xff\xfe",
        long.as_bytes(),
    ];
    for name in names {
        let transfer = attacker.transfer();
        let decent = FilePath::new("x");
        let offer = Body::Offer(Offer {
            files: 1,
            chunk: 1000,
            size: Some(0),
            patience: PATIENCE,
            entry: Entry::File,
            sparse: false,
            attributes: None,
            name: decent,
        });
        let mut frame = Frame { transfer, body: offer }.encode().to_vec();
        frame.pop();
        frame.extend_from_slice(name);
        attacker.send_raw(frame);
        assert_eq!(attacker.answer(transfer), Body::Failed(Reason::BadName), "{name:?}");
    }
    assert_eq!(entries(outer.path()).len(), 1, "the directory alone");
    assert_unharmed(receiver, &[]);
}

#[test]
fn invalid_and_unexpected_frames_are_ignored_or_refused() {
    let receiver = Receiver::start(&[]);
    let mut attacker = Attacker::of(&receiver);
    for len in [0, 1, 3, 4, 24, 25, 26, 1000, 1 << 20] {
        attacker.send_raw(noise(len, len as u64));
        let mut frame = b"CBF\x02\x01".to_vec();
        frame.resize(len.max(5), 0xff);
        attacker.send_raw(frame);
    }
    let nobody = attacker.transfer();
    attacker.chunk(nobody, 0, 1000);
    assert_eq!(attacker.answer(nobody), Body::Failed(Reason::Unknown));
    attacker.send(nobody, Body::Finish { size: 0, digest: [0; 32] });
    assert_eq!(attacker.answer(nobody), Body::Failed(Reason::Unknown));
    for body in [Body::Done, Body::Alive, Body::Bye, Body::Failed(Reason::Other(99))] {
        attacker.send(nobody, body);
    }
    attacker.send_raw(Frame { transfer: nobody, body: Body::Alive }.encode_as(3));
    let refusal = attacker.endpoint.recv().wait_for(PATIENCE).unwrap().unwrap().bytes;
    let body = Body::Failed(Reason::Version(2));
    assert_eq!(refusal, Frame { transfer: nobody, body }.encode_as(3), "in its own version");
    assert_unharmed(receiver, &[]);
}

#[test]
fn chunks_that_break_the_rules_end_the_transfer() {
    let receiver = Receiver::start(&["--max-size", "1M"]);
    let mut attacker = Attacker::of(&receiver);
    for (number, len, size, reason) in [
        (64, 1000, None, Reason::Protocol(64)),
        (u64::MAX, 1000, None, Reason::Protocol(u64::MAX)),
        (0, 1001, None, Reason::Protocol(0)),
        (1, 1000, Some(1000), Reason::Protocol(1)),
    ] {
        let transfer = attacker.accepted("a", size);
        attacker.chunk(transfer, number, len);
        assert_eq!(attacker.answer(transfer), Body::Failed(reason));
    }
    let twice = attacker.accepted("a", None);
    attacker.chunk(twice, 0, 1000);
    attacker.chunk(twice, 0, 1000);
    assert_eq!(attacker.answer(twice), Body::Failed(Reason::Protocol(0)));
    assert!(receiver.partial().is_empty());
    assert_unharmed(receiver, &[]);
}

#[test]
fn a_file_that_does_not_match_its_offer_never_gets_its_name() {
    let receiver = Receiver::start(&[]);
    let mut attacker = Attacker::of(&receiver);
    let wrong_digest = attacker.accepted("a", None);
    attacker.chunk(wrong_digest, 0, 10);
    attacker.send(wrong_digest, Body::Finish { size: 10, digest: [0; 32] });
    assert_eq!(attacker.answer(wrong_digest), Body::Failed(Reason::Mismatch(10)));
    let gap = attacker.accepted("b", None);
    attacker.chunk(gap, 1, 1000);
    let digest = *blake3::hash(&[b'x'; 1000]).as_bytes();
    attacker.send(gap, Body::Finish { size: 1000, digest });
    assert_eq!(attacker.answer(gap), Body::Failed(Reason::Mismatch(1000)));
    let short = attacker.accepted("c", Some(2000));
    attacker.chunk(short, 0, 1000);
    attacker.send(short, Body::Finish { size: 1000, digest });
    assert_eq!(attacker.answer(short), Body::Failed(Reason::Mismatch(1000)));
    assert_unharmed(receiver, &[]);
}

#[test]
fn the_number_of_transfers_is_bounded_and_stalled_ones_are_given_up() {
    let receiver = Receiver::start(&["--deadline", "2"]);
    let mut attacker = Attacker::of(&receiver);
    for number in 0..64 {
        attacker.accepted(&format!("stalled {number}"), Some(1 << 60));
    }
    let one_more = attacker.offer("one more", None);
    assert_eq!(attacker.answer(one_more), Body::Failed(Reason::Busy(64)));
    assert_eq!(receiver.partial().len(), 64);
    wait_until("those that stalled were dropped", || receiver.partial().is_empty());
    let again = attacker.accepted("one more", None);
    attacker.send(again, Body::Finish { size: 0, digest: *blake3::hash(b"").as_bytes() });
    assert_eq!(attacker.answer(again), Body::Done);
    let named_twice = attacker.accepted("two of a name", None);
    let second = attacker.offer("two of a name", None);
    assert!(matches!(attacker.answer(second), Body::Failed(Reason::NameInUse(1..))));
    attacker.send(named_twice, Body::Failed(Reason::Interrupted));
    let (_, left) = receiver.stop();
    assert_eq!(left, ["one more"]);
}

#[test]
fn a_silent_sender_is_given_up_for_another_of_the_same_name() {
    let mut receiver = Receiver::start(&["--deadline", "4"]);
    let mut silent = Attacker::of(&receiver);
    let mut next = Attacker::of(&receiver);
    silent.accepted("a", None);
    wait_until("the name is free", || {
        let transfer = next.offer("a", None);
        match next.answer(transfer) {
            Body::Accept { .. } => true,
            Body::Failed(Reason::NameInUse(millis @ 1..=2000)) => {
                thread::sleep(Duration::from_millis(millis));
                false
            }
            answer => panic!("{answer:?}"),
        }
    });
    receiver.running.line("heard nothing for 2 s");
}

#[test]
fn a_transfer_identifier_is_useless_to_another_peer() {
    let receiver = Receiver::start(&[]);
    let mut owner = Attacker::of(&receiver);
    let mut thief = Attacker::of(&receiver);
    let transfer = owner.accepted("a", None);
    assert_eq!(thief.transfer(), transfer);
    thief.chunk(transfer, 0, 10);
    assert_eq!(thief.answer(transfer), Body::Failed(Reason::Unknown));
    thief.send(transfer, Body::Bye);
    owner.chunk(transfer, 0, 10);
    let digest = *blake3::hash(&[b'x'; 10]).as_bytes();
    owner.send(transfer, Body::Finish { size: 10, digest });
    assert_eq!(owner.answer(transfer), Body::Done);
    assert_unharmed(receiver, &["a"]);
}

#[test]
fn a_file_is_stored_after_finish_whatever_its_sender_sends() {
    let receiver = Receiver::start(&[]);
    let mut attacker = Attacker::of(&receiver);
    let digest = *blake3::hash(&[b'x'; 1000]).as_bytes();
    let last_words = [
        Body::Bye,
        Body::Failed(Reason::Interrupted),
        Body::Finish { size: 1000, digest },
        Body::Chunk { number: 0, bytes: vec![b'x'; 1000].into() },
    ];
    let mut stored = Vec::new();
    for (number, body) in last_words.into_iter().enumerate() {
        let name = format!("file {number}");
        let transfer = attacker.accepted(&name, None);
        attacker.chunk(transfer, 0, 1000);
        attacker.send(transfer, Body::Finish { size: 1000, digest });
        attacker.send(transfer, body);
        // If it was stored before, the last frames belong to a transfer that the receiver no longer knows.
        while attacker.answer(transfer) != Body::Done {}
        stored.push(name);
    }
    let stored: Vec<&str> = stored.iter().map(String::as_str).collect();
    assert_unharmed(receiver, &stored);
}

#[test]
fn links_that_lead_out_of_the_directory_are_not_followed() {
    for args in [&["--overwrite"][..], &[]] {
        let outer = tempfile::tempdir().unwrap();
        let inner = tempfile::tempdir_in(outer.path()).unwrap();
        let receiver = Receiver::start_in(inner, args);
        let mut attacker = Attacker::of(&receiver);
        let absolute = outer.path().to_str().unwrap().as_bytes();
        for (link, leads) in [("up", b"..".as_slice()), ("out", absolute)] {
            assert_eq!(attacker.put(link, Entry::Link, leads), Body::Done);
            for entry in [Entry::File, Entry::Directory, Entry::Link] {
                let bytes: &[u8] = if entry == Entry::Directory { b"" } else { b"x" };
                let answer = attacker.put(&format!("{link}/escaped"), entry, bytes);
                assert_eq!(answer, Body::Failed(Reason::NoDirectory), "{link}, {entry:?}");
            }
            let answer = attacker.put(link, Entry::Directory, b"");
            assert_eq!(answer, Body::Failed(Reason::OtherKind), "the link keeps its place");
        }
        assert_eq!(entries(outer.path()).len(), 1, "nothing but the receiver's directory");
        let (ended, left) = receiver.stop();
        assert_eq!((ended.code, left), (Some(130), vec!["out".into(), "up".into()]));
    }
}

#[test]
fn a_sender_resumes_only_from_an_offered_prefix() {
    let receiver = Receiver::start(&[]);
    let mut attacker = Attacker::of(&receiver);
    let bytes = [b'x'; 5000];
    // Parts of a transfer that was given up.
    let part = |attacker: &mut Attacker| {
        let transfer = attacker.accepted("a", Some(5000));
        for number in 0..3 {
            attacker.chunk(transfer, number, 1000);
        }
        attacker.send(transfer, Body::Failed(Reason::Interrupted));
        let transfer = attacker.offer("a", Some(5000));
        let Body::Accept { prefixes, .. } = attacker.answer(transfer) else { panic!("accepted") };
        let lens: Vec<u64> = prefixes.iter().map(|prefix| prefix.len).collect();
        assert_eq!(lens, [1000, 2000, 3000]);
        assert_eq!(prefixes[2].digest, *blake3::hash(&bytes[..3000]).as_bytes());
        transfer
    };
    for len in [1, 999, 4000, 5000, u64::MAX] {
        let transfer = part(&mut attacker);
        attacker.send(transfer, Body::Resume { len });
        assert_eq!(attacker.answer(transfer), Body::Failed(Reason::Protocol(0)), "{len}");
    }
    let transfer = part(&mut attacker);
    attacker.chunk(transfer, 3, 1000);
    assert_eq!(attacker.answer(transfer), Body::Failed(Reason::Protocol(3)), "before RESUME");
    let without_prefixes = attacker.accepted("b", Some(5000));
    attacker.send(without_prefixes, Body::Resume { len: 0 });
    assert_eq!(attacker.answer(without_prefixes), Body::Failed(Reason::Protocol(0)));
    let transfer = part(&mut attacker);
    attacker.send(transfer, Body::Resume { len: 2000 });
    for number in 2..5 {
        attacker.chunk(transfer, number, 1000);
    }
    attacker.send(transfer, Body::Finish { size: 5000, digest: *blake3::hash(&bytes).as_bytes() });
    assert_eq!(attacker.answer(transfer), Body::Done);
    assert_eq!(receiver.read("a"), bytes);
    assert_unharmed(receiver, &["a"]);
}
