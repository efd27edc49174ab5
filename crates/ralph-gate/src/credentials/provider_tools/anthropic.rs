//! Screens Anthropic messages requests.

use ralph_core::net::ProviderTool;
use serde_json::{Map, Value};

use super::tools::ToolOwner;
use super::{Screener, content_parts, quoted, type_of};

/// Parameters that only affect client and model, or that are screened below.
const PARAMETERS: [&str; 24] = [
    "anthropic_version",
    "cache_control",
    "container",
    "context_management",
    "diagnostics",
    "inference_geo",
    "max_tokens",
    "mcp_servers",
    "messages",
    "metadata",
    "model",
    "output_config",
    "output_format",
    "service_tier",
    "speed",
    "stop_sequences",
    "stream",
    "system",
    "temperature",
    "thinking",
    "tool_choice",
    "tools",
    "top_k",
    "top_p",
];

pub(super) fn screen(screener: &mut Screener<'_>, request: &mut Map<String, Value>) {
    screener.screen_parameters(request, &PARAMETERS, &[]);
    let is_given = |name: &str| {
        request
            .get(name)
            .is_some_and(|value| !value.is_null() && !value.as_array().is_some_and(Vec::is_empty))
    };
    if is_given("mcp_servers") {
        screener.refuse(Some(ProviderTool::Mcp), "`mcp_servers`");
    }
    if is_given("container") {
        screener.refuse(Some(ProviderTool::CodeExecution), "a `container`");
    }
    screener.screen_tools(request, tool_owner);
    for block in request.get("system").map(content_parts).unwrap_or_default() {
        screen_block(screener, block);
    }
    for message in request
        .get("messages")
        .map(content_parts)
        .unwrap_or_default()
    {
        for block in message
            .get("content")
            .map(content_parts)
            .unwrap_or_default()
        {
            screen_block(screener, block);
        }
    }
}

/// Decides by the tool family: the type without its version date.
fn tool_owner(tool: &Value) -> ToolOwner {
    if !tool.is_object() {
        return ToolOwner::Provider(None);
    }
    let Some(type_name) = type_of(tool) else {
        return match tool.get("type") {
            None | Some(Value::Null) => ToolOwner::Client,
            Some(_) => ToolOwner::Provider(None),
        };
    };
    match family(type_name) {
        // The last two are provider tools but only search the tools in the request.
        "custom"
        | "bash"
        | "text_editor"
        | "computer"
        | "memory"
        | "tool_search_tool_regex"
        | "tool_search_tool_bm25" => ToolOwner::Client,
        family => ToolOwner::Provider(required_permission(family)),
    }
}

fn family(type_name: &str) -> &str {
    match type_name.rsplit_once('_') {
        Some((family, date)) if date.len() == 8 && date.bytes().all(|b| b.is_ascii_digit()) => {
            family
        }
        Some(_) | None => type_name,
    }
}

/// Returns the permission required for a provider tool or a block about it.
fn required_permission(name: &str) -> Option<ProviderTool> {
    if name.starts_with("mcp_") {
        Some(ProviderTool::Mcp)
    } else if name.starts_with("web_search") {
        Some(ProviderTool::WebSearch)
    } else if name.starts_with("web_fetch") {
        Some(ProviderTool::WebFetch)
    } else if name.contains("code_execution") {
        Some(ProviderTool::CodeExecution)
    } else {
        None
    }
}

fn screen_block(screener: &mut Screener<'_>, block: &Value) {
    let type_name = type_of(block);
    match type_name {
        // Tool input is opaque data from the model.
        Some("tool_use") => return,
        Some(
            "text"
            | "thinking"
            | "redacted_thinking"
            | "tool_reference"
            | "compaction"
            | "tool_search_tool_result",
        ) => {}
        Some("tool_result" | "search_result") => {
            for inner in block.get("content").map(content_parts).unwrap_or_default() {
                screen_block(screener, inner);
            }
        }
        Some("image" | "document") => screen_source(screener, block.get("source")),
        Some("container_upload") => {
            screener.refuse(Some(ProviderTool::Files), "the content `container_upload`");
        }
        // If the conversation ends with this block, the provider starts the tool.
        Some("server_tool_use") => {
            let name = block
                .get("name")
                .and_then(Value::as_str)
                .unwrap_or_default();
            if !name.starts_with("tool_search_tool_") {
                screener.refuse(
                    required_permission(name),
                    format!("the tool {}", quoted(name)),
                );
            }
        }
        Some(other) => match required_permission(other) {
            Some(kind) => screener.refuse(Some(kind), format!("the content {}", quoted(other))),
            None => screener.refuse_unknown("the content", type_name),
        },
        None => screener.refuse_unknown("the content", None),
    }
    screener.screen_remote_fields(block);
}

fn screen_source(screener: &mut Screener<'_>, source: Option<&Value>) {
    let source = source.unwrap_or(&Value::Null);
    match type_of(source) {
        Some("base64" | "text") => {}
        Some("content") => {
            for inner in source.get("content").map(content_parts).unwrap_or_default() {
                screen_block(screener, inner);
            }
        }
        // Both are covered by their fields, which are screened for every type.
        Some("url") if source.get("url").is_some() => {}
        Some("file") if source.get("file_id").is_some() => {}
        Some("url") => screener.refuse(Some(ProviderTool::Urls), "a URL"),
        Some("file") => screener.refuse(Some(ProviderTool::Files), "a stored file"),
        other => screener.refuse_unknown("the source", other),
    }
    screener.screen_remote_fields(source);
}
