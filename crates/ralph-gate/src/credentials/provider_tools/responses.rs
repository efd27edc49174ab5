//! Screens OpenAI responses requests.

use ralph_core::net::ProviderTool;
use serde_json::{Map, Value};

use super::chat::required_permission;
use super::tools::ToolOwner;
use super::{Screener, content_parts, quoted, type_of};

/// Parameters that only affect client and model, or that are screened below.
const PARAMETERS: [&str; 34] = [
    "background",
    "client_metadata",
    "context_management",
    "conversation",
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "model",
    "moderation",
    "parallel_tool_calls",
    "previous_response_id",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "seed",
    "service_tier",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
    "verbosity",
];

/// Parameters that cause a server to search.
const TOOL_PARAMETERS: [(&str, ProviderTool); 5] = [
    ("web_search_options", ProviderTool::WebSearch),
    ("search_parameters", ProviderTool::WebSearch),
    ("enable_search", ProviderTool::WebSearch),
    ("plugins", ProviderTool::WebSearch),
    ("mcp_servers", ProviderTool::Mcp),
];

pub(super) fn screen(screener: &mut Screener<'_>, request: &mut Map<String, Value>) {
    screener.screen_parameters(request, &PARAMETERS, &TOOL_PARAMETERS);
    screener.disable_storage(request);
    for name in ["previous_response_id", "conversation"] {
        if request.get(name).is_some_and(|value| !value.is_null()) {
            screener.refuse(Some(ProviderTool::Files), format!("a stored `{name}`"));
        }
    }
    // A stored prompt can include tools and URLs that are not visible in the request.
    if request.get("prompt").is_some_and(|value| !value.is_null()) {
        screener.refuse(None, "a stored `prompt`");
    }
    screener.screen_tools(request, tool_owner);
    for name in ["input", "instructions"] {
        match request.get_mut(name) {
            Some(Value::Array(items)) => items.retain_mut(|item| screen_item(screener, item)),
            Some(item @ Value::Object(_)) => {
                // The API does not define a single object; nothing can be removed from it.
                if !screen_item(screener, item) {
                    screener.refuse_unknown("the input", type_of(item));
                }
            }
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | None => {}
        }
    }
}

fn tool_owner(tool: &Value) -> ToolOwner {
    match type_of(tool) {
        Some(
            "function"
            | "custom"
            | "local_shell"
            | "apply_patch"
            | "computer"
            | "computer_use_preview"
            | "tool_search",
        ) => ToolOwner::Client,
        // The tool runs in a provider container if its environment says so.
        Some("shell") if is_local(tool.get("environment")) => ToolOwner::Client,
        type_name => ToolOwner::Provider(required_permission(type_name.unwrap_or_default())),
    }
}

fn is_local(environment: Option<&Value>) -> bool {
    match environment {
        None | Some(Value::Null) => true,
        Some(environment) => type_of(environment) == Some("local"),
    }
}

/// Screens an input item and returns whether it stays.
fn screen_item(screener: &mut Screener<'_>, item: &mut Value) -> bool {
    match type_of(item) {
        None if item.get("role").is_some() && item.get("type").is_none() => {
            screen_parts(screener, item.get("content"));
        }
        Some("message") => screen_parts(screener, item.get("content")),
        Some("reasoning") => {
            screen_parts(screener, item.get("summary"));
            screen_parts(screener, item.get("content"));
        }
        Some(
            "function_call_output"
            | "custom_tool_call_output"
            | "computer_call_output"
            | "local_shell_call_output"
            | "shell_call_output"
            | "apply_patch_call_output",
        ) => screen_outputs(screener, item),
        Some(
            "function_call" | "custom_tool_call" | "local_shell_call" | "shell_call"
            | "apply_patch_call" | "computer_call" | "tool_search_call" | "compaction"
            | "compaction_summary" | "compaction_trigger" | "context_compaction",
        ) => {}
        Some("tool_search_output") => {
            if let Some(tools) = item.get_mut("tools") {
                screener.screen_tool_list(tools, tool_owner, &mut Vec::new());
            }
        }
        Some("item_reference") => screener.refuse(Some(ProviderTool::Files), "a stored item"),
        Some(other) => return screen_provider_call(screener, other),
        None => screener.refuse_unknown("the input", None),
    }
    true
}

/// Screens the record of a provider tool in a conversation and returns whether it stays.
fn screen_provider_call(screener: &mut Screener<'_>, type_name: &str) -> bool {
    let kind = match type_name {
        "web_search_call" => Some(ProviderTool::WebSearch),
        "file_search_call" => Some(ProviderTool::Files),
        "code_interpreter_call" => Some(ProviderTool::CodeExecution),
        "mcp_call" | "mcp_list_tools" | "mcp_approval_request" | "mcp_approval_response" => {
            Some(ProviderTool::Mcp)
        }
        "image_generation_call" => None,
        other => {
            screener.refuse_unknown("the input", Some(other));
            return true;
        }
    };
    screener.keep_if_allowed(kind, format!("the input {}", quoted(type_name)))
}

/// Screens the output of a client tool: text, or parts as in a message.
fn screen_outputs(screener: &mut Screener<'_>, item: &Value) {
    match type_of(item) {
        // Their parts are the untyped output of each command.
        Some("shell_call_output" | "local_shell_call_output" | "apply_patch_call_output") => {
            for part in item.get("output").map(content_parts).unwrap_or_default() {
                screener.screen_remote_fields(part);
            }
        }
        Some(_) | None => screen_parts(screener, item.get("output")),
    }
}

fn screen_parts(screener: &mut Screener<'_>, content: Option<&Value>) {
    for part in content.map(content_parts).unwrap_or_default() {
        match type_of(part) {
            Some(
                "input_text"
                | "output_text"
                | "text"
                | "summary_text"
                | "reasoning_text"
                | "refusal"
                | "input_image"
                | "input_file"
                | "input_audio"
                | "computer_screenshot"
                | "encrypted_content",
            ) => {}
            other => screener.refuse_unknown("the content", other),
        }
        screener.screen_remote_fields(part);
    }
}
