//! A fake model provider in this process. It replies `ok` to requests with the right credential.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Collected, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use ralph_core::secret::Secret;
use ralph_guest::best_effort;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

/// The limit of a request body, in bytes.
const MAX_REQUEST_BYTES: usize = 16 << 20;
/// The text of every reply.
const REPLY_TEXT: &str = "ok";

/// A fake model provider. Dropping it stops it.
#[derive(Debug)]
pub(super) struct FakeModelProvider {
    address: SocketAddr,
    serving: JoinHandle<()>,
}

impl FakeModelProvider {
    /// Starts a provider that accepts only this credential.
    pub(super) async fn start(secret: Secret) -> io::Result<Self> {
        let sockets = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = sockets.local_addr()?;
        let serving = tokio::spawn(serve(sockets, Arc::new(secret)));
        Ok(Self { address, serving })
    }

    /// Returns the address of the provider.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for FakeModelProvider {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(sockets: TcpListener, secret: Arc<Secret>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Ok((stream, _)) = sockets.accept() => {
                let secret = secret.clone();
                let answering = service_fn(move |request| {
                    let secret = secret.clone();
                    async move { Ok::<_, Infallible>(respond(request, &secret).await) }
                });
                let connection = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), answering);
                // The client sees how the connection ended.
                connections.spawn(async move { best_effort(connection.await) });
            }
            Some(_) = connections.join_next() => {}
            else => return,
        }
    }
}

async fn respond(request: Request<Incoming>, secret: &Secret) -> Response<Full<Bytes>> {
    if !has_expected_credential(&request, secret) {
        let error = json!({"type": "error", "error": {"type": "authentication_error", "message": "this is not the credential of the selftest"}});
        return json_response(StatusCode::UNAUTHORIZED, &error);
    }
    let (head, body) = request.into_parts();
    let path = head.uri.path().to_owned();
    let body = Limited::new(body, MAX_REQUEST_BYTES).collect().await;
    // Only the name of the model is used, and a request without one gets the default.
    let body = body.map_or_else(|_| Bytes::new(), Collected::to_bytes);
    let asked: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    if head.method != Method::POST {
        return json_response(StatusCode::OK, &json!({"data": [], "object": "list"}));
    }
    let model = asked["model"].as_str().unwrap_or("selftest");
    let (whole, events) = if path.ends_with("/messages") {
        anthropic_message(model)
    } else if path.ends_with("/responses") {
        openai_response(model)
    } else if path.ends_with("/chat/completions") {
        openai_chat_completion(model)
    } else if path.ends_with("/count_tokens") {
        (json!({"input_tokens": 1}), String::new())
    } else {
        return json_response(StatusCode::NOT_FOUND, &json!({"error": {"message": path}}));
    };
    if asked["stream"] == json!(true) {
        response(StatusCode::OK, "text/event-stream", events)
    } else {
        json_response(StatusCode::OK, &whole)
    }
}

/// Returns whether the credential has replaced its placeholder.
fn has_expected_credential(request: &Request<Incoming>, secret: &Secret) -> bool {
    let header = |name: &str| request.headers().get(name).map(HeaderValue::as_bytes);
    let bearer = format!("Bearer {}", secret.expose());
    header(AUTHORIZATION.as_str()) == Some(bearer.as_bytes())
        || header("x-api-key") == Some(secret.expose().as_bytes())
}

/// Returns a response of Anthropic's messages API, as JSON and as a stream.
fn anthropic_message(model: &str) -> (Value, String) {
    let usage = json!({"input_tokens": 1, "output_tokens": 1});
    let mut message = json!({
        "id": "msg_selftest", "type": "message", "role": "assistant", "model": model,
        "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage,
    });
    let events = [
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": REPLY_TEXT}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null}, "usage": {"output_tokens": 1}}),
        json!({"type": "message_stop"}),
    ];
    message["content"] = json!([{"type": "text", "text": REPLY_TEXT}]);
    message["stop_reason"] = json!("end_turn");
    (message, typed_events(&events))
}

/// Returns a response of `OpenAI`'s responses API.
fn openai_response(model: &str) -> (Value, String) {
    let item = json!({
        "id": "msg_selftest", "type": "message", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": REPLY_TEXT, "annotations": []}],
    });
    let mut response = json!({
        "id": "resp_selftest", "object": "response", "created_at": 0, "model": model,
        "status": "in_progress", "output": [], "usage": null,
    });
    let begun = json!({"type": "response.created", "response": response});
    response["status"] = json!("completed");
    response["output"] = json!([item]);
    response["usage"] = json!({"input_tokens": 1, "output_tokens": 1, "total_tokens": 2});
    let events = [
        begun,
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": response}),
    ];
    (response, typed_events(&events))
}

/// Returns a response of `OpenAI`'s chat completions API.
fn openai_chat_completion(model: &str) -> (Value, String) {
    let usage = json!({"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2});
    let object = |kind: &str, choices: Value| json!({"id": "chat_selftest", "object": kind, "created": 0, "model": model, "choices": choices, "usage": usage});
    let message = json!({"role": "assistant", "content": REPLY_TEXT});
    let choice = |key: &str| json!([{"index": 0, key: message, "finish_reason": "stop"}]);
    let chunk = object("chat.completion.chunk", choice("delta"));
    (
        object("chat.completion", choice("message")),
        format!("data: {chunk}\n\ndata: [DONE]\n\n"),
    )
}

/// Formats events whose names are also in their data.
fn typed_events(events: &[Value]) -> String {
    let write = |event: &Value| {
        let name = event["type"].as_str().unwrap_or_default();
        format!("event: {name}\ndata: {event}\n\n")
    };
    events.iter().map(write).collect()
}

fn json_response(status: StatusCode, value: &Value) -> Response<Full<Bytes>> {
    response(status, "application/json", value.to_string())
}

fn response(status: StatusCode, kind: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
