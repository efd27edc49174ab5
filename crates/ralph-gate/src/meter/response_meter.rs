//! Reads a model's answer as it passes and keeps its call's account.

use bytes::Bytes;

use super::reported_tokens::ReportedTokens;
use super::sse::SseDataReader;
use super::usage_event::UsageEvent;
use super::{CallControl, MeteredCall, ModelWireFormat};
use crate::memory::HeldBytes;

/// The longest whole answer that is read, in bytes.
const MAX_OBJECT_BYTES: usize = 16 * 1024 * 1024;
/// After how many characters the account is looked at again.
const CHECK_INTERVAL_CHARS: u64 = 256;

/// The reader of one answer.
pub(crate) struct ResponseMeter {
    call: Option<MeteredCall>,
    format: MeteredFormat,
    usage: ResponseUsage,
    /// The memory that is held for what is buffered.
    memory: HeldBytes,
}

enum MeteredFormat {
    /// Not known before the first character: what an answer declares to be is often something else.
    Unknown,
    /// Events, one after the other.
    Events(SseDataReader),
    /// One object at the end; most often it comes in one piece, which is not copied.
    Object(BufferedResponse),
}

impl MeteredFormat {
    /// Returns the form of an answer by its first character that is not blank.
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
    /// The first piece, as long as there is no other.
    first: Bytes,
    /// All pieces, once there are several.
    all: Vec<u8>,
    /// Whether pieces are missing, so that nothing of it is worth reading.
    is_incomplete: bool,
}

impl BufferedResponse {
    fn push(&mut self, piece: &Bytes, memory: &mut HeldBytes) {
        let length = self.first.len() + self.all.len() + piece.len();
        let fits = length <= MAX_OBJECT_BYTES && memory.try_grow_to(length * 2);
        if self.is_incomplete || !fits {
            *self = Self {
                is_incomplete: true,
                ..Self::default()
            };
            return;
        }
        if self.first.is_empty() && self.all.is_empty() {
            self.first = piece.clone();
            return;
        }
        self.all.extend_from_slice(&self.first);
        self.first.clear();
        self.all.extend_from_slice(piece);
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

/// How far the provider's answer has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MeteringStage {
    /// Nothing was seen of it.
    NotStarted,
    /// The provider reported an error before anything else.
    Refused,
    Started,
    /// The provider has said its last word about tokens.
    Counted,
}

impl ResponseMeter {
    /// Reads an answer, in events or as one object.
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

    /// The call whose answer is read, until it is charged.
    pub(crate) fn call(&self) -> Option<&MeteredCall> {
        self.call.as_ref()
    }

    /// Reads a chunk; tells whether the answer may go on.
    pub(crate) fn feed(&mut self, chunk: &Bytes) -> CallControl {
        let seen = &mut self.usage;
        if matches!(self.format, MeteredFormat::Unknown) {
            self.format = MeteredFormat::detect(chunk);
        }
        match &mut self.format {
            MeteredFormat::Unknown => {}
            MeteredFormat::Events(lines) => {
                lines.feed(chunk, |data| seen.read_event(data));
                if self.memory.try_grow_to(lines.buffered()) {
                    self.memory.shrink_to(lines.buffered());
                } else {
                    lines.skip_line();
                }
            }
            MeteredFormat::Object(whole) => whole.push(chunk, &mut self.memory),
        }
        let is_due = seen.has_update || seen.chars >= seen.checked_chars + CHECK_INTERVAL_CHARS;
        let Some(call) = self.call.as_mut().filter(|_| is_due) else {
            return CallControl::Continue;
        };
        if let Some(model) = seen.model.take() {
            call.set_answering_model(&model);
        }
        let is_news = std::mem::take(&mut seen.has_update);
        seen.checked_chars = seen.chars;
        if is_news
            && seen.stage != MeteringStage::Counted
            && let Some(input) = seen.tokens.input(seen.wire)
            && call.update_input(input) == CallControl::Cut
        {
            return CallControl::Cut;
        }
        call.update_progress(seen.chars)
    }

    /// Ends the answer: charges what the provider said, or the reservation.
    pub(crate) fn finish(&mut self) {
        match std::mem::replace(&mut self.format, MeteredFormat::Unknown) {
            MeteredFormat::Object(whole) => self.usage.read_object(if whole.all.is_empty() {
                &whole.first
            } else {
                &whole.all
            }),
            MeteredFormat::Events(lines) => lines.finish(|data| self.usage.read_event(data)),
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
            // The first event tells the input, and of the output only the first token.
            ModelWireFormat::AnthropicMessages => {
                event.kind.as_deref() == Some("message_delta") && event.has_stopped()
            }
            // Some servers count in every event.
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
