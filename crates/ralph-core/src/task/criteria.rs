//! The success criteria: milestones and checkboxes, each with an id.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use super::derived_ids::derive_ids;
use super::grammar::split_id;
use crate::lint::LintFinding;

/// Maximum number of checkboxes in a task.
pub const MAX_CHECKBOXES: usize = 1000;

/// A group of checkboxes: a heading such as `### Milestone M1 — Behavior`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Milestone {
    /// Such as `M1`.
    pub id: String,
    /// The heading without the id.
    pub title: String,
    pub line: u32,
}

/// A success criterion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Checkbox {
    /// Such as `M1.1`; derived from the text if the file has none (`it-answers-json`).
    pub id: String,
    /// Whether the id is in the file.
    #[serde(skip)]
    pub has_own_id: bool,
    /// The text without the id.
    pub text: String,
    pub milestone: Option<String>,
    /// Whether it is ticked in the file.
    pub checked: bool,
    pub line: u32,
    /// Its own verify commands.
    pub verify: Vec<String>,
    /// Byte offset of the mark between the brackets.
    #[serde(skip)]
    pub(super) mark: usize,
}

impl Checkbox {
    /// Returns the text of the box, with its id if the file has one.
    pub fn label(&self) -> String {
        if self.has_own_id {
            format!("{} {}", self.id, self.text)
        } else {
            self.text.clone()
        }
    }
}

/// A checkbox without an id.
pub(super) struct RawBox {
    pub(super) text: String,
    /// The milestone of the last heading.
    pub(super) milestone: Option<String>,
    pub(super) checked: bool,
    pub(super) line: u32,
    pub(super) last_line: u32,
    pub(super) verify: Vec<String>,
    pub(super) mark: usize,
}

impl RawBox {
    /// Adds a line of text if it follows the previous one; later paragraphs are explanations.
    pub(super) fn add_line(&mut self, text: &str, line: u32) {
        if line > self.last_line + 1 {
            return;
        }
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        self.text.push_str(text);
        self.last_line = line;
    }
}

/// Assigns an id to every box. Ids in the file must be unique.
pub(super) fn name_boxes(
    boxes: Vec<RawBox>,
    milestones: &[Milestone],
    findings: &mut Vec<LintFinding>,
) -> Vec<Checkbox> {
    let mut known: HashSet<&str> = HashSet::new();
    known.extend(milestones.iter().map(|milestone| milestone.id.as_str()));
    let mut lines: HashMap<String, u32> = HashMap::new();
    let mut named: Vec<Checkbox> = Vec::with_capacity(boxes.len());
    for raw in boxes {
        let (id, text) = split_id(&raw.text);
        let id = id.unwrap_or_default().to_owned();
        if let Some(first) = lines.get(&id) {
            findings.push(duplicate("checkbox", &id, *first, raw.line));
        } else if !id.is_empty() {
            lines.insert(id.clone(), raw.line);
        }
        let group = id.split('.').next().filter(|group| known.contains(group));
        named.push(Checkbox {
            milestone: raw.milestone.or_else(|| group.map(str::to_owned)),
            has_own_id: !id.is_empty(),
            id,
            text,
            checked: raw.checked,
            line: raw.line,
            verify: raw.verify,
            mark: raw.mark,
        });
    }
    derive_ids(&mut named);
    named
}

/// Rejects milestones with the same id.
pub(super) fn refuse_duplicates(milestones: &[Milestone], findings: &mut Vec<LintFinding>) {
    let mut lines: HashMap<&str, u32> = HashMap::new();
    for milestone in milestones {
        let first = *lines.entry(&milestone.id).or_insert(milestone.line);
        if first != milestone.line {
            findings.push(duplicate("milestone", &milestone.id, first, milestone.line));
        }
    }
}

fn duplicate(what: &'static str, id: &str, first: u32, second: u32) -> LintFinding {
    let code = if what == "checkbox" {
        "duplicate-checkbox"
    } else {
        "duplicate-milestone"
    };
    LintFinding::error(
        code,
        format!("{what} `{id}` is defined twice, in line {first} and in line {second}"),
        "give each one its own id",
    )
    .on_line(second)
}
