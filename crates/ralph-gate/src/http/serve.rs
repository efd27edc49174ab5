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
use ralph_core::net::{Decider, Decision, Endpoint, Reason};

use super::alarm::Alarm;
use super::body::{Body, full};
use super::forward::forward;
use super::tunnel::{self, Tunnel};
use super::{Refusal, target};
use crate::dns::Behind;
use crate::gate::Inner;
use crate::{Listener, Stream};

/// What answers a request.
pub(crate) type Service<'a> = Pin<Box<dyn Future<Output = Response<Body>> + Send + 'a>>;

/// Reads requests from a connection and has each answered, until either side is done.
///
/// How it ends is the other side's business: a broken connection has no one left to be told. What
/// was no request at all is written down, because nobody has decided about it.
pub(crate) async fn connection<S, F>(gate: &Inner, listener: Listener, stream: S, answer: F)
where
    S: Stream + 'static,
    F: Fn(Request<Incoming>) -> Service<'static>,
{
    let service = service_fn(|request| {
        let response = answer(request);
        async move { Ok::<_, Infallible>(response.await) }
    });
    let limits = &gate.limits;
    let served = http1::Builder::new()
        .timer(Alarm::default())
        .header_read_timeout(limits.head_time)
        .max_buf_size(limits.head_bytes.max(8 * 1024))
        .max_headers(limits.head_fields)
        .half_close(false)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    if let Err(error) = served.await
        && error.is_parse()
    {
        let decision = Decision::denied(Reason::Malformed, Decider::Gate);
        drop(gate.book.open_text(listener, "", 0, decision));
    }
}

/// Serves the HTTP proxy.
pub(crate) async fn serve_proxy(gate: &Arc<Inner>, stream: impl Stream + 'static) {
    let tunnel: Arc<Mutex<Option<Tunnel>>> = Arc::default();
    let opened = tunnel.clone();
    let answer = {
        let gate = gate.clone();
        move |request: Request<Incoming>| -> Service<'static> {
            let (gate, opened) = (gate.clone(), opened.clone());
            Box::pin(async move {
                if request.method() != Method::CONNECT {
                    return proxied(&gate, request).await;
                }
                match tunnel::open(&gate, request).await {
                    Ok(tunnel) => {
                        *opened.lock().unwrap_or_else(PoisonError::into_inner) = Some(tunnel);
                        Response::new(full(""))
                    }
                    Err(refusal) => refusal.response(),
                }
            })
        }
    };
    connection(gate, Listener::Proxy, stream, answer).await;
    let tunnel = tunnel.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(tunnel) = tunnel {
        tunnel::carry(gate, tunnel).await;
    }
}

async fn proxied(gate: &Inner, request: Request<Incoming>) -> Response<Body> {
    let forwarded = match target::of_proxy(&request) {
        Ok(endpoint) => forward(gate, Listener::Proxy, Scheme::HTTP, endpoint, request).await,
        Err(refusal) => Err(malformed(gate, Listener::Proxy, &request, refusal)),
    };
    forwarded.unwrap_or_else(|refusal| refusal.response())
}

/// Serves plain HTTP that was sent to the address of a name.
pub(crate) async fn serve_http(
    gate: &Arc<Inner>,
    stream: impl Stream + 'static,
    address: Option<SocketAddr>,
) {
    let Ok(expected) = expected(gate, address, 80) else {
        return nobody(gate, Listener::Http, address, 80);
    };
    serve_origin(gate, stream, Origin::http(Listener::Http, expected)).await;
}

/// Returns who lives at an address; an address that nobody has is an error.
pub(super) fn expected(
    gate: &Inner,
    address: Option<SocketAddr>,
    port: u16,
) -> Result<Option<Endpoint>, ()> {
    let Some(address) = address else {
        return Ok(None);
    };
    match gate.names().behind(address.ip()) {
        Behind::Anybody => Ok(None),
        Behind::Nobody => Err(()),
        Behind::Name(host) => Ok(Some(Endpoint {
            host: host.clone(),
            port,
        })),
    }
}

/// Writes down a connection to an address that nobody has.
pub(super) fn nobody(gate: &Inner, listener: Listener, address: Option<SocketAddr>, port: u16) {
    let text = address.map(|address| address.ip().to_string());
    let decision = Decision::denied(Reason::NameMismatch, Decider::Gate);
    let text = text.unwrap_or_default();
    drop(gate.book.open_text(listener, &text, port, decision));
}

/// What is known about the requests of a connection before the first one.
#[derive(Clone)]
pub(super) struct Origin {
    listener: Listener,
    scheme: Scheme,
    port: u16,
    expected: Option<Endpoint>,
}

impl Origin {
    pub(super) fn http(listener: Listener, expected: Option<Endpoint>) -> Self {
        Self {
            listener,
            scheme: Scheme::HTTP,
            port: 80,
            expected,
        }
    }

    /// TLS was opened for this host, so that no request in it can be for another.
    pub(super) fn https(listener: Listener, expected: Endpoint) -> Self {
        Self {
            listener,
            scheme: Scheme::HTTPS,
            port: 443,
            expected: Some(expected),
        }
    }
}

/// Serves requests that name their host in `Host`.
pub(super) async fn serve_origin(gate: &Arc<Inner>, stream: impl Stream + 'static, origin: Origin) {
    let listener = origin.listener;
    let answer = {
        let gate = gate.clone();
        move |request: Request<Incoming>| -> Service<'static> {
            let (gate, origin) = (gate.clone(), origin.clone());
            Box::pin(async move { answer_origin(&gate, origin, request).await })
        }
    };
    connection(gate, listener, stream, answer).await;
}

async fn answer_origin(gate: &Inner, origin: Origin, request: Request<Incoming>) -> Response<Body> {
    let found = if request.method() == Method::CONNECT {
        let text = "only the proxy takes CONNECT";
        Err(Refusal::bad(Reason::UnsupportedProtocol, text))
    } else {
        target::of_origin(&request, origin.expected.as_ref(), origin.port)
    };
    let forwarded = match found {
        Ok(endpoint) => forward(gate, origin.listener, origin.scheme, endpoint, request).await,
        Err(refusal) => Err(malformed(gate, origin.listener, &request, refusal)),
    };
    forwarded.unwrap_or_else(|refusal| refusal.response())
}

/// Writes down a request that is for nobody.
pub(super) fn malformed(
    gate: &Inner,
    listener: Listener,
    request: &Request<Incoming>,
    refusal: Refusal,
) -> Refusal {
    let named = request
        .uri()
        .authority()
        .map(|authority| authority.as_str().as_bytes())
        .or_else(|| request.headers().get("host").map(HeaderValue::as_bytes))
        .unwrap_or_default();
    let named = String::from_utf8_lossy(named);
    let mut record = gate.book.open_text(listener, &named, 0, refusal.decision);
    record.set_request(request.method().as_str(), request.uri().path());
    record.set_status(refusal.status.as_u16());
    refusal
}
