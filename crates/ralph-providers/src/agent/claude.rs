//! The events of `claude --output-format stream-json`.

use std::sync::Arc;
use std::time::Duration;

use ralph_core::money::Usd;
use ralph_core::ports::{AgentEnd, AgentEvent, AgentReader, AgentReport, Clock, Ended, Usage};
use serde_json::Value;

use super::failure;
use super::story::{Recent, Story};
use super::text::{self, word};

/// Reads one event per line; a line that is none is taken as words.
pub(super) struct Reader {
    clock: Arc<dyn Clock>,
    story: Story,
    /// Messages of its model whose tokens are counted.
    counted: Recent,
    /// Whether its prompt was told back, which comes first.
    has_prompt: bool,
    has_begun: bool,
    /// When a limit that it ran into is lifted.
    lifted: Option<jiff::Timestamp>,
    /// Its own word for the last error.
    error: String,
}

impl Reader {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            story: Story::default(),
            counted: Recent::default(),
            has_prompt: false,
            has_begun: false,
            lifted: None,
            error: String::new(),
        }
    }

    fn event(&mut self, event: &Value) -> Vec<AgentEvent> {
        match word(event, "type") {
            "system" => self.system(event),
            "assistant" => self.assistant(event),
            "user" => self.user(event),
            "rate_limit_event" => self.limit(&event["rate_limit_info"]),
            "result" => self.result(event),
            _ => Vec::new(),
        }
    }

    fn system(&mut self, event: &Value) -> Vec<AgentEvent> {
        match word(event, "subtype") {
            // It comes again with every message that it takes.
            "init" if !self.has_begun => {
                self.has_begun = true;
                let model = event["model"].as_str().map(text::label);
                vec![AgentEvent::Started { model }]
            }
            "api_retry" => {
                let why = retry(event);
                let wait = self.wait();
                let status = event["error_status"].as_u64();
                self.story
                    .struggles(match status.and_then(|status| u16::try_from(status).ok()) {
                        Some(status) => failure::by_status(status, &why, wait),
                        None => AgentEnd::Overloaded { why: why.clone() },
                    });
                let delay = event["retry_delay_ms"].as_f64().unwrap_or_default();
                let delay = Duration::try_from_secs_f64(delay / 1000.0).ok();
                vec![AgentEvent::Waiting { why, wait: delay }]
            }
            _ => Vec::new(),
        }
    }

    fn assistant(&mut self, event: &Value) -> Vec<AgentEvent> {
        let is_error = event["is_api_error_message"] == true;
        if is_error {
            self.error = text::label(word(event, "error"));
        } else {
            self.story.goes_on();
        }
        let message = &event["message"];
        let mut events = Vec::new();
        for block in message["content"].as_array().into_iter().flatten() {
            match word(block, "type") {
                "text" if !word(block, "text").trim().is_empty() => {
                    let text = self.story.says(word(block, "text"));
                    events.push(AgentEvent::Text { text });
                }
                "tool_use" => events.push(AgentEvent::Tool {
                    id: text::label(word(block, "id")),
                    tool: text::label(word(block, "name")),
                    label: purpose(&block["input"]),
                }),
                _ => {}
            }
        }
        if !is_error && self.counted.is_new(word(message, "id")) {
            self.story.report.usage.add(snake_usage(&message["usage"]));
            let usage = self.story.report.usage;
            events.push(AgentEvent::Usage { usage });
        }
        events
    }

    fn user(&mut self, event: &Value) -> Vec<AgentEvent> {
        let content = &event["message"]["content"];
        if event["isReplay"] == true {
            if !std::mem::replace(&mut self.has_prompt, true) {
                return Vec::new();
            }
            let text = text::message(&words_of(content));
            return vec![AgentEvent::Acknowledged { text }];
        }
        let blocks = content.as_array().into_iter().flatten();
        let results = blocks.filter(|block| word(block, "type") == "tool_result");
        results
            .map(|block| AgentEvent::ToolDone {
                id: text::label(word(block, "tool_use_id")),
                ok: block["is_error"] != true,
            })
            .collect()
    }

    fn limit(&mut self, info: &Value) -> Vec<AgentEvent> {
        if word(info, "status") != "rejected" {
            return Vec::new();
        }
        let seconds = info["resetsAt"].as_i64();
        self.lifted = seconds.and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
        let which = match word(info, "rateLimitType") {
            "" => "a usage limit".to_owned(),
            kind => format!("the usage limit `{}`", text::label(kind)),
        };
        let until = self.lifted.map(|lifted| format!(", until {lifted}"));
        let why = format!("{which} is reached{}", until.unwrap_or_default());
        let wait = self.wait();
        vec![AgentEvent::Waiting { why, wait }]
    }

    fn result(&mut self, event: &Value) -> Vec<AgentEvent> {
        let words = match word(event, "result") {
            "" => event["errors"][0].as_str().unwrap_or_default(),
            words => words,
        };
        let report = &mut self.story.report;
        if !words.is_empty() {
            report.summary = text::text(words);
        }
        report.cost_usd = event["total_cost_usd"].as_f64().and_then(Usd::from_dollars);
        report.turns = event["num_turns"].as_u64().map(|turns| {
            // More turns than that are only a way to write nonsense.
            u32::try_from(turns).unwrap_or(u32::MAX)
        });
        if let Some(models) = event["modelUsage"]
            .as_object()
            .filter(|all| !all.is_empty())
        {
            report.usage = Usage::default();
            for model in models.values() {
                report.usage.add(camel_usage(model));
            }
        }
        let usage = report.usage;
        let end = self.end(event, words);
        self.story.ends(end);
        // A message that it has taken but not answered yet: another result follows.
        if event["queued_turn_count"].as_u64().unwrap_or(0) > 0 {
            self.story.is_not_done();
        }
        vec![AgentEvent::Usage { usage }]
    }

    fn end(&self, event: &Value, words: &str) -> AgentEnd {
        let why = || {
            let words = if words.is_empty() {
                word(event, "terminal_reason")
            } else {
                words
            };
            text::text(words)
        };
        match word(event, "subtype") {
            "success" if event["is_error"] != true => return AgentEnd::Finished,
            "success" => {}
            "error_max_turns" | "error_max_budget_usd" => {
                return AgentEnd::GaveUp { why: why() };
            }
            kind => {
                let why = text::text(&format!("{kind}: {}", why()));
                return AgentEnd::Crashed { why };
            }
        }
        let status = event["api_error_status"].as_u64();
        match (self.error.as_str(), status) {
            ("authentication_failed", None) => AgentEnd::Unauthorized { why: why() },
            // The account is without money: no status of its own says so.
            ("billing_error", None | Some(400)) => AgentEnd::Quota {
                why: why(),
                wait: None,
            },
            ("server_error" | "overloaded", None) => AgentEnd::Overloaded { why: why() },
            (_, None) => failure::by_words(words),
            (_, Some(status)) => {
                let status = u16::try_from(status).unwrap_or_default();
                failure::by_status(status, words, self.wait())
            }
        }
    }

    /// Returns how long it is until the limit is lifted.
    fn wait(&self) -> Option<Duration> {
        let until = self.lifted?.duration_since(self.clock.now());
        Some(Duration::try_from(until).unwrap_or_default())
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

/// Returns what a tool is used for: the part of its input that tells most.
fn purpose(input: &Value) -> String {
    const TELLING: [&str; 9] = [
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
    let mut words = TELLING.iter().map(|key| word(input, key));
    text::label(words.find(|words| !words.is_empty()).unwrap_or_default())
}

/// Returns the words of a message, which are a text or a list of parts.
fn words_of(content: &Value) -> String {
    if let Some(text) = content.as_str() {
        return text.to_owned();
    }
    let parts = content.as_array().into_iter().flatten();
    parts.map(|part| word(part, "text")).collect()
}

fn retry(event: &Value) -> String {
    let number = |key: &str| event[key].as_f64().unwrap_or_default();
    let what = match event["error_status"].as_u64() {
        Some(status) => format!("status {status}"),
        None => "a broken connection".to_owned(),
    };
    format!(
        "{what}: it tries again in {:.1} s ({} of {})",
        number("retry_delay_ms") / 1000.0,
        number("attempt"),
        number("max_retries"),
    )
}

fn snake_usage(usage: &Value) -> Usage {
    let names = [
        "input_tokens",
        "output_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
    ];
    let for_an_hour = &usage["cache_creation"]["ephemeral_1h_input_tokens"];
    Usage {
        cache_write_1h_tokens: for_an_hour.as_u64().unwrap_or_default(),
        ..whole_usage(names.map(|name| usage[name].as_u64().unwrap_or_default()))
    }
}

fn camel_usage(usage: &Value) -> Usage {
    let names = [
        "inputTokens",
        "outputTokens",
        "cacheReadInputTokens",
        "cacheCreationInputTokens",
    ];
    whole_usage(names.map(|name| usage[name].as_u64().unwrap_or_default()))
}

/// Adds what went through the cache to the input, where it is not counted.
fn whole_usage([input, output, read, write]: [u64; 4]) -> Usage {
    Usage {
        input_tokens: input.saturating_add(read).saturating_add(write),
        output_tokens: output,
        cache_read_tokens: read,
        cache_write_tokens: write,
        ..Usage::default()
    }
}
