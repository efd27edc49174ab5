//! Reads the body of an answer: events or a whole, whatever its content type says.

use std::time::Duration;

use ralph_core::money::Usd;
use ralph_core::ports::{Finish, Reply};
use ralph_core::profile::Wire;
use ralph_guest::running_time::{self, timeout_at};
use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use serde_json::Value;

use super::answer::{Answer, dollars};
use super::client::{Asking, Failure, reason, too_late};
use super::refusal::Refusal;
use super::sse::Decoder;
use super::wire::{self, Trouble};

/// How much of an answer is read, with everything around its text.
const MAX_ANSWER_BYTES: usize = 256 * 1024 * 1024;

/// The form of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Server-sent events.
    Events,
    /// One JSON value.
    Whole,
}

/// The byte order mark that some servers put before a text.
const MARK: &[u8] = b"\xef\xbb\xbf";
/// The fields that a line of an event stream begins with.
const FIELDS: [&[u8]; 5] = [b"data:", b"event:", b"id:", b"retry:", b":"];

/// Returns the form of a body by its start; none if more of it is needed.
fn form_of(start: &[u8], is_declared_stream: bool) -> Option<Form> {
    let start = start.strip_prefix(MARK).unwrap_or(start);
    match start.first()? {
        b'{' | b'[' | b'<' => return Some(Form::Whole),
        _ if is_declared_stream => return Some(Form::Events),
        _ => {}
    }
    if FIELDS.iter().any(|field| start.starts_with(field)) {
        return Some(Form::Events);
    }
    let may_become = FIELDS.iter().any(|field| field.starts_with(start));
    (!may_become).then_some(Form::Whole)
}

impl Asking<'_> {
    /// Reads an answer, whichever way it comes.
    pub(super) async fn read(&self, response: Response) -> Result<Reply, Failure> {
        let headers = response.headers().clone();
        let kind = headers
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
            .to_lowercase();
        let mut answer = Answer::default();
        let mut body = response;
        let (start, form) = self.begin(&mut body, &kind).await?;
        match form {
            Form::Events => self.read_stream(body, &start, &mut answer).await?,
            Form::Whole => self.read_whole(body, start, &mut answer).await?,
        }
        let mut usage = answer.usage(&self.sent);
        let mut finish = answer.finish();
        if answer.is_too_long() {
            usage = answer.usage_until_now(&self.sent);
            finish = Finish::Length;
        }
        Ok(Reply {
            billed: self.billed(&answer, &headers),
            answered_by: answer.model.take(),
            text: answer.into_text(),
            usage,
            finish,
            source: None,
        })
    }

    /// Reads the start of a body and finds out its form, since servers and proxies often declare another one.
    async fn begin(&self, body: &mut Response, kind: &str) -> Result<(Vec<u8>, Form), Failure> {
        let is_declared = kind.starts_with("text/event-stream");
        let mut start = Vec::new();
        let mut by = self.first_byte_by();
        loop {
            if let Some(form) = form_of(&start, is_declared) {
                return Ok((start, form));
            }
            let Some(piece) = self.piece(body, by, &Answer::default()).await? else {
                let form = if is_declared {
                    Form::Events
                } else {
                    Form::Whole
                };
                return Ok((start, form));
            };
            start.extend_from_slice(&piece);
            // Some servers keep a connection alive by blanks.
            let blanks = start.len() - start.trim_ascii_start().len();
            start.drain(..blanks);
            by = self.next_by();
        }
    }

    /// Gateways know what a call has cost, also of models that we have no price of.
    fn billed(&self, answer: &Answer, headers: &HeaderMap) -> Option<Usd> {
        let told = || {
            let header = headers.get("x-litellm-response-cost")?;
            dollars(header.to_str().ok()?.parse().ok()?)
        };
        match self.model.settings.endpoint.provider.as_str() {
            "litellm_proxy" => answer.counted.billed.or_else(told),
            "openrouter" => answer.counted.billed,
            _ => None,
        }
    }

    async fn read_stream(
        &self,
        mut body: Response,
        start: &[u8],
        answer: &mut Answer,
    ) -> Result<(), Failure> {
        let mut decoder = Decoder::default();
        let mut bytes = 0;
        let mut piece = bytes::Bytes::copy_from_slice(start);
        loop {
            bytes += piece.len();
            let Ok(events) = decoder.push(&piece) else {
                return Err(self.cut_off(answer, "an event of it never ended".into()));
            };
            for event in events {
                self.take(wire::read_event(self.wire(), &event, answer), answer)?;
            }
            // Gemini may count after the end; others have said everything by then.
            let is_over = self.wire() != Wire::Gemini || answer.counted.output.is_some();
            if answer.is_complete && is_over || answer.is_too_long() {
                return Ok(());
            }
            if bytes > MAX_ANSWER_BYTES {
                return Err(
                    self.cut_off(answer, format!("it has more than {MAX_ANSWER_BYTES} bytes"))
                );
            }
            piece = match self.piece(&mut body, self.next_by(), answer).await {
                Ok(Some(piece)) => piece,
                // Whatever happens after the end of an answer does not change it.
                Ok(None) | Err(_) if answer.is_complete => return Ok(()),
                Ok(None) => return self.end_stream(decoder, answer),
                Err(_) if answer.is_counted() => return Ok(()),
                Err(failure) => return Err(failure),
            };
        }
    }

    /// Reads what is left when a stream has ended. Many servers send no mark at its end; the reason why the
    /// model stopped is enough.
    fn end_stream(&self, decoder: Decoder, answer: &mut Answer) -> Result<(), Failure> {
        if let Some(event) = decoder.finish() {
            match wire::read_event(self.wire(), &event, answer) {
                // The stream was cut in the middle of the event.
                Err(Trouble::Unreadable(_)) => {}
                read => self.take(read, answer)?,
            }
        }
        if answer.is_complete || answer.finish.is_some() {
            return Ok(());
        }
        Err(self.cut_off(answer, "the stream ended before the answer did".into()))
    }

    async fn read_whole(
        &self,
        mut body: Response,
        mut text: Vec<u8>,
        answer: &mut Answer,
    ) -> Result<(), Failure> {
        let mut by = self.next_by();
        while let Some(piece) = self.piece(&mut body, by, answer).await? {
            text.extend_from_slice(&piece);
            if text.len() > MAX_ANSWER_BYTES / 16 {
                let limit = MAX_ANSWER_BYTES / 16;
                return Err(self.cut_off(answer, format!("it has more than {limit} bytes")));
            }
            by = self.next_by();
        }
        let json = text.strip_prefix(MARK).unwrap_or(&text);
        match serde_json::from_slice::<Value>(json) {
            Ok(value) => self.take(wire::read_whole(self.wire(), &value, answer), answer),
            Err(error) if error.is_eof() && !text.is_empty() => {
                let partial = String::from_utf8_lossy(&text).into_owned();
                answer.add(&partial);
                Err(self.cut_off(answer, "its JSON ended too early".into()))
            }
            Err(_) => {
                let what = if text.trim_ascii_start().starts_with(b"<") {
                    "a web page"
                } else {
                    "something else"
                };
                let host = self.model.host();
                let message = format!("`{host}` answers with {what} instead of JSON");
                Err(Failure::Error(self.model.broken(message)))
            }
        }
    }

    fn wire(&self) -> Wire {
        self.model.settings.endpoint.wire
    }

    /// Returns the next piece of a body; none at its end.
    async fn piece(
        &self,
        body: &mut Response,
        by: Duration,
        answer: &Answer,
    ) -> Result<Option<bytes::Bytes>, Failure> {
        match timeout_at(by, body.chunk()).await {
            Ok(Ok(piece)) => Ok(piece),
            Ok(Err(error)) => Err(self.cut_off(answer, reason(error))),
            Err(_) => {
                let timeouts = &self.model.settings.timeouts;
                let late = if running_time::now() >= self.deadline {
                    too_late("it did not come to its end", timeouts.total)
                } else if by == self.first_byte_by() {
                    too_late("no answer began", timeouts.first_byte)
                } else {
                    too_late("nothing more came", timeouts.idle)
                };
                Err(self.cut_off(answer, late))
            }
        }
    }

    /// Turns trouble inside an answer into a failure that is charged.
    fn take(&self, read: Result<(), Trouble>, answer: &Answer) -> Result<(), Failure> {
        match read {
            Ok(()) => Ok(()),
            // Nothing was written yet: as good as a refusal.
            Err(Trouble::Refused(refusal)) if answer.text.is_empty() => {
                let message = self.model.hidden(&refusal.message);
                Err(Failure::Refused(Refusal { message, ..refusal }))
            }
            Err(Trouble::Refused(refusal)) => {
                let message = self.model.hidden(&refusal.message);
                Err(self.cut_off(answer, message))
            }
            Err(Trouble::Unreadable(why)) => Err(self.cut_off(answer, why)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_of_a_body_tells_its_form() {
        let (events, whole) = (Some(Form::Events), Some(Form::Whole));
        for (start, declared, undeclared) in [
            ("", None, None),
            ("{\"choices\"", whole, whole),
            ("[{", whole, whole),
            ("<html>", whole, whole),
            ("data: {", events, events),
            (": keep alive", events, events),
            ("event: x", events, events),
            ("\u{feff}data: {", events, events),
            ("dat", events, None),
            ("date", events, whole),
            ("upstream error", events, whole),
        ] {
            let start_bytes = start.as_bytes();
            assert_eq!(form_of(start_bytes, true), declared, "{start}");
            assert_eq!(form_of(start_bytes, false), undeclared, "{start}");
        }
    }
}
