//! Serves metrics of an endpoint for Prometheus, over HTTP.
//!
//! Two endpoints send each other messages over loopback; the metrics of the first are at
//! `http://127.0.0.1:9464/metrics`. `docs/metrics.md` lists the metrics, and `tools/grafana.json`
//! shows them in Grafana.
//!
//!     cargo run --release --example metrics-export
//!     curl http://127.0.0.1:9464/metrics

use clap::Parser;
use cloudburst::{Endpoint, Security};
use metrics_exporter_prometheus::PrometheusBuilder;
use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::time::sleep;

/// Upper bounds of the histograms' buckets, in seconds.
const BUCKETS: [f64; 12] =
    [50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 50e-3, 100e-3, 1.0, 10.0];

/// Sends messages over loopback and serves metrics of the sender.
#[derive(Parser)]
struct Args {
    /// Where to serve /metrics.
    #[arg(long, default_value = "127.0.0.1:9464")]
    listen: SocketAddr,
    /// Bytes in each message.
    #[arg(long, default_value_t = 20_000)]
    size: usize,
    /// Messages a second, at most.
    #[arg(long, default_value_t = 100)]
    rate: u32,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    // Install the recorder before creating the endpoint's metrics, which register their descriptions.
    PrometheusBuilder::new().with_http_listener(args.listen).set_buckets(&BUCKETS)?.install()?;
    println!("http://{}/metrics", args.listen);

    let one = endpoint()?;
    let other = endpoint()?;
    let mut metrics = one.metrics();
    tokio::spawn(async move {
        while metrics.publish() {
            sleep(Duration::from_secs(1)).await;
        }
    });

    let to = other.local_addr();
    tokio::spawn(async move {
        while let Ok(message) = other.recv().await {
            // The metrics show failures.
            let _ = other.send(message.peer, message.bytes).await;
        }
    });
    let pause = Duration::from_secs(1) / args.rate.max(1);
    loop {
        one.send(to, vec![0; args.size]).await?;
        one.recv().await?;
        sleep(pause).await;
    }
}

fn endpoint() -> Result<Endpoint, Box<dyn Error>> {
    let security = Security::pre_shared([42; 32]);
    Ok(Endpoint::builder().bind("127.0.0.1:0".parse()?).security(security).build()?)
}
