//! The records of a transfer in a qlog.

use crate::common::{behind_relay, builder, bytes};
use cloudburst_netem::{LinkConfig, Loss};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// The records of the one file in `dir`.
fn records(dir: &Path) -> Vec<Value> {
    let files: Vec<_> = fs::read_dir(dir).unwrap().map(|file| file.unwrap().path()).collect();
    let [file] = &files[..] else { panic!("{files:?}") };
    let text = fs::read_to_string(file).unwrap();
    assert!(text.starts_with('\x1e') && text.ends_with('\n'), "JSON text sequences");
    text.split('\x1e').skip(1).map(|record| serde_json::from_str(record).unwrap()).collect()
}

fn of<'a>(records: &'a [Value], name: &str) -> Vec<&'a Value> {
    let name = format!("cloudburst:{name}");
    records.iter().filter(|record| record["name"] == name).map(|record| &record["data"]).collect()
}

#[test]
fn a_qlog_records_each_message_train_report_and_loss() {
    let [sends, receives] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let lossy = LinkConfig { loss: Loss::Independent(0.2), ..LinkConfig::default() };
    let links = vec![(lossy, LinkConfig::default()); 4];
    let (server, relay) = behind_relay(builder().qlog(receives.path()), links, 7);
    let to = relay.addr();
    let client = builder().qlog(sends.path()).build().unwrap();
    let mut receipts = Vec::new();
    for seed in 0..10 {
        receipts.push(client.send(to, bytes(60_000, seed)).wait().unwrap());
        assert_eq!(server.recv().wait().unwrap().bytes.len(), 60_000);
    }
    let sent = client.counters().sender;
    drop((client, server));

    let there = records(sends.path());
    assert_eq!(there[0]["qlog_format"], "JSON-SEQ");
    assert!(there[0]["qlog_version"].is_string(), "{}", there[0]);
    assert!(there[0]["trace"]["common_fields"]["reference_time"].as_f64() > Some(1e12));
    let times: Vec<f64> =
        there[1..].iter().map(|record| record["time"].as_f64().unwrap()).collect();
    assert!(times.iter().all(|time| *time >= 0.0), "{times:?}");
    assert_eq!(of(&there, "session_opened")[0]["as"], "sender");
    let started = of(&there, "message_started");
    assert_eq!(started.len(), 10);
    assert_eq!(started[3]["bytes"], 60_000);
    assert_eq!(started[3]["message"], 3);

    // Each symbol is in one train, and trains of a block follow each other.
    let trains = of(&there, "train_sent");
    let number = |value: &Value| value.as_u64().unwrap();
    let packets: u64 = trains.iter().map(|train| number(&train["count"])).sum();
    assert_eq!(packets, sent.symbols_sent);
    for message in 0..10_u64 {
        let mut next = None;
        for train in
            trains.iter().filter(|train| train["message"] == message && train["block"] == 0)
        {
            let first = number(&train["first_esi"]);
            assert!(next.is_none_or(|next| next == first), "{train}");
            assert!(number(&train["path"]) < 4, "{train}");
            next = Some(first + number(&train["count"]));
        }
        assert!(next.is_some(), "message {message}");
    }

    let stops = of(&there, "report_received");
    assert!(stops.iter().filter(|report| report["kind"] == "stop").count() >= 10);
    let lost: i64 =
        of(&there, "packets_lost").iter().map(|lost| lost["count"].as_i64().unwrap()).sum();
    assert!(lost > 0, "one packet in five is lost");
    let ended = of(&there, "send_ended");
    for (end, receipt) in ended.iter().zip(&receipts) {
        assert_eq!(end["outcome"], "delivered");
        assert_eq!(number(&end["packets"]), receipt.packets as u64);
        assert_eq!(number(&end["needed"]), receipt.source_symbols as u64);
    }
    assert_eq!(ended.len(), 10);
    let last = there.last().unwrap();
    assert_eq!(last["name"], "cloudburst:log_ended");
    assert_eq!(last["data"]["dropped_events"], 0);

    let here = records(receives.path());
    assert_eq!(here.last().unwrap()["name"], "cloudburst:log_ended");
    assert_eq!(of(&here, "session_opened")[0]["as"], "receiver");
    assert_eq!(of(&here, "message_received").len(), 10);
    assert!(
        of(&here, "report_sent").iter().filter(|report| report["kind"] == "stop").count() >= 10
    );
}
