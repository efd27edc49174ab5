//! Cassettes: recordings of the model responses of a run, for replay.
//!
//! A cassette is a file with one exchange per line. Each exchange answers one request: the one with
//! the same path and body, or else the next request for its path. Bodies contain values that change
//! between runs, such as dates and IDs, so an exact match cannot be required.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{HeaderMap, Response, StatusCode};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::http::{GateBody, header_text};

/// The maximum size of a recorded response, in bytes; longer responses are not recorded.
const MAX_RECORDED_BYTES: usize = 16 * 1024 * 1024;

/// The speed of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayPace {
    /// As fast as the client reads.
    Immediate,
    /// With the recorded pauses.
    AsRecorded,
}

/// A cassette that the gate records to or replays from.
pub struct Cassette {
    mode: CassetteMode,
}

enum CassetteMode {
    Record(Arc<Mutex<dyn Write + Send>>),
    Replay {
        remaining: Mutex<Vec<RecordedExchange>>,
        pace: ReplayPace,
    },
}

/// An error while loading a cassette.
#[derive(Debug, thiserror::Error)]
pub enum CassetteError {
    /// A line is not a valid exchange.
    #[error("line {line} of the cassette is not a valid exchange")]
    Line {
        line: usize,
        source: serde_json::Error,
    },
}

/// One exchange as stored in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct RecordedExchange {
    /// The path at the credential port.
    path: String,
    /// The SHA-256 of the request's body.
    request: String,
    status: u16,
    content_type: String,
    chunks: Vec<RecordedChunk>,
}

/// A chunk of a response: milliseconds since its start, and its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct RecordedChunk {
    at_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
}

impl Cassette {
    /// Records every exchange to a writer, one per line.
    pub fn record(to: impl Write + Send + 'static) -> Arc<Self> {
        let mode = CassetteMode::Record(Arc::new(Mutex::new(to)));
        Arc::new(Self { mode })
    }

    /// Answers requests from the text of a cassette instead of a provider.
    pub fn replay(text: &str, pace: ReplayPace) -> Result<Arc<Self>, CassetteError> {
        let lines = text.lines().enumerate();
        let remaining = lines
            .filter(|(_, line)| !line.trim().is_empty())
            .map(|(index, line)| {
                serde_json::from_str(line).map_err(|source| CassetteError::Line {
                    line: index + 1,
                    source,
                })
            })
            .collect::<Result<_, _>>()?;
        let remaining = Mutex::new(remaining);
        let mode = CassetteMode::Replay { remaining, pace };
        Ok(Arc::new(Self { mode }))
    }

    /// Starts recording an exchange, or returns the recorded exchange that answers the request, if
    /// one is left.
    pub(crate) fn exchange(
        &self,
        path: &str,
        request: &[u8],
    ) -> (Option<ExchangeRecorder>, Option<ReplayedExchange>) {
        let request = digest(request);
        match &self.mode {
            CassetteMode::Record(to) => {
                let exchange = RecordedExchange {
                    path: path.to_owned(),
                    request,
                    status: 0,
                    content_type: String::new(),
                    chunks: Vec::new(),
                };
                let recorder = ExchangeRecorder {
                    output: to.clone(),
                    exchange,
                    started: Instant::now(),
                    bytes: 0,
                };
                (Some(recorder), None)
            }
            CassetteMode::Replay { remaining, pace } => {
                let mut remaining = remaining.lock().unwrap_or_else(PoisonError::into_inner);
                let is_same = |recorded: &RecordedExchange| {
                    recorded.path == path && recorded.request == request
                };
                let index = remaining
                    .iter()
                    .position(is_same)
                    .or_else(|| remaining.iter().position(|recorded| recorded.path == path));
                let found = index.map(|index| ReplayedExchange {
                    exchange: remaining.remove(index),
                    pace: *pace,
                });
                (None, found)
            }
        }
    }
}

fn digest(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    Sha256::digest(bytes)
        .iter()
        .fold(String::with_capacity(64), |mut text, byte| {
            write!(text, "{byte:02x}").expect("writing to a string cannot fail");
            text
        })
}

/// An exchange that is being recorded.
pub(crate) struct ExchangeRecorder {
    output: Arc<Mutex<dyn Write + Send>>,
    exchange: RecordedExchange,
    started: Instant,
    bytes: usize,
}

impl ExchangeRecorder {
    /// Records the status and the content type of the response.
    pub(crate) fn with_response_head(mut self, status: StatusCode, headers: &HeaderMap) -> Self {
        self.exchange.status = status.as_u16();
        let kind = headers.get(CONTENT_TYPE).and_then(header_text);
        kind.unwrap_or_default()
            .clone_into(&mut self.exchange.content_type);
        self
    }

    /// Records a chunk of the response as sent to the sandbox.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
        if bytes.is_empty() || self.bytes > MAX_RECORDED_BYTES {
            return;
        }
        let elapsed = self.started.elapsed().as_millis();
        let text = str::from_utf8(bytes).map_or(None, |text| Some(text.to_owned()));
        self.exchange.chunks.push(RecordedChunk {
            at_ms: u64::try_from(elapsed).unwrap_or(u64::MAX),
            base64: text.is_none().then(|| STANDARD.encode(bytes)),
            text,
        });
    }

    /// Writes the exchange to the cassette, unless the response is too long. An interrupted exchange
    /// never gets here and is not recorded.
    pub(crate) fn finish(self) {
        if self.bytes > MAX_RECORDED_BYTES {
            return;
        }
        let mut text = serde_json::to_vec(&self.exchange).expect("a plain structure is valid JSON");
        text.push(b'\n');
        let mut to = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        // A full disk costs the recording, not the run.
        if let Err(error) = to.write_all(&text).and_then(|()| to.flush()) {
            tracing::warn!(%error, "cannot record an exchange");
        }
    }
}

/// An exchange that is being replayed.
pub(crate) struct ReplayedExchange {
    exchange: RecordedExchange,
    pace: ReplayPace,
}

impl ReplayedExchange {
    pub(crate) fn status(&self) -> u16 {
        self.exchange.status
    }

    /// Returns the recorded response.
    pub(crate) fn response(&self) -> Response<GateBody> {
        let pace = self.pace;
        let chunks = self.exchange.chunks.clone().into_iter();
        let body =
            futures_util::stream::unfold((chunks, 0), move |(mut chunks, before)| async move {
                let chunk = chunks.next()?;
                if pace == ReplayPace::AsRecorded {
                    let pause = Duration::from_millis(chunk.at_ms.saturating_sub(before));
                    tokio::time::sleep(pause).await;
                }
                let at = chunk.at_ms;
                Some((Ok(Frame::data(chunk.into_bytes())), (chunks, at)))
            });
        let mut response = Response::new(StreamBody::new(Box::pin(body)).boxed_unsync());
        *response.status_mut() =
            StatusCode::from_u16(self.exchange.status).unwrap_or(StatusCode::OK);
        if let Ok(kind) = HeaderValue::try_from(&self.exchange.content_type) {
            response.headers_mut().insert(CONTENT_TYPE, kind);
        }
        response
    }
}

impl RecordedChunk {
    fn into_bytes(self) -> Bytes {
        let text = self.text.unwrap_or_default().into_bytes();
        match self.base64.map(|encoded| STANDARD.decode(encoded)) {
            Some(Ok(decoded)) => decoded.into(),
            Some(Err(error)) => {
                tracing::warn!(%error, "invalid base64 in a recorded chunk");
                text.into()
            }
            None => text.into(),
        }
    }
}
