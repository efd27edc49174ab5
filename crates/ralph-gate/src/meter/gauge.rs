//! Reads a model's answer as it passes and keeps its call's account.

use bytes::Bytes;
use ralph_core::ports::Usage;

use super::lines::Lines;
use super::usage::{Event, Tokens};
use super::{Call, Step, Wire};

/// The longest whole answer that is read, in bytes.
const MOST_WHOLE: usize = 16 * 1024 * 1024;
/// After how many characters the account is looked at again.
const STRIDE: u64 = 256;

/// The reader of one answer.
pub(crate) struct Gauge {
    call: Option<Call>,
    form: Form,
    seen: Seen,
}

enum Form {
    /// Events, one after the other.
    Events(Lines),
    /// One object at the end; most often it comes in one piece, which is not copied.
    Whole(Whole),
}

#[derive(Default)]
struct Whole {
    /// The first piece, as long as there is no other.
    first: Bytes,
    /// All pieces, once there are several.
    all: Vec<u8>,
}

impl Whole {
    fn push(&mut self, piece: &Bytes) {
        if self.first.len() + self.all.len() + piece.len() > MOST_WHOLE {
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
    /// Whether the provider has said its last word about tokens.
    is_final: bool,
    is_news: bool,
}

impl Gauge {
    /// Reads an answer in events.
    pub(crate) fn events(wire: Wire, call: Call) -> Self {
        Self::new(wire, call, Form::Events(Lines::default()))
    }

    /// Reads an answer that is one object.
    pub(crate) fn whole(wire: Wire, call: Call) -> Self {
        Self::new(wire, call, Form::Whole(Whole::default()))
    }

    fn new(wire: Wire, call: Call, form: Form) -> Self {
        Self {
            call: Some(call),
            form,
            seen: Seen {
                wire,
                tokens: Tokens::default(),
                model: None,
                chars: 0,
                counted: 0,
                is_final: false,
                is_news: false,
            },
        }
    }

    /// Reads a chunk; tells whether the answer may go on.
    pub(crate) fn feed(&mut self, chunk: &Bytes) -> Step {
        let seen = &mut self.seen;
        match &mut self.form {
            Form::Events(lines) => lines.feed(chunk, |data| seen.event(data)),
            Form::Whole(whole) => whole.push(chunk),
        }
        let is_due = seen.is_news || seen.chars >= seen.counted + STRIDE;
        let Some(call) = self.call.as_mut().filter(|_| is_due) else {
            return Step::GoOn;
        };
        if let Some(model) = seen.model.take() {
            call.answered_by(&model);
        }
        let input = seen.is_news.then(|| seen.tokens.usage(seen.wire));
        (seen.is_news, seen.counted) = (false, seen.chars);
        call.progress(input.filter(|usage| usage.input_tokens > 0), seen.chars)
    }

    /// Ends the answer: charges what the provider said, or the estimate.
    pub(crate) fn finish(&mut self) {
        if let Form::Whole(whole) = &mut self.form {
            let whole = std::mem::take(whole);
            self.seen.whole(if whole.all.is_empty() {
                &whole.first
            } else {
                &whole.all
            });
        }
        let Some(mut call) = self.call.take() else {
            return;
        };
        if let Some(model) = self.seen.model.take() {
            call.answered_by(&model);
        }
        if self.seen.is_final {
            call.settle(self.seen.tokens.usage(self.seen.wire));
        } else {
            call.progress(None, self.seen.chars);
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
            return;
        };
        self.chars += event.chars();
        let kind = event.kind.as_deref();
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
        self.is_final |= match self.wire {
            // The first event tells the input, and of the output only the first token.
            Wire::AnthropicMessages => kind == Some("message_delta"),
            Wire::OpenAiChat => true,
            Wire::OpenAiResponses => matches!(
                kind,
                Some("response.completed" | "response.incomplete" | "response.failed")
            ),
        };
    }

    fn whole(&mut self, bytes: &[u8]) {
        let Ok(event) = serde_json::from_slice::<Event<'_>>(bytes) else {
            self.chars += bytes.len() as u64;
            return;
        };
        self.model = event.model.map(|model| model.to_string());
        match event.usage {
            Some(tokens) => {
                self.tokens = tokens;
                self.is_final = self.tokens.usage(self.wire) != Usage::default();
            }
            None => self.chars += bytes.len() as u64,
        }
    }
}
