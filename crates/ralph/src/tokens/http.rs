//! One request, and its answer.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use super::base_url::BaseUrl;

/// How long all of it may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How much of an answer is read.
const MAX_BODY_BYTES: usize = 64 << 10;

/// What was answered.
#[derive(Debug)]
pub(crate) struct TokenHttpResponse {
    pub(crate) status: u16,
    /// The body; nothing of it if it is too long.
    pub(crate) body: Bytes,
}

/// Posts JSON to a path below an address. Redirects are not followed: the credential is for this host.
pub(super) async fn post(
    base: &BaseUrl,
    path: &str,
    fields: Vec<(HeaderName, HeaderValue)>,
    body: String,
) -> io::Result<TokenHttpResponse> {
    let mut request = request(Method::POST, base, path, Bytes::from(body))?;
    let json = HeaderValue::from_static("application/json");
    request.headers_mut().insert(CONTENT_TYPE, json);
    request.headers_mut().extend(fields);
    exchange(base, request).await
}

/// Gets what is at a path below an address.
pub(crate) async fn get(base: &BaseUrl, path: &str) -> io::Result<TokenHttpResponse> {
    let request = request(Method::GET, base, path, Bytes::new())?;
    exchange(base, request).await
}

fn request(
    method: Method,
    base: &BaseUrl,
    path: &str,
    body: Bytes,
) -> io::Result<Request<Full<Bytes>>> {
    Request::builder()
        .method(method)
        .uri(format!("{}{path}", base.path()))
        .header(HOST, base.authority())
        .header(CONNECTION, "close")
        .body(Full::new(body))
        .map_err(io::Error::other)
}

async fn exchange(base: &BaseUrl, request: Request<Full<Bytes>>) -> io::Result<TokenHttpResponse> {
    let exchange = async {
        let stream = TcpStream::connect((base.host(), base.port())).await?;
        if base.is_encrypted() {
            let name = ServerName::try_from(base.host().to_owned()).map_err(io::Error::other)?;
            send(tls_connector()?.connect(name, stream).await?, request).await
        } else {
            send(stream, request).await
        }
    };
    tokio::time::timeout(TIMEOUT, exchange)
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

async fn send(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
) -> io::Result<TokenHttpResponse> {
    let handshake = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(io::Error::other)?;
    // Dropping the set ends the connection with us.
    let mut connections = JoinSet::new();
    connections.spawn(connection);
    let answer = sender.send_request(request).await;
    let answer = answer.map_err(io::Error::other)?;
    let status = answer.status().as_u16();
    let body = Limited::new(answer.into_body(), MAX_BODY_BYTES)
        .collect()
        .await;
    // What stands in a long or broken body decides nothing.
    let body = body
        .map(http_body_util::Collected::to_bytes)
        .unwrap_or_default();
    Ok(TokenHttpResponse { status, body })
}

fn tls_connector() -> io::Result<TlsConnector> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}
