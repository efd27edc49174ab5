//! Reads requests from a connection.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use hyper::body::Incoming;
use hyper::header::HeaderValue;
use hyper::http::uri::Scheme;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use ralph_core::net::{EgressDecider, EgressDecision, EgressReason, Endpoint};

use super::body::{GateBody, full_body};
use super::forward::forward;
use super::reusable_timer::ReusableTimer;
use super::tunnel::{self, Tunnel};
use super::{HttpRefusal, target};
use crate::dns::DnsAddressOwner;
use crate::gate::GateInner;
use crate::{ByteStream, SandboxListener};

/// The future that answers a request.
pub(crate) type HandlerFuture<'a> = Pin<Box<dyn Future<Output = Response<GateBody>> + Send + 'a>>;

/// Reads requests from a connection and answers each with the handler, until either side ends it.
///
/// Connection errors are not reported, because the peer is gone. Malformed requests are recorded
/// here, because no handler sees them.
pub(crate) async fn serve_connection<S, F>(
    gate: &GateInner,
    listener: SandboxListener,
    stream: S,
    handler: F,
) where
    S: ByteStream + 'static,
    F: Fn(Request<Incoming>) -> HandlerFuture<'static>,
{
    let service = service_fn(|request| {
        let response = handler(request);
        async move { Ok::<_, Infallible>(response.await) }
    });
    let limits = &gate.limits;
    let served = http1::Builder::new()
        .timer(ReusableTimer::default())
        .header_read_timeout(limits.head_timeout)
        .max_buf_size(limits.head_bytes.max(8 * 1024))
        .max_headers(limits.head_fields)
        .half_close(false)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    if let Err(error) = served.await
        && error.is_parse()
    {
        let decision = EgressDecision::denied(EgressReason::Malformed, EgressDecider::Gate);
        drop(gate.audit_log.open_unparsed(listener, "", 0, decision));
    }
}

/// Serves the HTTP proxy.
pub(crate) async fn serve_proxy(gate: &Arc<GateInner>, stream: impl ByteStream + 'static) {
    let tunnel: Arc<Mutex<Option<Tunnel>>> = Arc::default();
    let opened = tunnel.clone();
    let handler = {
        let gate = gate.clone();
        move |request: Request<Incoming>| -> HandlerFuture<'static> {
            let (gate, opened) = (gate.clone(), opened.clone());
            Box::pin(async move {
                if request.method() != Method::CONNECT {
                    return handle_proxy_request(&gate, request).await;
                }
                match tunnel::open(&gate, request).await {
                    Ok(tunnel) => {
                        *opened.lock().unwrap_or_else(PoisonError::into_inner) = Some(tunnel);
                        Response::new(full_body(""))
                    }
                    Err(refusal) => refusal.to_response(),
                }
            })
        }
    };
    serve_connection(gate, SandboxListener::Proxy, stream, handler).await;
    let tunnel = tunnel.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(tunnel) = tunnel {
        tunnel::run_tunnel(gate, tunnel).await;
    }
}

async fn handle_proxy_request(gate: &GateInner, request: Request<Incoming>) -> Response<GateBody> {
    let forwarded = match target::proxy_target(&request) {
        Ok(endpoint) => {
            forward(
                gate,
                SandboxListener::Proxy,
                Scheme::HTTP,
                endpoint,
                request,
            )
            .await
        }
        Err(refusal) => Err(record_malformed(
            gate,
            SandboxListener::Proxy,
            &request,
            refusal,
        )),
    };
    forwarded.unwrap_or_else(|refusal| refusal.to_response())
}

/// Serves plain HTTP sent to port 80 of a name's address.
pub(crate) async fn serve_http(
    gate: &Arc<GateInner>,
    stream: impl ByteStream + 'static,
    address: Option<SocketAddr>,
) {
    let Ok(expected) = expected_endpoint(gate, address, 80) else {
        return record_unassigned_address(gate, SandboxListener::Http, address, 80);
    };
    serve_origin(
        gate,
        stream,
        OriginConnection::http(SandboxListener::Http, expected),
    )
    .await;
}

/// Returns the endpoint that an address is assigned to, or `None` for an address outside the block
/// for names. An unassigned address in the block is an error.
pub(super) fn expected_endpoint(
    gate: &GateInner,
    address: Option<SocketAddr>,
    port: u16,
) -> Result<Option<Endpoint>, ()> {
    let Some(address) = address else {
        return Ok(None);
    };
    match gate.names().owner(address.ip()) {
        DnsAddressOwner::NotMapped => Ok(None),
        DnsAddressOwner::Unassigned => Err(()),
        DnsAddressOwner::Name(host) => Ok(Some(Endpoint {
            host: host.clone(),
            port,
        })),
    }
}

/// Records a connection to an unassigned address.
pub(super) fn record_unassigned_address(
    gate: &GateInner,
    listener: SandboxListener,
    address: Option<SocketAddr>,
    port: u16,
) {
    let text = address.map(|address| address.ip().to_string());
    let decision = EgressDecision::denied(EgressReason::NameMismatch, EgressDecider::Gate);
    let text = text.unwrap_or_default();
    drop(
        gate.audit_log
            .open_unparsed(listener, &text, port, decision),
    );
}

/// A connection whose requests name their host in the `Host` header.
#[derive(Clone)]
pub(super) struct OriginConnection {
    listener: SandboxListener,
    scheme: Scheme,
    port: u16,
    expected: Option<Endpoint>,
}

impl OriginConnection {
    pub(super) fn http(listener: SandboxListener, expected: Option<Endpoint>) -> Self {
        Self {
            listener,
            scheme: Scheme::HTTP,
            port: 80,
            expected,
        }
    }

    /// Expects all requests to be for the host whose TLS was terminated.
    pub(super) fn https(listener: SandboxListener, expected: Endpoint) -> Self {
        Self {
            listener,
            scheme: Scheme::HTTPS,
            port: 443,
            expected: Some(expected),
        }
    }
}

/// Serves the requests of a connection.
pub(super) async fn serve_origin(
    gate: &Arc<GateInner>,
    stream: impl ByteStream + 'static,
    origin: OriginConnection,
) {
    let listener = origin.listener;
    let handler = {
        let gate = gate.clone();
        move |request: Request<Incoming>| -> HandlerFuture<'static> {
            let (gate, origin) = (gate.clone(), origin.clone());
            Box::pin(async move { handle_origin_request(&gate, origin, request).await })
        }
    };
    serve_connection(gate, listener, stream, handler).await;
}

async fn handle_origin_request(
    gate: &GateInner,
    origin: OriginConnection,
    request: Request<Incoming>,
) -> Response<GateBody> {
    let found = if request.method() == Method::CONNECT {
        let text = "only the proxy accepts `CONNECT`";
        Err(HttpRefusal::bad_request(
            EgressReason::UnsupportedProtocol,
            text,
        ))
    } else {
        target::origin_target(&request, origin.expected.as_ref(), origin.port)
    };
    let forwarded = match found {
        Ok(endpoint) => forward(gate, origin.listener, origin.scheme, endpoint, request).await,
        Err(refusal) => Err(record_malformed(gate, origin.listener, &request, refusal)),
    };
    forwarded.unwrap_or_else(|refusal| refusal.to_response())
}

/// Records the refusal of a request without a valid target, and returns it.
pub(super) fn record_malformed(
    gate: &GateInner,
    listener: SandboxListener,
    request: &Request<Incoming>,
    refusal: HttpRefusal,
) -> HttpRefusal {
    let host = request
        .uri()
        .authority()
        .map(|authority| authority.as_str().as_bytes())
        .or_else(|| request.headers().get("host").map(HeaderValue::as_bytes))
        .unwrap_or_default();
    let host = String::from_utf8_lossy(host);
    let mut record = gate
        .audit_log
        .open_unparsed(listener, &host, 0, refusal.decision);
    record.set_request(request.method().as_str(), request.uri().path());
    record.set_status(refusal.status.as_u16());
    refusal
}
