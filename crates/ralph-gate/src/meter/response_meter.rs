//! Reads a model response as it is relayed and updates the account of its call.

use bytes::Bytes;

use super::reported_tokens::ReportedTokens;
use super::sse::SseDataReader;
use super::usage_event::UsageEvent;
use super::{CallControl, MeteredCall, ModelWireFormat};
use crate::memory::HeldBytes;

/// The maximum size of a non-streamed response that is parsed, in bytes.
const MAX_OBJECT_BYTES: usize = 16 * 1024 * 1024;
/// The number of characters between checks of the account.
const CHECK_INTERVAL_CHARS: u64 = 256;

/// Meters one response.
pub(crate) struct ResponseMeter {
    call: Option<MeteredCall>,
    format: MeteredFormat,
    usage: ResponseUsage,
    /// The share of the byte budget for the buffer.
    memory: HeldBytes,
}

enum MeteredFormat {
    /// Unknown until the first character, because the declared content type is often wrong.
    Unknown,
    /// A stream of events.
    Events(SseDataReader),
    /// A single object. It usually arrives in one chunk, which is not copied.
    Object(BufferedResponse),
}

impl MeteredFormat {
    /// Detects the format by the first non-blank character.
    fn detect(start: &[u8]) -> Self {
        match start.trim_ascii_start().first() {
            None => Self::Unknown,
            Some(b'{' | b'[') => Self::Object(BufferedResponse::default()),
            Some(_) => Self::Events(SseDataReader::default()),
        }
    }
}

#[derive(Default)]
struct BufferedResponse {
    /// The first chunk, while it is the only one.
    first: Bytes,
    /// All chunks, once there are several.
    all: Vec<u8>,
    /// Whether the response was too large to buffer, so that it cannot be parsed.
    is_incomplete: bool,
}

impl BufferedResponse {
    fn push(&mut self, chunk: &Bytes, memory: &mut HeldBytes) {
        let length = self.first.len() + self.all.len() + chunk.len();
        let fits = length <= MAX_OBJECT_BYTES && memory.try_grow_to(length * 2);
        if self.is_incomplete || !fits {
            *self = Self {
                is_incomplete: true,
                ..Self::default()
            };
            return;
        }
        if self.first.is_empty() && self.all.is_empty() {
            self.first = chunk.clone();
            return;
        }
        self.all.extend_from_slice(&self.first);
        self.first.clear();
        self.all.extend_from_slice(chunk);
    }
}

struct ResponseUsage {
    wire: ModelWireFormat,
    tokens: ReportedTokens,
    model: Option<String>,
    chars: u64,
    checked_chars: u64,
    stage: MeteringStage,
    has_update: bool,
}

/// The progress of the provider's response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MeteringStage {
    NotStarted,
    /// The provider reported an error first.
    Refused,
    Started,
    /// The provider reported its final token count.
    Counted,
}

impl ResponseMeter {
    /// Creates a meter for a response in events or as one object.
    pub(crate) fn new(wire: ModelWireFormat, call: MeteredCall, memory: HeldBytes) -> Self {
        Self {
            call: Some(call),
            format: MeteredFormat::Unknown,
            usage: ResponseUsage {
                wire,
                tokens: ReportedTokens::default(),
                model: None,
                chars: 0,
                checked_chars: 0,
                stage: MeteringStage::NotStarted,
                has_update: false,
            },
            memory,
        }
    }

    /// Returns the call until it is charged.
    pub(crate) fn call(&self) -> Option<&MeteredCall> {
        self.call.as_ref()
    }

    /// Reads a chunk and returns whether the response may continue.
    pub(crate) fn feed(&mut self, chunk: &Bytes) -> CallControl {
        let usage = &mut self.usage;
        if matches!(self.format, MeteredFormat::Unknown) {
            self.format = MeteredFormat::detect(chunk);
        }
        match &mut self.format {
            MeteredFormat::Unknown => {}
            MeteredFormat::Events(reader) => {
                reader.feed(chunk, |data| usage.read_event(data));
                if self.memory.try_grow_to(reader.buffered()) {
                    self.memory.shrink_to(reader.buffered());
                } else {
                    reader.skip_line();
                }
            }
            MeteredFormat::Object(buffered) => buffered.push(chunk, &mut self.memory),
        }
        let is_due = usage.has_update || usage.chars >= usage.checked_chars + CHECK_INTERVAL_CHARS;
        let Some(call) = self.call.as_mut().filter(|_| is_due) else {
            return CallControl::Continue;
        };
        if let Some(model) = usage.model.take() {
            call.set_answering_model(&model);
        }
        let has_update = std::mem::take(&mut usage.has_update);
        usage.checked_chars = usage.chars;
        if has_update
            && usage.stage != MeteringStage::Counted
            && let Some(input) = usage.tokens.input(usage.wire)
            && call.update_input(input) == CallControl::Cut
        {
            return CallControl::Cut;
        }
        call.update_progress(usage.chars)
    }

    /// Ends the response and charges the reported usage or the reservation.
    pub(crate) fn finish(&mut self) {
        match std::mem::replace(&mut self.format, MeteredFormat::Unknown) {
            MeteredFormat::Object(buffered) => self.usage.read_object(if buffered.all.is_empty() {
                &buffered.first
            } else {
                &buffered.all
            }),
            MeteredFormat::Events(reader) => reader.finish(|data| self.usage.read_event(data)),
            MeteredFormat::Unknown => {}
        }
        let Some(mut call) = self.call.take() else {
            return;
        };
        if let Some(model) = self.usage.model.take() {
            call.set_answering_model(&model);
        }
        let usage = self.usage.tokens.usage(self.usage.wire);
        match (self.usage.stage, usage) {
            (MeteringStage::Counted, Some(usage)) => call.settle(usage),
            (MeteringStage::Refused, _) => call.release(),
            // Dropping the call charges its reservation.
            (MeteringStage::Counted | MeteringStage::NotStarted | MeteringStage::Started, _) => {
                call.update_progress(self.usage.chars);
            }
        }
    }
}

impl Drop for ResponseMeter {
    fn drop(&mut self) {
        self.finish();
    }
}

impl ResponseUsage {
    fn read_event(&mut self, data: &[u8]) {
        let Ok(event) = serde_json::from_slice::<UsageEvent<'_>>(data) else {
            self.mark_started();
            return;
        };
        if event.is_error() {
            if self.stage == MeteringStage::NotStarted {
                self.stage = MeteringStage::Refused;
            }
            return;
        }
        if event.kind.as_deref() != Some("ping") {
            self.mark_started();
        }
        self.chars += event.chars();
        let inner = event.message.as_ref().or(event.response.as_ref());
        if let Some(model) = event
            .model
            .as_ref()
            .or(inner.and_then(|i| i.model.as_ref()))
            && self.model.is_none()
        {
            self.model = Some(model.to_string());
            self.has_update = true;
        }
        let Some(tokens) = event.usage.or(inner.and_then(|inner| inner.usage)) else {
            return;
        };
        self.tokens.update(tokens);
        self.has_update = true;
        let is_last = match self.wire {
            // The first event contains the input and only the first output token.
            ModelWireFormat::AnthropicMessages => {
                event.kind.as_deref() == Some("message_delta") && event.has_stopped()
            }
            // Some servers report usage in every event.
            ModelWireFormat::OpenAiChat => event.is_last_chat_event(),
            ModelWireFormat::OpenAiResponses => matches!(
                event.kind.as_deref(),
                Some("response.completed" | "response.incomplete" | "response.failed")
            ),
        };
        if is_last {
            self.stage = MeteringStage::Counted;
        }
    }

    fn mark_started(&mut self) {
        if self.stage != MeteringStage::Counted {
            self.stage = MeteringStage::Started;
        }
    }

    fn read_object(&mut self, bytes: &[u8]) {
        self.chars += bytes.len() as u64;
        let Ok(event) = serde_json::from_slice::<UsageEvent<'_>>(bytes) else {
            return;
        };
        self.model = event.model.map(|model| model.to_string());
        if let Some(tokens) = event.usage {
            self.tokens = tokens;
            self.stage = MeteringStage::Counted;
        }
    }
}
