//! An upper bound on the tokens that a request can be billed for, and output limits for requests.
//!
//! Input: a token of every known tokenizer represents at least one byte, so the size of the request
//! bounds its text. Three parts are not text: the provider's additions around messages and tools,
//! images, and documents or stored conversations. The first two have fixed bounds here; the third
//! is only bounded by the model's context window, which no input exceeds.

use ralph_core::price::TokenWindow;
use serde_json::{Map, Value, json};

use super::ModelWireFormat;

/// Tokens that a provider adds to a request: templates, roles, tool instructions.
const OVERHEAD_TOKENS: u64 = 1024;
/// Tokens that a provider adds for each tool it defines.
const OVERHEAD_PER_TYPED_TOOL: u64 = 1024;
/// The maximum tokens of one image at any provider, regardless of its size in bytes.
const TOKENS_PER_IMAGE: u64 = 16 * 1024;
/// The largest context window of a known model, used for unknown models.
const LARGEST_WINDOW: u64 = 1_050_000;
/// The output limit for a request to an unknown model that sets none.
const DEFAULT_OUTPUT: u64 = 32 * 1024;
/// The output assumed for an unknown model if the request cannot be limited.
const LARGEST_OUTPUT: u64 = 128 * 1024;
/// The minimum output limit for a useful response, in tokens.
const MIN_USEFUL_OUTPUT: u64 = 256;
/// The same with thinking enabled, which takes at least 1024 tokens.
const MIN_USEFUL_THINKING_OUTPUT: u64 = 2048;
/// The maximum number of choices per request.
const MAX_CHOICES: u64 = 128;

/// The maximum that a request can be billed for, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TokenBound {
    pub(crate) input: u64,
    /// Output tokens per choice.
    pub(crate) output: u64,
    pub(crate) choices: u64,
    /// The minimum output tokens per choice for a useful response.
    pub(crate) min_output: u64,
    /// Whether the request sets its output limit.
    pub(crate) is_explicit: bool,
    pub(crate) is_limitable: bool,
}

/// A field whose value is not a valid count, so that the gate and the provider may read it
/// differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BadField(pub(crate) &'static str);

/// The request to bound.
pub(crate) struct BoundedRequest<'a> {
    pub(crate) wire: ModelWireFormat,
    pub(crate) fields: &'a Map<String, Value>,
    /// The length of the body, in bytes.
    pub(crate) bytes: u64,
    /// The window of the model if it is known, including an extension by a beta flag.
    pub(crate) window: Option<TokenWindow>,
    pub(crate) is_limitable: bool,
}

impl BoundedRequest<'_> {
    pub(crate) fn bound(&self) -> Result<TokenBound, BadField> {
        let explicit = self.explicit_output()?;
        let unknown = if self.is_limitable {
            DEFAULT_OUTPUT
        } else {
            LARGEST_OUTPUT
        };
        let max_output = self.window.map_or(unknown, |window| window.max_output);
        let output = explicit.unwrap_or(max_output);
        let thinks = self.wire == ModelWireFormat::AnthropicMessages
            && self.fields.get("thinking").is_some_and(has_thinking_budget);
        let min_output = if thinks {
            MIN_USEFUL_THINKING_OUTPUT
        } else {
            MIN_USEFUL_OUTPUT
        };
        Ok(TokenBound {
            input: self.input(),
            output,
            choices: self.choices()?,
            min_output: min_output.min(output),
            is_explicit: explicit.is_some(),
            is_limitable: self.is_limitable,
        })
    }

    fn input(&self) -> u64 {
        let window = self
            .window
            .map_or(LARGEST_WINDOW, |window| window.max_input);
        let mut media = RequestMedia::default();
        self.fields.values().for_each(|value| media.visit(value));
        for item in ["messages", "input"]
            .iter()
            .filter_map(|key| self.fields.get(*key)?.as_array())
            .flatten()
        {
            media.visit_images(item.get("content"));
            media.visit_images(item.get("output"));
        }
        let is_stored = [
            "previous_response_id",
            "conversation",
            "prompt",
            "container",
        ]
        .iter()
        .any(|key| self.fields.get(*key).is_some_and(|value| !value.is_null()));
        let tools = self.tools();
        if media.is_unbounded || is_stored || tools.iter().any(|tool| runs_at_provider(tool)) {
            return window;
        }
        let typed_tools = tools
            .iter()
            .filter(|tool| is_provider_defined(tool))
            .count();
        let bound = self
            .bytes
            .saturating_sub(media.image_bytes)
            .saturating_add(OVERHEAD_TOKENS)
            .saturating_add(OVERHEAD_PER_TYPED_TOOL * typed_tools as u64)
            .saturating_add(TOKENS_PER_IMAGE.saturating_mul(media.images));
        bound.min(window)
    }

    /// Returns the tools of the request, including those in namespaces and input items.
    fn tools(&self) -> Vec<&Value> {
        let items = self.fields.get("input").and_then(Value::as_array);
        let lists = items.into_iter().flatten().filter_map(|i| i.get("tools"));
        let mut pending: Vec<&Value> = self
            .fields
            .get("tools")
            .into_iter()
            .chain(lists)
            .filter_map(Value::as_array)
            .flatten()
            .collect();
        let mut tools = Vec::new();
        while let Some(tool) = pending.pop() {
            match tool.get("tools").and_then(Value::as_array) {
                Some(inner) if tool["type"] == "namespace" => pending.extend(inner),
                Some(_) | None => tools.push(tool),
            }
        }
        tools
    }

    /// Returns the output limit set in the request.
    fn explicit_output(&self) -> Result<Option<u64>, BadField> {
        let mut max: Option<u64> = None;
        for key in limit_keys(self.wire) {
            match self.fields.get(*key) {
                None | Some(Value::Null) => {}
                Some(value) => {
                    let limit = value.as_u64().filter(|limit| *limit > 0);
                    let limit = limit.ok_or(BadField(key))?;
                    // With two limits, the provider may apply either one.
                    max = Some(max.map_or(limit, |other| other.max(limit)));
                }
            }
        }
        Ok(max)
    }

    fn choices(&self) -> Result<u64, BadField> {
        match self.fields.get("n") {
            None | Some(Value::Null) => Ok(1),
            Some(value) => value
                .as_u64()
                .filter(|count| (1..=MAX_CHOICES).contains(count))
                .ok_or(BadField("n")),
        }
    }
}

/// Writes an output limit per choice into a request.
pub(crate) fn limit_output(
    wire: ModelWireFormat,
    provider: &str,
    fields: &mut Map<String, Value>,
    limit: u64,
) {
    let keys = limit_keys(wire);
    let mut is_written = false;
    for key in keys {
        if let Some(value) = fields.get_mut(*key).filter(|value| !value.is_null()) {
            is_written = true;
            if value.as_u64().is_none_or(|old| old > limit) {
                *value = json!(limit);
            }
        }
    }
    if !is_written {
        // OpenAI's reasoning models reject the older name; other servers only know that one.
        let key = match wire {
            ModelWireFormat::OpenAiChat if provider != "openai" => "max_tokens",
            ModelWireFormat::OpenAiChat
            | ModelWireFormat::OpenAiResponses
            | ModelWireFormat::AnthropicMessages => keys[0],
        };
        fields.insert(key.to_owned(), json!(limit));
    }
    if wire == ModelWireFormat::AnthropicMessages
        && let Some(thinking) = fields
            .get_mut("thinking")
            .filter(|value| has_thinking_budget(value))
        && thinking["budget_tokens"]
            .as_u64()
            .is_none_or(|budget| budget >= limit)
    {
        thinking["budget_tokens"] = json!(limit / 2);
    }
}

fn limit_keys(wire: ModelWireFormat) -> &'static [&'static str] {
    match wire {
        ModelWireFormat::AnthropicMessages => &["max_tokens"],
        ModelWireFormat::OpenAiChat => &["max_completion_tokens", "max_tokens"],
        ModelWireFormat::OpenAiResponses => &["max_output_tokens"],
    }
}

fn has_thinking_budget(thinking: &Value) -> bool {
    thinking["type"] == "enabled"
}

/// Returns whether a tool is defined by the provider, so that the request does not contain its
/// description.
fn is_provider_defined(tool: &Value) -> bool {
    let kind = tool.get("type").and_then(Value::as_str);
    kind.is_some_and(|kind| !matches!(kind, "custom" | "function"))
}

/// Returns whether the provider runs a tool and reads its results as input.
fn runs_at_provider(tool: &Value) -> bool {
    const CLIENT_TOOLS: [&str; 8] = [
        "bash",
        "text_editor",
        "computer",
        "memory",
        "local_shell",
        "shell",
        "apply_patch",
        // Only searches the tools in the request.
        "tool_search_tool_",
    ];
    let kind = tool.get("type").and_then(Value::as_str).unwrap_or_default();
    if kind == "tool_search" && tool["execution"] == "client" {
        return false;
    }
    is_provider_defined(tool) && !CLIENT_TOOLS.iter().any(|start| kind.starts_with(start))
}

/// The non-text content of a request.
#[derive(Default)]
struct RequestMedia {
    images: u64,
    /// The bytes of embedded images, which are not read as text.
    image_bytes: u64,
    /// Whether any content has tokens that its size does not bound.
    is_unbounded: bool,
}

impl RequestMedia {
    fn visit(&mut self, value: &Value) {
        match value {
            Value::Object(fields) => {
                let kind = fields.get("type").and_then(Value::as_str);
                match kind.unwrap_or_default() {
                    "document" => {
                        let source = value["source"]["type"].as_str();
                        self.is_unbounded |= !matches!(source, Some("text" | "content"));
                    }
                    "file" | "input_file" | "input_audio" | "container_upload"
                    | "item_reference" => self.is_unbounded = true,
                    _ => {}
                }
                fields.values().for_each(|value| self.visit(value));
            }
            Value::Array(items) => items.iter().for_each(|value| self.visit(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Finds images among the parts of a message. Providers read images only there: the same object
    /// in a tool input or a schema is text.
    fn visit_images(&mut self, content: Option<&Value>) {
        let parts = match content {
            Some(Value::Array(parts)) => parts.as_slice(),
            Some(part) => std::slice::from_ref(part),
            None => return,
        };
        for part in parts {
            let kind = part.get("type").and_then(Value::as_str);
            match kind.unwrap_or_default() {
                "image" | "image_url" | "input_image" | "computer_screenshot" => {
                    self.images += 1;
                    self.image_bytes += embedded_bytes(part);
                }
                "tool_result" => self.visit_images(part.get("content")),
                "document" => self.visit_images(part["source"].get("content")),
                _ => {}
            }
        }
    }
}

/// Returns the size of an image embedded in the request, in bytes.
fn embedded_bytes(image: &Value) -> u64 {
    let data = if image["source"]["type"] == "base64" {
        image["source"]["data"].as_str()
    } else {
        let url = &image["image_url"];
        let url = url.as_str().or_else(|| url["url"].as_str());
        url.filter(|url| url.starts_with("data:image/"))
    };
    data.map_or(0, |data| data.len() as u64)
}

#[cfg(test)]
mod tests;
