//! An answer leaves with symbols for the same peer.

use cloudburst_core::config::{Config, Security};
use cloudburst_core::id::MessageId;
use cloudburst_core::path::{Lanes, Via};
use cloudburst_core::proto::{
    Contents, Endpoint, Receiver, ReceiverEvent, SendOptions, Sender, SenderEvent, Transmit,
};
use cloudburst_core::rng::Seed;
use cloudburst_core::time::Instant;
use cloudburst_core::wire::{Kind, Role};
use std::net::SocketAddr;

const NOW: Instant = Instant::from_nanos(1_000_000_000);
const SYMBOLS: Contents = Contents::Symbols(MessageId(0));

struct Half {
    sender: Sender,
    receiver: Receiver,
    address: SocketAddr,
}

impl Half {
    fn new(host: u8, aeolus: bool) -> Self {
        Self::with(host, Config { port: 7000, aeolus, ..Config::default() })
    }

    fn with(host: u8, config: Config) -> Self {
        let security = Security::pre_shared([7; 32]);
        let endpoint =
            Endpoint::new(config, &security, Seed::new([host; 32]), Box::new(Lanes(1))).unwrap();
        let (sender, receiver) = endpoint.split();
        Self { sender, receiver, address: SocketAddr::from(([10, 0, 0, host], 7000)) }
    }

    fn send(&mut self, to: SocketAddr, len: usize) {
        let options = SendOptions::default();
        self.sender.send(NOW, to, Role::Plain, vec![7; len].into(), &options).unwrap();
    }

    fn take(&mut self, from: SocketAddr, batch: &Transmit, contents: &mut [u8]) {
        let via = Via { lane: 0, remote: from };
        for packet in contents.chunks_mut(batch.segment_size) {
            if matches!(Kind::of(packet), Ok(Kind::Hello | Kind::Symbol)) {
                self.receiver.handle_datagram(NOW, via, packet);
            } else {
                self.sender.handle_datagram(NOW, packet);
            }
        }
        while let Some(event) = self.receiver.poll_event() {
            if let ReceiverEvent::Confirmed(peering) = event {
                self.sender.adopt(NOW, peering);
            }
        }
        while let Some(event) = self.sender.poll_event() {
            if let SenderEvent::Opened(peering) = event {
                self.receiver.adopt(NOW, peering);
            }
        }
    }
}

/// Hands over what the sender of one has, until it has no more.
fn pass(from: &mut Half, to: &mut Half) {
    let mut buffer = Vec::new();
    while let Some(batch) = from.sender.poll_transmit(NOW, &mut buffer) {
        to.take(from.address, &batch, &mut buffer);
        buffer.clear();
    }
}

fn pass_answers(from: &mut Half, to: &mut Half) {
    let mut buffer = Vec::new();
    while let Some(batch) = from.receiver.poll_transmit(&mut buffer) {
        to.take(from.address, &batch, &mut buffer);
        buffer.clear();
    }
}

/// Two endpoints, where one has a message of the other whose STOP it has not sent yet.
fn met(aeolus: bool) -> (Half, Half) {
    let (mut a, mut b) = (Half::new(1, aeolus), Half::new(2, aeolus));
    a.send(b.address, 1_000);
    pass(&mut a, &mut b);
    pass_answers(&mut b, &mut a);
    pass(&mut a, &mut b);
    assert_eq!(b.receiver.counters().messages_delivered, 1);
    assert_eq!(a.sender.counters().delivered, 0);
    (a, b)
}

#[test]
fn a_stop_is_the_short_last_datagram_of_a_batch_and_is_sent_once() {
    let (mut a, mut b) = met(false);
    b.send(a.address, 5_000);
    let mut buffer = Vec::new();
    let batch = b.sender.poll_transmit(NOW, &mut buffer).unwrap();
    let symbols = batch.len / batch.segment_size;
    let joined = b.receiver.poll_passenger(batch, &mut buffer);
    assert_eq!((joined.segment_size, joined.len), (batch.segment_size, buffer.len()));
    let kinds: Vec<Kind> =
        buffer.chunks(batch.segment_size).map(|packet| Kind::of(packet).unwrap()).collect();
    assert_eq!(kinds[..symbols], vec![Kind::Symbol; symbols]);
    assert_eq!(kinds[symbols..], [Kind::Stop]);
    a.take(b.address, &joined, &mut buffer);
    assert_eq!(a.sender.counters().delivered, 1);
    assert_eq!(b.receiver.counters().stops_sent, 1);
    assert_eq!(b.receiver.poll_transmit(&mut Vec::new()), None);
}

#[test]
fn nothing_joins_shorter_datagrams_handshakes_or_what_is_for_somebody_else() {
    let (a, mut b) = met(false);
    let via = Via { lane: 0, remote: a.address };
    let fits = Transmit { contents: SYMBOLS, via, segment_size: 200, len: 200, ect: false };
    let elsewhere = Via { lane: 0, remote: SocketAddr::from(([10, 0, 0, 3], 7000)) };
    for refused in [
        Transmit { segment_size: 60, len: 60, ..fits },
        Transmit { via: elsewhere, ..fits },
        Transmit { contents: Contents::Hello(a.address), ..fits },
    ] {
        let mut buffer = vec![0; refused.len];
        assert_eq!(b.receiver.poll_passenger(refused, &mut buffer), refused);
        assert_eq!(buffer.len(), refused.len);
    }
    let mut buffer = vec![0; fits.len];
    let joined = b.receiver.poll_passenger(fits, &mut buffer);
    assert_eq!(joined.len, buffer.len());
    assert!((200..400).contains(&joined.len));
}

#[test]
fn answers_do_not_join_what_switches_may_drop_on_purpose() {
    let (a, mut b) = met(true);
    let via = Via { lane: 0, remote: a.address };
    let unspared = Transmit { contents: SYMBOLS, via, segment_size: 200, len: 200, ect: false };
    assert_eq!(b.receiver.poll_passenger(unspared, &mut vec![0; 200]), unspared);
    let spared = Transmit { ect: true, ..unspared };
    assert!(b.receiver.poll_passenger(spared, &mut vec![0; 200]).len > 200);
}

#[test]
fn nothing_joins_what_goes_to_a_port_that_the_peer_shares() {
    let config = Config { port: 9000, reuse_port: true, ..Config::default() };
    let (mut a, mut b) = (Half::new(1, false), Half::with(2, config));
    let shared = b.address;
    a.send(shared, 1_000);
    pass(&mut a, &mut b);
    pass_answers(&mut b, &mut a);
    pass(&mut a, &mut b);
    b.send(a.address, 1_000);
    pass(&mut b, &mut a);
    assert_eq!(a.receiver.counters().messages_delivered, 1);
    let to = |remote| Transmit {
        contents: SYMBOLS,
        via: Via { lane: 0, remote },
        segment_size: 200,
        len: 200,
        ect: false,
    };
    let own = SocketAddr::new(shared.ip(), 9000);
    assert_eq!(a.receiver.poll_passenger(to(shared), &mut vec![0; 200]), to(shared));
    assert!(a.receiver.poll_passenger(to(own), &mut vec![0; 200]).len > 200);
}
