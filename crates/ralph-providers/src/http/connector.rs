//! Opens connections: TCP, a tunnel through a proxy, TLS.

use std::error::Error;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::Uri;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::TlsConnector;
use tower_service::Service;

type ConnectError = Box<dyn Error + Send + Sync>;
type ConnectResult = Result<TokioIo<ClientStream>, ConnectError>;
type ConnectFuture = Pin<Box<dyn Future<Output = ConnectResult> + Send>>;

/// Connects to a server, through a proxy if one is configured for its address.
#[derive(Clone)]
pub(super) struct ProxyConnector {
    pub(super) direct: DirectConnector,
    pub(super) proxies: Arc<Matcher>,
    pub(super) timeout: Duration,
}

impl ProxyConnector {
    async fn connect(mut self, server: Uri) -> ConnectResult {
        let Some(proxy) = self.proxies.intercept(&server) else {
            return self.direct.call(server).await;
        };
        if server.scheme_str() != Some("https") {
            let mut stream = self.direct.call(proxy.uri().clone()).await?;
            stream.inner_mut().is_proxied = true;
            return Ok(stream);
        }
        let mut tunnel = Tunnel::new(proxy.uri().clone(), self.direct.clone());
        if let Some(credential) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(credential.clone());
        }
        let stream = tunnel.call(server.clone()).await?;
        self.direct.secure(&server, stream.into_inner()).await
    }
}

impl Service<Uri> for ProxyConnector {
    type Response = TokioIo<ClientStream>;
    type Error = ConnectError;
    type Future = ConnectFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, server: Uri) -> ConnectFuture {
        let (timeout, connect) = (self.timeout, self.clone().connect(server));
        Box::pin(async move {
            match tokio::time::timeout(timeout, connect).await {
                Ok(connected) => connected,
                Err(_) => {
                    Err(io::Error::new(io::ErrorKind::TimedOut, "operation timed out").into())
                }
            }
        })
    }
}

/// Connects to the server of an address, with TLS for `https`.
#[derive(Clone)]
pub(super) struct DirectConnector {
    tcp: HttpConnector,
    /// Set by the first connection with TLS: loading the certificates of this machine takes a while.
    tls: Arc<OnceLock<TlsConnector>>,
}

impl DirectConnector {
    pub(super) fn new() -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        let tls = Arc::default();
        Self { tcp, tls }
    }

    fn tls(&self) -> Result<TlsConnector, rustls::Error> {
        if let Some(tls) = self.tls.get() {
            return Ok(tls.clone());
        }
        let mut roots = RootCertStore::empty();
        // Without any certificate, each connection fails with a message about its authority.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let tls = TlsConnector::from(Arc::new(config));
        Ok(self.tls.get_or_init(|| tls).clone())
    }

    async fn connect(mut self, server: Uri) -> ConnectResult {
        let stream = self.tcp.call(server.clone()).await?;
        if server.scheme_str() == Some("https") {
            self.secure(&server, stream.into_inner()).await
        } else {
            Ok(ClientStream::new(stream.into_inner()))
        }
    }

    async fn secure(
        &self,
        server: &Uri,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    ) -> ConnectResult {
        let host = server.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = match host.parse::<IpAddr>() {
            Ok(address) => ServerName::from(address),
            Err(_) => ServerName::try_from(host.to_owned())?,
        };
        Ok(ClientStream::new(self.tls()?.connect(name, stream).await?))
    }
}

impl Service<Uri> for DirectConnector {
    type Response = TokioIo<ClientStream>;
    type Error = ConnectError;
    type Future = ConnectFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, server: Uri) -> ConnectFuture {
        Box::pin(self.clone().connect(server))
    }
}

trait DuplexIo: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> DuplexIo for T {}

/// A connection to a server or a proxy.
pub(super) struct ClientStream {
    io: Box<dyn DuplexIo>,
    /// Whether requests go to a proxy, which needs the absolute URL of each.
    is_proxied: bool,
}

impl ClientStream {
    fn new(io: impl DuplexIo + 'static) -> TokioIo<Self> {
        TokioIo::new(Self {
            io: Box::new(io),
            is_proxied: false,
        })
    }
}

impl Connection for ClientStream {
    fn connected(&self) -> Connected {
        Connected::new().proxy(self.is_proxied)
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
