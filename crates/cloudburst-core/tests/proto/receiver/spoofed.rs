//! A peer sends some of its packets with the address of a victim of its choice.

use super::crowd::{Crowd, Says, Voice};
use crate::common::KEY;
use crate::common::peer::open_fields;
use cloudburst_core::config::Config;
use cloudburst_core::id::{Incarnation, PathId};
use cloudburst_core::path::Via;
use cloudburst_core::wire::Kind;
use cloudburst_core::wire::handshake::{HelloKey, Initiation, Retry};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

const VICTIM: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

/// The peer sends `packet`, which seems to come from the victim, and then a thousand messages from
/// its own address. Returns the bytes sent to the victim and to the peer.
fn answers(crowd: &mut Crowd, voice: &mut Voice, mut packet: Vec<u8>) -> (usize, usize) {
    let via = Via { egress: 0, local: None, remote: SocketAddr::new(VICTIM, 7000) };
    crowd.receiver.handle_datagram(crowd.now, via, &mut packet);
    let mut aimed = 0;
    let mut other = 0;
    for id in 6_000..7_000 {
        crowd.hear(voice, Says { ack_request: true, ..Says::whole(id, 100) });
        let mut batch = Vec::new();
        while let Some(via) = crowd.poll_transmit(&mut batch) {
            *if via.remote.ip() == VICTIM { &mut aimed } else { &mut other } += batch.len();
            batch.clear();
        }
        crowd.take_all();
    }
    (aimed, other)
}

#[test]
fn one_packet_aims_three_times_its_bytes_at_the_victim_however_much_the_peer_says() {
    // The first packet of a session, or not.
    for (met, is_hello) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut crowd = Crowd::unpaced(Config::default());
        let mut voice = crowd.meet(1);
        assert!(!met || crowd.delivers(&mut voice, Says::whole(4_000, 100)));
        // On a path that the peer no longer uses.
        let symbol = Says { path: 9, ..Says::whole(5_000, 100) };
        let packet = if is_hello { voice.hello(9) } else { voice.symbol(symbol) };
        let len = packet.len();
        let (aimed, other) = answers(&mut crowd, &mut voice, packet);
        assert!(0 < aimed && aimed <= 3 * len, "{aimed} bytes for {len}");
        assert!(other > 30_000, "{other}");
    }
}

#[test]
fn a_token_is_of_no_use_at_the_address_of_a_victim() {
    let mut crowd = Crowd::unpaced(Config::default());
    let key = HelloKey::new(&KEY);
    let retry = crowd.greet(1, Crowd::hello(5)).unwrap();
    let retry = Retry::parse(&key, &retry).unwrap().unwrap();
    let fields = open_fields(Incarnation([1; 16]));
    let open = Initiation::new(&KEY, 5, [1; 32], &fields).open(PathId(0), 0, retry.token);
    for (address, expected) in [([192, 0, 2, 1], Kind::Retry), ([10, 0, 0, 1], Kind::Accept)] {
        let mut packet = Vec::new();
        open.write(&key, &mut packet);
        let len = packet.len();
        let via = Via { egress: 0, local: None, remote: (address, 7000).into() };
        crowd.receiver.handle_datagram(crowd.now, via, &mut packet);
        packet.clear();
        assert_eq!(crowd.poll_transmit(&mut packet), Some(via));
        assert_eq!(Kind::of(&packet), Ok(expected));
        assert!(packet.len() <= len, "an answer is no larger than its cause");
    }
}
