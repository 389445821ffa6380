//! Frames and their bytes; the sender's state machine with a clock of the test's own.

use bytes::Bytes;
use cloudburst_cli::protocol::{
    Attributes, Body, Ending, Entry, FilePath, Frame, FrameError, FrameTag, InvocationId,
    MAX_CHUNK, Offer, Outbound, Prefix, Reason, TransferId, Vitals,
};
use cloudburst_net::Naming;
use core::time::Duration;
use std::net::Ipv6Addr;
use std::time::Instant;

const ID: TransferId = TransferId { session: InvocationId([7; 16]), file: 3 };
const PATIENCE: Duration = Duration::from_secs(10);

fn offer() -> Offer {
    let name = FilePath::new("a.txt");
    Offer {
        files: 4,
        chunk: 1000,
        size: Some(5),
        patience: PATIENCE,
        entry: Entry::File,
        sparse: false,
        attributes: None,
        name,
    }
}

fn vitals() -> Vitals {
    Vitals {
        dscp: 43,
        first_foreign_dscp: Some(0),
        foreign_dscp: 1,
        symbols: 2,
        answers: 3,
        datagrams: 4,
        batches: 5,
        kernel_drops: 6,
        gso_fallbacks: 7,
        buffers_wanted: 8,
        receive_buffer: 9,
        send_buffer: u64::MAX,
        requester: Some(([10, 0, 0, 1], 4000).into()),
        listens: Some((Ipv6Addr::LOCALHOST, 7000).into()),
        naming: Some(Naming::Translated),
    }
}

fn examine(padding: Bytes) -> Body {
    let addressed = Some(([192, 0, 2, 7], 443).into());
    Body::Examine { answer: true, answer_to: 4001, addressed, padding }
}

fn prefixes(count: u64) -> Vec<Prefix> {
    (1..=count).map(|len| Prefix { len, digest: [len as u8; 32] }).collect()
}

fn bodies() -> Vec<Body> {
    vec![
        Body::Offer(offer()),
        Body::Offer(Offer { size: None, ..offer() }),
        Body::Offer(Offer { sparse: true, ..offer() }),
        Body::Offer(Offer { size: Some(0), entry: Entry::Directory, ..offer() }),
        Body::Offer(Offer {
            entry: Entry::Link,
            attributes: Some(Attributes { permissions: 0o751, seconds: -1, nanoseconds: 7 }),
            ..offer()
        }),
        Body::Accept { window: 8, patience: PATIENCE, prefixes: vec![] },
        Body::Accept { window: 8, patience: PATIENCE, prefixes: prefixes(64) },
        Body::Resume { len: 1 << 40 },
        Body::Chunk { number: 1 << 40, bytes: Bytes::from_static(b"content") },
        Body::Finish { size: 5, digest: [9; 32] },
        Body::Done,
        Body::Failed(Reason::DiskFull(1234)),
        Body::Alive,
        Body::Bye,
        examine(Bytes::from_static(b"padding")),
        Body::Vitals(vitals()),
        Body::Vitals(Vitals { requester: None, listens: None, naming: None, ..vitals() }),
    ]
}

#[test]
fn frames_survive_encoding_and_decoding() {
    for body in bodies() {
        let frame = Frame { transfer: ID, body };
        assert_eq!(Frame::decode(&frame.encode()), Ok(frame));
    }
}

#[test]
fn the_bytes_are_those_of_the_specification() {
    let frame = Frame { transfer: ID, body: Body::Offer(offer()) }.encode();
    let head: &[u8] =
        b"CBF\x02\x01\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07";
    let rest: &[u8] = b"\0\0\0\x03\0\0\0\x04\0\0\x03\xe8\0\0\0\0\0\0\0\x05\0\0\x27\x10";
    let none: &[u8] = b"\0\xff\xff\0\0\0\0\0\0\0\0\0\0\0\0a.txt";
    assert_eq!(frame, [head, rest, none].concat());
    let attributes = Some(Attributes { permissions: 0o640, seconds: -2, nanoseconds: 1 });
    let link = Body::Offer(Offer { entry: Entry::Link, attributes, ..offer() });
    let frame = Frame { transfer: ID, body: link }.encode();
    let link: &[u8] = b"\x02\x01\xa0\xff\xff\xff\xff\xff\xff\xff\xfe\0\0\0\x01a.txt";
    assert_eq!(frame, [head, rest, link].concat());
}

#[test]
fn every_reason_survives_encoding_and_decoding() {
    for code in 0..=255 {
        let mut bytes =
            Frame { transfer: ID, body: Body::Failed(Reason::Other(0)) }.encode().to_vec();
        bytes[25] = code;
        bytes[33] = 77;
        let frame = Frame::decode(&bytes.into()).unwrap();
        assert_eq!(Frame::decode(&frame.encode()), Ok(frame.clone()));
        let Body::Failed(reason) = frame.body else { panic!("it is FAILED") };
        assert!(!reason.to_string().is_empty());
    }
}

#[test]
fn frames_that_are_too_short_or_too_long_are_refused() {
    for body in bodies() {
        let bytes = Frame { transfer: ID, body: body.clone() }.encode();
        let open_ended = matches!(body, Body::Offer(_) | Body::Chunk { .. } | Body::Examine { .. });
        if matches!(&body, Body::Accept { prefixes, .. } if !prefixes.is_empty()) {
            // A frame with fewer prefixes is valid, too.
            for len in (0..bytes.len()).filter(|len| *len < 31 || (len - 31) % 40 != 0) {
                assert!(Frame::decode(&bytes.slice(..len)).is_err(), "{len} bytes");
            }
            continue;
        }
        let least = if open_ended { bytes.len() - 7 } else { bytes.len() };
        for len in 0..least {
            assert!(Frame::decode(&bytes.slice(..len)).is_err(), "{body:?} of {len} bytes");
        }
        if !open_ended {
            let longer = Bytes::from([&bytes[..], b"x"].concat());
            // In an ACCEPT, the extra byte begins another prefix.
            let refused = Frame::decode(&longer).unwrap_err();
            let is_named =
                |e| matches!(e, FrameError::TooLong { .. } | FrameError::TooShort { .. });
            assert!(is_named(refused), "{body:?}");
        }
    }
}

#[test]
fn fields_beyond_their_bounds_are_refused() {
    let with = |body: Body, at: usize, value: &[u8]| {
        let mut bytes = Frame { transfer: ID, body }.encode().to_vec();
        bytes[at..at + value.len()].copy_from_slice(value);
        Frame::decode(&bytes.into())
    };
    let accept = || Body::Accept { window: 1, patience: PATIENCE, prefixes: vec![] };
    let accept_with = |prefixes| Body::Accept { window: 1, patience: PATIENCE, prefixes };
    let refused = [
        with(Body::Done, 4, &[0]),
        with(Body::Done, 4, &[12]),
        with(examine(Bytes::new()), 25, &[2]),
        with(Body::Vitals(vitals()), 25, &[64]),
        with(Body::Vitals(vitals()), 26, &[64]),
        with(Body::Vitals(vitals()), 143, &[4]),
        with(Body::Offer(offer()), 25, &3_u32.to_be_bytes()),
        with(Body::Offer(offer()), 29, &0_u32.to_be_bytes()),
        with(Body::Offer(offer()), 45, &[4]),
        with(Body::Offer(offer()), 45, &[1]),
        with(Body::Offer(Offer { entry: Entry::Link, ..offer() }), 33, &4096_u64.to_be_bytes()),
        with(Body::Offer(offer()), 46, &0o1000_u16.to_be_bytes()),
        with(Body::Offer(offer()), 29, &(MAX_CHUNK as u32 + 1).to_be_bytes()),
        with(Body::Offer(offer()), 41, &0_u32.to_be_bytes()),
        with(accept(), 25, &0_u16.to_be_bytes()),
        with(accept(), 25, &65_u16.to_be_bytes()),
        with(accept(), 27, &0_u32.to_be_bytes()),
        with(accept_with(prefixes(65)), 25, &1_u16.to_be_bytes()),
        with(accept_with(prefixes(2)), 31, &0_u64.to_be_bytes()),
        with(accept_with(prefixes(2)), 71, &1_u64.to_be_bytes()),
        with(accept_with(prefixes(2)), 71, &u64::MAX.to_be_bytes()),
    ];
    for result in refused {
        assert!(matches!(result, Err(FrameError::Undefined { .. })), "{result:?}");
    }
    assert_eq!(with(Body::Done, 0, b"X"), Err(FrameError::Magic));
    let other = Err(FrameError::Version { transfer: ID, got: 3 });
    assert_eq!(with(Body::Done, 3, &[3]), other);
    let too_long = Body::Chunk { number: 0, bytes: vec![0; MAX_CHUNK + 1].into() };
    assert!(Frame::decode(&Frame { transfer: ID, body: too_long }.encode()).is_err());
}

/// A transfer that was accepted with a window of 2.
fn sending(now: Instant) -> Outbound {
    let mut outbound = Outbound::new(now, ID, offer(), 4);
    assert_eq!(tags(&mut outbound), [FrameTag::Offer]);
    outbound.handle_delivered(now, FrameTag::Offer);
    outbound.handle_frame(now, &Body::Accept { window: 2, patience: PATIENCE, prefixes: vec![] });
    assert_eq!(outbound.prefixes(), Some(&[][..]));
    outbound.handle_resume(now, 0, 0);
    outbound
}

#[test]
fn chunks_wait_until_resume_is_delivered() {
    let now = Instant::now();
    let mut outbound = Outbound::new(now, ID, offer(), 4);
    assert_eq!(tags(&mut outbound), [FrameTag::Offer]);
    let prefixes = vec![Prefix { len: 3000, digest: [1; 32] }];
    let accept = Body::Accept { window: 8, patience: PATIENCE, prefixes: prefixes.clone() };
    outbound.handle_frame(now, &accept);
    assert_eq!(outbound.prefixes(), Some(&prefixes[..]));
    assert!(!outbound.wants_chunk());
    outbound.handle_resume(now, 3000, 3);
    assert_eq!(outbound.prefixes(), None);
    assert_eq!(tags(&mut outbound), [FrameTag::Resume]);
    outbound.handle_delivered(now, FrameTag::Offer);
    assert!(!outbound.wants_chunk(), "only when RESUME was delivered");
    outbound.handle_delivered(now, FrameTag::Resume);
    assert!(outbound.wants_chunk());
    outbound.handle_chunk(now, Bytes::new());
    assert_eq!(tags(&mut outbound), [FrameTag::Chunk(3)]);
}

fn tags(outbound: &mut Outbound) -> Vec<FrameTag> {
    core::iter::from_fn(|| outbound.poll_transmit()).map(|(tag, _)| tag).collect()
}

#[test]
fn a_transfer_goes_from_offer_to_done() {
    let now = Instant::now();
    let mut outbound = sending(now);
    outbound.handle_chunk(now, Bytes::new());
    outbound.handle_end(now, 5, [0; 32]);
    assert_eq!(tags(&mut outbound), [FrameTag::Chunk(0)]);
    assert!(!outbound.wants_chunk());
    outbound.handle_delivered(now, FrameTag::Chunk(0));
    assert_eq!(tags(&mut outbound), [FrameTag::Finish], "only when all chunks were delivered");
    outbound.handle_delivered(now, FrameTag::Finish);
    assert_eq!(outbound.ending(), None);
    outbound.handle_frame(now, &Body::Done);
    assert_eq!(outbound.ending(), Some(Ending::Done));
    assert_eq!(outbound.poll_timeout(), None);
}

#[test]
fn the_window_begins_at_the_oldest_chunk_under_way() {
    let now = Instant::now();
    let mut outbound = sending(now);
    for _ in 0..2 {
        assert!(outbound.wants_chunk());
        outbound.handle_chunk(now, Bytes::new());
    }
    assert!(!outbound.wants_chunk());
    outbound.handle_delivered(now, FrameTag::Chunk(1));
    assert!(!outbound.wants_chunk(), "chunk 0 holds the window");
    outbound.handle_delivered(now, FrameTag::Chunk(0));
    assert!(outbound.wants_chunk());
}

#[test]
fn an_unexpected_done_is_ignored() {
    let now = Instant::now();
    let mut outbound = sending(now);
    outbound.handle_frame(now, &Body::Done);
    assert_eq!(outbound.ending(), None);
}

#[test]
fn refusals_and_failures_end_it_at_once() {
    let now = Instant::now();
    let mut outbound = Outbound::new(now, ID, offer(), 4);
    outbound.handle_frame(now, &Body::Failed(Reason::Exists));
    assert_eq!(outbound.ending(), Some(Ending::Refused(Reason::Exists)));
    let mut outbound = sending(now);
    outbound.handle_chunk(now, Bytes::new());
    outbound.handle_frame(now, &Body::Failed(Reason::DiskFull(1)));
    assert_eq!(outbound.ending(), Some(Ending::Failed(Reason::DiskFull(1))));
    assert_eq!(tags(&mut outbound), [], "nothing more is sent");
}

#[test]
fn chunks_without_progress_stall_and_parts_of_chunks_are_progress() {
    let now = Instant::now();
    let mut outbound = sending(now);
    outbound.handle_chunk(now, Bytes::new());
    outbound.handle_progress(now + PATIENCE / 2);
    outbound.handle_timeout(now + PATIENCE);
    assert_eq!(outbound.ending(), None);
    outbound.handle_delivered(now + PATIENCE, FrameTag::Alive);
    outbound.handle_timeout(now + PATIENCE * 3 / 2);
    assert_eq!(outbound.ending(), Some(Ending::Stalled(PATIENCE)), "signs of life are no progress");
}

#[test]
fn a_pausing_source_is_no_stall_and_sends_signs_of_life() {
    let mut now = Instant::now();
    let mut outbound = sending(now);
    for _ in 0..20 {
        now = outbound.poll_timeout().expect("a sign of life is due some time");
        outbound.handle_timeout(now);
        assert_eq!(tags(&mut outbound), [FrameTag::Alive]);
        outbound.handle_delivered(now, FrameTag::Alive);
        assert_eq!(outbound.ending(), None);
    }
    outbound.handle_chunk(now, Bytes::new());
    outbound.handle_timeout(now + PATIENCE / 2);
    assert_eq!(outbound.ending(), None, "the patience with a chunk begins with the chunk");
}

#[test]
fn a_receiver_that_stores_slowly_is_waited_for_while_it_sends_alive() {
    let now = Instant::now();
    let mut outbound = sending(now);
    outbound.handle_end(now, 0, [0; 32]);
    assert_eq!(tags(&mut outbound), [FrameTag::Finish]);
    outbound.handle_delivered(now, FrameTag::Finish);
    let later = now + PATIENCE * 3 / 4;
    outbound.handle_frame(later, &Body::Alive);
    outbound.handle_timeout(now + PATIENCE);
    assert_eq!(outbound.ending(), None);
    outbound.handle_timeout(later + PATIENCE);
    assert_eq!(outbound.ending(), Some(Ending::Unconfirmed(PATIENCE)));
}

#[test]
fn after_finish_only_a_storage_error_is_a_certain_failure() {
    let now = Instant::now();
    let finishing = || {
        let mut outbound = sending(now);
        assert!(!outbound.is_finishing());
        outbound.handle_end(now, 0, [0; 32]);
        assert!(outbound.is_finishing());
        outbound
    };
    for reason in [Reason::Interrupted, Reason::Unresponsive(1), Reason::Unknown] {
        let mut outbound = finishing();
        outbound.handle_frame(now, &Body::Failed(reason));
        assert_eq!(outbound.ending(), Some(Ending::Indeterminate(reason)));
    }
    let mut outbound = finishing();
    outbound.handle_frame(now, &Body::Failed(Reason::DiskFull(1)));
    assert_eq!(outbound.ending(), Some(Ending::Failed(Reason::DiskFull(1))));
}

#[test]
fn a_finish_is_repeated_to_a_receiver_that_still_sends_alive() {
    let now = Instant::now();
    let mut outbound = sending(now);
    outbound.handle_end(now, 0, [0; 32]);
    assert_eq!(tags(&mut outbound), [FrameTag::Finish]);
    outbound.handle_frame(now + PATIENCE / 2, &Body::Alive);
    assert!(!outbound.repeats_finish());
    assert!(outbound.handle_undelivered(now + PATIENCE, FrameTag::Finish));
    assert_eq!(tags(&mut outbound), [FrameTag::Finish]);
    assert!(outbound.repeats_finish(), "a failure of the second says nothing of the first");
    assert!(!outbound.handle_undelivered(now + PATIENCE * 2, FrameTag::Finish), "it fell silent");
}
