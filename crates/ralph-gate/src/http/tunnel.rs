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

/// Decides about a tunnel and connects to its endpoint.
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
    let is_read_here = endpoint.port == 80 || gate.inspects(&endpoint);
    let outside = if is_read_here {
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
        upstream: outside,
        record,
    })
}

/// Returns the endpoint of a `CONNECT`; refuses a `Host` header that contradicts it.
fn connect_target(request: &Request<Incoming>) -> Result<Endpoint, HttpRefusal> {
    let authority = request.uri().authority();
    if authority.is_none_or(|authority| authority.port().is_none()) {
        return Err(HttpRefusal::bad_request(
            EgressReason::Malformed,
            "CONNECT wants host:port",
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
        upstream: outside,
        record,
    } = tunnel;
    let Ok(upgraded) = upgrade.await else {
        return;
    };
    let inside = TokioIo::new(upgraded);
    let carried = match outside {
        Some(outside) if endpoint.port == 443 => {
            https::serve_tunnel(gate, inside, &endpoint, record, Some(outside)).await
        }
        Some(outside) => forward_raw(gate, inside, &endpoint, record, outside).await,
        None if endpoint.port == 80 => {
            drop(record);
            let origin = OriginConnection::http(SandboxListener::Proxy, Some(endpoint));
            serve_origin(gate, inside, origin).await;
            Ok(())
        }
        None => https::serve_tunnel(gate, inside, &endpoint, record, None).await,
    };
    // The peer that broke the connection knows about it; the record contains the byte counts.
    drop(carried);
}

/// Forwards a tunnel to an explicitly allowed port in any protocol. If the client speaks first and
/// starts TLS, the hello must be for the right host.
async fn forward_raw(
    gate: &GateInner,
    mut inside: impl ByteStream + 'static,
    endpoint: &Endpoint,
    record: OpenRecord,
    mut outside: TcpStream,
) -> io::Result<()> {
    let (mut first, mut greeting) = (Vec::with_capacity(1024), Vec::with_capacity(1024));
    tokio::select! {
        read = inside.read_buf(&mut first) => { read?; }
        read = outside.read_buf(&mut greeting) => { read?; }
    }
    if first.first() == Some(&TLS_HANDSHAKE_BYTE) {
        return https::forward_matching_tls(gate, inside, first, endpoint, record, outside).await;
    }
    let mut inside = CountingStream::new(inside, first, record.traffic());
    inside.write_all(&greeting).await?;
    https::copy_streams(&mut inside, &mut outside).await
}

/// Records that the traffic in a tunnel was refused.
pub(super) fn record_refusal(record: &mut OpenRecord, reason: EgressReason) {
    record.set_decision(EgressDecision::denied(reason, EgressDecider::Gate));
}
