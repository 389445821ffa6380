//! Tests of policies, and of their grants after timeouts.

use super::*;
use crate::code::Code;
use crate::config::BurstPolicy;

const RTO: Duration = Duration::from_millis(1);

/// A block of a message with the policy `policy`, over four paths.
fn block(policy: BurstPolicy, n: usize, max_redundancy: u32, is_clean: bool) -> Recovery {
    let mut message = AnyPolicy::new(policy, Code::default(), 0);
    Recovery::new(&mut message, n, n, max_redundancy, 4, is_clean)
}

fn send_all(recovery: &mut Recovery, now: Instant, first: u64) -> u64 {
    let mut number = first;
    while recovery.allowance() > 0 {
        recovery.on_sent(now, number, RTO);
        number += 1;
    }
    number
}

#[test]
fn a_budgeted_burst_opens_with_a_margin_requests_acks_at_its_end_and_sends_missing_symbols() {
    let policy = BurstPolicy::Budgeted { margin: 0.25 };
    let mut recovery = block(policy, 8, 32, false);
    assert_eq!(recovery.allowance(), 10);
    let requests = (0..10).filter(|&number| recovery.on_sent(Instant::ZERO, number, RTO)).count();
    assert_eq!(requests, 2);
    assert_eq!(recovery.next_wake(), Some(Instant::ZERO + RTO));
    // The last packet requested an ACK; 6 of 10 arrived: 2 missing.
    recovery.on_feedback(9, 2);
    assert_eq!(recovery.allowance(), 4, "2 needed, 6 of 10 arrived: 2 / 0.6, rounded up");
    assert_eq!(recovery.next_wake(), None);
}

#[test]
fn no_repair_symbols_are_sent_where_nothing_is_lost_until_something_is() {
    let policy = BurstPolicy::Budgeted { margin: 0.25 };
    let mut recovery = block(policy, 8, 32, true);
    assert_eq!(send_all(&mut recovery, Instant::ZERO, 0), 8);
    recovery.on_feedback(7, 4);
    assert_eq!(recovery.allowance(), 9, "4 needed, half lost, and the margin");
}

#[test]
fn an_answer_to_an_early_ack_request_counts_symbols_sent_since() {
    let mut recovery = block(BurstPolicy::Budgeted { margin: 0.0 }, 8, 32, false);
    let next = send_all(&mut recovery, Instant::ZERO, 0);
    recovery.on_feedback(next - 1, 4);
    let granted = recovery.allowance();
    assert_eq!(granted, 8, "4 needed, half lost");
    send_all(&mut recovery, Instant::ZERO, next);
    // The other ACK request of the first burst is answered late: its answer grants no more.
    recovery.on_feedback(next - 2, 4);
    assert_eq!(recovery.allowance(), 0);
    recovery.on_feedback(12_345, 8);
    assert_eq!(recovery.allowance(), 0, "no such packet requested an ACK");
}

#[test]
fn an_unanswered_burst_slows_down_and_is_a_trickle_beyond_its_cap() {
    let mut recovery = block(BurstPolicy::default(), 4, 2, false);
    let mut number = send_all(&mut recovery, Instant::ZERO, 0);
    let mut timeouts = Vec::new();
    let mut now = Instant::ZERO;
    while number < 2 * 4 + 256 {
        let at = recovery.next_wake().unwrap();
        timeouts.push(at.saturating_since(now));
        now = at;
        recovery.on_timeout(now, true, u32::MAX);
        number = send_all(&mut recovery, now, number);
    }
    assert_eq!(number, 2 * 4 + 256);
    assert!(timeouts.is_sorted());
    assert_eq!(timeouts.last(), Some(&MAX_BACKOFF));
    // Answers do not speed it up again.
    for _ in 0..100 {
        recovery.on_feedback(number - 1, 4);
        assert_eq!(recovery.next_wake(), Some(now + MAX_BACKOFF));
        now += MAX_BACKOFF;
        assert_eq!(recovery.on_timeout(now, true, u32::MAX), 2);
        number = send_all(&mut recovery, now, number);
    }
}

#[test]
fn an_oblivious_burst_goes_on_whatever_the_receiver_says() {
    let mut recovery = block(BurstPolicy::Oblivious, 8, 32, false);
    assert_eq!(recovery.allowance(), 64);
    let next = send_all(&mut recovery, Instant::ZERO, 0);
    recovery.on_feedback(next - 1, 4);
    assert_eq!(recovery.allowance(), 0);
    assert_eq!(recovery.next_wake(), Some(Instant::ZERO + RTO));
}

#[test]
fn the_cap_bounds_all_but_retries() {
    let mut recovery = block(BurstPolicy::Budgeted { margin: 4.0 }, 200, 2, false);
    assert_eq!(recovery.allowance(), 656, "of 1,000");
    let next = send_all(&mut recovery, Instant::ZERO, 0);
    recovery.resume(Instant::ZERO, RTO);
    recovery.on_feedback(next - 1, 200);
    assert_eq!(recovery.allowance(), 0);
    assert_eq!(recovery.next_wake(), Some(Instant::ZERO + MAX_BACKOFF));
    assert_eq!(recovery.grant_retries(1), 1);
    recovery.grant_extra();
    assert_eq!(recovery.allowance(), 2);
    recovery.revoke();
    assert_eq!(recovery.allowance(), 0);
    assert_eq!(recovery.grant_retries(5), 5);
    assert_eq!(recovery.grant_retries(3), 5, "those that are left are enough");
    recovery.on_return(false);
    recovery.resume(Instant::ZERO, RTO);
    assert_eq!(recovery.allowance(), 1_000, "as many as at first");
}
