//! The statistics of endpoints by peer, and their latencies.

use crate::common::{builder, bytes, endpoint, eventually};

#[test]
fn traffic_is_counted_by_peer() {
    let hub = endpoint();
    let [one, other] = [endpoint(), endpoint()];
    assert_eq!((hub.peers(), hub.peer(one.local_addr())), (Vec::new(), None));
    for _ in 0..3 {
        hub.send(one.local_addr(), bytes(20_000, 1)).wait().unwrap();
    }
    hub.send(other.local_addr(), bytes(100, 2)).wait().unwrap();
    other.send(hub.local_addr(), bytes(500, 3)).wait().unwrap();

    assert_eq!(hub.peers().len(), 2);
    let [to_one, to_other] = [&one, &other].map(|peer| hub.peer(peer.local_addr()).unwrap());
    assert_eq!((to_one.sent.delivered, to_one.sent.bytes_delivered), (3, 60_000));
    assert_eq!((to_other.sent.delivered, to_other.sent.bytes_delivered), (1, 100));
    assert_eq!((to_one.received.delivered, to_other.received.delivered), (0, 1));
    assert_eq!(to_other.received.bytes_delivered, 500);
    assert!(to_one.sent.symbols_sent >= to_one.sent.source_symbols);
    assert!(to_one.sent.round_trip.is_some());
    assert!(to_one.sent.session_since.is_some_and(|since| since <= hub.now()));
}

#[test]
fn both_ends_count_the_same_traffic() {
    let one = endpoint();
    let other = endpoint();
    for seed in 0..20 {
        one.send(other.local_addr(), bytes(5_000, seed)).wait().unwrap();
    }
    let sent = one.peer(other.local_addr()).unwrap().sent;
    assert_eq!((sent.delivered, sent.source_symbols), (20, 80));
    // The last symbols of the last message may still be on their way, and so may answers.
    eventually("all symbols of a network that loses nothing are counted at the other end", || {
        let received = other.peer(one.local_addr()).unwrap().received;
        let sent = one.peer(other.local_addr()).unwrap().sent;
        received.delivered == 20
            && received.symbols_received == sent.symbols_sent
            && received.answers_sent == sent.answers_received
    });
}

#[test]
fn latencies_count_the_messages_that_were_delivered() {
    let one = endpoint();
    let other = endpoint();
    let started = one.now();
    let receipts: Vec<_> = (0..20)
        .map(|seed| one.send(other.local_addr(), bytes(5_000, seed)).wait().unwrap())
        .collect();
    let took = one.now().saturating_since(started);
    let there = other.latencies();
    let here = one.latencies();
    assert_eq!((here.sent.count(), here.received.count()), (20, 0));
    assert_eq!((there.sent.count(), there.received.count()), (0, 20));
    assert_eq!(here.sent.sum(), receipts.iter().map(|receipt| receipt.total()).sum());
    assert!(here.sent.sum() <= took, "one after the other");
}

#[test]
fn snapshots_can_be_taken_while_many_threads_send() {
    let one = endpoint();
    let other = endpoint();
    let to = other.local_addr();
    let taking = std::thread::spawn({
        let other = other.clone();
        move || (0..400).for_each(|_| drop(other.recv().wait()))
    });
    let senders: Vec<_> = (0..4)
        .map(|seed| {
            let one = one.clone();
            std::thread::spawn(move || {
                (0..100).for_each(|_| {
                    one.send(to, bytes(2_000, seed)).wait().unwrap();
                })
            })
        })
        .collect();
    let mut seen = 0;
    while seen < 400 {
        let latencies = one.latencies();
        assert!(latencies.sent.count() >= seen, "counts never go back");
        seen = latencies.sent.count();
        let in_peer = one.peer(to).map_or(0, |peer| peer.sent.delivered);
        assert!(in_peer >= seen, "read later, it is no less");
    }
    senders.into_iter().for_each(|sender| sender.join().unwrap());
    taking.join().unwrap();
}

#[test]
fn a_mapped_address_is_the_same_peer_as_the_plain_one() {
    let other = endpoint();
    let endpoint = builder().build().unwrap();
    endpoint.send(other.local_addr(), "hello").wait().unwrap();
    let port = other.local_addr().port();
    let mapped = format!("[::ffff:127.0.0.1]:{port}").parse().unwrap();
    assert_eq!(endpoint.peer(mapped).map(|peer| peer.peer), Some(other.local_addr()));
}
