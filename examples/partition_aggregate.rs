//! Partition and aggregate: a query goes to eight servers, and answers count if they meet a deadline.
//!
//! Each server has an eighth of the documents and counts those with a word; one of them is
//! overloaded and answers too late. The aggregator adds up the counts in time, and says from how many
//! servers they are: a late server costs completeness, not latency.
//!
//!     cargo run --release --example partition-aggregate
//!     cargo run --release --example partition-aggregate spine

use cloudburst::{Bytes, Endpoint, RequestParts, Security, SendError};
use std::env;
use std::error::Error;
use std::time::Duration;

const SERVERS: usize = 8;
const DOCUMENTS: usize = 8_000;
const WORDS: [&str; 6] = ["burst", "cloud", "path", "queue", "spine", "symbol"];

/// Time until the aggregator continues with the answers that it has.
const DEADLINE: Duration = Duration::from_millis(50);
/// Time by which the last server is slower than the others.
const LATE: Duration = Duration::from_secs(1);

/// The aggregated answer.
#[derive(Debug, PartialEq, Eq)]
struct Total {
    documents: u64,
    /// Servers that contributed to it.
    servers: usize,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let word = env::args().nth(1).unwrap_or("cloud".into());
    let Total { documents, servers } = run(word, DEADLINE, LATE).await?;
    println!("{documents} documents on {servers} of {SERVERS} servers");
    Ok(())
}

fn endpoint() -> Result<Endpoint, Box<dyn Error>> {
    let security = Security::pre_shared([42; 32]); // all endpoints share this key, and keep it secret
    Ok(Endpoint::builder().bind("127.0.0.1:0".parse()?).security(security).build()?)
}

async fn run(word: String, deadline: Duration, late: Duration) -> Result<Total, Box<dyn Error>> {
    let mut servers = Vec::new();
    for part in 0..SERVERS {
        let server = endpoint()?;
        servers.push(server.local_addr());
        let pause = if part + 1 == SERVERS { late } else { Duration::ZERO };
        tokio::spawn(async move {
            let count = move |query: RequestParts| async move {
                let word = query.bytes;
                let count = documents(part).filter(|text| has(text, &word)).count() as u64;
                tokio::time::sleep(pause).await;
                count.to_be_bytes().to_vec()
            };
            server.serve(8, count).await;
        });
    }
    let aggregator = endpoint()?;
    // Opens the sessions, so that queries do not wait for handshakes.
    for server in &servers {
        aggregator.connect(*server).await?;
    }

    let query = Bytes::from(word);
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
    async fn a_server_later_than_the_deadline_is_left_out_of_the_total() {
        let total = run("cloud".into(), Duration::from_secs(2), Duration::from_secs(600)).await;
        assert_eq!(total.unwrap(), expected(7));
    }

    #[tokio::test]
    async fn the_total_is_complete_if_all_servers_answer_in_time() {
        let total = run("cloud".into(), Duration::from_secs(20), Duration::ZERO).await;
        assert_eq!(total.unwrap(), expected(8));
    }
}
