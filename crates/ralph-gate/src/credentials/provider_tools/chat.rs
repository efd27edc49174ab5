//! Screens OpenAI chat completions requests, including parameters that compatible servers add.

use ralph_core::net::ProviderTool;
use serde_json::{Map, Value, json};

use super::tools::ToolOwner;
use super::{Screener, content_parts, type_of};

/// Parameters that only affect client and model, or that are screened below.
const PARAMETERS: [&str; 50] = [
    "audio",
    "background",
    "chat_template_kwargs",
    "do_sample",
    "enable_thinking",
    "frequency_penalty",
    "function_call",
    "functions",
    "include_reasoning",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "metadata",
    "min_p",
    "modalities",
    "model",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning",
    "reasoning_effort",
    "reasoning_format",
    "reasoning_split",
    "repetition_penalty",
    "request_id",
    "response_format",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "stop_token_ids",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "thinking",
    "thinking_budget",
    "tool_choice",
    "tool_stream",
    "tools",
    "top_k",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
];

/// Parameters that cause a server to search or fetch.
const TOOL_PARAMETERS: [(&str, ProviderTool); 8] = [
    ("web_search_options", ProviderTool::WebSearch),
    ("web_search", ProviderTool::WebSearch),
    ("search_parameters", ProviderTool::WebSearch),
    ("search_options", ProviderTool::WebSearch),
    ("enable_search", ProviderTool::WebSearch),
    ("plugins", ProviderTool::WebSearch),
    ("documents", ProviderTool::Files),
    ("mcp_servers", ProviderTool::Mcp),
];

pub(super) fn screen(screener: &mut Screener<'_>, request: &mut Map<String, Value>) {
    screener.screen_parameters(request, &PARAMETERS, &TOOL_PARAMETERS);
    screener.disable_storage(request);
    screener.screen_tools(request, tool_owner);
    for message in request
        .get("messages")
        .map(content_parts)
        .unwrap_or_default()
    {
        for part in message
            .get("content")
            .map(content_parts)
            .unwrap_or_default()
        {
            screen_part(screener, part);
        }
    }
}

impl Screener<'_> {
    /// Prevents the provider from storing the response.
    pub(super) fn disable_storage(&mut self, request: &mut Map<String, Value>) {
        let is_stored = request
            .get("store")
            .is_some_and(|store| !store.is_null() && *store != Value::Bool(false));
        if is_stored && !self.keep_if_allowed(Some(ProviderTool::Files), "the parameter `store`") {
            request.insert("store".to_owned(), json!(false));
        }
    }
}

fn tool_owner(tool: &Value) -> ToolOwner {
    match type_of(tool) {
        Some("function" | "custom") => ToolOwner::Client,
        None if tool.get("type").is_none() && tool.get("function").is_some() => ToolOwner::Client,
        type_name => ToolOwner::Provider(required_permission(type_name.unwrap_or_default())),
    }
}

/// Returns the permission required for a tool of an OpenAI-compatible provider.
pub(super) fn required_permission(type_name: &str) -> Option<ProviderTool> {
    if type_name.starts_with("web_search") {
        return Some(ProviderTool::WebSearch);
    }
    match type_name {
        "web_fetch" | "url_context" => Some(ProviderTool::WebFetch),
        "code_interpreter" | "code_execution" | "shell" => Some(ProviderTool::CodeExecution),
        "file_search" | "retrieval" => Some(ProviderTool::Files),
        "mcp" => Some(ProviderTool::Mcp),
        _ => None,
    }
}

fn screen_part(screener: &mut Screener<'_>, part: &Value) {
    match type_of(part) {
        Some(
            "text" | "image_url" | "input_audio" | "audio_url" | "video_url" | "file" | "refusal"
            | "thinking" | "reasoning",
        ) => {}
        other => screener.refuse_unknown("the content", other),
    }
    screener.screen_remote_fields(part);
}
