//! What a request asks of a model.

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::CONTENT_ENCODING;
use ralph_core::net::{Decider, Reason};
use serde_json::{Value, json};

use super::words::Refused;
use crate::meter::Wire;

/// A request to a model, read.
pub(super) struct Asked {
    /// The model.
    pub(super) model: String,
    /// What to send, which may be more than what came.
    pub(super) body: Bytes,
}

/// Reads a request. One that cannot be read cannot be paid for.
pub(super) fn read(wire: Wire, headers: &HeaderMap, body: Bytes) -> Result<Asked, Refused> {
    let malformed = |text| Refused::new(400, Reason::Malformed, Decider::Gate, text);
    if headers.contains_key(CONTENT_ENCODING) {
        let text =
            "the request is compressed — the gate reads what is asked of models — send it as it is";
        return Err(Refused::new(415, Reason::Malformed, Decider::Gate, text));
    }
    let head: Head<'_> = serde_json::from_slice(&body).map_err(|_| {
        malformed("the request is not JSON with a `model` — send what the API takes")
    })?;
    let model = head.model.into_owned();
    let lacks_usage = wire == Wire::OpenAiChat
        && head.stream == Some(true)
        && head
            .stream_options
            .is_none_or(|options| options.include_usage != Some(true));
    if !lacks_usage {
        return Ok(Asked { model, body });
    }
    // Without this, a stream does not say what it cost.
    let mut request: Value = serde_json::from_slice(&body)
        .map_err(|_| malformed("the request is not JSON — send what the API takes"))?;
    match request.get_mut("stream_options") {
        Some(Value::Object(options)) => {
            options.insert("include_usage".to_owned(), json!(true));
        }
        Some(_) | None => request["stream_options"] = json!({"include_usage": true}),
    }
    Ok(Asked {
        model,
        body: request.to_string().into(),
    })
}

#[derive(serde::Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    model: std::borrow::Cow<'a, str>,
    #[serde(default)]
    stream: Option<bool>,
    #[serde(default)]
    stream_options: Option<StreamOptions>,
}

#[derive(Clone, Copy, serde::Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: Option<bool>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(wire: Wire, body: &'static str) -> Result<String, u16> {
        match read(wire, &HeaderMap::new(), Bytes::from_static(body.as_bytes())) {
            Ok(asked) => Ok(String::from_utf8(asked.body.to_vec()).unwrap()),
            Err(refused) => Err(refused.status.as_u16()),
        }
    }

    #[test]
    fn a_chat_stream_is_made_to_tell_what_it_cost() {
        let chat = Wire::OpenAiChat;
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
                r#"{ "model":"m","stream":true,"stream_options":{"include_usage":true}}"#,
                Ok(r#"{ "model":"m","stream":true,"stream_options":{"include_usage":true}}"#),
            ),
            (
                Wire::OpenAiResponses,
                r#"{"model":"m","stream":true}"#,
                Ok(r#"{"model":"m","stream":true}"#),
            ),
            (chat, r#"{"stream":true}"#, Err(400)),
            (chat, r#"{"model":"a","model":"b"}"#, Err(400)),
            (chat, "[]", Err(400)),
            (chat, "", Err(400)),
        ] {
            assert_eq!(sent(wire, body), expected.map(str::to_owned), "{body}");
        }
    }

    #[test]
    fn a_compressed_request_is_refused() {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_ENCODING, "zstd".parse().unwrap());
        let refused = read(Wire::OpenAiChat, &headers, Bytes::new())
            .err()
            .unwrap();
        assert_eq!(refused.status.as_u16(), 415);
    }
}
