//! One request to an API, and its answer.

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

use super::address::BaseUrl;

/// How long all of it may take.
pub(super) const MOST_TIME: Duration = Duration::from_secs(30);

/// How much of an answer is read.
const MOST_ANSWER: usize = 64 << 10;

/// What an API answered.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// The start of the body; nothing of it if it is too long.
    pub(super) body: Bytes,
}

/// Posts JSON to a path below an address. Redirects are not followed: the credential is for this host.
pub(super) async fn post(
    base: &BaseUrl,
    path: &str,
    fields: Vec<(HeaderName, HeaderValue)>,
    body: String,
) -> io::Result<Answer> {
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(format!("{}{path}", base.path()))
        .header(HOST, base.authority())
        .header(CONNECTION, "close")
        .header(CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(body)))
        .map_err(io::Error::other)?;
    request.headers_mut().extend(fields);
    let exchange = async {
        let stream = TcpStream::connect((base.host(), base.port())).await?;
        if base.is_encrypted() {
            let name = ServerName::try_from(base.host().to_owned()).map_err(io::Error::other)?;
            send(connector()?.connect(name, stream).await?, request).await
        } else {
            send(stream, request).await
        }
    };
    tokio::time::timeout(MOST_TIME, exchange)
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

async fn send(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
) -> io::Result<Answer> {
    let handshake = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(io::Error::other)?;
    // Dropping the set ends the connection with us.
    let mut connections = JoinSet::new();
    connections.spawn(connection);
    let answer = sender.send_request(request).await;
    let answer = answer.map_err(io::Error::other)?;
    let status = answer.status().as_u16();
    let body = Limited::new(answer.into_body(), MOST_ANSWER)
        .collect()
        .await;
    // What stands in a long or broken body decides nothing.
    let body = body
        .map(http_body_util::Collected::to_bytes)
        .unwrap_or_default();
    Ok(Answer { status, body })
}

fn connector() -> io::Result<TlsConnector> {
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
