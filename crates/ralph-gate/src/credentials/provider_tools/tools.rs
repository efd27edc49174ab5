//! Screens the tools of a request: client-side tools pass, provider-side tools need a permission.

use ralph_core::net::ProviderTool;
use serde_json::{Map, Value};

use super::{Screener, quoted, type_of};

/// The party that runs a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolOwner {
    /// The client, inside the sandbox.
    Client,
    /// The provider. Without a kind, no permission allows it.
    Provider(Option<ProviderTool>),
}

impl Screener<'_> {
    /// Screens the tools of a request and the tool choice.
    pub(super) fn screen_tools(
        &mut self,
        request: &mut Map<String, Value>,
        owner: fn(&Value) -> ToolOwner,
    ) {
        let Some(tools) = request.get_mut("tools") else {
            return;
        };
        let mut removed = Vec::new();
        self.screen_tool_list(tools, owner, &mut removed);
        if removed.is_empty() {
            return;
        }
        if tools.as_array().is_some_and(Vec::is_empty) {
            // Providers reject a tool choice without tools.
            for name in ["tools", "tool_choice", "parallel_tool_calls"] {
                request.remove(name);
            }
            return;
        }
        if let Some(choice) = request.get_mut("tool_choice")
            && !retain_tool_choice(choice, &removed)
        {
            request.remove("tool_choice");
        }
    }

    /// Removes provider-side tools from a list unless they are allowed. An MCP server refuses the
    /// whole request, because it names a host to connect to and the model would expect its tools.
    pub(super) fn screen_tool_list(
        &mut self,
        tools: &mut Value,
        owner: fn(&Value) -> ToolOwner,
        removed: &mut Vec<String>,
    ) {
        let tools = match tools {
            Value::Array(tools) => tools,
            Value::Null => return,
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                self.refuse(None, "`tools` that is not a list");
                return;
            }
        };
        tools.retain_mut(|tool| {
            if type_of(tool) == Some("namespace")
                && let Some(inner) = tool.get_mut("tools")
            {
                self.screen_tool_list(inner, owner, removed);
                return true;
            }
            let kind = match owner(tool) {
                ToolOwner::Client => return true,
                ToolOwner::Provider(kind) => kind,
            };
            let type_name = type_of(tool).unwrap_or("without a type");
            let what = format!("the tool {}", quoted(type_name));
            if kind == Some(ProviderTool::Mcp) {
                self.refuse(kind, what);
                return true;
            }
            if self.keep_if_allowed(kind, what) {
                return true;
            }
            let name = tool.get("name").and_then(Value::as_str);
            removed.extend(
                [Some(type_name), name]
                    .into_iter()
                    .flatten()
                    .map(str::to_owned),
            );
            false
        });
    }
}

/// Returns whether a tool choice names none of the removed tools. Lists of allowed tools are
/// filtered instead.
fn retain_tool_choice(choice: &mut Value, removed: &[String]) -> bool {
    let is_removed = |tool: &Value| {
        ["type", "name"].iter().any(|field| {
            let value = tool.get(*field).and_then(Value::as_str);
            value.is_some_and(|value| removed.iter().any(|name| name == value))
        })
    };
    if is_removed(choice) {
        return false;
    }
    let list = match choice.get("allowed_tools") {
        Some(_) => choice.pointer_mut("/allowed_tools/tools"),
        None => choice.get_mut("tools"),
    };
    match list.and_then(Value::as_array_mut) {
        Some(list) => {
            list.retain(|tool| !is_removed(tool));
            !list.is_empty()
        }
        None => true,
    }
}
