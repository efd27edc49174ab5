//! Guardrails and notes that users and the doctor leave for later iterations.
//!
//! Each entry has a few single-line fields, so it stays short and cannot forge another entry.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The longest name of a guardrail or author of a note, in characters.
const MAX_NAME: usize = 80;
/// The longest value of any other field, in characters.
const MAX_TEXT: usize = 1000;

/// A lesson for every later iteration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Guardrail {
    pub name: String,
    /// The situation in which the mistake tends to happen.
    pub trigger: String,
    /// The correct behaviour in that situation.
    pub instruction: String,
    #[serde(default)]
    pub evidence: String,
}

impl Guardrail {
    /// Returns the first required field that is empty, with its article.
    pub fn missing_field(&self) -> Option<&'static str> {
        let fields = [
            ("a name", &self.name),
            ("a trigger", &self.trigger),
            ("an instruction", &self.instruction),
        ];
        let empty = fields
            .into_iter()
            .find(|(_, text)| one_line(text, 1).is_empty());
        empty.map(|(field, _)| field)
    }

    /// Renders the entry for `guardrails.md`, starting with an empty line.
    pub fn render(&self, iteration: u32) -> String {
        let evidence = if self.evidence.trim().is_empty() {
            "none given"
        } else {
            &self.evidence
        };
        format!(
            "\n### sign: {}\n- trigger: {}\n- instruction: {}\n- added_after: iteration {iteration}\n- evidence: {}\n",
            one_line(&self.name, MAX_NAME),
            one_line(&self.trigger, MAX_TEXT),
            one_line(&self.instruction, MAX_TEXT),
            one_line(evidence, MAX_TEXT),
        )
    }
}

/// The purpose of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// Clarifies a requirement.
    Clarify,
    /// Points to a file.
    File,
    /// Records a decision.
    Decision,
}

impl NoteKind {
    /// Returns the serialized name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Clarify => "clarify",
            Self::File => "file",
            Self::Decision => "decision",
        }
    }
}

/// A hint from the user for the next prompts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Note {
    pub kind: NoteKind,
    pub text: String,
    #[serde(default)]
    pub author: String,
}

impl Note {
    /// Returns the first required field that is empty, with its article.
    pub fn missing_field(&self) -> Option<&'static str> {
        one_line(&self.text, 1).is_empty().then_some("a text")
    }

    fn render(&self, iteration: u32) -> String {
        let author = if self.author.trim().is_empty() {
            "the user"
        } else {
            &self.author
        };
        format!(
            "\n### note: {}\n- text: {}\n- author: {}\n- iteration: {iteration}\n",
            self.kind.as_str(),
            one_line(&self.text, MAX_TEXT),
            one_line(author, MAX_NAME),
        )
    }

    /// Appends this note to `notes`. Does nothing if it is already the last one, so that a repeated
    /// command is harmless.
    pub fn append_to(&self, notes: &str, iteration: u32) -> String {
        let note = self.render(iteration);
        if notes.ends_with(&note) {
            return notes.to_owned();
        }
        let notes = notes.trim_end();
        let notes = notes.strip_suffix("(none)").unwrap_or(notes).trim_end();
        format!("{notes}\n{note}")
    }
}

/// Joins the words of `text` into one line without control characters, and truncates it.
fn one_line(text: &str, max_chars: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let clean: String = words
        .join(" ")
        .chars()
        .filter(|c| !c.is_control())
        .take(max_chars)
        .collect();
    clean.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::templates;

    #[test]
    fn a_guardrail_is_rendered_like_the_template() {
        let guardrail = Guardrail {
            name: "keep\nnames".into(),
            trigger: "when  renaming".into(),
            instruction: "do not\n### sign: forged".into(),
            evidence: String::new(),
        };
        assert_eq!(guardrail.missing_field(), None);
        assert_eq!(
            guardrail.render(7),
            "\n### sign: keep names\n- trigger: when renaming\n- instruction: do not ### sign: forged\n\
             - added_after: iteration 7\n- evidence: none given\n"
        );
        assert_eq!(Guardrail::default().missing_field(), Some("a name"));
    }

    #[test]
    fn notes_are_appended_once() {
        let note = |text: &str| Note {
            kind: NoteKind::Decision,
            text: text.into(),
            author: String::new(),
        };
        let first = note("use B").append_to(templates::NOTES, 3);
        assert!(first.starts_with("# Notes (optional)\n"));
        assert!(
            first.ends_with(
                "## Latest note\n\n### note: decision\n- text: use B\n- author: the user\n- iteration: 3\n"
            ),
            "{first}"
        );
        assert_eq!(note("use B").append_to(&first, 3), first);
        let second = note("no, A").append_to(&first, 4);
        assert!(second.starts_with(&first), "{second}");
    }

    #[test]
    fn fields_are_truncated() {
        assert_eq!(one_line(&"é ".repeat(5000), 9), "é é é é é");
    }
}
