//! After FINISH a sender reports "failed" only when it knows. The receiver is the test itself.

use crate::common::*;
use cloudburst_cli::protocol::{Body, Frame, Reason};
use cloudburst_net::{Endpoint, Message, PathMap, Security};
use core::time::Duration;
use nix::sys::signal::Signal;

/// A sender whose FINISH was just received, and the receiver that may answer it.
fn finished(args: &[&str]) -> (Running, Endpoint, Message) {
    let endpoint = Endpoint::builder()
        .bind("127.0.0.1:0".parse().unwrap())
        .paths(PathMap::ecmp(1))
        .security(Security::trusted_network())
        .build()
        .unwrap();
    let addr = endpoint.local_addr().to_string();
    let (_dir, paths) = files(&[("file", b"content")]);
    let args = [&["--insecure", "--json"], args].concat();
    let sending = Running::start(&mut sender(&addr, "", &args, &[&paths[0]]));
    loop {
        let message = endpoint.recv().wait_for(PATIENCE).unwrap().expect("a frame");
        match Frame::decode(&message.bytes).unwrap().body {
            Body::Offer(offer) => {
                assert_eq!(offer.patience, Duration::from_secs(300));
                answer(
                    &endpoint,
                    &message,
                    Body::Accept { window: 1, patience: PATIENCE, prefixes: vec![] },
                );
            }
            Body::Finish { .. } => return (sending, endpoint, message),
            _ => {}
        }
    }
}

fn answer(endpoint: &Endpoint, to: &Message, body: Body) {
    let transfer = Frame::decode(&to.bytes).unwrap().transfer;
    endpoint.send(to.peer, Frame { transfer, body }.encode()).wait().unwrap();
}

fn outcome(ended: &Ended) -> String {
    let object: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
    object["outcome"].as_str().unwrap().to_owned()
}

#[test]
fn a_sender_that_is_stopped_after_finish_reports_an_unknown_outcome() {
    let (sending, _endpoint, _) = finished(&["--deadline", "300"]);
    sending.signal(Signal::SIGTERM);
    let ended = sending.end();
    assert_eq!((ended.code, outcome(&ended).as_str()), (Some(130), "unknown"));
    assert!(ended.stderr.contains("check there"), "{}", ended.stderr);
}

#[test]
fn a_receiver_that_gives_up_after_finish_may_have_stored_the_file() {
    for (reason, expected) in [
        (Reason::Interrupted, "unknown"),
        (Reason::Unresponsive(1), "unknown"),
        (Reason::Unknown, "unknown"),
        (Reason::DiskFull(1), "failed"),
    ] {
        let (sending, endpoint, finish) = finished(&["--deadline", "300"]);
        answer(&endpoint, &finish, Body::Failed(reason));
        let ended = sending.end();
        assert_eq!((ended.code, outcome(&ended).as_str()), (Some(1), expected), "{reason:?}");
        assert_eq!(ended.stderr.contains("check there"), expected == "unknown", "{}", ended.stderr);
    }
}
