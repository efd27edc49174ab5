//! Parses the stored output of an agent for display: what it wrote and thought, and its tools with their
//! input and outcome.
//!
//! The format of each line is recognized by its fields, so a transcript can be read without the preset
//! of its agent.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::text::{short_label, string_field};

/// The longest text of an entry, in bytes.
const MAX_TEXT_BYTES: usize = 16 << 10;
/// The most entries of a transcript.
const MAX_ENTRIES: usize = 5_000;

/// A part of a transcript.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TranscriptEntry {
    /// The agent wrote a text; also a line without a known format.
    Text { text: String },
    /// The model's thinking.
    Thinking { text: String },
    /// The agent used a tool.
    Tool {
        tool: String,
        /// JSON or a command line.
        input: String,
        state: TranscriptToolState,
        output: String,
    },
    /// The session ended.
    End { text: String, ok: bool },
}

/// The state of a tool according to the transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TranscriptToolState {
    /// Its end is not in the transcript.
    Running,
    Succeeded,
    Failed,
}

/// Reads the lines of a transcript.
#[derive(Debug, Default)]
pub struct TranscriptReader {
    entries: Vec<TranscriptEntry>,
    /// The positions of tools whose end was not read yet, by their id.
    open_tools: BTreeMap<String, usize>,
    is_cut: bool,
}

impl TranscriptReader {
    /// Reads the next line.
    pub fn read_line(&mut self, line: &str) {
        match serde_json::from_str::<Value>(line) {
            Ok(event) if event.is_object() => self.read_event(&event),
            _ if line.trim().is_empty() => {}
            _ => self.add_line(line),
        }
    }

    /// Returns the entries, and whether a part of them or of their texts is missing.
    pub fn finish(self) -> (Vec<TranscriptEntry>, bool) {
        (self.entries, self.is_cut)
    }

    fn read_event(&mut self, event: &Value) {
        match string_field(event, "type") {
            "assistant" => self.read_assistant(&event["message"]["content"]),
            "user" if event["isReplay"] != true => {
                self.read_tool_results(&event["message"]["content"]);
            }
            "result" => {
                let ok = event["is_error"] != true && string_field(event, "subtype") == "success";
                let text = self.cut(string_field(event, "result"));
                self.add(TranscriptEntry::End { text, ok });
            }
            "item.started" | "item.updated" => self.read_item(&event["item"], Progress::Open),
            "item.completed" => self.read_item(&event["item"], Progress::Ended),
            "turn.completed" => self.add_end("", true),
            "turn.failed" => self.add_end(string_field(&event["error"], "message"), false),
            "text" => self.add_text(string_field(&event["part"], "text")),
            "reasoning" => self.add_thinking(string_field(&event["part"], "text")),
            "tool_use" => self.read_part(&event["part"]),
            "error" => {
                let data = string_field(&event["error"]["data"], "message");
                let message = string_field(event, "message");
                self.add_end(if message.is_empty() { data } else { message }, false);
            }
            _ => {}
        }
    }

    /// Reads the content of a message of Claude.
    fn read_assistant(&mut self, content: &Value) {
        for block in content.as_array().into_iter().flatten() {
            match string_field(block, "type") {
                "text" => self.add_text(string_field(block, "text")),
                "thinking" => self.add_thinking(string_field(block, "thinking")),
                "tool_use" => {
                    let input = self.cut(&block["input"].to_string());
                    let (id, tool) = (string_field(block, "id"), string_field(block, "name"));
                    self.start_tool(id, short_label(tool), input);
                }
                _ => {}
            }
        }
    }

    /// Reads the results of tools, which Claude receives as the user's message.
    fn read_tool_results(&mut self, content: &Value) {
        for block in content.as_array().into_iter().flatten() {
            if string_field(block, "type") == "tool_result" {
                let output = content_text(&block["content"]);
                let id = string_field(block, "tool_use_id");
                self.end_tool(id, block["is_error"] != true, &output);
            }
        }
    }

    /// Reads an item of Codex.
    fn read_item(&mut self, item: &Value, progress: Progress) {
        let kind = string_field(item, "type");
        match (kind, progress) {
            ("agent_message", Progress::Ended) => self.add_text(string_field(item, "text")),
            ("reasoning", Progress::Ended) => self.add_thinking(string_field(item, "text")),
            ("error", Progress::Ended) => self.add_text(string_field(item, "message")),
            ("agent_message" | "reasoning" | "error" | "todo_list", _) => {}
            (_, progress) => {
                let id = string_field(item, "id");
                if !self.open_tools.contains_key(id) {
                    let input = self.cut(&item_input(item));
                    self.start_tool(id, short_label(kind), input);
                }
                if progress == Progress::Ended {
                    let ok = match item["exit_code"].as_i64() {
                        Some(code) => code == 0,
                        None => string_field(item, "status") != "failed",
                    };
                    self.end_tool(id, ok, string_field(item, "aggregated_output"));
                }
            }
        }
    }

    /// Reads a tool of `opencode`, which is reported once it has ended.
    fn read_part(&mut self, part: &Value) {
        let state = &part["state"];
        let input = self.cut(&state["input"].to_string());
        let id = string_field(part, "callID");
        self.start_tool(id, short_label(string_field(part, "tool")), input);
        let exit = state["metadata"]["exit"].as_i64().unwrap_or(0);
        let ok = string_field(state, "status") == "completed" && exit == 0;
        self.end_tool(id, ok, string_field(state, "output"));
    }

    fn start_tool(&mut self, id: &str, tool: String, input: String) {
        self.open_tools.insert(id.to_owned(), self.entries.len());
        self.add(TranscriptEntry::Tool {
            tool,
            input,
            state: TranscriptToolState::Running,
            output: String::new(),
        });
    }

    fn end_tool(&mut self, id: &str, ok: bool, text: &str) {
        let text = self.cut(text);
        let Some(position) = self.open_tools.remove(id) else {
            return;
        };
        if let Some(TranscriptEntry::Tool { state, output, .. }) = self.entries.get_mut(position) {
            *output = text;
            *state = if ok {
                TranscriptToolState::Succeeded
            } else {
                TranscriptToolState::Failed
            };
        }
    }

    fn add_text(&mut self, text: &str) {
        if !text.trim().is_empty() {
            let text = self.cut(text);
            self.add(TranscriptEntry::Text { text });
        }
    }

    fn add_thinking(&mut self, text: &str) {
        if !text.trim().is_empty() {
            let text = self.cut(text);
            self.add(TranscriptEntry::Thinking { text });
        }
    }

    fn add_end(&mut self, text: &str, ok: bool) {
        let text = self.cut(text);
        self.add(TranscriptEntry::End { text, ok });
    }

    /// Adds a line without a known format to the text before it.
    fn add_line(&mut self, line: &str) {
        if let Some(TranscriptEntry::Text { text }) = self.entries.last_mut()
            && text.len() + line.len() < MAX_TEXT_BYTES
        {
            text.push('\n');
            text.push_str(line);
            return;
        }
        self.add_text(line);
    }

    fn add(&mut self, entry: TranscriptEntry) {
        if self.entries.len() < MAX_ENTRIES {
            self.entries.push(entry);
        } else {
            self.is_cut = true;
        }
    }

    fn cut(&mut self, text: &str) -> String {
        let end = text.floor_char_boundary(MAX_TEXT_BYTES);
        self.is_cut |= end < text.len();
        text[..end].to_owned()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Open,
    Ended,
}

/// Returns the input of a tool of Codex: a command line, a query, or the changed files.
fn item_input(item: &Value) -> String {
    let texts = [string_field(item, "command"), string_field(item, "query")];
    match texts.iter().find(|text| !text.is_empty()) {
        Some(text) => (*text).to_owned(),
        None if item["changes"].is_array() => item["changes"].to_string(),
        None => item["arguments"].to_string(),
    }
}

/// Returns the text of a content, which is a string or a list of blocks.
fn content_text(content: &Value) -> String {
    if let Some(text) = content.as_str() {
        return text.to_owned();
    }
    let blocks = content.as_array().into_iter().flatten();
    let texts: Vec<&str> = blocks.map(|block| string_field(block, "text")).collect();
    texts.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &str) -> Vec<TranscriptEntry> {
        let mut reader = TranscriptReader::default();
        lines.lines().for_each(|line| reader.read_line(line));
        let (entries, is_cut) = reader.finish();
        assert!(!is_cut);
        entries
    }

    fn tool(tool: &str, input: &str, state: TranscriptToolState, output: &str) -> TranscriptEntry {
        TranscriptEntry::Tool {
            tool: tool.into(),
            input: input.into(),
            state,
            output: output.into(),
        }
    }

    #[test]
    fn claude() {
        let entries = read(concat!(
            r#"{"type":"system","subtype":"init"}"#,
            "\n",
            r#"{"type":"assistant","message":{"content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"I look"},{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}]}}"#,
            "\n",
            r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":[{"type":"text","text":"no"}]}]}}"#,
            "\n",
            r#"{"type":"result","subtype":"success","is_error":false,"result":"done"}"#,
        ));
        let text = |text: &str| TranscriptEntry::Text { text: text.into() };
        assert_eq!(
            entries,
            [
                TranscriptEntry::Thinking { text: "hm".into() },
                text("I look"),
                tool(
                    "Bash",
                    r#"{"command":"ls"}"#,
                    TranscriptToolState::Failed,
                    "no"
                ),
                TranscriptEntry::End {
                    text: "done".into(),
                    ok: true
                },
            ]
        );
    }

    #[test]
    fn codex_and_opencode() {
        let entries = read(concat!(
            r#"{"type":"item.started","item":{"id":"i1","type":"command_execution","command":"make"}}"#,
            "\n",
            r#"{"type":"item.completed","item":{"id":"i1","type":"command_execution","command":"make","aggregated_output":"ok","exit_code":0}}"#,
            "\n",
            r#"{"type":"tool_use","part":{"callID":"c","tool":"read","state":{"status":"completed","input":{"filePath":"a"},"output":"text"}}}"#,
        ));
        let ok = TranscriptToolState::Succeeded;
        assert_eq!(
            entries,
            [
                tool("command_execution", "make", ok, "ok"),
                tool("read", r#"{"filePath":"a"}"#, ok, "text"),
            ]
        );
    }

    #[test]
    fn other_lines_are_one_text_and_everything_has_a_limit() {
        let entries = read("one\ntwo");
        let text = "one\ntwo".to_owned();
        assert_eq!(entries, [TranscriptEntry::Text { text }]);
        let mut reader = TranscriptReader::default();
        for _ in 0..=MAX_ENTRIES {
            reader.read_line(r#"{"type":"text","part":{"text":"x"}}"#);
        }
        let (entries, is_cut) = reader.finish();
        assert_eq!((entries.len(), is_cut), (MAX_ENTRIES, true));
    }
}
