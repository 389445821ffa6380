//! Classes of packets in a port that serves them by strict priority.
//!
//! Hosts 1 and up send to host 0, and share its port of the switch.

use crate::incast::Switch;
use cloudburst_core::config::{BurstPolicy, Config, Fabric, Tuning};
use cloudburst_core::error::Receipt;
use cloudburst_netem::LinkConfig;
use core::time::Duration;

/// The hosts that send long messages to host 0.
const BUSY: usize = 4;
/// The host that sends or receives a short message.
const SHORT: usize = BUSY + 1;
/// The transmission time of a full packet at the port.
const PACKET: Duration = Duration::from_nanos(12_304);

/// A switch whose port to host 0 has this many classes, and whose hosts have these classes of
/// symbols.
fn switch(classes: usize, of_hosts: &[&str]) -> Switch {
    let config = |classes: &&str| Config {
        fabric: Fabric { classes: classes.parse().expect("classes"), ..Fabric::default() },
        tuning: Tuning { probe: true, ..Tuning::default() },
        ..Config::default()
    };
    let port = LinkConfig { classes, queue: 1_000, ..LinkConfig::default() };
    let mut switch = Switch::new(of_hosts.iter().map(config).collect(), port, true);
    for host in 1..of_hosts.len() {
        switch.send_to(host, 0, 100, None);
        switch.send_to(0, host, 100, None);
        switch.settle();
    }
    switch
}

/// How long a message between host 0 and the last one takes, while the others send to host 0 or are
/// idle.
fn short(classes: usize, busy: bool, to_receiver: bool, policy: Option<BurstPolicy>) -> Duration {
    let mut switch = switch(classes, &["left:20000"; SHORT + 1]);
    if busy {
        (1..=BUSY).for_each(|host| switch.send_to(host, 0, 1_000_000, None));
        switch.run_for(Duration::from_millis(1));
    }
    let (from, to) = if to_receiver { (SHORT, 0) } else { (0, SHORT) };
    switch.send_to(from, to, 15_000, policy);
    let all = switch.settle();
    let short = all.iter().find(|receipt| receipt.bytes == 15_000);
    short.expect("it has ended").completed_in
}

#[test]
fn a_short_message_does_not_wait_behind_bursts_of_long_ones() {
    let [alone, one, several] =
        [(3, false), (1, true), (3, true)].map(|(classes, busy)| short(classes, busy, true, None));
    println!("alone {alone:?}, in one queue {one:?}, with classes {several:?}");
    assert!(several <= alone + 2 * PACKET, "{several:?}");
    assert!(one > alone + 50 * PACKET, "{one:?}");
}

#[test]
fn answers_probes_and_pulls_do_not_wait_behind_symbols() {
    for policy in [BurstPolicy::default(), BurstPolicy::Pulled { window: Some(2) }] {
        let time = |(classes, busy)| short(classes, busy, false, Some(policy));
        let [alone, one, several] = [(3, false), (1, true), (3, true)].map(time);
        println!("{policy:?}: alone {alone:?}, in one queue {one:?}, with classes {several:?}");
        // Pulls are sent one by one, and each may wait for a packet in transmission.
        assert!(several <= alone + 8 * PACKET, "{several:?}");
        assert!(one > alone + 50 * PACKET, "{one:?}");
    }
}

/// The completion times of messages that hosts with different classes send at the same time, by
/// host.
fn mixture(remark: Option<[u8; 4]>) -> Vec<Receipt> {
    let of_hosts = ["one", "left:20000", "one", "sent:5000/20000", "left:5000/20000/50000"];
    let mut switch = switch(4, &of_hosts);
    switch.remarks.extend(remark.map(|classes| (1, classes)));
    for host in 1..of_hosts.len() {
        for bytes in [5_000, 50_000, 200_000] {
            switch.send_to(host, 0, bytes, None);
        }
    }
    switch.settle()
}

#[test]
fn a_host_whose_classes_are_rewritten_slows_itself_alone() {
    let before = mixture(None);
    let others = |receipts: &[Receipt]| -> Duration {
        receipts[3..].iter().map(|receipt| receipt.completed_in).sum()
    };
    // To the last class, to one that is not the last, and the least urgent first.
    for remark in [[3, 3, 3, 3], [0, 2, 2, 2], [0, 3, 2, 1]] {
        let after = mixture(Some(remark));
        assert_eq!(after.len(), before.len());
        assert!(
            others(&after) <= others(&before).mul_f64(1.05),
            "{remark:?}: {:?} instead of {:?}",
            others(&after),
            others(&before)
        );
    }
}
