//! The burst model compared with the endpoint, idle and in incasts.

use super::idle::{BYTE, LINK, crossing, endpoint, stop, symbols};
use super::*;
use cloudburst_core::config::{BurstPolicy, Config, Tuning};
use cloudburst_sim::engine::NS;
use cloudburst_sim::transport::burst::{self, Burst};
use cloudburst_sim::transport::cloudburst::{Cloudburst, Sessions, Settings};

/// The model, with packets as long as the endpoint's.
fn model(bytes: u64) -> Burst {
    let (n, packet) = symbols(bytes, 0);
    let payload = bytes.div_ceil(n).max(1) as u16;
    Burst::new(burst::Config {
        packet: packet as u16,
        payload,
        stop: stop(4) as u16,
        ..burst::Config::default()
    })
}

/// 60 packets of 1.2 us, four links of 2 us, and 0.3, 0.3 and 1.2 us for forwarding; the STOP takes 8.08 us.
#[test]
fn an_idle_message_of_the_model_takes_the_time_of_its_packets() {
    let burst = Burst::new(burst::Config::default());
    let simulation = run(burst, Depth::Unlimited, &[(0, 143, 60 * 1_460)]);
    let flow = simulation.network().flows()[0];
    assert_eq!(flow.delivered, Some(BEGIN + 81_800 * NS));
    assert_eq!(flow.acknowledged, Some(BEGIN + (81_800 + 8_080) * NS));
}

/// In an idle network, they differ only in STOPs: an endpoint's is longer the more paths it reports on.
#[test]
fn the_model_equals_the_endpoint_with_packets_of_one_length() {
    for (bytes, paths) in [(1_000, 1), (20_000, 4), (50_000, 4), (93_000, 4), (181_000, 4)] {
        let simulation = run(model(bytes), Depth::Unlimited, &[(0, 143, bytes)]);
        let modelled = simulation.network().flows().as_slice()[0];
        let real = endpoint(Settings::ours(LINK), bytes);
        assert_eq!(real.delivered, modelled.delivered, "{bytes}");
        let shorter = crossing(stop(4)) - crossing(stop(paths));
        let acknowledged = modelled.acknowledged.map(|at| at - shorter);
        assert_eq!(real.acknowledged, acknowledged, "{bytes}");
    }
}

/// The mean completion time of `count` messages of 93,000 bytes to one host, through queues of 24 packets, and
/// that of the last one.
fn incast(count: u16, transport: impl Transport + 'static) -> (f64, f64) {
    let list: Vec<_> = (16..16 + count).map(|source| (source, 0, 93_000)).collect();
    let simulation = run(transport, Depth::Packets(24), &list);
    let flows = simulation.network().flows().as_slice();
    let times: Vec<Time> = flows.iter().map(|flow| flow.delivered.unwrap() - BEGIN).collect();
    let mean = times.iter().sum::<Time>() as f64 / times.len() as f64;
    (mean, times.into_iter().max().unwrap() as f64)
}

/// The same with endpoints of these settings.
fn incast_of_endpoints(count: u16, settings: Settings) -> (f64, f64) {
    let sessions = Sessions::Between((16..16 + count).map(|source| (source, 0)).collect());
    incast(count, Cloudburst::new(Settings { sessions, ..settings }, &SHAPE).unwrap())
}

/// The model sends one packet at a time until STOP, as Algorithm 1 does, and so does an endpoint with bursts
/// until STOP, trains of one packet, and a port that holds no more. They differ in the path with which each
/// message begins.
#[test]
fn in_a_small_incast_the_model_is_within_half_a_percent_of_the_endpoint() {
    let config = Config {
        capacity: LINK.into(),
        policy: BurstPolicy::UntilStop,
        tuning: Tuning { train: 1, ..Tuning::default() },
        ..Config::default()
    };
    let settings = Settings { send_buffer: Some(0), ..Settings::new(config) };
    for count in 2..=4 {
        let (mean, last) = incast(count, model(93_000));
        let (real_mean, real_last) = incast_of_endpoints(count, settings.clone());
        assert!((real_mean / mean - 1.0).abs() < 0.005, "{count}: {real_mean} and {mean}");
        assert!((real_last / last - 1.0).abs() < 0.005, "{count}: {real_last} and {last}");
    }
}

/// By default, endpoints do not burst until STOP: they send the symbols needed and a margin, and then those that
/// the receiver reports missing. That takes a third of the packets, but the bottleneck idles for some round trips
/// and timeouts. The 20 messages take up to half as long again as those of the model.
#[test]
fn in_a_large_incast_the_defaults_take_up_to_half_as_long_again_as_the_model() {
    let (mean, last) = incast(20, model(93_000));
    let (real_mean, real_last) = incast_of_endpoints(20, Settings::ours(LINK));
    let (n, packet) = symbols(93_000, 0);
    let least = ((20 * n - 1) * packet * BYTE + crossing(packet)) as f64;
    assert!(last >= least && real_last >= least);
    assert!((1.0..1.5).contains(&(real_mean / mean)), "{real_mean} and {mean}");
    assert!((1.0..1.5).contains(&(real_last / last)), "{real_last} and {last}");
}
