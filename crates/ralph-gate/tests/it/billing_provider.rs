//! A fake provider with its own ledger of the amounts it would bill, independent of the gate.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use ralph_core::money::Usd;
use ralph_core::ports::TokenUsage;
use ralph_core::price::{self, Price};
use ralph_gate::Route;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::credentials::secret;

/// Tokens that the provider adds to the text of a request.
const OVERHEAD_TOKENS: u64 = 700;
/// The output of a request without an output limit.
const UNLIMITED_OUTPUT: u64 = 1_000_000;

/// The API format of requests and responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BillingWire {
    Messages,
    Chat,
    Responses,
}

impl BillingWire {
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Messages => "/anthropic/v1/messages",
            Self::Chat => "/openai/v1/chat/completions",
            Self::Responses => "/openai/v1/responses",
        }
    }

    pub(crate) fn model(self) -> &'static str {
        match self {
            Self::Messages => "claude-haiku-4-5",
            Self::Chat | Self::Responses => "gpt-5",
        }
    }

    pub(crate) fn price(self) -> Price {
        price::embedded_price(self.model()).unwrap()
    }

    /// Returns a route to a provider at an address.
    pub(crate) fn route(self, address: SocketAddr) -> Route {
        match self {
            Self::Messages => Route::anthropic_key(secret())
                .unwrap()
                .with_base_url(&format!("http://{address}")),
            Self::Chat | Self::Responses => Route::openai(secret())
                .unwrap()
                .with_base_url(&format!("http://{address}/v1")),
        }
        .unwrap()
    }

    /// Returns a request with an optional output limit, in tokens.
    pub(crate) fn request(self, text: &str, output: Option<u64>, is_stream: bool) -> Value {
        let mut body = json!({"model": self.model(), "stream": is_stream});
        match self {
            Self::Messages | Self::Chat => {
                body["messages"] = json!([{"role": "user", "content": text}]);
            }
            Self::Responses => body["input"] = json!(text),
        }
        if let Some(output) = output {
            body[self.limit_key()] = json!(output);
        }
        body
    }

    pub(crate) fn limit_key(self) -> &'static str {
        match self {
            Self::Messages => "max_tokens",
            Self::Chat => "max_completion_tokens",
            Self::Responses => "max_output_tokens",
        }
    }

    fn usage(self, usage: &TokenUsage) -> Value {
        let (input, output) = (usage.input_tokens, usage.output_tokens);
        match self {
            Self::Chat => json!({"prompt_tokens": input, "completion_tokens": output}),
            Self::Messages | Self::Responses => {
                json!({"input_tokens": input, "output_tokens": output})
            }
        }
    }
}

/// The way the provider responds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BillingBehavior {
    /// One object.
    Object,
    /// Events with text, and usage in the last one.
    Stream,
    /// Events without text: all output is hidden reasoning, reported in the last event.
    HiddenReasoning,
    /// Events that end before the usage.
    CutStream,
    /// One object with invalid usage.
    BadUsage,
}

/// A fake provider.
pub(crate) struct BillingProvider {
    pub(crate) address: SocketAddr,
    bills: Arc<Mutex<Vec<Bill>>>,
}

/// The bill for one request.
#[derive(Debug, Clone)]
pub(crate) struct Bill {
    pub(crate) usage: TokenUsage,
    pub(crate) cost: Usd,
    pub(crate) request: Value,
}

impl BillingProvider {
    pub(crate) async fn start(
        wire: BillingWire,
        behavior: BillingBehavior,
        pause: Duration,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let bills: Arc<Mutex<Vec<Bill>>> = Arc::default();
        let ledger = bills.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let ledger = ledger.clone();
                let service = service_fn(move |request| {
                    let ledger = ledger.clone();
                    async move {
                        Ok::<_, Infallible>(
                            handle_request(wire, behavior, pause, &ledger, request).await,
                        )
                    }
                });
                let io = TokioIo::new(stream);
                tokio::spawn(http1::Builder::new().serve_connection(io, service));
            }
        });
        Self { address, bills }
    }

    pub(crate) fn bills(&self) -> Vec<Bill> {
        self.bills.lock().unwrap().clone()
    }

    pub(crate) fn cost(&self) -> Usd {
        self.bills().iter().map(|bill| bill.cost).sum()
    }

    pub(crate) fn tokens(&self) -> u64 {
        self.bills().iter().map(|bill| bill.usage.total()).sum()
    }
}

type BillingResponseBody = http_body_util::combinators::UnsyncBoxBody<Bytes, std::io::Error>;

async fn handle_request(
    wire: BillingWire,
    behavior: BillingBehavior,
    pause: Duration,
    ledger: &Mutex<Vec<Bill>>,
    request: Request<Incoming>,
) -> Response<BillingResponseBody> {
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let request: Value = serde_json::from_slice(&body).unwrap();
    let text = request["messages"][0]["content"]
        .as_str()
        .or_else(|| request["input"].as_str())
        .unwrap_or_default();
    let each = request[wire.limit_key()]
        .as_u64()
        .unwrap_or(UNLIMITED_OUTPUT);
    let usage = TokenUsage {
        input_tokens: text.len() as u64 + OVERHEAD_TOKENS,
        output_tokens: each * request["n"].as_u64().unwrap_or(1),
        ..TokenUsage::default()
    };
    // The provider bills all output, even if no client reads it.
    ledger.lock().unwrap().push(Bill {
        usage,
        cost: price::cost(&wire.price(), &usage),
        request,
    });
    tokio::time::sleep(pause).await;
    let (kind, chunks) = match behavior {
        BillingBehavior::Object => (
            "application/json",
            vec![object_response(wire, &wire.usage(&usage))],
        ),
        BillingBehavior::BadUsage => {
            let text = wire.usage(&usage).to_string();
            let floats: String = text.replace('}', ".0}").replace(',', ".0,");
            let bad: Value = serde_json::from_str(&floats).unwrap();
            ("application/json", vec![object_response(wire, &bad)])
        }
        BillingBehavior::Stream | BillingBehavior::HiddenReasoning | BillingBehavior::CutStream => {
            ("text/event-stream", events(wire, behavior, &usage))
        }
    };
    let is_cut = behavior == BillingBehavior::CutStream;
    let chunks = chunks.into_iter().map(Ok).chain(
        // An error aborts the connection during the body.
        is_cut.then(|| Err(std::io::Error::other("cut"))),
    );
    let frames = stream::unfold(chunks, move |mut chunks| async move {
        let chunk = chunks.next()?;
        tokio::time::sleep(pause / 4).await;
        Some((chunk.map(|text| Frame::data(Bytes::from(text))), chunks))
    });
    let mut response = Response::new(StreamBody::new(Box::pin(frames)).boxed_unsync());
    let kind = kind.parse().unwrap();
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

fn object_response(wire: BillingWire, usage: &Value) -> String {
    json!({"model": wire.model(), "usage": usage}).to_string()
}

fn events(wire: BillingWire, behavior: BillingBehavior, usage: &TokenUsage) -> Vec<String> {
    let event = |value: Value| format!("data: {value}\n\n");
    let reported = wire.usage(usage);
    let (start, text, end) = match wire {
        BillingWire::Messages => (
            json!({"type": "message_start", "message": {"model": wire.model(), "usage":
                {"input_tokens": usage.input_tokens, "output_tokens": 1}}}),
            json!({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Hello there"}}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage":
                {"output_tokens": usage.output_tokens}}),
        ),
        BillingWire::Chat => (
            json!({"model": wire.model(), "choices": [{"delta": {"role": "assistant"}, "finish_reason": null}]}),
            json!({"model": wire.model(), "choices": [{"delta": {"content": "Hello there"}, "finish_reason": null}]}),
            json!({"model": wire.model(), "choices": [], "usage": reported}),
        ),
        BillingWire::Responses => (
            json!({"type": "response.created", "response": {"model": wire.model(), "usage": null}}),
            json!({"type": "response.output_text.delta", "delta": "Hello there"}),
            json!({"type": "response.completed", "response": {"model": wire.model(), "usage": reported}}),
        ),
    };
    let mut all = vec![event(start)];
    if behavior != BillingBehavior::HiddenReasoning {
        all.extend([event(text.clone()), event(text)]);
    }
    if behavior != BillingBehavior::CutStream {
        all.push(event(end));
    }
    all
}
