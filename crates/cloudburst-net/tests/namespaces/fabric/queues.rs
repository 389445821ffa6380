//! How deep the tiny queue gets.

use super::rig::*;
use crate::common::bytes;
use cloudburst_net::PathMap;
use cloudburst_testbed::{Fabric, Node, Topology};
use libtest_mimic::Failed;
use std::net::{Ipv4Addr, SocketAddr};
use std::thread;

const SENDERS: u16 = 4;
const SINK: u16 = 5;
const MESSAGES: usize = 20;

pub(crate) fn an_incast_stays_within_the_tiny_queue() -> Result<(), Failed> {
    let fabric = Fabric::up(&Topology::default())?;
    let limit = u64::from(fabric.topology().tiny_packets);
    let map = || PathMap::ecmp(16);
    let sink = builder(Ipv4Addr::UNSPECIFIED).paths(map());
    let sink = fabric.host(SINK)?.run(|| sink.build())??.clone();
    let to = SocketAddr::new(fabric.host(SINK)?.v4().into(), sink.local_addr().port());
    let sender = |host| -> Result<_, Failed> {
        let host = fabric.host(host)?;
        Ok(host.run(|| builder(host.v4()).paths(map()).build())??.clone())
    };
    let senders: Vec<_> = (1..=SENDERS).map(sender).collect::<Result<_, _>>()?;
    let mut arrived = 0;
    thread::scope(|scope| -> Result<(), Failed> {
        let sending: Vec<_> = (0..)
            .zip(&senders)
            .map(|(seed, sender)| {
                scope.spawn(move || {
                    (0..MESSAGES)
                        .try_for_each(|_| sender.send(to, bytes(LARGE, seed)).wait().map(drop))
                })
            })
            .collect();
        while !sending.iter().all(|sending| sending.is_finished()) {
            for port in fabric.ports_of(Node::Leaf(2))? {
                assert_eq!(port.tiny.limit, limit);
                assert!(port.tiny.backlog <= limit, "{port:?}");
            }
            while sink.try_recv()?.is_some() {
                arrived += 1;
            }
        }
        for sending in sending {
            sending.join().expect("it does not panic")?;
        }
        Ok(())
    })?;
    while sink.try_recv()?.is_some() {
        arrived += 1;
    }
    let port = fabric.port(Node::Leaf(2), Node::Host(SINK))?;
    assert!(port.tiny.dropped > 0, "the incast has filled the queue");
    assert_eq!(arrived, MESSAGES * usize::from(SENDERS));
    Ok(())
}
