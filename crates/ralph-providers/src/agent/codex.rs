//! Parses the events of `codex exec --json`.

use ralph_core::ports::{AgentEnd, AgentEvent, AgentReader, AgentReport, ExecStatus, TokenUsage};
use serde_json::Value;

use super::failure;
use super::session_summary::{RecentIds, SessionSummary};
use super::text::{self, string_field};

/// Parses one event per line; a line that is not an event counts as text.
#[derive(Debug, Default)]
pub(super) struct CodexReader {
    summary: SessionSummary,
    /// Tools whose start was already reported.
    started_tools: RecentIds,
}

impl CodexReader {
    fn handle_event(&mut self, event: &Value) -> Vec<AgentEvent> {
        match string_field(event, "type") {
            "thread.started" => vec![AgentEvent::Started { model: None }],
            "item.started" | "item.updated" => {
                self.handle_item(&event["item"], CodexItemState::Started)
            }
            "item.completed" => self.handle_item(&event["item"], CodexItemState::Completed),
            "turn.completed" => {
                let usage = parse_usage(&event["usage"]);
                self.summary.report.usage = usage;
                self.summary.record_end(AgentEnd::Finished);
                vec![AgentEvent::Usage { usage }]
            }
            "turn.failed" => {
                let end = failure::from_message(string_field(&event["error"], "message"));
                self.summary.record_end(end);
                Vec::new()
            }
            "error" => self.handle_error(string_field(event, "message")),
            _ => Vec::new(),
        }
    }

    fn handle_item(&mut self, item: &Value, progress: CodexItemState) -> Vec<AgentEvent> {
        let kind = string_field(item, "type");
        match (kind, progress) {
            ("agent_message", CodexItemState::Completed) => {
                self.summary.record_progress();
                let text = self.summary.record_text(string_field(item, "text"));
                return vec![AgentEvent::Text { text }];
            }
            // A warning, for example that the model's metadata is unknown.
            ("error", CodexItemState::Completed) => {
                let text = text::truncate_text(string_field(item, "message"));
                return vec![AgentEvent::Text { text }];
            }
            ("agent_message" | "error" | "reasoning" | "todo_list", _) => return Vec::new(),
            (_, CodexItemState::Started | CodexItemState::Completed) => {
                self.summary.record_progress();
            }
        }
        let id = text::short_label(string_field(item, "id"));
        let mut events = Vec::new();
        if self.started_tools.insert(&id) {
            events.push(AgentEvent::Tool {
                id: id.clone(),
                tool: tool_name(item),
                label: tool_label(item),
            });
        }
        if progress == CodexItemState::Completed {
            let ok = match item["exit_code"].as_i64() {
                Some(code) => code == 0,
                None => string_field(item, "status") != "failed",
            };
            events.push(AgentEvent::ToolDone { id, ok });
        }
        events
    }

    /// Records an error, which explains the end of the session unless the agent makes progress again.
    fn handle_error(&mut self, message: &str) -> Vec<AgentEvent> {
        let trouble = failure::from_message(message);
        let will_retry = message.starts_with("Reconnecting");
        // Codex retries after any rejection, but a rejected credential or a spent budget is
        // permanent.
        if matches!(
            trouble,
            AgentEnd::Unauthorized { .. } | AgentEnd::OutOfBudget
        ) {
            self.summary.mark_permanent();
        }
        self.summary.record_trouble(trouble);
        if will_retry {
            let why = text::truncate_text(message);
            return vec![AgentEvent::Waiting { why, wait: None }];
        }
        Vec::new()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CodexItemState {
    Started,
    Completed,
}

impl AgentReader for CodexReader {
    fn parse_line(&mut self, line: &str) -> Vec<AgentEvent> {
        match self.summary.parse_line(line) {
            Ok(event) => self.handle_event(&event),
            Err(events) => events,
        }
    }

    fn is_done(&self) -> bool {
        self.summary.is_done()
    }

    fn finish(&mut self, ended: ExecStatus, stderr: &str) -> (AgentEnd, AgentReport) {
        self.summary.finish(ended, stderr)
    }
}

fn tool_name(item: &Value) -> String {
    match string_field(item, "type") {
        "mcp_tool_call" => text::short_label(&format!(
            "{}.{}",
            string_field(item, "server"),
            string_field(item, "tool")
        )),
        kind => text::short_label(kind),
    }
}

fn tool_label(item: &Value) -> String {
    let path = item["changes"][0]["path"].as_str().unwrap_or_default();
    let values = [
        string_field(item, "command"),
        string_field(item, "query"),
        path,
    ];
    text::short_label(values.iter().find(|value| !value.is_empty()).unwrap_or(&""))
}

fn parse_usage(usage: &Value) -> TokenUsage {
    let number = |name: &str| usage[name].as_u64().unwrap_or_default();
    TokenUsage {
        input_tokens: number("input_tokens"),
        output_tokens: number("output_tokens"),
        cache_read_tokens: number("cached_input_tokens"),
        cache_write_tokens: number("cache_write_input_tokens"),
        reasoning_tokens: number("reasoning_output_tokens"),
        ..TokenUsage::default()
    }
}
