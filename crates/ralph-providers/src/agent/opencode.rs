//! Parses the events of `opencode run --format json`.

use std::time::Duration;

use ralph_core::money::Usd;
use ralph_core::parse_value;
use ralph_core::ports::{AgentEnd, AgentEvent, AgentReader, AgentReport, ExecStatus, TokenUsage};
use serde_json::Value;

use super::failure;
use super::session_summary::SessionSummary;
use super::text::{self, string_field};

/// Parses one event per line; a line that is not an event counts as text.
#[derive(Debug, Default)]
pub(super) struct OpencodeReader {
    summary: SessionSummary,
    has_started: bool,
}

impl OpencodeReader {
    fn handle_event(&mut self, event: &Value) -> Vec<AgentEvent> {
        let part = &event["part"];
        match string_field(event, "type") {
            "step_start" => {
                self.summary.record_progress();
                if std::mem::replace(&mut self.has_started, true) {
                    return Vec::new();
                }
                vec![AgentEvent::Started { model: None }]
            }
            "text" => {
                let text = self.summary.record_text(string_field(part, "text"));
                vec![AgentEvent::Text { text }]
            }
            "tool_use" => tool_events(part),
            "step_finish" => self.handle_step(part),
            "error" => {
                self.summary.record_end(end_from_error(&event["error"]));
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn handle_step(&mut self, part: &Value) -> Vec<AgentEvent> {
        let report = &mut self.summary.report;
        report.usage.add(parse_usage(&part["tokens"]));
        report.turns = Some(report.turns.unwrap_or(0).saturating_add(1));
        // OpenCode reports 0 for a model whose price it does not know.
        if let Some(cost) = part["cost"].as_f64().filter(|cost| *cost > 0.0) {
            let cost = Usd::from_dollars(cost).unwrap_or_default();
            report.cost_usd = Some(report.cost_usd.unwrap_or_default() + cost);
        }
        let usage = report.usage;
        match string_field(part, "reason") {
            "tool-calls" => {}
            "stop" => self.summary.record_end(AgentEnd::Finished),
            reason => {
                let why = format!("its model stopped: {}", text::short_label(reason));
                self.summary.record_end(AgentEnd::GaveUp { why });
            }
        }
        vec![AgentEvent::Usage { usage }]
    }
}

impl AgentReader for OpencodeReader {
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

/// Reports a tool once it has finished.
fn tool_events(part: &Value) -> Vec<AgentEvent> {
    let id = text::short_label(string_field(part, "callID"));
    let state = &part["state"];
    let exit = state["metadata"]["exit"].as_i64();
    vec![
        AgentEvent::Tool {
            id: id.clone(),
            tool: text::short_label(string_field(part, "tool")),
            label: text::short_label(string_field(state, "title")),
        },
        AgentEvent::ToolDone {
            id,
            ok: string_field(state, "status") == "completed" && exit.unwrap_or(0) == 0,
        },
    ]
}

fn end_from_error(error: &Value) -> AgentEnd {
    let data = &error["data"];
    let message = match string_field(data, "message") {
        "" => string_field(error, "name"),
        message => message,
    };
    match data["statusCode"].as_u64() {
        Some(status) => {
            // A number out of range counts as an unknown status.
            let status = u16::try_from(status).unwrap_or(0);
            let seconds = parse_value(string_field(&data["responseHeaders"], "retry-after"));
            failure::from_status(status, message, seconds.map(Duration::from_secs))
        }
        None => failure::from_message(message),
    }
}

fn parse_usage(tokens: &Value) -> TokenUsage {
    let number = |value: &Value| value.as_u64().unwrap_or_default();
    let read = number(&tokens["cache"]["read"]);
    let write = number(&tokens["cache"]["write"]);
    TokenUsage {
        input_tokens: number(&tokens["input"])
            .saturating_add(read)
            .saturating_add(write),
        output_tokens: number(&tokens["output"]).saturating_add(number(&tokens["reasoning"])),
        cache_read_tokens: read,
        cache_write_tokens: write,
        reasoning_tokens: number(&tokens["reasoning"]),
        ..TokenUsage::default()
    }
}
