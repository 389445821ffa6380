//! Metrics for Prometheus, over HTTP.

use cloudburst_net::Endpoint;
use core::time::Duration;
use metrics_exporter_prometheus::PrometheusBuilder;
use std::net::SocketAddr;
use std::thread;
use tokio::runtime::Builder;
use tokio::time;

/// How old what a scrape says may be.
const PUBLISH_EVERY: Duration = Duration::from_millis(500);
/// Upper bounds of the buckets of times, in seconds: from a round trip within a rack to the default deadline.
const BUCKETS: [f64; 17] = [
    50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 500e-3,
    1.0, 2.5, 5.0, 10.0,
];

/// Serves the metrics of `endpoint` at `addr`, in a thread of its own, as long as the process lives.
///
/// # Errors
///
/// What is wrong with `addr`, or what the system refuses.
pub(super) fn serve(endpoint: &Endpoint, addr: SocketAddr) -> Result<(), String> {
    let runtime =
        Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    let builder = PrometheusBuilder::new().with_http_listener(addr).set_buckets(&BUCKETS);
    let inside = runtime.enter();
    let built = builder.and_then(PrometheusBuilder::build);
    drop(inside);
    let (recorder, exporter) = built.map_err(|error| error.to_string())?;
    ::metrics::set_global_recorder(recorder).map_err(|error| error.to_string())?;
    let mut metrics = endpoint.metrics();
    // Before the first scrape.
    metrics.publish();
    let run = move || {
        runtime.spawn(async move {
            while metrics.publish() {
                time::sleep(PUBLISH_EVERY).await;
            }
        });
        runtime.block_on(exporter)
    };
    let thread = thread::Builder::new().name("cbrst-metrics".into()).spawn(run);
    thread.map(drop).map_err(|error| error.to_string())
}
