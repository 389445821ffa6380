//! Endpoints at a gateway, and the traffic that must pass between them.

use crate::common::{KEY, bytes};
use cloudburst_net::{Builder, Config, Endpoint, Security, SendOptions};
use cloudburst_testbed::{End, Gateway};
use libtest_mimic::Failed;
use std::net::{SocketAddr, SocketAddrV4};
use std::thread;
use std::time::Duration;

/// How long one message or call may take.
pub(crate) const SOON: Duration = Duration::from_secs(2);
/// The port of servers.
pub(crate) const PORT: u16 = 7000;
pub(crate) const RESPONSE: usize = 20_000;

/// The traffic that must pass between a client and a server that the client knows by an address.
pub(crate) type Exchange = fn(&Endpoint, &Endpoint, SocketAddr) -> Result<(), Failed>;

pub(crate) fn within(deadline: Duration) -> SendOptions {
    SendOptions::default().deadline(deadline)
}

/// An endpoint at `end`, at a port of the system's choice, that spreads packets over `paths`.
pub(crate) fn client(end: &End, paths: &str) -> Result<Endpoint, Failed> {
    endpoint(end, paths, |on| on)
}

/// An endpoint at `end`, at [`PORT`] of its address, that spreads packets over `paths`.
pub(crate) fn server(end: &End, paths: &str) -> Result<Endpoint, Failed> {
    let bind = (end.address(), PORT).into();
    endpoint(end, paths, |on| on.bind(bind))
}

/// An endpoint at `end` with further settings. It may send 100 Mb/s.
pub(crate) fn endpoint(
    end: &End,
    paths: &str,
    settings: impl FnOnce(Builder) -> Builder,
) -> Result<Endpoint, Failed> {
    Ok(open(end, paths, settings)?.clone())
}

/// Like [`endpoint`], but returns the async handle, which tells its ports.
pub(crate) fn open(
    end: &End,
    paths: &str,
    settings: impl FnOnce(Builder) -> Builder,
) -> Result<Endpoint, Failed> {
    let builder = Endpoint::builder()
        .bind((end.address(), 0).into())
        .paths(paths.parse()?)
        .config(Config { capacity: 100_000_000.into(), ..Config::default() })
        .security(Security::pre_shared(KEY));
    let builder = settings(builder);
    Ok(end.run(|| builder.build())?)
}

/// The address of the server of the gateway.
pub(crate) fn server_address(gateway: &Gateway) -> SocketAddr {
    server_v4(gateway).into()
}

pub(crate) fn server_v4(gateway: &Gateway) -> SocketAddrV4 {
    SocketAddrV4::new(gateway.server.address(), PORT)
}

/// Has `client` send to `server`, which it knows as `to`, and call it.
pub(crate) fn converse(client: &Endpoint, server: &Endpoint, to: SocketAddr) -> Result<(), Failed> {
    delivers(client, server, to)?;
    answers_calls(client, server, to)
}

/// Has `client` send a short message and a long one, which `server` takes, each within [`SOON`].
pub(crate) fn delivers(client: &Endpoint, server: &Endpoint, to: SocketAddr) -> Result<(), Failed> {
    for len in [100, 93_000] {
        let sent = bytes(len, 1);
        let result = client.send(to, sent.clone()).options(within(SOON)).wait();
        result.map_err(|error| format!("{len} bytes to {to}: {error}"))?;
        let message = server.recv().wait_for(SOON).ok_or("delivered, and not there")??;
        assert!(message.bytes == sent, "another message of {} bytes", message.bytes.len());
    }
    Ok(())
}

/// Has `client` call `server`, whose response takes many packets, within [`SOON`].
pub(crate) fn answers_calls(
    client: &Endpoint,
    server: &Endpoint,
    to: SocketAddr,
) -> Result<(), Failed> {
    thread::scope(|scope| {
        let answer = scope.spawn(|| {
            let request = server.recv_request().wait_for(SOON).ok_or("no request")??;
            let reply = request.reply(bytes(RESPONSE, 2)).options(within(SOON)).wait();
            reply.map_err(|error| Failed::from(format!("the response: {error}")))
        });
        let response = client.call(to, "request").options(within(SOON)).wait();
        let answered = answer.join().expect("it does not panic");
        let response = response.map_err(|error| format!("call to {to}: {error}"))?;
        assert!(response == bytes(RESPONSE, 2), "another response of {} bytes", response.len());
        answered.map(drop)
    })
}

/// Has `server` send to the peer that sent last, by the address that the message named.
pub(crate) fn replies(client: &Endpoint, server: &Endpoint, to: SocketAddr) -> Result<(), Failed> {
    client
        .send(to, "question")
        .options(within(SOON))
        .wait()
        .map_err(|error| format!("question: {error}"))?;
    let question = server.recv().wait_for(SOON).ok_or("delivered, and not there")??;
    let answer = bytes(RESPONSE, 3);
    let sent = server.send(question.peer, answer.clone()).options(within(SOON)).wait();
    sent.map_err(|error| format!("answer to {}: {error}", question.peer))?;
    let message = client.recv().wait_for(SOON).ok_or("delivered, and not there")??;
    assert!(message.bytes == answer, "another message of {} bytes", message.bytes.len());
    assert_eq!(message.peer, to, "it comes from the address that the client has sent to");
    Ok(())
}
