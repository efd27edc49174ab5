//! Sends requests to the server of the state directory.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName};
use hyper::{Method, Request};
use ralph_engine::store::StateDir;
use ralph_providers::http::{HttpClient, HttpError, ProxySettings};
use serde_json::Value;

use super::state_lock::LockOwner;
use crate::app::App;
use crate::error::{AppError, ErrorKind};
use crate::server_record::ServerRecord;

/// The timeout of a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The timeout of the check whether the server answers.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(10);
/// The timeout of a request: the start of a run may build an image.
const REQUEST_TIMEOUT: Duration = Duration::from_hours(1);
/// The most bytes of a response.
const MAX_RESPONSE_BYTES: usize = 16 << 20;

/// The server of a state directory.
pub struct ServerClient {
    http: HttpClient,
    record: ServerRecord,
}

/// The response of the server.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerReply {
    pub status: u16,
    /// The body; null if it is empty.
    pub body: Value,
}

impl ServerClient {
    /// Returns the server of the state directory if there is one. A server that is alive and does not
    /// answer is an error.
    pub async fn find(app: &App) -> Result<Option<Self>, AppError> {
        let state = StateDir::read_only(app.environment().state_dir()?);
        let Some(owner) = LockOwner::find(state.root())? else {
            return Ok(None);
        };
        // Without the file, the server is still starting or already ending.
        let Some(record) = ServerRecord::read(&state)? else {
            return Ok(None);
        };
        if u32::try_from(record.pid) != Ok(owner.pid()) {
            return Ok(None);
        }
        app.add_secret("server token", &record.token);
        let http = HttpClient::new(&ProxySettings::default(), CONNECT_TIMEOUT)
            .map_err(|error| no_answer(record.pid, error.to_string()))?;
        let client = Self { http, record };
        let health = client.send(Method::GET, "/health", (&Value::Null, None), HEALTH_TIMEOUT);
        match health.await {
            Ok(reply) if reply.status == 200 => Ok(Some(client)),
            Ok(reply) => Err(no_answer(
                client.record.pid,
                format!("its response to `/health` has the status {}", reply.status),
            )),
            Err(error) => Err(error),
        }
    }

    /// Returns the process id of the server.
    pub fn pid(&self) -> i32 {
        self.record.pid
    }

    /// Gets a resource. `path` starts with `/`.
    pub async fn get(&self, path: &str) -> Result<ServerReply, AppError> {
        self.send(Method::GET, path, (&Value::Null, None), REQUEST_TIMEOUT)
            .await
    }

    /// Posts JSON. With a key, a repeated request has the effect of one.
    pub async fn post(
        &self,
        path: &str,
        body: &Value,
        idempotency_key: Option<&str>,
    ) -> Result<ServerReply, AppError> {
        self.send(Method::POST, path, (body, idempotency_key), REQUEST_TIMEOUT)
            .await
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        (body, idempotency_key): (&Value, Option<&str>),
        timeout: Duration,
    ) -> Result<ServerReply, AppError> {
        let failed = |why: String| no_answer(self.record.pid, why);
        let address = format!("{}{path}", self.record.url.trim_end_matches('/'));
        let mut request = Request::builder().method(method).uri(address).header(
            AUTHORIZATION,
            format!("Bearer {}", self.record.token.expose()),
        );
        if let Some(key) = idempotency_key {
            request = request.header(HeaderName::from_static("idempotency-key"), key);
        }
        let body = if body.is_null() {
            Bytes::new()
        } else {
            request = request.header(CONTENT_TYPE, "application/json");
            body.to_string().into()
        };
        let request = request.body(Full::from(body));
        let request = request.map_err(|error| failed(error.to_string()))?;
        let exchange = tokio::time::timeout(timeout, self.exchange(request)).await;
        let (status, bytes) = match exchange {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(failed(error.root_cause())),
            Err(_) => {
                return Err(failed(format!(
                    "no response within {} s",
                    timeout.as_secs()
                )));
            }
        };
        let body = if bytes.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(&bytes).map_err(|error| failed(error.to_string()))?
        };
        Ok(ServerReply { status, body })
    }

    async fn exchange(&self, request: Request<Full<Bytes>>) -> Result<(u16, Vec<u8>), HttpError> {
        let mut response = self.http.send(request).await?;
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            if bytes.len() + chunk.len() > MAX_RESPONSE_BYTES {
                // Invalid JSON, which is reported.
                break;
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok((response.status().as_u16(), bytes))
    }
}

impl ServerReply {
    /// Returns the body of a successful response, or the problem as an error.
    pub fn into_result(self) -> Result<Value, AppError> {
        if self.status < 400 {
            return Ok(self.body);
        }
        let text = |name: &str| self.body[name].as_str().unwrap_or_default().to_owned();
        let detail = text("detail");
        let (what, why) = match detail.split_once(" — ") {
            Some((what, why)) => (what.to_owned(), why.to_owned()),
            None => (detail, String::new()),
        };
        let kind = match text("type").rsplit(':').next() {
            Some("task-rejected") => ErrorKind::TaskRejected,
            _ if matches!(self.status, 400 | 422) => ErrorKind::Usage,
            _ => ErrorKind::Runtime,
        };
        let what = if what.is_empty() {
            format!("the server responded with the status {}", self.status)
        } else {
            what
        };
        Err(AppError::new(kind, what, why, text("hint")))
    }
}

fn no_answer(pid: i32, why: String) -> AppError {
    AppError::runtime(
        format!("the server of this state directory (pid {pid}) does not answer"),
        why,
        "try again, end that process, or use `--local`",
    )
}
