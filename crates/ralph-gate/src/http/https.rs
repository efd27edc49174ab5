//! TLS through the gate: passed on unread when its hello is for the right host, or opened.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use ralph_core::net::{Decider, Decision, Endpoint, Host, Reason};
use tokio::io::{AsyncWriteExt as _, copy_bidirectional_with_sizes};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use super::serve::{Origin, expected, nobody, serve_origin};
use super::tunnel::{PIECE, refused};
use crate::audit::OpenRecord;
use crate::gate::Inner;
use crate::stream::Counted;
use crate::tls::{Hello, UNRECOGNIZED_NAME, read_hello};
use crate::{Listener, Stream};

/// Serves TLS that was sent to the address of a name.
pub(crate) async fn serve(
    gate: &Arc<Inner>,
    mut inside: impl Stream + 'static,
    address: Option<SocketAddr>,
) -> io::Result<()> {
    let Ok(expected) = expected(gate, address, 443) else {
        nobody(gate, Listener::Https, address, 443);
        return inside.write_all(&UNRECOGNIZED_NAME).await;
    };
    let hello = match read_hello(&mut inside, Vec::new(), gate.limits.head_time).await {
        Ok(hello) => hello,
        Err(error) => {
            let text = expected.map(|endpoint| endpoint.host.to_string());
            let decision = Decision::denied(Reason::UnsupportedProtocol, Decider::Gate);
            let text = text.unwrap_or_default();
            drop(gate.book.open_text(Listener::Https, &text, 443, decision));
            return Err(error);
        }
    };
    let (endpoint, decision) = match named(gate, &hello, expected.as_ref()) {
        Ok(found) => found,
        Err((text, reason)) => {
            let decision = Decision::denied(reason, Decider::Gate);
            drop(gate.book.open_text(Listener::Https, &text, 443, decision));
            return inside.write_all(&UNRECOGNIZED_NAME).await;
        }
    };
    let mut record = gate.record(Listener::Https, &endpoint, decision);
    if !decision.is_allowed() {
        return inside.write_all(&UNRECOGNIZED_NAME).await;
    }
    if gate.inspects(&endpoint) {
        return inspected(gate, inside, hello, endpoint, record).await;
    }
    let mut outside = match gate.dialer.dial(&endpoint).await {
        Ok(outside) => outside,
        Err(error) => {
            record.set_decision(error.decision());
            return Err(io::Error::other(error));
        }
    };
    let mut inside = Counted::new(inside, hello.bytes, record.traffic());
    copy(&mut inside, &mut outside).await
}

/// Returns who a hello is for, and the decision about it; or what it says instead.
fn named(
    gate: &Inner,
    hello: &Hello,
    expected: Option<&Endpoint>,
) -> Result<(Endpoint, Decision), (String, Reason)> {
    let Some(name) = &hello.server_name else {
        let text = expected.map(|endpoint| endpoint.host.to_string());
        return Err((text.unwrap_or_default(), Reason::NoServerName));
    };
    let host = Host::parse(name).map_err(|_| (name.clone(), Reason::Malformed))?;
    let endpoint = Endpoint { host, port: 443 };
    if expected.is_some_and(|expected| *expected != endpoint) {
        return Err((name.clone(), Reason::NameMismatch));
    }
    let decision = gate.decide(&endpoint);
    Ok((endpoint, decision))
}

/// Carries a tunnel that has to hold TLS for one host; without an outside, it is opened here.
pub(super) async fn pass(
    gate: &Arc<Inner>,
    mut inside: impl Stream + 'static,
    endpoint: &Endpoint,
    mut record: OpenRecord,
    outside: Option<TcpStream>,
) -> io::Result<()> {
    if let Some(outside) = outside {
        return checked(gate, inside, Vec::new(), endpoint, record, outside).await;
    }
    let hello = right_hello(gate, &mut inside, Vec::new(), endpoint, &mut record).await?;
    inspected(gate, inside, hello, endpoint.clone(), record).await
}

/// Carries TLS unread, if its hello is for the endpoint.
pub(super) async fn checked(
    gate: &Inner,
    mut inside: impl Stream + 'static,
    ahead: Vec<u8>,
    endpoint: &Endpoint,
    mut record: OpenRecord,
    mut outside: TcpStream,
) -> io::Result<()> {
    let hello = right_hello(gate, &mut inside, ahead, endpoint, &mut record).await?;
    let mut inside = Counted::new(inside, hello.bytes, record.traffic());
    copy(&mut inside, &mut outside).await
}

/// Reads a hello that must be for the endpoint; anything else is answered by an alert.
async fn right_hello(
    gate: &Inner,
    inside: &mut impl Stream,
    ahead: Vec<u8>,
    endpoint: &Endpoint,
    record: &mut OpenRecord,
) -> io::Result<Hello> {
    let hello = match read_hello(inside, ahead, gate.limits.head_time).await {
        Ok(hello) => hello,
        Err(error) => {
            refused(record, Reason::UnsupportedProtocol);
            return Err(error);
        }
    };
    let reason = match hello.server_name.as_deref().map(Host::parse) {
        Some(Ok(host)) if host == endpoint.host => return Ok(hello),
        Some(_) => Reason::NameMismatch,
        None => Reason::NoServerName,
    };
    refused(record, reason);
    inside.write_all(&UNRECOGNIZED_NAME).await?;
    Err(io::Error::other("the hello is for another host"))
}

/// Opens TLS as the host, and serves the requests in it, which all have to be for that host.
async fn inspected(
    gate: &Arc<Inner>,
    inside: impl Stream + 'static,
    hello: Hello,
    endpoint: Endpoint,
    record: OpenRecord,
) -> io::Result<()> {
    let config = gate
        .authority
        .config(&endpoint.host)
        .map_err(io::Error::other)?;
    let inside = Counted::new(inside, hello.bytes, record.traffic());
    let accept = TlsAcceptor::from(config).accept(inside);
    let inside = tokio::time::timeout(gate.limits.head_time, accept).await??;
    let origin = Origin::https(record.listener(), endpoint);
    // Each request has a record of its own; this one is that of the connection.
    serve_origin(gate, inside, origin).await;
    drop(record);
    Ok(())
}

/// Copies in both directions until both are done.
pub(super) async fn copy(inside: &mut impl Stream, outside: &mut TcpStream) -> io::Result<()> {
    copy_bidirectional_with_sizes(inside, outside, PIECE, PIECE).await?;
    Ok(())
}
