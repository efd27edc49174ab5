//! Reads a model's answer as it passes and keeps its call's account.

use bytes::Bytes;

use super::lines::Lines;
use super::tokens::Tokens;
use super::usage::Event;
use super::{Call, Step, Wire};
use crate::memory::HeldBytes;

/// The longest whole answer that is read, in bytes.
const MOST_WHOLE: usize = 16 * 1024 * 1024;
/// After how many characters the account is looked at again.
const STRIDE: u64 = 256;

/// The reader of one answer.
pub(crate) struct Gauge {
    call: Option<Call>,
    form: Form,
    seen: Seen,
    /// The memory that is held for what is buffered.
    memory: HeldBytes,
}

enum Form {
    /// Not known before the first character: what an answer declares to be is often something else.
    Unknown,
    /// Events, one after the other.
    Events(Lines),
    /// One object at the end; most often it comes in one piece, which is not copied.
    Whole(Whole),
}

impl Form {
    /// Returns the form of an answer by its first character that is not blank.
    fn of(start: &[u8]) -> Self {
        match start.trim_ascii_start().first() {
            None => Self::Unknown,
            Some(b'{' | b'[') => Self::Whole(Whole::default()),
            Some(_) => Self::Events(Lines::default()),
        }
    }
}

#[derive(Default)]
struct Whole {
    /// The first piece, as long as there is no other.
    first: Bytes,
    /// All pieces, once there are several.
    all: Vec<u8>,
    /// Whether pieces are missing, so that nothing of it is worth reading.
    is_incomplete: bool,
}

impl Whole {
    fn push(&mut self, piece: &Bytes, memory: &mut HeldBytes) {
        let length = self.first.len() + self.all.len() + piece.len();
        let fits = length <= MOST_WHOLE && memory.try_grow_to(length * 2);
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

struct Seen {
    wire: Wire,
    tokens: Tokens,
    model: Option<String>,
    chars: u64,
    counted: u64,
    stage: Stage,
    is_news: bool,
}

/// How far the provider's answer has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing was seen of it.
    Before,
    /// The provider reported an error before anything else.
    Refused,
    Begun,
    /// The provider has said its last word about tokens.
    Counted,
}

impl Gauge {
    /// Reads an answer, in events or as one object.
    pub(crate) fn new(wire: Wire, call: Call, memory: HeldBytes) -> Self {
        Self {
            call: Some(call),
            form: Form::Unknown,
            seen: Seen {
                wire,
                tokens: Tokens::default(),
                model: None,
                chars: 0,
                counted: 0,
                stage: Stage::Before,
                is_news: false,
            },
            memory,
        }
    }

    /// The call whose answer is read, until it is charged.
    pub(crate) fn call(&self) -> Option<&Call> {
        self.call.as_ref()
    }

    /// Reads a chunk; tells whether the answer may go on.
    pub(crate) fn feed(&mut self, chunk: &Bytes) -> Step {
        let seen = &mut self.seen;
        if matches!(self.form, Form::Unknown) {
            self.form = Form::of(chunk);
        }
        match &mut self.form {
            Form::Unknown => {}
            Form::Events(lines) => {
                lines.feed(chunk, |data| seen.event(data));
                if self.memory.try_grow_to(lines.buffered()) {
                    self.memory.shrink_to(lines.buffered());
                } else {
                    lines.skip_line();
                }
            }
            Form::Whole(whole) => whole.push(chunk, &mut self.memory),
        }
        let is_due = seen.is_news || seen.chars >= seen.counted + STRIDE;
        let Some(call) = self.call.as_mut().filter(|_| is_due) else {
            return Step::GoOn;
        };
        if let Some(model) = seen.model.take() {
            call.answered_by(&model);
        }
        let is_news = std::mem::take(&mut seen.is_news);
        seen.counted = seen.chars;
        if is_news
            && seen.stage != Stage::Counted
            && let Some(input) = seen.tokens.input(seen.wire)
            && call.counted(input) == Step::Cut
        {
            return Step::Cut;
        }
        call.progress(seen.chars)
    }

    /// Ends the answer: charges what the provider said, or the reservation.
    pub(crate) fn finish(&mut self) {
        match std::mem::replace(&mut self.form, Form::Unknown) {
            Form::Whole(whole) => self.seen.whole(if whole.all.is_empty() {
                &whole.first
            } else {
                &whole.all
            }),
            Form::Events(lines) => lines.finish(|data| self.seen.event(data)),
            Form::Unknown => {}
        }
        let Some(mut call) = self.call.take() else {
            return;
        };
        if let Some(model) = self.seen.model.take() {
            call.answered_by(&model);
        }
        let usage = self.seen.tokens.usage(self.seen.wire);
        match (self.seen.stage, usage) {
            (Stage::Counted, Some(usage)) => call.settle(usage),
            (Stage::Refused, _) => call.forgive(),
            // Dropping the call charges its reservation.
            (Stage::Counted | Stage::Before | Stage::Begun, _) => {
                call.progress(self.seen.chars);
            }
        }
    }
}

impl Drop for Gauge {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Seen {
    fn event(&mut self, data: &[u8]) {
        let Ok(event) = serde_json::from_slice::<Event<'_>>(data) else {
            self.begin();
            return;
        };
        if event.is_error() {
            if self.stage == Stage::Before {
                self.stage = Stage::Refused;
            }
            return;
        }
        if event.kind.as_deref() != Some("ping") {
            self.begin();
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
            self.is_news = true;
        }
        let Some(tokens) = event.usage.or(inner.and_then(|inner| inner.usage)) else {
            return;
        };
        self.tokens.update(tokens);
        self.is_news = true;
        let is_last = match self.wire {
            // The first event tells the input, and of the output only the first token.
            Wire::AnthropicMessages => {
                event.kind.as_deref() == Some("message_delta") && event.has_stopped()
            }
            // Some servers count in every event.
            Wire::OpenAiChat => event.is_last_of_chat(),
            Wire::OpenAiResponses => matches!(
                event.kind.as_deref(),
                Some("response.completed" | "response.incomplete" | "response.failed")
            ),
        };
        if is_last {
            self.stage = Stage::Counted;
        }
    }

    fn begin(&mut self) {
        if self.stage != Stage::Counted {
            self.stage = Stage::Begun;
        }
    }

    fn whole(&mut self, bytes: &[u8]) {
        self.chars += bytes.len() as u64;
        let Ok(event) = serde_json::from_slice::<Event<'_>>(bytes) else {
            return;
        };
        self.model = event.model.map(|model| model.to_string());
        if let Some(tokens) = event.usage {
            self.tokens = tokens;
            self.stage = Stage::Counted;
        }
    }
}
