//! An attacker on the path that redirects, reflects, repeats and spoofs packets.

use super::*;
use cloudburst_core::error::Indeterminate;
use cloudburst_core::naming::is_alias;
use cloudburst_core::path::Via;

#[test]
fn a_message_to_b_that_is_redirected_to_c_is_not_started() {
    let mut triangle = Triangle::new(C_INSTEAD_OF_B);
    let outcome = triangle.outcome(A, address(B), 1_000);
    assert!(matches!(outcome, Outcome::Rejected(_)), "{outcome:?}");
    assert!(triangle.hosts[C].inbox.is_empty() && triangle.misdirected(C) > 0);
    assert_eq!(triangle.hosts[C].endpoint.counters().receiver.messages_delivered, 0);
    assert_eq!(triangle.hosts[A].endpoint.counters().sender.symbols_sent, 0);
}

#[test]
fn a_session_that_is_redirected_delivers_nothing_and_says_so() {
    let mut triangle = Triangle::new(HONEST);
    assert!(matches!(triangle.outcome(A, address(B), 1_000), Outcome::Delivered(_)));
    triangle.attacker.divert = C_INSTEAD_OF_B;
    let outcome = triangle.outcome(A, address(B), 2_000);
    assert_eq!(outcome, Outcome::Unknown(Indeterminate::Deadline));
    assert!(triangle.hosts[C].inbox.is_empty());
    assert!(triangle.misdirected(C) > 0);
}

#[test]
fn packets_that_come_back_deliver_nothing() {
    let mut triangle = Triangle::new(MIRROR);
    for len in [0, 1_000, 100_000] {
        let outcome = triangle.outcome(A, address(B), len);
        assert!(matches!(outcome, Outcome::Rejected(_)), "{len} bytes: {outcome:?}");
    }
    assert!(triangle.hosts[A].inbox.is_empty());
    assert_eq!(triangle.hosts[A].endpoint.counters().sender.symbols_sent, 0);
    // In a session, too.
    triangle.attacker.divert = HONEST;
    assert!(matches!(triangle.outcome(A, address(B), 1_000), Outcome::Delivered(_)));
    triangle.attacker.divert = MIRROR;
    let outcome = triangle.outcome(A, address(B), 2_000);
    assert_eq!(outcome, Outcome::Unknown(Indeterminate::Deadline));
    assert!(triangle.hosts[A].inbox.is_empty());
}

#[test]
fn an_attacker_who_spoofs_an_address_receives_nothing_sent_to_it() {
    let mut triangle = Triangle::new(C_INSTEAD_OF_B);
    // C sends to A, and the attacker makes its packets seem to come from B.
    assert!(matches!(triangle.outcome(C, address(A), 1_000), Outcome::Delivered(_)));
    let borrower = triangle.hosts[A].inbox[0].peer;
    assert!(is_alias(&borrower), "{borrower:?}");
    // A reply goes back to the sender of the message, and carries nothing meant for B.
    assert!(matches!(triangle.outcome(A, borrower, 2_000), Outcome::Delivered(_)));
    assert_eq!(triangle.hosts[C].inbox.len(), 1);
    let outcome = triangle.outcome(A, address(B), 3_000);
    assert!(matches!(outcome, Outcome::Rejected(_)), "{outcome:?}");
    assert_eq!(triangle.hosts[C].inbox.len(), 1);
    // Without the attacker, B has its address to itself, and a name that is not C's.
    triangle.attacker.divert = HONEST;
    assert!(matches!(triangle.outcome(A, address(B), 3_000), Outcome::Delivered(_)));
    assert_eq!(triangle.hosts[B].inbox.len(), 1);
    let outcome = triangle.outcome(A, borrower, 4_000);
    assert!(!matches!(outcome, Outcome::Delivered(_)), "{outcome:?}");
    assert_eq!((triangle.hosts[B].inbox.len(), triangle.hosts[C].inbox.len()), (1, 1));
}

#[test]
fn at_most_three_times_the_bytes_that_seem_to_come_from_a_victim_go_to_it() {
    for (case, (divert, arrive)) in SPOOFED.into_iter().enumerate() {
        let mut triangle = Triangle::new(divert);
        triangle.send(A, address(B), 10).unwrap();
        let request = triangle.hosts[A].endpoint.prepare(None, &[7; 10]);
        let now = triangle.now;
        let options = SendOptions::default();
        triangle.hosts[A].endpoint.call(now, address(B), &request, &options).unwrap();
        triangle.run_for(DEADLINE);
        // B's application sends much to every peer that it knows.
        let now = triangle.now;
        let host = &mut triangle.hosts[B];
        assert_eq!(host.inbox.len() + host.requests.len(), arrive, "case {case}");
        for message in &host.inbox {
            host.endpoint.send(now, message.peer, message_of_a_megabyte(), &options).unwrap();
        }
        for request in &host.requests {
            let response = message_of_a_megabyte();
            host.endpoint.reply(now, request, Some(&response), &options).unwrap();
        }
        triangle.run_for(DEADLINE * 4);
        let from_victim = |(hop, _): &&(Hop, Vec<u8>)| hop.to == B && hop.source.ip() == VICTIM;
        let spoofed = triangle.attacker.seen.iter().filter(from_victim);
        let spoofed: usize = spoofed.map(|(_, packet)| packet.len()).sum();
        let aimed = triangle.attacker.aimed;
        assert!(spoofed > 0 && aimed <= 3 * spoofed, "case {case}: {aimed} bytes for {spoofed}");
        assert_eq!(triangle.hosts[A].inbox.len(), arrive / 2, "case {case}: A gets its messages");
    }
}

fn message_of_a_megabyte() -> bytes::Bytes {
    message(1_000_000, 1)
}

#[test]
fn a_liveness_check_answered_by_another_holder_of_the_key_ends_the_session_and_leaves_messages_indeterminate()
 {
    let mut triangle = Triangle::new(HONEST);
    assert!(matches!(triangle.outcome(A, address(B), 1_000), Outcome::Delivered(_)));
    triangle.attacker.divert = QUESTIONS_TO_C;
    let outcome = triangle.outcome(A, address(B), 2_000);
    assert_eq!(outcome, Outcome::Unknown(Indeterminate::PeerRestarted));
    assert_eq!(triangle.hosts[A].endpoint.counters().sender.sessions_opened, 2);
    // It is a session with B nevertheless, and no later message is indeterminate.
    triangle.attacker.divert = HONEST;
    assert!(matches!(triangle.outcome(A, address(B), 3_000), Outcome::Delivered(_)));
    assert_eq!((triangle.hosts[B].inbox.len(), triangle.hosts[C].inbox.len()), (2, 0));
}

#[test]
fn an_alias_is_gone_with_its_session() {
    let mut triangle = Triangle::new(C_INSTEAD_OF_B);
    assert!(matches!(triangle.outcome(C, address(A), 1_000), Outcome::Delivered(_)));
    let borrower = triangle.hosts[A].inbox[0].peer;
    triangle.hosts[A].restart();
    assert_eq!(triangle.send(A, borrower, 10), Err(StartError::Gone(borrower)));
}

#[test]
fn a_live_session_survives_handshakes_that_are_replayed_and_answers_that_are_lost() {
    let mut triangle = Triangle::new(HONEST);
    assert!(matches!(triangle.outcome(A, address(B), 1_000), Outcome::Delivered(_)));
    triangle.run_for(Duration::from_secs(40));
    triangle.attacker.divert = NO_ANSWERS_TO_A;
    triangle.attacker.seen.clear();
    // A must check the session now. The confirmation never arrives.
    let id = triangle.send(A, address(B), 2_000).unwrap();
    for _ in 0..100 {
        triangle.run_for(Duration::from_millis(10));
        let hosts = &mut triangle.hosts;
        let network = &mut triangle.network;
        for (hop, packet) in core::mem::take(&mut triangle.attacker.seen) {
            if hop.to == B && Kind::of(&packet) == Ok(Kind::Hello) {
                let input = (B, hop.via(), packet);
                drive::hand_in(hosts, network, triangle.now, input, &mut triangle.attacker);
            }
        }
    }
    triangle.attacker.divert = HONEST;
    triangle.run_for(DEADLINE);
    let outcome = &triangle.hosts[A].outcomes[&id];
    assert!(matches!(outcome, Outcome::Delivered(_)), "{outcome:?}");
    assert_eq!(triangle.hosts[A].endpoint.counters().sender.sessions_opened, 1);
    assert!(triangle.hosts[B].endpoint.counters().receiver.replayed > 0);
}

/// ACCEPTs get lost, and once a HELLO or OPEN seems to come from another address.
#[test]
fn a_handshake_goes_on_after_a_retry_that_observed_another_address() {
    let lose_accepts: Divert = |hop, packet| {
        if is_of(Kind::Accept, packet) { Hop { to: C, ..hop } } else { hop }
    };
    let mut triangle = Triangle::new(lose_accepts);
    let id = triangle.send(A, address(B), 1_000).unwrap();
    triangle.run_for(Duration::from_micros(800));
    assert_eq!(triangle.hosts[B].endpoint.counters().receiver.sessions_confirmed, 0);
    // One HELLO or OPEN seems to come from the victim's address, and the attacker forwards the
    // answer.
    triangle.attacker.divert = |hop, packet| {
        if hop.from == A && (is_of(Kind::Open, packet) || is_of(Kind::Hello, packet)) {
            return Hop { source: SocketAddr::new(VICTIM, hop.source.port()), ..hop };
        }
        if is_of(Kind::Accept, packet) { Hop { to: C, ..hop } } else { hop }
    };
    while triangle.attacker.retries.is_empty() {
        triangle.run_for(Duration::from_micros(100));
    }
    // The RETRY to the victim, which the attacker saw, arrives at A.
    let packet = triangle.attacker.retries.remove(0);
    let via = Via { egress: 0, local: None, remote: address(B) };
    let hosts = &mut triangle.hosts;
    let network = &mut triangle.network;
    drive::hand_in(hosts, network, triangle.now, (A, via, packet), &mut triangle.attacker);
    // The attacker leaves.
    triangle.attacker.divert = HONEST;
    let left = triangle.now;
    while !triangle.hosts[A].outcomes.contains_key(&id) {
        triangle.run_for(Duration::from_millis(1));
    }
    let took = triangle.now.saturating_since(left);
    assert!(took < Duration::from_millis(500), "{took:?}");
}

/// The attacker makes A's packets come from ports that A does not have, and later drops B's packets
/// for a moment. Then it leaves.
#[test]
fn ports_that_were_made_up_wedge_no_peer_that_has_an_address() {
    let mut triangle = Triangle::new(|hop, packet| match (hop.from, Kind::of(packet)) {
        (A, Ok(kind))
            if kind == Kind::Symbol || kind == Kind::Hello && packet[12..16] != [0; 4] =>
        {
            let source = SocketAddr::new(hop.source.ip(), hop.source.port() + 2_000);
            Hop { source, ..hop }
        }
        _ => hop,
    });
    // Its STOP never arrives.
    triangle.outcome(A, address(B), 1_000);
    assert_eq!(triangle.hosts[B].inbox.len(), 1);
    assert_eq!(triangle.hosts[B].inbox[0].peer, address(A));
    triangle.attacker.divert = |hop, _| if hop.from == B { Hop { to: C, ..hop } } else { hop };
    triangle.send(B, address(A), 2_000).unwrap();
    triangle.run_for(Duration::from_millis(100));
    triangle.attacker.divert = HONEST;
    triangle.run_for(DEADLINE);
    let outcome = triangle.outcome(B, address(A), 3_000);
    assert!(matches!(outcome, Outcome::Delivered(_)), "the attacker left 5 s before: {outcome:?}");
}
