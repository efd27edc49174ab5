//! The events of `opencode run --format json`.

use std::time::Duration;

use ralph_core::money::Usd;
use ralph_core::ports::{AgentEnd, AgentEvent, AgentReader, AgentReport, Ended, Usage};
use serde_json::Value;

use super::failure;
use super::story::Story;
use super::text::{self, word};

/// Reads one event per line; a line that is none is taken as words.
#[derive(Debug, Default)]
pub(super) struct Reader {
    story: Story,
    has_begun: bool,
}

impl Reader {
    fn event(&mut self, event: &Value) -> Vec<AgentEvent> {
        let part = &event["part"];
        match word(event, "type") {
            "step_start" => {
                self.story.goes_on();
                if std::mem::replace(&mut self.has_begun, true) {
                    return Vec::new();
                }
                vec![AgentEvent::Started { model: None }]
            }
            "text" => {
                let text = self.story.says(word(part, "text"));
                vec![AgentEvent::Text { text }]
            }
            "tool_use" => tool(part),
            "step_finish" => self.step(part),
            "error" => {
                self.story.ends(end(&event["error"]));
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn step(&mut self, part: &Value) -> Vec<AgentEvent> {
        let report = &mut self.story.report;
        report.usage.add(usage(&part["tokens"]));
        report.turns = Some(report.turns.unwrap_or(0).saturating_add(1));
        // It tells 0 for a model whose price it does not know.
        if let Some(cost) = part["cost"].as_f64().filter(|cost| *cost > 0.0) {
            let cost = Usd::from_dollars(cost).unwrap_or_default();
            report.cost_usd = Some(report.cost_usd.unwrap_or_default() + cost);
        }
        let usage = report.usage;
        match word(part, "reason") {
            "tool-calls" => {}
            "stop" => self.story.ends(AgentEnd::Finished),
            reason => {
                let why = format!("its model stopped: {}", text::label(reason));
                self.story.ends(AgentEnd::GaveUp { why });
            }
        }
        vec![AgentEvent::Usage { usage }]
    }
}

impl AgentReader for Reader {
    fn line(&mut self, line: &str) -> Vec<AgentEvent> {
        match self.story.parse(line) {
            Ok(event) => self.event(&event),
            Err(words) => words,
        }
    }

    fn is_done(&self) -> bool {
        self.story.is_done()
    }

    fn finish(&mut self, ended: Ended, stderr: &str) -> (AgentEnd, AgentReport) {
        self.story.finish(ended, stderr)
    }
}

/// A tool is told when it has answered.
fn tool(part: &Value) -> Vec<AgentEvent> {
    let id = text::label(word(part, "callID"));
    let state = &part["state"];
    let exit = state["metadata"]["exit"].as_i64();
    vec![
        AgentEvent::Tool {
            id: id.clone(),
            tool: text::label(word(part, "tool")),
            label: text::label(word(state, "title")),
        },
        AgentEvent::ToolDone {
            id,
            ok: word(state, "status") == "completed" && exit.unwrap_or(0) == 0,
        },
    ]
}

fn end(error: &Value) -> AgentEnd {
    let data = &error["data"];
    let words = match word(data, "message") {
        "" => word(error, "name"),
        words => words,
    };
    match data["statusCode"].as_u64() {
        Some(status) => {
            let status = u16::try_from(status).unwrap_or_default();
            let seconds = word(&data["responseHeaders"], "retry-after").parse().ok();
            failure::by_status(status, words, seconds.map(Duration::from_secs))
        }
        None => failure::by_words(words),
    }
}

fn usage(tokens: &Value) -> Usage {
    let number = |value: &Value| value.as_u64().unwrap_or_default();
    let read = number(&tokens["cache"]["read"]);
    let write = number(&tokens["cache"]["write"]);
    Usage {
        input_tokens: number(&tokens["input"])
            .saturating_add(read)
            .saturating_add(write),
        output_tokens: number(&tokens["output"]).saturating_add(number(&tokens["reasoning"])),
        cache_read_tokens: read,
        cache_write_tokens: write,
        reasoning_tokens: number(&tokens["reasoning"]),
        ..Usage::default()
    }
}
