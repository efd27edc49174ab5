//! The events of `codex exec --json`.

use ralph_core::ports::{AgentEnd, AgentEvent, AgentReader, AgentReport, Ended, Usage};
use serde_json::Value;

use super::failure;
use super::story::{Recent, Story};
use super::text::{self, word};

/// Reads one event per line; a line that is none is taken as words.
#[derive(Debug, Default)]
pub(super) struct Reader {
    story: Story,
    /// Tools whose use was told.
    begun: Recent,
}

impl Reader {
    fn event(&mut self, event: &Value) -> Vec<AgentEvent> {
        match word(event, "type") {
            "thread.started" => vec![AgentEvent::Started { model: None }],
            "item.started" | "item.updated" => self.item(&event["item"], Progress::Begun),
            "item.completed" => self.item(&event["item"], Progress::Done),
            "turn.completed" => {
                let usage = usage(&event["usage"]);
                self.story.report.usage = usage;
                self.story.ends(AgentEnd::Finished);
                vec![AgentEvent::Usage { usage }]
            }
            "turn.failed" => {
                let end = failure::by_words(word(&event["error"], "message"));
                self.story.ends(end);
                Vec::new()
            }
            "error" => self.error(word(event, "message")),
            _ => Vec::new(),
        }
    }

    fn item(&mut self, item: &Value, progress: Progress) -> Vec<AgentEvent> {
        let kind = word(item, "type");
        match (kind, progress) {
            ("agent_message", Progress::Done) => {
                self.story.goes_on();
                let text = self.story.says(word(item, "text"));
                return vec![AgentEvent::Text { text }];
            }
            // A remark, such as that it knows little of the model.
            ("error", Progress::Done) => {
                let text = text::text(word(item, "message"));
                return vec![AgentEvent::Text { text }];
            }
            ("agent_message" | "error" | "reasoning" | "todo_list", _) => return Vec::new(),
            (_, Progress::Begun | Progress::Done) => self.story.goes_on(),
        }
        let id = text::label(word(item, "id"));
        let mut events = Vec::new();
        if self.begun.is_new(&id) {
            events.push(AgentEvent::Tool {
                id: id.clone(),
                tool: tool(item),
                label: purpose(item),
            });
        }
        if progress == Progress::Done {
            let ok = match item["exit_code"].as_i64() {
                Some(code) => code == 0,
                None => word(item, "status") != "failed",
            };
            events.push(AgentEvent::ToolDone { id, ok });
        }
        events
    }

    /// Takes an error, which is the last one unless it says that it tries again.
    fn error(&mut self, words: &str) -> Vec<AgentEvent> {
        let trouble = failure::by_words(words);
        let tries_again = words.starts_with("Reconnecting");
        // It asks again after any refusal; a refused credential and a spent budget stay so.
        if matches!(
            trouble,
            AgentEnd::Unauthorized { .. } | AgentEnd::OutOfBudget
        ) {
            self.story.is_hopeless();
        }
        self.story.struggles(trouble);
        if tries_again {
            let why = text::text(words);
            return vec![AgentEvent::Waiting { why, wait: None }];
        }
        Vec::new()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Begun,
    Done,
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

fn tool(item: &Value) -> String {
    match word(item, "type") {
        "mcp_tool_call" => text::label(&format!("{}.{}", word(item, "server"), word(item, "tool"))),
        kind => text::label(kind),
    }
}

fn purpose(item: &Value) -> String {
    let path = item["changes"][0]["path"].as_str().unwrap_or_default();
    let words = [word(item, "command"), word(item, "query"), path];
    text::label(words.iter().find(|words| !words.is_empty()).unwrap_or(&""))
}

fn usage(usage: &Value) -> Usage {
    let number = |name: &str| usage[name].as_u64().unwrap_or_default();
    Usage {
        input_tokens: number("input_tokens"),
        output_tokens: number("output_tokens"),
        cache_read_tokens: number("cached_input_tokens"),
        cache_write_tokens: number("cache_write_input_tokens"),
        reasoning_tokens: number("reasoning_output_tokens"),
        ..Usage::default()
    }
}
