//! Closed forms.

use super::Moments;

/// The queue of the first hop under random bouncing, in a Fat-tree of switches with `ports` ports.
///
/// A ~ Binomial(N, rho / N) packets arrive in a slot, where N = n / 2. The waiting packets W = (q - 1)+ have the
/// generating function (1 - rho)(z - 1) / (z - A(z)), and q = W + A, which are independent. With the factorial moments
/// a2 = E(A(A - 1)) and a3 = E(A(A - 1)(A - 2)), and b = a2 / (2 (1 - rho)):
///
/// - E(W) = b, Var(W) = b^2 + b + a3 / (3 (1 - rho));
/// - E(q) = rho + b, Var(q) = Var(W) + rho (1 - rho / N).
///
/// As n tends to infinity, E(q) tends to that of M/D/1, rho + rho^2 / (2 (1 - rho)). At load 1 both are infinite.
pub fn random_first_hop(ports: u16, load: f64) -> Moments {
    let inputs = f64::from(ports / 2);
    let a2 = load * load * (inputs - 1.0) / inputs;
    let a3 = a2 * load * (inputs - 2.0) / inputs;
    let b = a2 / (2.0 * (1.0 - load));
    let waiting = b * b + b + a3 / (3.0 * (1.0 - load));
    Moments { mean: load + b, variance: waiting + load * (1.0 - load / inputs) }
}

/// As [`random_first_hop`], but over the first `slots` slots of a queue that is empty at first.
pub fn random_first_hop_from_empty(ports: u16, load: f64, slots: u64) -> Moments {
    let arrivals = binomial(ports / 2, load / f64::from(ports / 2));
    // The distribution of q, and its sum over slots.
    let mut now = vec![1.0];
    let mut all = Vec::new();
    for _ in 0..slots {
        let mut next = vec![0.0; now.len() + arrivals.len()];
        for (length, &share) in now.iter().enumerate() {
            let waiting = length.saturating_sub(1);
            for (arrived, &probability) in arrivals.iter().enumerate() {
                next[waiting + arrived] += share * probability;
            }
        }
        // Longer queues are too rare to matter.
        while next.last().is_some_and(|&share| share < 1e-18) {
            next.pop();
        }
        all.resize(next.len().max(all.len()), 0.0);
        for (sum, share) in all.iter_mut().zip(&next) {
            *sum += share;
        }
        now = next;
    }
    Moments::of(all)
}

/// The mean waiting time in M/D/1, in service times: rho / (2 (1 - rho)).
pub fn md1_wait(load: f64) -> f64 {
    load / (2.0 * (1.0 - load))
}

/// The probabilities of the lengths 0, 1, 2 and so on of the queue of the first hop under digit reversal at load 1,
/// averaged over the random starting places of the servers' sequences.
///
/// Each of the N = n / 2 servers sends a packet to the port in one slot of every N. This is the queue N*D/D/1 in slotted
/// time at load 1, for which (Roberts and Virtamo, *The superposition of periodic cell arrival streams in an ATM
/// multiplexer*, IEEE Trans. Commun. 1991), with x > 0:
///
/// P(q > x) = sum over k from x + 1 to N of C(N, k) ((k - x) / N)^k (1 - (k - x) / N)^(N - k) x / (N - k + x)
///
/// It is also linear probing in a table that becomes full, so the mean is (1 + Q(N)) / 2, with
/// Ramanujan's Q(N) = 1 + (N - 1) / N + (N - 1)(N - 2) / N^2 + ... (Knuth, vol. 3, 6.4).
pub fn digit_reversal_first_hop_at_full_load(ports: u16) -> Vec<f64> {
    let inputs = ports / 2;
    let longer_than = |x: u16| -> f64 {
        if x == 0 {
            return 1.0;
        }
        let term = |k: u16| {
            let share = f64::from(k - x) / f64::from(inputs);
            let exactly_k = binomial(inputs, share)[usize::from(k)];
            exactly_k * f64::from(x) / f64::from(inputs - k + x)
        };
        (x + 1..=inputs).map(term).sum()
    };
    let tails: Vec<f64> = (0..=inputs).map(longer_than).collect();
    let mut lengths = vec![0.0];
    lengths.extend(tails.windows(2).map(|pair| pair[0] - pair[1]));
    lengths
}

/// The maximum queue of the first hop under digit reversal, when all servers send to the port in the same slot.
pub const fn longest_of_digit_reversal(ports: u16) -> usize {
    ports as usize / 2
}

/// The maximum queue of the first hop under round robin, when n / 2 servers send n / 2 packets each to the port in the
/// same n / 2 slots. n / 2 (n / 2 - 1) packets wait behind the one in service, as section 3.1.2 says.
pub const fn longest_of_round_robin(ports: u16) -> usize {
    let half = ports as usize / 2;
    half * (half - 1) + 1
}

/// The binomial distribution: the probabilities of 0 to `trials` successes.
fn binomial(trials: u16, probability: f64) -> Vec<f64> {
    let mut shares = vec![0.0; usize::from(trials) + 1];
    shares[0] = 1.0;
    for trial in 0..usize::from(trials) {
        for k in (0..=trial).rev() {
            shares[k + 1] += shares[k] * probability;
            shares[k] *= 1.0 - probability;
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_that_starts_empty_converges_to_the_equilibrium() {
        let exact = random_first_hop(24, 0.8);
        let long = random_first_hop_from_empty(24, 0.8, 20_000);
        assert!((long.mean / exact.mean - 1.0).abs() < 1e-3, "{long:?} {exact:?}");
        assert!((long.variance / exact.variance - 1.0).abs() < 4e-3, "{long:?} {exact:?}");
    }

    #[test]
    fn a_switch_with_many_inputs_queues_as_m_d_1() {
        let load = 0.95;
        let mean = random_first_hop(u16::MAX, load).mean;
        assert!((mean - load - load * md1_wait(load)).abs() < 1e-3, "{mean}");
    }

    #[test]
    fn the_queue_at_full_load_has_knuths_mean() {
        for inputs in 2..=40_u16 {
            let mut q = 0.0;
            let mut term = 1.0;
            for k in 1..=inputs {
                q += term;
                term *= f64::from(inputs - k) / f64::from(inputs);
            }
            let lengths = digit_reversal_first_hop_at_full_load(2 * inputs);
            let sum: f64 = lengths.iter().sum();
            assert!((sum - 1.0).abs() < 1e-12, "{inputs}: {sum}");
            let mean = Moments::of(lengths).mean;
            assert!((mean - (1.0 + q) / 2.0).abs() < 1e-9, "{inputs}: {mean}");
        }
    }
}
