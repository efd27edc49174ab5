//! The path of one request: checks, body, handler, response.

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::uri::PathAndQuery;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use futures_util::FutureExt as _;
use tokio::time::{Instant, timeout};
use tower_service::Service as _;

use super::framework_errors::ErrorCompletion;
use super::limits::{RESPONSE_TIMEOUT, check_head};
use super::request_body::{discard_body, read_body, require_object};
use super::response_headers::{TransportSecurity, add_headers};
use crate::auth::{RequestGuard, random_id};
use crate::context::ServerContext;
use crate::live::{CloseCode, LiveStreams, wants_websocket};
use crate::pages::{opens_page, sign_in_page};
use crate::problem::Problem;
use crate::telemetry::{RouteLabel, ServerMetrics};

/// Serves requests: what all of them have in common.
#[derive(Debug)]
pub(crate) struct RequestService {
    router: Router,
    metrics: ServerMetrics,
    guard: RequestGuard,
    errors: ErrorCompletion,
    security: TransportSecurity,
    /// The path that a proxy may leave in front of each request's path.
    base_path: String,
    live: LiveStreams,
}

impl RequestService {
    pub(crate) fn new(router: Router, guard: RequestGuard, context: &ServerContext) -> Self {
        let app = &context.app;
        let environment = app.environment();
        let mut directories = Vec::new();
        if let Ok(state) = app.state_dir() {
            directories.push((state.root().to_owned(), "$RALPH_HOME"));
        }
        let home = environment.home().filter(|home| home.parent().is_some());
        directories.extend(home.map(|home| (PathBuf::from(home), "~")));
        Self {
            router,
            metrics: context.metrics.requests.clone(),
            security: if guard.has_https_name {
                TransportSecurity::Required
            } else {
                TransportSecurity::Unstated
            },
            guard,
            errors: ErrorCompletion {
                redactor: app.redactor(),
                directories,
            },
            base_path: context.web.base_path.clone(),
            live: context.live.clone(),
        }
    }

    /// Serves a request. There is always a response.
    pub(crate) async fn serve(&self, request: Request) -> Response {
        let id = random_id();
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let started = Instant::now();
        let response = match self.respond(request).await {
            Ok(response) => response,
            Err(problem) => problem.into_response(),
        };
        let mut response = self.errors.complete(response, &id).await;
        add_headers(response.headers_mut(), self.security, &id);
        let (status, duration) = (response.status(), started.elapsed());
        let route = response.extensions().get::<RouteLabel>();
        self.metrics.count_request(&method, route, status, duration);
        let milliseconds = duration.as_millis();
        let status = status.as_u16();
        if status >= 500 {
            tracing::warn!(%id, %method, path, status, milliseconds, "request failed");
        } else {
            tracing::debug!(%id, %method, path, status, milliseconds, "request");
        }
        response
    }

    async fn respond(&self, request: Request) -> Result<Response, Problem> {
        let (mut parts, body) = request.into_parts();
        parts.uri = self.without_base_path(parts.uri);
        let checked = check_head(&parts).and_then(|()| self.guard.check(&mut parts));
        if let Err(problem) = checked {
            if problem.status == StatusCode::UNAUTHORIZED && wants_websocket(&parts.headers) {
                let request = Request::from_parts(parts, Body::empty());
                return Ok(self
                    .live
                    .refuse(request, CloseCode::NotSignedIn, "sign in first"));
            }
            discard_body(body).await;
            if problem.status == StatusCode::UNAUTHORIZED && opens_page(&parts) {
                return Ok(sign_in_page());
            }
            return Err(problem);
        }
        let body = read_body(body).await?;
        require_object(&parts, &body)?;
        let request = Request::from_parts(parts, Body::from(body));
        let response = self.router.clone().call(request);
        let response = timeout(RESPONSE_TIMEOUT, AssertUnwindSafe(response).catch_unwind());
        match response.await {
            Ok(Ok(Ok(response))) => Ok(response),
            Ok(Ok(Err(never))) => match never {},
            Ok(Err(_panic)) => Err(Problem::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "failed",
                "the request failed unexpectedly",
            )
            .with_hint("see the diagnostics log")),
            Err(_) => Err(Problem::new(
                StatusCode::GATEWAY_TIMEOUT,
                "slow-response",
                "the request takes too long; its work continues",
            )),
        }
    }

    /// Removes the base path, which some proxies leave in place.
    fn without_base_path(&self, uri: Uri) -> Uri {
        if self.base_path.is_empty() {
            return uri;
        }
        let target = uri.path_and_query().map(PathAndQuery::as_str);
        let rest = target.and_then(|target| target.strip_prefix(&*self.base_path));
        let inner = match rest {
            Some("") => "/".to_owned(),
            Some(rest) if rest.starts_with('/') => rest.to_owned(),
            Some(rest) if rest.starts_with('?') => format!("/{rest}"),
            Some(_) | None => return uri,
        };
        let mut parts = uri.clone().into_parts();
        match inner.parse() {
            Ok(inner) => parts.path_and_query = Some(inner),
            Err(_) => return uri,
        }
        Uri::from_parts(parts).unwrap_or(uri)
    }
}
