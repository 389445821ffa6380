//! Partition and aggregate: a query goes to eight servers, and answers count if they meet a deadline.
//!
//! Each server has an eighth of the documents and counts those with a word; one of them is
//! overloaded and answers too late. The aggregator adds up the counts in time, and says from how many
//! servers they are: a late server costs completeness, not latency.
//!
//!     cargo run --release --example partition-aggregate -- --help

use clap::Parser;
use cloudburst::{Bytes, Endpoint, RequestParts, Security, SendError};
use futures_util::future::try_join_all;
use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

const SERVERS: usize = 8;
const DOCUMENTS: usize = 8_000;
const WORDS: [&str; 6] = ["burst", "cloud", "path", "queue", "spine", "symbol"];

/// Counts documents that contain a word, on eight servers of which one is slow.
#[derive(Parser)]
struct Args {
    /// The word.
    #[arg(long, default_value = "cloud")]
    word: String,
    /// Milliseconds until the aggregator continues with the answers that it has.
    #[arg(long, default_value_t = 50)]
    deadline: u64,
    /// Milliseconds by which the last server is slower than the others.
    #[arg(long, default_value_t = 1_000)]
    late: u64,
}

/// The aggregated answer.
#[derive(Debug, PartialEq, Eq)]
struct Total {
    documents: u64,
    /// Servers that contributed to it.
    servers: usize,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(&Args::parse()).await {
        Ok(Total { documents, servers }) => {
            println!("{documents} documents on {servers} of {SERVERS} servers");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("partition-aggregate: {error}");
            ExitCode::FAILURE
        }
    }
}

fn endpoint() -> Result<Endpoint, Box<dyn Error>> {
    let security = Security::pre_shared([42; 32]); // all endpoints share this key, and keep it secret
    let endpoint = Endpoint::builder().bind("127.0.0.1:0".parse()?).security(security).build()?;
    Ok(endpoint)
}

async fn run(args: &Args) -> Result<Total, Box<dyn Error>> {
    let mut servers = Vec::new();
    for part in 0..SERVERS {
        let server = endpoint()?;
        servers.push(server.local_addr());
        let late = Duration::from_millis(if part + 1 == SERVERS { args.late } else { 0 });
        tokio::spawn(async move {
            let count = move |query: RequestParts| async move {
                let word = query.bytes;
                let count = documents(part).filter(|text| has(text, &word)).count() as u64;
                tokio::time::sleep(late).await;
                count.to_be_bytes().to_vec()
            };
            server.serve(8, count).await;
        });
    }
    let aggregator = endpoint()?;
    // Opens the sessions, so that queries do not wait for handshakes.
    try_join_all(servers.iter().map(|server| aggregator.connect(*server).into_future())).await?;

    let deadline = Duration::from_millis(args.deadline);
    let query = Bytes::from(args.word.clone());
    let queries = servers.iter().map(|server| (*server, query.clone()));
    let mut calls = aggregator.call_many(queries).deadline(deadline).priority(7).begin();
    let mut total = Total { documents: 0, servers: 0 };
    while let Some(response) = calls.next().await {
        match response.result {
            Ok(count) => {
                let count = count.as_ref().try_into().map_err(|_| "a count has eight bytes")?;
                total.documents += u64::from_be_bytes(count);
                total.servers += 1;
            }
            Err(SendError::NoResponse) => {
                println!("server {} is too late", response.index);
            }
            Err(error) => println!("server {}: {error}", response.index),
        }
    }
    Ok(total)
}

/// Returns the documents of one server, of two words each in this example.
fn documents(part: usize) -> impl Iterator<Item = [&'static str; 2]> {
    (part..DOCUMENTS).step_by(SERVERS).map(|n| [WORDS[n % WORDS.len()], WORDS[n / 7 % WORDS.len()]])
}

fn has(text: &[&str], word: &[u8]) -> bool {
    text.iter().any(|candidate| candidate.as_bytes() == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected(servers: usize) -> Total {
        let all = (0..servers).flat_map(documents);
        let documents = all.filter(|text| has(text, b"cloud")).count() as u64;
        Total { documents, servers }
    }

    #[tokio::test]
    async fn the_answer_is_that_of_those_that_came_in_time() {
        let args = Args { word: "cloud".into(), deadline: 2_000, late: 600_000 };
        assert_eq!(run(&args).await.unwrap(), expected(7));
    }

    #[tokio::test]
    async fn if_all_come_it_is_complete() {
        let args = Args { word: "cloud".into(), deadline: 20_000, late: 0 };
        assert_eq!(run(&args).await.unwrap(), expected(8));
    }
}
