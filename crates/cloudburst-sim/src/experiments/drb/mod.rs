//! The packet-level experiments of the DRB paper (CoNEXT 2013, section 5).
//!
//! | file | what | source |
//! |---|---|---|
//! | [`permutation`] | ECMP, RB, RRB and DRB under permutation traffic | 5.1, Figure 6 |
//! | [`probes`] | short flows beside a load like that of a production trace | 5.2, Figure 7 |
//! | [`mptcp`] | MPTCP with 1 to 32 subflows | 5.3, Figure 8 |
//! | [`oversubscribed`] | twice as many servers, with and without ECN | 5.5 |
//!
//! # Readings
//!
//! The paper leaves some things open. Where they matter, each reading is run:
//!
//! * *The window.* The text says 256 KB. Then a sender has twice its round trip waiting in its own host, and
//!   round trips are above 2 ms; those of Figure 6 are below 1 ms, and throughput times round trip is some 64 KB for
//!   all schemes and both fabrics. That is what a TCP without window scaling can have outstanding, 65,535
//!   bytes, as NS3's was at that time. Schemes that end in `-64k` have that window, the others 256 KB.
//! * *TCP.* It has SACK here, acknowledges every packet and begins with 10 of them, without a handshake; the
//!   paper does not say. Its smallest timeout is 200 ms, as that of Linux and NS3, so that
//!   the 10 ms for which a receiver holds packets that are out of order cannot cause one. In the short forms
//!   a flow that waits for it is silent to the end. ECMP and MPTCP do not hold packets.
//! * *Throughput* is what arrives of messages, without headers. Each host sends data and ACKs by one link, so
//!   no permutation carries more than 1460 / 1540 of the links: 948 Mb/s.
//! * *Queueing delay of a hop* is the mean over all its packets, ACKs included; network latency is of data
//!   packets.
//! * *Bouncing.* All packets between racks go over a core, even within a pod (5.2).

mod fabric;
pub mod mptcp;
pub mod oversubscribed;
pub mod permutation;
pub mod probes;
mod show;
mod traffic;

#[cfg(test)]
mod tests {
    use super::permutation::EXPERIMENT;
    use crate::experiment::{Case, Outcome, Scale};

    fn run(scheme: &str, fabric: f64) -> Outcome {
        let mut cells = (EXPERIMENT.cells)(Scale::Short);
        cells.retain(|cell| cell.scheme == scheme && cell.x == fabric);
        (EXPERIMENT.run)(&Case::new(&cells[0], Scale::Short, 1)).unwrap()
    }

    #[test]
    fn a_permutation_fills_the_network_with_digit_reversal_and_nothing_overfills_it() {
        // A host's link carries 1,460 bytes of a message in 1,500 for each ACK of 40.
        let most = 1_000.0 * 1_460.0 / 1_540.0;
        for fabric in [0.0, 1.0] {
            let outcome = run("drb", fabric);
            let found = outcome.values["throughput_mbps"];
            assert!((0.995 * most..1.0005 * most).contains(&found), "{found} of {most}");
            assert_eq!(outcome.values["dropped"], 0.0);
        }
    }

    #[test]
    fn digit_reversal_has_the_shortest_queues_where_packets_spread_and_meet() {
        let [rb, rrb, drb] = ["rb-64k", "rrb-64k", "drb-64k"].map(|scheme| run(scheme, 0.0));
        for value in ["hop1_us", "hop4_us", "queueing_us", "resequencing_mean_us", "rtt_p99_us"] {
            for other in [&rb, &rrb] {
                assert!(drb.values[value] < 0.9 * other.values[value], "{value}");
            }
        }
        assert!(drb.values["throughput_mbps"] > rb.values["throughput_mbps"]);
    }
}
