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
        let content_type = headers
            .get(CONTENT_TYPE)
            .and_then(|value| available(value.to_str()))
            .unwrap_or_default()
            .to_lowercase();
        let mut reply = PartialReply::default();
        let mut body = response;
        let (start, format) = self.read_start(&mut body, &content_type).await?;
        match format {
            BodyFormat::Events => self.read_stream(body, &start, &mut reply).await?,
            BodyFormat::Json => self.read_whole(body, start, &mut reply).await?,
        }
        let mut usage = reply.usage(&self.estimate);
        let mut finish = reply.finish();
        if reply.is_too_long() {
            usage = reply.usage_so_far(&self.estimate);
            finish = FinishReason::Length;
        }
        Ok(ModelReply {
            billed: self.billed_cost(&reply, &headers),
            answered_by: reply.model.take(),
            text: reply.into_text(),
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
        content_type: &str,
    ) -> Result<(Vec<u8>, BodyFormat), ModelCallFailure> {
        let is_declared = content_type.starts_with("text/event-stream");
        let mut start = Vec::new();
        let mut deadline = self.first_byte_deadline();
        loop {
            if let Some(format) = detect_format(&start, is_declared) {
                return Ok((start, format));
            }
            let Some(chunk) = self
                .next_chunk(body, deadline, &PartialReply::default())
                .await?
            else {
                let format = if is_declared {
                    BodyFormat::Events
                } else {
                    BodyFormat::Json
                };
                return Ok((start, format));
            };
            start.extend_from_slice(&chunk);
            // Some servers send whitespace to keep a connection alive.
            let whitespace = start.len() - start.trim_ascii_start().len();
            start.drain(..whitespace);
            deadline = self.next_chunk_deadline();
        }
    }

    /// Returns the cost reported by a gateway, which also covers models without a known price.
    fn billed_cost(&self, reply: &PartialReply, headers: &HeaderMap) -> Option<Usd> {
        let from_header = || {
            let header = headers.get("x-litellm-response-cost")?;
            parse_dollars(parse_value(available(header.to_str())?)?)
        };
        match self.model.settings.endpoint.provider.as_str() {
            "litellm_proxy" => reply.reported.billed.or_else(from_header),
            "openrouter" => reply.reported.billed,
            _ => None,
        }
    }

    async fn read_stream(
        &self,
        mut body: StreamedResponse,
        start: &[u8],
        reply: &mut PartialReply,
    ) -> Result<(), ModelCallFailure> {
        let mut decoder = SseDecoder::default();
        let mut bytes = 0;
        let mut chunk = bytes::Bytes::copy_from_slice(start);
        loop {
            bytes += chunk.len();
            let Ok(events) = decoder.push(&chunk) else {
                return Err(self.interrupted(reply, "an event exceeds the size limit".into()));
            };
            for event in events {
                self.check_read(wire::read_event(self.wire(), &event, reply), reply)?;
            }
            // Gemini may send token counts after the end; other APIs have sent everything by then.
            let is_over = self.wire() != WireApi::Gemini || reply.reported.output.is_some();
            if reply.is_complete && is_over || reply.is_too_long() {
                return Ok(());
            }
            if bytes > MAX_BODY_BYTES {
                return Err(
                    self.interrupted(reply, format!("it has more than {MAX_BODY_BYTES} bytes"))
                );
            }
            chunk = match self
                .next_chunk(&mut body, self.next_chunk_deadline(), reply)
                .await
            {
                Ok(Some(chunk)) => chunk,
                // Errors after the end of a reply do not affect it.
                Ok(None) | Err(_) if reply.is_complete => return Ok(()),
                Ok(None) => return self.finish_stream(decoder, reply),
                Err(_) if reply.has_final_usage() => return Ok(()),
                Err(failure) => return Err(failure),
            };
        }
    }

    /// Processes the rest of a stream. Many servers send no end marker; a finish reason is enough.
    fn finish_stream(
        &self,
        decoder: SseDecoder,
        reply: &mut PartialReply,
    ) -> Result<(), ModelCallFailure> {
        if let Some(event) = decoder.finish() {
            match wire::read_event(self.wire(), &event, reply) {
                // The stream was cut off in the middle of an event.
                Err(ReplyReadError::Unreadable(_)) => {}
                result => self.check_read(result, reply)?,
            }
        }
        if reply.is_complete || reply.finish.is_some() {
            return Ok(());
        }
        Err(self.interrupted(
            reply,
            "the stream ended before the reply was complete".into(),
        ))
    }

    async fn read_whole(
        &self,
        mut body: StreamedResponse,
        mut text: Vec<u8>,
        reply: &mut PartialReply,
    ) -> Result<(), ModelCallFailure> {
        let mut deadline = self.next_chunk_deadline();
        while let Some(chunk) = self.next_chunk(&mut body, deadline, reply).await? {
            text.extend_from_slice(&chunk);
            if text.len() > MAX_BODY_BYTES / 16 {
                let limit = MAX_BODY_BYTES / 16;
                return Err(self.interrupted(reply, format!("it has more than {limit} bytes")));
            }
            deadline = self.next_chunk_deadline();
        }
        let json = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&text);
        match serde_json::from_slice::<Value>(json) {
            Ok(value) => self.check_read(wire::read_whole(self.wire(), &value, reply), reply),
            Err(error) if error.is_eof() && !text.is_empty() => {
                let partial = String::from_utf8_lossy(&text).into_owned();
                reply.push_text(&partial);
                Err(self.interrupted(reply, "its JSON is incomplete".into()))
            }
            Err(_) => {
                let content = if text.trim_ascii_start().starts_with(b"<") {
                    "a web page instead of JSON"
                } else {
                    "invalid JSON"
                };
                let host = self.model.host();
                let message = format!("`{host}` responds with {content}");
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
        deadline: Duration,
        reply: &PartialReply,
    ) -> Result<Option<bytes::Bytes>, ModelCallFailure> {
        match timeout_at(deadline, body.chunk()).await {
            Ok(Ok(chunk)) => Ok(chunk),
            Ok(Err(error)) => Err(self.interrupted(reply, error_reason(&error))),
            Err(_) => {
                let timeouts = &self.model.settings.timeouts;
                let message = if running_time::now() >= self.deadline {
                    timeout_message("it was not complete", timeouts.total)
                } else if deadline == self.first_byte_deadline() {
                    timeout_message("no data arrived", timeouts.first_byte)
                } else {
                    timeout_message("no more data arrived", timeouts.idle)
                };
                Err(self.interrupted(reply, message))
            }
        }
    }

    /// Converts an error within a reply to a failure. Every failure is charged, except an error that
    /// the provider reports before the first text.
    fn check_read(
        &self,
        result: Result<(), ReplyReadError>,
        reply: &PartialReply,
    ) -> Result<(), ModelCallFailure> {
        match result {
            Ok(()) => Ok(()),
            // No text was received yet, so this is equivalent to a rejection.
            Err(ReplyReadError::Rejected(rejection)) if reply.text.is_empty() => {
                let message = self.model.redact_key(&rejection.message);
                Err(ModelCallFailure::Rejected(ProviderRejection {
                    message,
                    ..rejection
                }))
            }
            Err(ReplyReadError::Rejected(rejection)) => {
                let message = self.model.redact_key(&rejection.message);
                Err(self.interrupted(reply, message))
            }
            Err(ReplyReadError::Unreadable(why)) => Err(self.interrupted(reply, why)),
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
