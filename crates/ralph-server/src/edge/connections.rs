//! Accepts connections and serves their requests.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::limits::{
    DRAIN_TIMEOUT, HEADER_TIMEOUT, MAX_CONNECTIONS, MAX_READ_HEADER_BYTES, MAX_READ_HEADERS,
};
use super::request_service::RequestService;
use crate::auth::{ConnectionInfo, WebScheme};

/// The delay after a failed `accept`.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// A socket that accepts connections.
pub(crate) struct ServerListener {
    pub(crate) socket: TcpListener,
    pub(crate) address: SocketAddr,
    /// Encrypts the connections.
    pub(crate) tls: Option<TlsAcceptor>,
}

impl ServerListener {
    /// Returns the scheme of its addresses.
    pub(crate) fn scheme(&self) -> WebScheme {
        match self.tls {
            Some(_) => WebScheme::Https,
            None => WebScheme::Http,
        }
    }
}

impl fmt::Debug for ServerListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerListener")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// Serves the connections of listeners until `stop` becomes true. Open requests then have a moment to
/// end.
pub(crate) async fn serve_connections(
    listeners: Vec<ServerListener>,
    service: Arc<RequestService>,
    stop: watch::Receiver<bool>,
) {
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut accepting = JoinSet::new();
    for listener in listeners {
        let (service, permits) = (service.clone(), permits.clone());
        accepting.spawn(accept_connections(listener, service, permits, stop.clone()));
    }
    while accepting.join_next().await.is_some() {}
}

async fn accept_connections(
    listener: ServerListener,
    service: Arc<RequestService>,
    permits: Arc<Semaphore>,
    stop: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    let mut stopped = pin!(wait_for_stop(stop.clone()));
    loop {
        let accepted = async {
            let permit = permits.clone().acquire_owned().await;
            (listener.socket.accept().await, permit)
        };
        tokio::select! {
            (accepted, permit) = accepted => match accepted {
                Ok((stream, peer)) => {
                    let tls = listener.tls.clone();
                    let (service, stop) = (service.clone(), stop.clone());
                    connections.spawn(async move {
                        let _permit = permit;
                        serve_connection(stream, peer, tls, service, stop).await;
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    sleep(ACCEPT_RETRY_DELAY).await;
                }
            },
            Some(_) = connections.join_next() => {}
            () = &mut stopped => break,
        }
    }
    drop(listener);
    let rest = async { while connections.join_next().await.is_some() {} };
    if timeout(DRAIN_TIMEOUT, rest).await.is_err() {
        tracing::debug!("requests that did not end in time are aborted");
    }
    connections.shutdown().await;
}

async fn wait_for_stop(mut stop: watch::Receiver<bool>) {
    // A dropped sender stops the server, too.
    let _stopped = stop.wait_for(|stop| *stop).await;
}

async fn serve_connection(
    stream: TcpStream,
    peer: SocketAddr,
    tls: Option<TlsAcceptor>,
    service: Arc<RequestService>,
    stop: watch::Receiver<bool>,
) {
    // Without this option small frames only arrive a little later.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot send small packets at once");
    }
    let served = async {
        let local = stream.local_addr()?;
        let scheme = match tls {
            Some(_) => WebScheme::Https,
            None => WebScheme::Http,
        };
        let ends = ConnectionInfo {
            local,
            peer,
            scheme,
        };
        match tls {
            Some(tls) => {
                let stream = timeout(HEADER_TIMEOUT, tls.accept(stream)).await;
                let stream = stream.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
                serve_stream(stream, ends, service, stop).await
            }
            None => serve_stream(stream, ends, service, stop).await,
        }
    };
    if let Err(error) = served.await {
        tracing::debug!(%peer, %error, "a connection ended early");
    }
}

async fn serve_stream(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    ends: ConnectionInfo,
    service: Arc<RequestService>,
    stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let service = service.clone();
        async move {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(ends);
            Ok::<_, Infallible>(service.serve(request).await)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_headers(MAX_READ_HEADERS)
        .max_header_size(MAX_READ_HEADER_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => return ended.map_err(io::Error::other),
        () = wait_for_stop(stop) => connection.as_mut().graceful_shutdown(),
    }
    connection.await.map_err(io::Error::other)
}
