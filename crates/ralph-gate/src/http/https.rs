//! TLS through the gate: forwarded unread if the hello names the right host, or terminated for
//! inspection.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use ralph_core::net::{EgressDecider, EgressDecision, EgressReason, Endpoint, Host};
use tokio::io::{AsyncWriteExt as _, copy_bidirectional_with_sizes};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use super::serve::{OriginConnection, expected_endpoint, record_unassigned_address, serve_origin};
use super::tunnel::{COPY_BUFFER_BYTES, record_refusal};
use crate::audit::OpenRecord;
use crate::gate::GateInner;
use crate::stream::CountingStream;
use crate::tls::{TlsClientHello, UNRECOGNIZED_NAME, read_hello};
use crate::{ByteStream, SandboxListener};

/// Serves TLS sent to port 443 of a name's address.
pub(crate) async fn serve(
    gate: &Arc<GateInner>,
    mut client: impl ByteStream + 'static,
    address: Option<SocketAddr>,
) -> io::Result<()> {
    let Ok(expected) = expected_endpoint(gate, address, 443) else {
        record_unassigned_address(gate, SandboxListener::Https, address, 443);
        return client.write_all(&UNRECOGNIZED_NAME).await;
    };
    let hello = match read_hello(&mut client, Vec::new(), gate.limits.head_timeout).await {
        Ok(hello) => hello,
        Err(error) => {
            let text = expected.map(|endpoint| endpoint.host.to_string());
            let decision =
                EgressDecision::denied(EgressReason::UnsupportedProtocol, EgressDecider::Gate);
            let text = text.unwrap_or_default();
            drop(
                gate.audit_log
                    .open_unparsed(SandboxListener::Https, &text, 443, decision),
            );
            return Err(error);
        }
    };
    let (endpoint, decision) = match decide_server_name(gate, &hello, expected.as_ref()) {
        Ok(found) => found,
        Err((text, reason)) => {
            let decision = EgressDecision::denied(reason, EgressDecider::Gate);
            drop(
                gate.audit_log
                    .open_unparsed(SandboxListener::Https, &text, 443, decision),
            );
            return client.write_all(&UNRECOGNIZED_NAME).await;
        }
    };
    let mut record = gate.open_record(SandboxListener::Https, &endpoint, decision);
    if !decision.is_allowed() {
        return client.write_all(&UNRECOGNIZED_NAME).await;
    }
    if gate.inspects(&endpoint) {
        return serve_inspected(gate, client, hello, endpoint, record).await;
    }
    let mut upstream = match gate.dialer.dial(&endpoint).await {
        Ok(upstream) => upstream,
        Err(error) => {
            record.set_decision(error.decision());
            return Err(io::Error::other(error));
        }
    };
    let mut client = CountingStream::new(client, hello.bytes, record.traffic());
    copy_streams(&mut client, &mut upstream).await
}

/// Returns the endpoint of a hello and the decision about it, or the requested name and the reason
/// to refuse it.
fn decide_server_name(
    gate: &GateInner,
    hello: &TlsClientHello,
    expected: Option<&Endpoint>,
) -> Result<(Endpoint, EgressDecision), (String, EgressReason)> {
    let Some(name) = &hello.server_name else {
        let text = expected.map(|endpoint| endpoint.host.to_string());
        return Err((text.unwrap_or_default(), EgressReason::NoServerName));
    };
    let host = Host::parse(name).map_err(|_| (name.clone(), EgressReason::Malformed))?;
    let endpoint = Endpoint { host, port: 443 };
    if expected.is_some_and(|expected| *expected != endpoint) {
        return Err((name.clone(), EgressReason::NameMismatch));
    }
    let decision = gate.decide(&endpoint);
    Ok((endpoint, decision))
}

/// Serves a tunnel that must contain TLS for one host; without an upstream, TLS is terminated here.
pub(super) async fn serve_tunnel(
    gate: &Arc<GateInner>,
    mut client: impl ByteStream + 'static,
    endpoint: &Endpoint,
    mut record: OpenRecord,
    upstream: Option<TcpStream>,
) -> io::Result<()> {
    if let Some(upstream) = upstream {
        return forward_matching_tls(gate, client, Vec::new(), endpoint, record, upstream).await;
    }
    let hello = read_matching_hello(gate, &mut client, Vec::new(), endpoint, &mut record).await?;
    serve_inspected(gate, client, hello, endpoint.clone(), record).await
}

/// Forwards TLS unread if its hello matches the endpoint.
pub(super) async fn forward_matching_tls(
    gate: &GateInner,
    mut client: impl ByteStream + 'static,
    read_ahead: Vec<u8>,
    endpoint: &Endpoint,
    mut record: OpenRecord,
    mut upstream: TcpStream,
) -> io::Result<()> {
    let hello = read_matching_hello(gate, &mut client, read_ahead, endpoint, &mut record).await?;
    let mut client = CountingStream::new(client, hello.bytes, record.traffic());
    copy_streams(&mut client, &mut upstream).await
}

/// Reads a hello that must match the endpoint; otherwise records the refusal and sends an alert.
async fn read_matching_hello(
    gate: &GateInner,
    client: &mut impl ByteStream,
    read_ahead: Vec<u8>,
    endpoint: &Endpoint,
    record: &mut OpenRecord,
) -> io::Result<TlsClientHello> {
    let hello = match read_hello(client, read_ahead, gate.limits.head_timeout).await {
        Ok(hello) => hello,
        Err(error) => {
            record_refusal(record, EgressReason::UnsupportedProtocol);
            return Err(error);
        }
    };
    let reason = match hello.server_name.as_deref().map(Host::parse) {
        Some(Ok(host)) if host == endpoint.host => return Ok(hello),
        Some(_) => EgressReason::NameMismatch,
        None => EgressReason::NoServerName,
    };
    record_refusal(record, reason);
    client.write_all(&UNRECOGNIZED_NAME).await?;
    Err(io::Error::other("the TLS client hello is for another host"))
}

/// Terminates TLS for the host and serves the requests, which must all be for that host.
async fn serve_inspected(
    gate: &Arc<GateInner>,
    client: impl ByteStream + 'static,
    hello: TlsClientHello,
    endpoint: Endpoint,
    record: OpenRecord,
) -> io::Result<()> {
    let config = gate
        .authority
        .server_config(&endpoint.host)
        .map_err(io::Error::other)?;
    let client = CountingStream::new(client, hello.bytes, record.traffic());
    let accept = TlsAcceptor::from(config).accept(client);
    let client = tokio::time::timeout(gate.limits.head_timeout, accept).await??;
    let origin = OriginConnection::https(record.listener(), endpoint);
    // Each request has its own record; this one belongs to the connection.
    serve_origin(gate, client, origin).await;
    drop(record);
    Ok(())
}

/// Copies both directions until both end.
pub(super) async fn copy_streams(
    client: &mut impl ByteStream,
    upstream: &mut TcpStream,
) -> io::Result<()> {
    copy_bidirectional_with_sizes(client, upstream, COPY_BUFFER_BYTES, COPY_BUFFER_BYTES).await?;
    Ok(())
}
