//! Runtimes that are shut down while sends, calls and handlers are under way: what they held ends,
//! and the endpoint goes on without them.

use crate::common::{TIMEOUT, bytes, endpoint, eventually};
use cloudburst_net::SendError;
use std::future::pending;
use std::net::UdpSocket;
use std::thread;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

fn runtimes() -> [Runtime; 2] {
    let mut builders = [Builder::new_multi_thread(), Builder::new_current_thread()];
    builders.each_mut().map(|builder| builder.enable_all().build().unwrap())
}

#[test]
fn an_endpoint_outlives_its_runtime() {
    for runtime in runtimes() {
        let client = endpoint();
        let server = endpoint();
        let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
        let nobody = silent.local_addr().unwrap();
        let to = server.local_addr();
        for seed in 0..5 {
            let sender = client.clone();
            runtime.spawn(async move { sender.send(nobody, bytes(50_000, seed)).await });
            let caller = client.clone();
            runtime.spawn(async move { caller.call(nobody, bytes(50_000, seed)).await });
        }
        let many = client.clone();
        runtime
            .spawn(async move { many.call_many([(nobody, "hello"); 5]).begin().results().await });
        let receiver = server.clone();
        let service = server.clone();
        runtime.spawn(async move { receiver.recv().await });
        runtime.spawn(async move { service.serve(1, |_| pending::<Vec<u8>>()).await });
        let blocking = client.clone();
        let caller = thread::spawn(move || blocking.call(to, "a request").wait());
        let under_way = || {
            let peer = client.peer(nobody).map_or(0, |peer| peer.sent.unfinished);
            peer == 15 && server.counters().calls.requests_received == 1
        };
        eventually("all of it is under way", || {
            // A single-threaded runtime runs nothing by itself.
            runtime.block_on(async { tokio::time::sleep(Duration::from_millis(1)).await });
            under_way()
        });
        drop(runtime);

        assert_eq!(client.peer(nobody).unwrap().sent.unfinished, 0, "all bursts have stopped");
        assert_eq!(caller.join().unwrap(), Err(SendError::Unanswered), "at once");
        let this = client.clone();
        let other = server.clone();
        this.send(to, "from without").wait().unwrap();
        assert_eq!(other.recv().wait_for(TIMEOUT).unwrap().unwrap().bytes, "from without");
        let [next, _] = runtimes();
        next.block_on(async {
            let responder = server.clone();
            let task =
                tokio::spawn(
                    async move { responder.serve(1, |request| async { request.bytes }).await },
                );
            assert_eq!(client.call(to, "from another").await.unwrap(), "from another");
            assert!(client.shutdown(TIMEOUT).await, "nothing is left under way");
            server.shutdown(Duration::ZERO).await;
            task.await.unwrap();
        });
    }
}
