//! The HTTP client for upstream requests, with reusable connections.

use std::error::Error;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::Uri;
use hyper::http::uri::{Authority, Scheme};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use ralph_core::net::Endpoint;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::body::{BoxError, GateBody};
use crate::dial::{DialError, Dialer};

/// Sends requests. Its connections belong to one sandbox.
pub(crate) type GateHttpClient = legacy::Client<GateHttpConnector, GateBody>;

/// The target of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HttpOrigin {
    pub(crate) scheme: Scheme,
    pub(crate) authority: Authority,
}

/// The time after which an idle connection is closed.
const IDLE_TIMEOUT: Duration = Duration::from_mins(1);
/// The number of idle connections to a host that stay open.
const MAX_IDLE_CONNECTIONS: usize = 64;

pub(crate) fn new_client(connector: GateHttpConnector) -> GateHttpClient {
    legacy::Client::builder(TokioExecutor::new())
        .pool_idle_timeout(IDLE_TIMEOUT)
        .pool_max_idle_per_host(MAX_IDLE_CONNECTIONS)
        .pool_timer(TokioTimer::new())
        .set_host(false)
        .build(connector)
}

/// Returns the dial error that caused a request to fail, if any.
pub(crate) fn find_dial_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a DialError> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        cause = error.source();
    }
    None
}

/// Opens upstream connections.
#[derive(Clone)]
pub(crate) struct GateHttpConnector {
    pub(crate) dialer: Dialer,
    pub(crate) tls: Arc<ClientConfig>,
}

impl GateHttpConnector {
    async fn connect(self, uri: Uri) -> Result<TokioIo<UpstreamStream>, BoxError> {
        let is_tls = uri.scheme_str() == Some("https");
        let default_port = if is_tls { 443 } else { 80 };
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        let endpoint = Endpoint::parse(authority, default_port)?;
        let plain = self.dialer.dial(&endpoint).await?;
        if !is_tls {
            return Ok(TokioIo::new(UpstreamStream::Plain(plain)));
        }
        let name = match endpoint.host.address() {
            Some(address) => ServerName::from(address),
            None => ServerName::try_from(endpoint.host.to_string())?,
        };
        let tls = TlsConnector::from(self.tls).connect(name, plain);
        let tls = tokio::time::timeout(self.dialer.connect_timeout, tls)
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
            .map_err(|error| tls_error(endpoint, &error))?;
        Ok(TokioIo::new(UpstreamStream::Tls(Box::new(tls))))
    }
}

/// Returns the reason a TLS handshake failed.
fn tls_error(endpoint: Endpoint, error: &io::Error) -> DialError {
    let why = error.to_string();
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    match inner {
        Some(rustls::Error::InvalidCertificate(_)) => DialError::Untrusted { endpoint, why },
        Some(_) | None => DialError::Unreachable { endpoint, why },
    }
}

impl tower_service::Service<Uri> for GateHttpConnector {
    type Response = TokioIo<UpstreamStream>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<TokioIo<UpstreamStream>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        Box::pin(self.clone().connect(uri))
    }
}

/// An upstream connection.
pub(crate) enum UpstreamStream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Connection for UpstreamStream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for UpstreamStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for UpstreamStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
