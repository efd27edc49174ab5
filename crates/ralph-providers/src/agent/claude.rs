//! Parses the events of `claude --output-format stream-json`.

use std::sync::Arc;
use std::time::Duration;

use ralph_core::money::Usd;
use ralph_core::ports::{
    AgentEnd, AgentEvent, AgentReader, AgentReport, Clock, ExecStatus, TokenUsage,
};
use ralph_guest::available;
use serde_json::Value;

use super::failure;
use super::session_summary::{RecentIds, SessionSummary};
use super::text::{self, string_field};

/// Parses one event per line; a line that is not an event counts as text.
pub(super) struct ClaudeReader {
    clock: Arc<dyn Clock>,
    summary: SessionSummary,
    /// Model messages whose tokens are already counted.
    counted_messages: RecentIds,
    /// Whether the prompt echo, which comes first, has been seen.
    has_echoed_prompt: bool,
    has_started: bool,
    limit_resets_at: Option<jiff::Timestamp>,
    /// Claude's error code for the last error.
    last_error: String,
}

impl ClaudeReader {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            summary: SessionSummary::default(),
            counted_messages: RecentIds::default(),
            has_echoed_prompt: false,
            has_started: false,
            limit_resets_at: None,
            last_error: String::new(),
        }
    }

    fn handle_event(&mut self, event: &Value) -> Vec<AgentEvent> {
        match string_field(event, "type") {
            "system" => self.handle_system(event),
            "assistant" => self.handle_assistant(event),
            "user" => self.handle_user(event),
            "rate_limit_event" => self.handle_rate_limit(&event["rate_limit_info"]),
            "result" => self.handle_result(event),
            _ => Vec::new(),
        }
    }

    fn handle_system(&mut self, event: &Value) -> Vec<AgentEvent> {
        match string_field(event, "subtype") {
            // `init` is repeated with every message that Claude accepts.
            "init" if !self.has_started => {
                self.has_started = true;
                let model = event["model"].as_str().map(text::short_label);
                vec![AgentEvent::Started { model }]
            }
            "api_retry" => {
                let why = retry_message(event);
                let wait = self.until_limit_resets();
                let status = event["error_status"].as_u64();
                self.summary.record_trouble(
                    match status.and_then(|status| available(u16::try_from(status))) {
                        Some(status) => failure::from_status(status, &why, wait),
                        None => AgentEnd::Overloaded { why: why.clone() },
                    },
                );
                let delay = event["retry_delay_ms"].as_f64().unwrap_or_default();
                let delay = available(Duration::try_from_secs_f64(delay / 1000.0));
                vec![AgentEvent::Waiting { why, wait: delay }]
            }
            _ => Vec::new(),
        }
    }

    fn handle_assistant(&mut self, event: &Value) -> Vec<AgentEvent> {
        let is_error = event["is_api_error_message"] == true;
        if is_error {
            self.last_error = text::short_label(string_field(event, "error"));
        } else {
            self.summary.record_progress();
        }
        let message = &event["message"];
        let mut events = Vec::new();
        for block in message["content"].as_array().into_iter().flatten() {
            match string_field(block, "type") {
                "text" if !string_field(block, "text").trim().is_empty() => {
                    let text = self.summary.record_text(string_field(block, "text"));
                    events.push(AgentEvent::Text { text });
                }
                "tool_use" => events.push(AgentEvent::Tool {
                    id: text::short_label(string_field(block, "id")),
                    tool: text::short_label(string_field(block, "name")),
                    label: tool_label(&block["input"]),
                }),
                _ => {}
            }
        }
        if !is_error && self.counted_messages.insert(string_field(message, "id")) {
            self.summary
                .report
                .usage
                .add(snake_usage(&message["usage"]));
            let usage = self.summary.report.usage;
            events.push(AgentEvent::Usage { usage });
        }
        events
    }

    fn handle_user(&mut self, event: &Value) -> Vec<AgentEvent> {
        let content = &event["message"]["content"];
        if event["isReplay"] == true {
            if !std::mem::replace(&mut self.has_echoed_prompt, true) {
                return Vec::new();
            }
            let text = text::truncate_message(&content_text(content));
            return vec![AgentEvent::Acknowledged { text }];
        }
        let blocks = content.as_array().into_iter().flatten();
        let results = blocks.filter(|block| string_field(block, "type") == "tool_result");
        results
            .map(|block| AgentEvent::ToolDone {
                id: text::short_label(string_field(block, "tool_use_id")),
                ok: block["is_error"] != true,
            })
            .collect()
    }

    fn handle_rate_limit(&mut self, info: &Value) -> Vec<AgentEvent> {
        if string_field(info, "status") != "rejected" {
            return Vec::new();
        }
        let seconds = info["resetsAt"].as_i64();
        self.limit_resets_at =
            seconds.and_then(|seconds| available(jiff::Timestamp::from_second(seconds)));
        let limit = match string_field(info, "rateLimitType") {
            "" => "a usage limit".to_owned(),
            kind => format!("the usage limit `{}`", text::short_label(kind)),
        };
        let until = self.limit_resets_at.map(|reset| format!(", until {reset}"));
        let why = format!("{limit} is reached{}", until.unwrap_or_default());
        let wait = self.until_limit_resets();
        vec![AgentEvent::Waiting { why, wait }]
    }

    fn handle_result(&mut self, event: &Value) -> Vec<AgentEvent> {
        let message = match string_field(event, "result") {
            "" => event["errors"][0].as_str().unwrap_or_default(),
            message => message,
        };
        let report = &mut self.summary.report;
        if !message.is_empty() {
            report.summary = text::truncate_text(message);
        }
        report.cost_usd = event["total_cost_usd"].as_f64().and_then(Usd::from_dollars);
        report.turns = event["num_turns"].as_u64().map(|turns| {
            // A larger count is implausible, so it saturates.
            u32::try_from(turns).unwrap_or(u32::MAX)
        });
        if let Some(models) = event["modelUsage"]
            .as_object()
            .filter(|all| !all.is_empty())
        {
            report.usage = TokenUsage::default();
            for model in models.values() {
                report.usage.add(camel_usage(model));
            }
        }
        let usage = report.usage;
        let end = self.end_from_result(event, message);
        self.summary.record_end(end);
        // A message is queued but not yet processed: another result follows.
        if event["queued_turn_count"].as_u64().unwrap_or(0) > 0 {
            self.summary.expect_more();
        }
        vec![AgentEvent::Usage { usage }]
    }

    fn end_from_result(&self, event: &Value, message: &str) -> AgentEnd {
        let why = || {
            let message = if message.is_empty() {
                string_field(event, "terminal_reason")
            } else {
                message
            };
            text::truncate_text(message)
        };
        match string_field(event, "subtype") {
            "success" if event["is_error"] != true => return AgentEnd::Finished,
            "success" => {}
            "error_max_turns" | "error_max_budget_usd" => {
                return AgentEnd::GaveUp { why: why() };
            }
            kind => {
                let why = text::truncate_text(&format!("{kind}: {}", why()));
                return AgentEnd::Crashed { why };
            }
        }
        let status = event["api_error_status"].as_u64();
        match (self.last_error.as_str(), status) {
            ("authentication_failed", None) => AgentEnd::Unauthorized { why: why() },
            // The account has run out of money, which has no status code of its own.
            ("billing_error", None | Some(400)) => AgentEnd::Quota {
                why: why(),
                wait: None,
            },
            ("server_error" | "overloaded", None) => AgentEnd::Overloaded { why: why() },
            (_, None) => failure::from_message(message),
            (_, Some(status)) => {
                // A number out of range counts as an unknown status.
                let status = u16::try_from(status).unwrap_or(0);
                failure::from_status(status, message, self.until_limit_resets())
            }
        }
    }

    /// Returns the time until the usage limit is reset.
    fn until_limit_resets(&self) -> Option<Duration> {
        let until = self.limit_resets_at?.duration_since(self.clock.now());
        // A limit that has already been reset needs no wait.
        Some(Duration::try_from(until).unwrap_or(Duration::ZERO))
    }
}

impl AgentReader for ClaudeReader {
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

/// Returns the most descriptive part of a tool's input.
fn tool_label(input: &Value) -> String {
    const LABEL_KEYS: [&str; 9] = [
        "command",
        "file_path",
        "notebook_path",
        "path",
        "pattern",
        "url",
        "query",
        "description",
        "prompt",
    ];
    let mut values = LABEL_KEYS.iter().map(|key| string_field(input, key));
    text::short_label(values.find(|value| !value.is_empty()).unwrap_or_default())
}

/// Returns the text of a message, whose content is a string or a list of parts.
fn content_text(content: &Value) -> String {
    if let Some(text) = content.as_str() {
        return text.to_owned();
    }
    let parts = content.as_array().into_iter().flatten();
    parts.map(|part| string_field(part, "text")).collect()
}

fn retry_message(event: &Value) -> String {
    let number = |key: &str| event[key].as_f64().unwrap_or_default();
    let what = match event["error_status"].as_u64() {
        Some(status) => format!("status {status}"),
        None => "connection error".to_owned(),
    };
    format!(
        "{what}, retrying in {:.1} s (attempt {} of {})",
        number("retry_delay_ms") / 1000.0,
        number("attempt"),
        number("max_retries"),
    )
}

fn snake_usage(usage: &Value) -> TokenUsage {
    let names = [
        "input_tokens",
        "output_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
    ];
    let for_an_hour = &usage["cache_creation"]["ephemeral_1h_input_tokens"];
    TokenUsage {
        cache_write_1h_tokens: for_an_hour.as_u64().unwrap_or_default(),
        ..usage_with_cache(names.map(|name| usage[name].as_u64().unwrap_or_default()))
    }
}

fn camel_usage(usage: &Value) -> TokenUsage {
    let names = [
        "inputTokens",
        "outputTokens",
        "cacheReadInputTokens",
        "cacheCreationInputTokens",
    ];
    usage_with_cache(names.map(|name| usage[name].as_u64().unwrap_or_default()))
}

/// Adds cached tokens to the input, which does not include them.
fn usage_with_cache([input, output, read, write]: [u64; 4]) -> TokenUsage {
    TokenUsage {
        input_tokens: input.saturating_add(read).saturating_add(write),
        output_tokens: output,
        cache_read_tokens: read,
        cache_write_tokens: write,
        ..TokenUsage::default()
    }
}
