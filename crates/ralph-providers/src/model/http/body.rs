//! Reads response bodies: event streams or JSON, regardless of their content type.

use std::time::Duration;

use hyper::header::{CONTENT_TYPE, HeaderMap};
use ralph_core::money::Usd;
use ralph_core::parse_value;
use ralph_core::ports::{FinishReason, ModelReply};
use ralph_core::profile::WireApi;
use ralph_guest::available;
use ralph_guest::running_time::{self, timeout_at};
use serde_json::Value;

use super::client::{ModelCall, ModelCallFailure, error_reason, timeout_message};
use super::partial_reply::{PartialReply, parse_dollars};
use super::rejection::ProviderRejection;
use super::sse::SseDecoder;
use super::wire::{self, ReplyReadError};
use crate::http::StreamedResponse;

/// Maximum size of a response body.
const MAX_BODY_BYTES: usize = 256 * 1024 * 1024;

/// The format of a response body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyFormat {
    /// Server-sent events.
    Events,
    /// One JSON value.
    Json,
}

/// The byte order mark that some servers send.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// The fields that start a line of an event stream.
const SSE_FIELDS: [&[u8]; 5] = [b"data:", b"event:", b"id:", b"retry:", b":"];

/// Detects the format of a body from its start; `None` if more data is needed.
fn detect_format(start: &[u8], is_declared_stream: bool) -> Option<BodyFormat> {
    let start = start.strip_prefix(BYTE_ORDER_MARK).unwrap_or(start);
    match start.first()? {
        b'{' | b'[' | b'<' => return Some(BodyFormat::Json),
        _ if is_declared_stream => return Some(BodyFormat::Events),
        _ => {}
    }
    if SSE_FIELDS.iter().any(|field| start.starts_with(field)) {
        return Some(BodyFormat::Events);
    }
    let may_become = SSE_FIELDS.iter().any(|field| field.starts_with(start));
    (!may_become).then_some(BodyFormat::Json)
}

impl ModelCall<'_> {
    /// Reads a reply in either format.
    pub(super) async fn read_reply(
        &self,
        response: StreamedResponse,
    ) -> Result<ModelReply, ModelCallFailure> {
        let headers = response.headers().clone();
        let kind = headers
            .get(CONTENT_TYPE)
            .and_then(|value| available(value.to_str()))
            .unwrap_or_default()
            .to_lowercase();
        let mut answer = PartialReply::default();
        let mut body = response;
        let (start, form) = self.read_start(&mut body, &kind).await?;
        match form {
            BodyFormat::Events => self.read_stream(body, &start, &mut answer).await?,
            BodyFormat::Json => self.read_whole(body, start, &mut answer).await?,
        }
        let mut usage = answer.usage(&self.estimate);
        let mut finish = answer.finish();
        if answer.is_too_long() {
            usage = answer.usage_so_far(&self.estimate);
            finish = FinishReason::Length;
        }
        Ok(ModelReply {
            billed: self.billed_cost(&answer, &headers),
            answered_by: answer.model.take(),
            text: answer.into_text(),
            usage,
            finish,
            source: None,
        })
    }

    /// Reads the start of a body and detects its format, since servers and proxies often declare
    /// the wrong one.
    async fn read_start(
        &self,
        body: &mut StreamedResponse,
        kind: &str,
    ) -> Result<(Vec<u8>, BodyFormat), ModelCallFailure> {
        let is_declared = kind.starts_with("text/event-stream");
        let mut start = Vec::new();
        let mut by = self.first_byte_deadline();
        loop {
            if let Some(form) = detect_format(&start, is_declared) {
                return Ok((start, form));
            }
            let Some(piece) = self.next_chunk(body, by, &PartialReply::default()).await? else {
                let form = if is_declared {
                    BodyFormat::Events
                } else {
                    BodyFormat::Json
                };
                return Ok((start, form));
            };
            start.extend_from_slice(&piece);
            // Some servers send whitespace to keep a connection alive.
            let blanks = start.len() - start.trim_ascii_start().len();
            start.drain(..blanks);
            by = self.next_chunk_deadline();
        }
    }

    /// Returns the cost reported by a gateway, which also covers models without a known price.
    fn billed_cost(&self, answer: &PartialReply, headers: &HeaderMap) -> Option<Usd> {
        let told = || {
            let header = headers.get("x-litellm-response-cost")?;
            parse_dollars(parse_value(available(header.to_str())?)?)
        };
        match self.model.settings.endpoint.provider.as_str() {
            "litellm_proxy" => answer.reported.billed.or_else(told),
            "openrouter" => answer.reported.billed,
            _ => None,
        }
    }

    async fn read_stream(
        &self,
        mut body: StreamedResponse,
        start: &[u8],
        answer: &mut PartialReply,
    ) -> Result<(), ModelCallFailure> {
        let mut decoder = SseDecoder::default();
        let mut bytes = 0;
        let mut piece = bytes::Bytes::copy_from_slice(start);
        loop {
            bytes += piece.len();
            let Ok(events) = decoder.push(&piece) else {
                return Err(self.interrupted(answer, "an event exceeds the size limit".into()));
            };
            for event in events {
                self.check_read(wire::read_event(self.wire(), &event, answer), answer)?;
            }
            // Gemini may send token counts after the end; other APIs have sent everything by then.
            let is_over = self.wire() != WireApi::Gemini || answer.reported.output.is_some();
            if answer.is_complete && is_over || answer.is_too_long() {
                return Ok(());
            }
            if bytes > MAX_BODY_BYTES {
                return Err(
                    self.interrupted(answer, format!("it has more than {MAX_BODY_BYTES} bytes"))
                );
            }
            piece = match self
                .next_chunk(&mut body, self.next_chunk_deadline(), answer)
                .await
            {
                Ok(Some(piece)) => piece,
                // Errors after the end of a reply do not affect it.
                Ok(None) | Err(_) if answer.is_complete => return Ok(()),
                Ok(None) => return self.finish_stream(decoder, answer),
                Err(_) if answer.has_final_usage() => return Ok(()),
                Err(failure) => return Err(failure),
            };
        }
    }

    /// Processes the rest of a stream. Many servers send no end marker; a finish reason is enough.
    fn finish_stream(
        &self,
        decoder: SseDecoder,
        answer: &mut PartialReply,
    ) -> Result<(), ModelCallFailure> {
        if let Some(event) = decoder.finish() {
            match wire::read_event(self.wire(), &event, answer) {
                // The stream was cut off in the middle of an event.
                Err(ReplyReadError::Unreadable(_)) => {}
                read => self.check_read(read, answer)?,
            }
        }
        if answer.is_complete || answer.finish.is_some() {
            return Ok(());
        }
        Err(self.interrupted(
            answer,
            "the stream ended before the reply was complete".into(),
        ))
    }

    async fn read_whole(
        &self,
        mut body: StreamedResponse,
        mut text: Vec<u8>,
        answer: &mut PartialReply,
    ) -> Result<(), ModelCallFailure> {
        let mut by = self.next_chunk_deadline();
        while let Some(piece) = self.next_chunk(&mut body, by, answer).await? {
            text.extend_from_slice(&piece);
            if text.len() > MAX_BODY_BYTES / 16 {
                let limit = MAX_BODY_BYTES / 16;
                return Err(self.interrupted(answer, format!("it has more than {limit} bytes")));
            }
            by = self.next_chunk_deadline();
        }
        let json = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&text);
        match serde_json::from_slice::<Value>(json) {
            Ok(value) => self.check_read(wire::read_whole(self.wire(), &value, answer), answer),
            Err(error) if error.is_eof() && !text.is_empty() => {
                let partial = String::from_utf8_lossy(&text).into_owned();
                answer.push_text(&partial);
                Err(self.interrupted(answer, "its JSON is incomplete".into()))
            }
            Err(_) => {
                let what = if text.trim_ascii_start().starts_with(b"<") {
                    "a web page instead of JSON"
                } else {
                    "invalid JSON"
                };
                let host = self.model.host();
                let message = format!("`{host}` responds with {what}");
                Err(ModelCallFailure::Error(self.model.endpoint_error(message)))
            }
        }
    }

    fn wire(&self) -> WireApi {
        self.model.settings.endpoint.wire
    }

    /// Returns the next chunk of a body; `None` at its end.
    async fn next_chunk(
        &self,
        body: &mut StreamedResponse,
        by: Duration,
        answer: &PartialReply,
    ) -> Result<Option<bytes::Bytes>, ModelCallFailure> {
        match timeout_at(by, body.chunk()).await {
            Ok(Ok(piece)) => Ok(piece),
            Ok(Err(error)) => Err(self.interrupted(answer, error_reason(&error))),
            Err(_) => {
                let timeouts = &self.model.settings.timeouts;
                let late = if running_time::now() >= self.deadline {
                    timeout_message("it was not complete", timeouts.total)
                } else if by == self.first_byte_deadline() {
                    timeout_message("no data arrived", timeouts.first_byte)
                } else {
                    timeout_message("no more data arrived", timeouts.idle)
                };
                Err(self.interrupted(answer, late))
            }
        }
    }

    /// Converts an error within a reply to a failure that is charged.
    fn check_read(
        &self,
        read: Result<(), ReplyReadError>,
        answer: &PartialReply,
    ) -> Result<(), ModelCallFailure> {
        match read {
            Ok(()) => Ok(()),
            // No text was received yet, so this is equivalent to a rejection.
            Err(ReplyReadError::Rejected(refusal)) if answer.text.is_empty() => {
                let message = self.model.redact_key(&refusal.message);
                Err(ModelCallFailure::Rejected(ProviderRejection {
                    message,
                    ..refusal
                }))
            }
            Err(ReplyReadError::Rejected(refusal)) => {
                let message = self.model.redact_key(&refusal.message);
                Err(self.interrupted(answer, message))
            }
            Err(ReplyReadError::Unreadable(why)) => Err(self.interrupted(answer, why)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_detected_from_the_start_of_the_body() {
        let (events, whole) = (Some(BodyFormat::Events), Some(BodyFormat::Json));
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
            assert_eq!(detect_format(start_bytes, true), declared, "{start}");
            assert_eq!(detect_format(start_bytes, false), undeclared, "{start}");
        }
    }
}
