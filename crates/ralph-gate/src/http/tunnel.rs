//! `CONNECT` tunnels.

use std::io;
use std::sync::Arc;

use hyper::Request;
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use ralph_core::net::{EgressDecider, EgressDecision, EgressReason, Endpoint};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::https;
use super::serve::{OriginConnection, record_malformed, serve_origin};
use super::{HttpRefusal, target};
use crate::audit::OpenRecord;
use crate::gate::GateInner;
use crate::stream::CountingStream;
use crate::{ByteStream, SandboxListener};

/// The copy buffer per direction of a tunnel, in bytes.
pub(super) const COPY_BUFFER_BYTES: usize = 16 * 1024;
/// The first byte of a TLS handshake.
const TLS_HANDSHAKE_BYTE: u8 = 0x16;

/// An accepted tunnel.
pub(super) struct Tunnel {
    upgrade: OnUpgrade,
    endpoint: Endpoint,
    /// The upstream connection, unless the gate terminates the tunnel itself.
    upstream: Option<TcpStream>,
    record: OpenRecord,
}

/// Accepts or refuses a tunnel, and connects to its endpoint unless the gate terminates it.
pub(super) async fn open(
    gate: &GateInner,
    mut request: Request<Incoming>,
) -> Result<Tunnel, HttpRefusal> {
    let endpoint = match connect_target(&request) {
        Ok(endpoint) => endpoint,
        Err(refusal) => {
            return Err(record_malformed(
                gate,
                SandboxListener::Proxy,
                &request,
                refusal,
            ));
        }
    };
    let decision = gate.decide(&endpoint);
    let mut record = gate.open_record(SandboxListener::Proxy, &endpoint, decision);
    record.set_request("CONNECT", "");
    if !decision.is_allowed() {
        record.set_status(403);
        return Err(HttpRefusal::blocked(
            gate.audit_log.run(),
            &endpoint,
            decision,
        ));
    }
    // The gate reads the requests in these tunnels and connects for each of them.
    let is_terminated = endpoint.port == 80 || gate.inspects(&endpoint);
    let upstream = if is_terminated {
        None
    } else {
        match gate.dialer.dial(&endpoint).await {
            Ok(stream) => Some(stream),
            Err(error) => {
                let refusal = HttpRefusal::from_dial_error(&error);
                record.set_decision(refusal.decision);
                record.set_status(refusal.status.as_u16());
                return Err(refusal);
            }
        }
    };
    record.set_status(200);
    Ok(Tunnel {
        upgrade: hyper::upgrade::on(&mut request),
        endpoint,
        upstream,
        record,
    })
}

/// Returns the endpoint of a `CONNECT`; refuses a `Host` header that contradicts it.
fn connect_target(request: &Request<Incoming>) -> Result<Endpoint, HttpRefusal> {
    let authority = request.uri().authority();
    if authority.is_none_or(|authority| authority.port().is_none()) {
        return Err(HttpRefusal::bad_request(
            EgressReason::Malformed,
            "`CONNECT` needs `host:port`",
        ));
    }
    let endpoint = target::uri_endpoint(request.uri(), 443)?;
    if request.headers().contains_key(hyper::header::HOST) {
        // Some clients omit the port in `Host`.
        return target::origin_target(request, Some(&endpoint), endpoint.port);
    }
    Ok(endpoint)
}

/// Runs a tunnel until it ends.
pub(super) async fn run_tunnel(gate: &Arc<GateInner>, tunnel: Tunnel) {
    let Tunnel {
        upgrade,
        endpoint,
        upstream,
        record,
    } = tunnel;
    let Ok(upgraded) = upgrade.await else {
        return;
    };
    let client = TokioIo::new(upgraded);
    let result = match upstream {
        Some(upstream) if endpoint.port == 443 => {
            https::serve_tunnel(gate, client, &endpoint, record, Some(upstream)).await
        }
        Some(upstream) => forward_raw(gate, client, &endpoint, record, upstream).await,
        None if endpoint.port == 80 => {
            drop(record);
            let origin = OriginConnection::http(SandboxListener::Proxy, Some(endpoint));
            serve_origin(gate, client, origin).await;
            Ok(())
        }
        None => https::serve_tunnel(gate, client, &endpoint, record, None).await,
    };
    // Errors are dropped: the peer that broke the connection knows about it, and the record contains
    // the byte counts.
    drop(result);
}

/// Forwards a tunnel to an explicitly allowed port in any protocol. If the client speaks first and
/// starts TLS, the hello must be for the right host.
async fn forward_raw(
    gate: &GateInner,
    mut client: impl ByteStream + 'static,
    endpoint: &Endpoint,
    record: OpenRecord,
    mut upstream: TcpStream,
) -> io::Result<()> {
    let (mut first_bytes, mut greeting) = (Vec::with_capacity(1024), Vec::with_capacity(1024));
    tokio::select! {
        read = client.read_buf(&mut first_bytes) => { read?; }
        read = upstream.read_buf(&mut greeting) => { read?; }
    }
    if first_bytes.first() == Some(&TLS_HANDSHAKE_BYTE) {
        return https::forward_matching_tls(gate, client, first_bytes, endpoint, record, upstream)
            .await;
    }
    let mut client = CountingStream::new(client, first_bytes, record.traffic());
    client.write_all(&greeting).await?;
    https::copy_streams(&mut client, &mut upstream).await
}

/// Records that the traffic in a tunnel was refused.
pub(super) fn record_refusal(record: &mut OpenRecord, reason: EgressReason) {
    record.set_decision(EgressDecision::denied(reason, EgressDecider::Gate));
}
