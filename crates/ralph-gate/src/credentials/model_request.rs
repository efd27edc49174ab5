//! A model request, parsed once: all code that screens, prices or rewrites the request uses this
//! value.

use std::collections::BTreeSet;

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::CONTENT_ENCODING;
use ralph_core::net::{EgressDecider, EgressReason, ProviderTool};
use serde_json::{Map, Value, json};

use super::json::{self, JsonFault};
use super::provider_tools::{self, Screening};
use super::refusal::CredentialRefusal;
use super::request_body::{ReceivedBody, memory_exhausted};
use crate::memory::HeldBytes;
use crate::meter::{ModelWireFormat, limit_output};

/// A parsed model request.
pub(super) struct ParsedModelRequest {
    pub(super) wire: ModelWireFormat,
    fields: Map<String, Value>,
    original: Bytes,
    is_changed: bool,
    memory: HeldBytes,
}

impl ParsedModelRequest {
    /// Parses a request. An unreadable request can be neither screened nor priced, so it is
    /// refused.
    pub(super) fn parse(
        wire: ModelWireFormat,
        headers: &HeaderMap,
        received: ReceivedBody,
    ) -> Result<Self, CredentialRefusal> {
        if headers.contains_key(CONTENT_ENCODING) {
            let text = "the request is compressed — the gate must read model requests — send it \
                        uncompressed";
            return Err(CredentialRefusal::new(
                415,
                EgressReason::Malformed,
                EgressDecider::Gate,
                text,
            ));
        }
        let ReceivedBody { bytes, mut memory } = received;
        let parsed = json::parse(&bytes).map_err(json_refusal)?;
        if !memory.try_grow_to(bytes.len() + parsed.bytes) {
            return Err(memory_exhausted());
        }
        let Value::Object(fields) = parsed.value else {
            return Err(json_refusal(JsonFault::Malformed));
        };
        let request = Self {
            wire,
            fields,
            original: bytes,
            is_changed: false,
            memory,
        };
        if request.text("model").is_none() {
            return Err(json_refusal(JsonFault::Malformed));
        }
        Ok(request)
    }

    /// Returns the requested model.
    pub(super) fn model(&self) -> &str {
        self.text("model").unwrap_or_default()
    }

    pub(super) fn fields(&self) -> &Map<String, Value> {
        &self.fields
    }

    /// Returns the fields for modification and marks the request for serialization.
    pub(super) fn fields_mut(&mut self) -> &mut Map<String, Value> {
        self.is_changed = true;
        &mut self.fields
    }

    /// Returns a field; an explicit `null` counts as absent.
    pub(super) fn field(&self, key: &str) -> Option<&Value> {
        self.fields.get(key).filter(|value| !value.is_null())
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.fields.get(key)?.as_str()
    }

    /// Returns the length of the request, in bytes.
    pub(super) fn len(&self) -> usize {
        self.original.len()
    }

    /// Removes provider-side tools that are not allowed and reports all that were found.
    pub(super) fn screen_tools(&mut self, allowed: &BTreeSet<ProviderTool>) -> Screening {
        let screening = provider_tools::screen(self.wire, &mut self.fields, allowed);
        self.is_changed |= screening.is_changed;
        screening
    }

    /// Requests usage reporting for a chat stream, which is off by default.
    pub(super) fn request_usage(&mut self) {
        let is_stream = self.field("stream").and_then(Value::as_bool) == Some(true);
        if self.wire != ModelWireFormat::OpenAiChat || !is_stream {
            return;
        }
        let options = self.field("stream_options");
        if options.is_some_and(|options| options["include_usage"] == true) {
            return;
        }
        let fields = self.fields_mut();
        if let Some(Value::Object(options)) = fields.get_mut("stream_options") {
            options.insert("include_usage".to_owned(), json!(true));
        } else {
            let options = json!({"include_usage": true});
            fields.insert("stream_options".to_owned(), options);
        }
    }

    /// Writes an output limit per choice.
    pub(super) fn limit_output(&mut self, provider: &str, limit: u64) {
        let wire = self.wire;
        limit_output(wire, provider, self.fields_mut(), limit);
    }

    /// Returns the body to send. Its memory is released after it is sent.
    pub(super) fn into_body(self) -> Bytes {
        let Self {
            fields,
            original,
            is_changed,
            mut memory,
            ..
        } = self;
        let bytes = if is_changed {
            Value::Object(fields).to_string().into()
        } else {
            drop(fields);
            original
        };
        memory.shrink_to(bytes.len());
        Bytes::from_owner(SentBody {
            bytes,
            _memory: memory,
        })
    }
}

/// A body that releases its memory when the last reference is dropped.
struct SentBody {
    bytes: Bytes,
    _memory: HeldBytes,
}

impl AsRef<[u8]> for SentBody {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

fn json_refusal(fault: JsonFault) -> CredentialRefusal {
    let (status, reason, text) = match fault {
        JsonFault::Malformed => (
            400,
            EgressReason::Malformed,
            "the request is not a JSON object with a `model` — send a valid API request".to_owned(),
        ),
        JsonFault::DuplicateKey => (
            400,
            EgressReason::Malformed,
            "an object in the request has a duplicate key — send each key once".to_owned(),
        ),
        JsonFault::TooManyValues => (
            413,
            EgressReason::LimitReached,
            format!(
                "the request has more than {} values — send a smaller request",
                json::MAX_VALUES
            ),
        ),
    };
    CredentialRefusal::new(status, reason, EgressDecider::Gate, &text)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::memory::ByteBudget;

    pub(crate) fn parse_request(
        wire: ModelWireFormat,
        body: &str,
    ) -> Result<ParsedModelRequest, CredentialRefusal> {
        let received = ReceivedBody {
            bytes: Bytes::copy_from_slice(body.as_bytes()),
            memory: ByteBudget::new(1024 * 1024).hold(),
        };
        ParsedModelRequest::parse(wire, &HeaderMap::new(), received)
    }

    fn rewritten_body(wire: ModelWireFormat, body: &str) -> Result<String, u16> {
        let mut request = parse_request(wire, body).map_err(|refused| refused.status.as_u16())?;
        request.request_usage();
        Ok(String::from_utf8(request.into_body().to_vec()).unwrap())
    }

    #[test]
    fn chat_streams_request_usage_reporting() {
        let chat = ModelWireFormat::OpenAiChat;
        for (wire, body, expected) in [
            (chat, r#"{"model":"m"}"#, Ok(r#"{"model":"m"}"#)),
            (
                chat,
                r#"{"model":"m","stream":true}"#,
                Ok(r#"{"model":"m","stream":true,"stream_options":{"include_usage":true}}"#),
            ),
            (
                chat,
                r#"{"stream_options":{"include_usage":false,"x":1},"model":"m","stream":true}"#,
                Ok(r#"{"stream_options":{"include_usage":true,"x":1},"model":"m","stream":true}"#),
            ),
            (
                chat,
                r#"{"stream_options":null,"model":"m","stream":true}"#,
                Ok(r#"{"stream_options":{"include_usage":true},"model":"m","stream":true}"#),
            ),
            (
                chat,
                r#"{ "model":"m","stream":true,"stream_options":{"include_usage":true}}"#,
                Ok(r#"{ "model":"m","stream":true,"stream_options":{"include_usage":true}}"#),
            ),
            (
                ModelWireFormat::OpenAiResponses,
                r#"{"model":"m","stream":true}"#,
                Ok(r#"{"model":"m","stream":true}"#),
            ),
            (chat, r#"{"stream":true}"#, Err(400)),
            (chat, r#"{"model":7}"#, Err(400)),
            (chat, r#"{"model":"a","model":"b"}"#, Err(400)),
            (chat, r#"{"model":"a","x":{"y":1,"y":2}}"#, Err(400)),
            (chat, "[]", Err(400)),
            (chat, "", Err(400)),
        ] {
            assert_eq!(
                rewritten_body(wire, body),
                expected.map(str::to_owned),
                "{body}"
            );
        }
    }

    #[test]
    fn a_compressed_request_is_refused() {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_ENCODING, "zstd".parse().unwrap());
        let received = ReceivedBody {
            bytes: Bytes::new(),
            memory: ByteBudget::new(0).hold(),
        };
        let refused = ParsedModelRequest::parse(ModelWireFormat::OpenAiChat, &headers, received)
            .err()
            .unwrap();
        assert_eq!(refused.status.as_u16(), 415);
    }

    #[test]
    fn a_parsed_request_counts_against_the_byte_budget() {
        let values = "1,".repeat(100_000);
        let body = format!(r#"{{"model":"m","x":[{values}1]}}"#);
        let refused = parse_request(ModelWireFormat::OpenAiChat, &body)
            .err()
            .unwrap();
        assert_eq!(
            (refused.status.as_u16(), refused.retry_after),
            (503, Some(5))
        );
    }
}
