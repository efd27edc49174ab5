//! Serves a site over HTTP, with and without TLS.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{CONTENT_TYPE, HOST, HeaderName, HeaderValue, LOCATION};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::page::{SitePage, SitePages};
use super::visit_log::VisitLog;

type FakeSiteBody = UnsyncBoxBody<Bytes, Infallible>;

/// The interval between lines of an endless page.
const ENDLESS_INTERVAL: Duration = Duration::from_millis(20);

/// A site on one port.
#[derive(Clone)]
pub(super) struct FakeSite {
    pub(super) tls: Option<TlsAcceptor>,
    pub(super) pages: SitePages,
    pub(super) visits: VisitLog,
}

/// Serves all connections.
pub(super) async fn serve(listener: TcpListener, site: FakeSite) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let site = site.clone();
        connections.spawn(async move {
            match site.tls.clone() {
                Some(tls) => {
                    if let Ok(stream) = tls.accept(stream).await {
                        site.serve_connection(stream).await;
                    }
                }
                None => site.serve_connection(stream).await,
            }
        });
        while connections.try_join_next().is_some() {}
    }
}

impl FakeSite {
    async fn serve_connection(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let service =
            service_fn(|request| async { Ok::<_, Infallible>(self.handle_request(request).await) });
        let connection = hyper::server::conn::http1::Builder::new();
        let connection = connection.serve_connection(TokioIo::new(stream), service);
        // Broken connections need no handling here.
        drop(connection.await);
    }

    async fn handle_request(&self, request: Request<Incoming>) -> Response<FakeSiteBody> {
        self.visits.add(self.format_request(&request));
        match self.pages.get(request.uri().path()) {
            None => {
                let mut response = Response::new(full_body("there is no such page\n"));
                *response.status_mut() = StatusCode::NOT_FOUND;
                response
            }
            Some(SitePage::File { kind, bytes }) => {
                let mut response = Response::new(full_body(bytes.clone()));
                let kind = HeaderValue::from_static(kind);
                response.headers_mut().insert(CONTENT_TYPE, kind);
                response
            }
            Some(SitePage::Redirect(to)) => {
                let mut response = Response::new(full_body(""));
                *response.status_mut() = StatusCode::FOUND;
                let to = HeaderValue::try_from(to).expect("an address for a header");
                response.headers_mut().insert(LOCATION, to);
                response
            }
            Some(SitePage::Echo) => echo(request, &self.visits).await,
            Some(SitePage::Endless) => {
                let lines = stream::unfold((), |()| async {
                    tokio::time::sleep(ENDLESS_INTERVAL).await;
                    Some((Ok(Frame::data(Bytes::from_static(b"line\n"))), ()))
                });
                Response::new(StreamBody::new(lines).boxed_unsync())
            }
        }
    }

    fn format_request(&self, request: &Request<Incoming>) -> String {
        let host = request.headers().get(HOST).map(HeaderValue::as_bytes);
        let host = String::from_utf8_lossy(host.unwrap_or_default()).into_owned();
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let (method, path) = (request.method(), request.uri());
        format!("{method} {scheme}://{host}{path}")
    }
}

fn full_body(bytes: impl Into<Bytes>) -> FakeSiteBody {
    Full::new(bytes.into()).boxed_unsync()
}

async fn echo(request: Request<Incoming>, visits: &VisitLog) -> Response<FakeSiteBody> {
    let (head, body) = request.into_parts();
    let mut text = Vec::new();
    let mut response = Response::new(full_body(""));
    for (name, value) in &head.headers {
        text.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\n"].concat());
        let shown = String::from_utf8_lossy(value.as_bytes());
        visits.add(format!("{name}: {shown}"));
        if let Ok(name) = HeaderName::try_from(format!("x-echo-{name}")) {
            response.headers_mut().append(name, value.clone());
        }
    }
    if let Ok(body) = body.collect().await {
        text.extend(body.to_bytes());
    }
    *response.body_mut() = full_body(text);
    response
}
