//! A receiver pulls from hosts in turn, then from the peers of a host, then their messages: none is
//! slowed by the number of messages of another, true or false.
//!
//! Hosts from 1 on send to host 0, and share its port of the switch.

use crate::common::KEY;
use crate::common::peer::{lying_probe, lying_symbol, open_fields};
use crate::incast::Switch;
use cloudburst_core::config::{BurstPolicy, Config, Fabric};
use cloudburst_core::error::Outcome;
use cloudburst_core::id::Incarnation;
use cloudburst_core::path::Via;
use cloudburst_core::rate::Downlink;
use cloudburst_core::wire::handshake::{OpenFields, shake_hands};
use cloudburst_core::wire::seal::Sealer;
use cloudburst_netem::LinkConfig;
use core::time::Duration;
use std::net::SocketAddr;

const PULLED: Option<BurstPolicy> = Some(BurstPolicy::Pulled { window: None });
/// The sender whose message is timed, and the last byte of its IP address.
const VICTIM: usize = 1;
const VICTIM_IP: u8 = 1;

/// A switch whose hosts are at IP addresses with these last bytes, and have sessions with the first.
fn switch(ips: &[u8]) -> Switch {
    switch_with(ips, &Config::default())
}

/// The same with this configuration of all hosts.
fn switch_with(ips: &[u8], config: &Config) -> Switch {
    let port = LinkConfig { queue: 1_000, ..LinkConfig::default() };
    let hosts = ips.iter().map(|ip| (*ip, config.clone())).collect();
    let mut switch = Switch::at(hosts, port, false);
    for host in 1..ips.len() {
        switch.send_to(host, 0, 5_000, None);
        switch.settle();
    }
    switch
}

/// How long a message of the victim takes.
fn victim(switch: &mut Switch) -> Duration {
    victim_beside(switch, Switch::advance)
}

/// The same while `proceed` drives the switch.
fn victim_beside(switch: &mut Switch, mut proceed: impl FnMut(&mut Switch)) -> Duration {
    switch.send_to(VICTIM, 0, 93_000, PULLED);
    while switch.hosts[VICTIM].endpoint.unfinished() > 0 {
        proceed(switch);
    }
    switch.hosts[0].endpoint.check_invariants();
    let outcomes = core::mem::take(&mut switch.hosts[VICTIM].outcomes);
    match outcomes.values().next() {
        Some(Outcome::Delivered(receipt)) => receipt.completed_in,
        other => panic!("{other:?}"),
    }
}

/// Somebody who holds the key and has a session with host 0.
struct Liar {
    via: Via,
    sealer: Sealer,
}

impl Liar {
    /// Repeats a symbol of each of two messages, and lets the time pass that both take at 10 Gb/s.
    fn flood(&mut self, switch: &mut Switch) {
        let Self { via, sealer } = self;
        let now = switch.now;
        for id in 0..2 {
            let symbol = lying_symbol(sealer, id);
            switch.serve(0, |host, out| host.handle(now, *via, symbol, out));
        }
        switch.run_for(Duration::from_nanos(2_400));
    }
}

/// A liar at `10.0.0.ip`.
fn liar(switch: &mut Switch, ip: u8) -> Liar {
    let mut now = switch.now;
    let via = Via { egress: 0, local: None, remote: SocketAddr::from(([10, 0, 0, ip], 9000)) };
    let addressed = ([10, 0, 0, 0], 7000).into();
    let fields = OpenFields { addressed, port: 9000, ..open_fields(Incarnation([99; 16])) };
    let receiver = &mut switch.hosts[0].endpoint;
    let (_, keys) = shake_hands(&KEY, 99, &fields, |mut packet| {
        // Its answers are paced.
        now += Duration::from_micros(100);
        receiver.handle_datagram(now, via, &mut packet);
        packet.clear();
        let transmit = receiver.poll_transmit(now, &mut packet).unwrap();
        assert_eq!(transmit.via.remote, via.remote);
        packet
    });
    switch.now = now;
    Liar { via, sealer: Sealer::new(keys.forward.symbols) }
}

/// Has a liar at `10.0.0.ip` probe for so many messages that it never sends.
fn lie(switch: &mut Switch, ip: u8, messages: u64, symbol_size: u16) {
    let Liar { via, mut sealer } = liar(switch, ip);
    let now = switch.now;
    for id in 0..messages {
        let probe = lying_probe(&mut sealer, id, symbol_size, 1_024);
        switch.serve(0, |host, out| host.handle(now, via, probe, out));
    }
    // Until their grace period is over.
    switch.run_for(Duration::from_millis(1));
    let held = switch.hosts[0].endpoint.receive_memory();
    assert!(held as u64 >= messages * 93_000, "{held} bytes for {messages} messages");
}

#[test]
fn probes_of_messages_that_never_come_take_the_share_of_one_host() {
    let alone = victim(&mut switch(&[0, VICTIM_IP]));
    // The longest symbols that a probe can claim count for as much as they take.
    for (messages, symbol_size) in [(10, 1_400), (100, 1_400), (600, 1_400), (100, 65_000)] {
        // At an address of their own, and at that of the victim.
        for ip in [200, VICTIM_IP] {
            let mut switch = switch(&[0, VICTIM_IP]);
            lie(&mut switch, ip, messages, symbol_size);
            let took = victim(&mut switch);
            println!("{took:?} instead of {alone:?}: {messages} probes of {symbol_size} from {ip}");
            assert!(took <= alone.mul_f64(2.5), "{took:?} instead of {alone:?}");
        }
    }
}

#[test]
fn a_flood_of_unscheduled_symbols_leaves_half_of_the_pulls_and_delays_none_once_it_is_over() {
    let alone = victim(&mut switch(&[0, VICTIM_IP]));
    let mut switch = switch(&[0, VICTIM_IP]);
    let mut liar = liar(&mut switch, 200);
    let until = switch.now + Duration::from_millis(20);
    while switch.now < until {
        liar.flood(&mut switch);
    }
    let beside = victim_beside(&mut switch, |switch| {
        liar.flood(switch);
        assert!(switch.now < until + Duration::from_millis(20), "starved");
    });
    let after = victim(&mut switch);
    println!("{beside:?} and {after:?} instead of {alone:?}");
    assert!(beside <= alone.mul_f64(2.5), "{beside:?} instead of {alone:?}");
    assert!(after <= alone.mul_f64(1.5), "{after:?} instead of {alone:?}");
}

#[test]
fn messages_of_an_opening_each_back_to_back_do_not_starve_a_longer_one() {
    // Half of the link's rate, as of a link of unknown speed.
    let downlink = Some(Downlink::new(500_000_000));
    let config = Config { fabric: Fabric { downlink, ..Fabric::default() }, ..Config::default() };
    let mut switch = switch_with(&[0, VICTIM_IP, 2, 3, 4], &config);
    let send = |switch: &mut Switch| {
        for host in 2..5 {
            if switch.hosts[host].endpoint.unfinished() == 0 {
                switch.send_to(host, 0, 15_000, PULLED);
            }
        }
    };
    let until = switch.now + Duration::from_millis(20);
    while switch.now < until {
        send(&mut switch);
        switch.advance();
    }
    // A quarter of that rate takes 6 ms.
    let took = victim_beside(&mut switch, |switch| {
        send(switch);
        switch.advance();
        assert!(switch.now < until + Duration::from_millis(20), "starved");
    });
    println!("{took:?}");
    assert!(took <= Duration::from_millis(6), "{took:?}");
}

#[test]
fn many_messages_of_one_peer_or_of_one_host_take_the_share_of_one_host() {
    const MANY: usize = 10;
    let alone = victim(&mut switch(&[0, VICTIM_IP]));
    // Ten messages of one peer, of ten peers at one other address, and of one at the victim's.
    for (peers, ip) in [(1, 2), (MANY, 2), (1, VICTIM_IP)] {
        let mut ips = vec![0, VICTIM_IP];
        ips.resize(2 + peers, ip);
        let mut switch = switch(&ips);
        for message in 0..MANY {
            switch.send_to(2 + message % peers, 0, 1_000_000, PULLED);
        }
        // Until their openings are through.
        switch.run_for(Duration::from_millis(5));
        let took = victim(&mut switch);
        println!("{took:?} instead of {alone:?}: {MANY} messages of {peers} peers at {ip}");
        assert!(took <= alone.mul_f64(2.5), "{took:?} instead of {alone:?}");
    }
}
