//! The criteria of success: milestones and checkboxes, each with a name of its own.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use super::grammar::split_id;
use crate::lint::Finding;

/// How many checkboxes a task may have.
pub const MAX_CHECKBOXES: usize = 1000;

/// A group of checkboxes: a heading such as `### Milestone M1 — Behavior`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Milestone {
    /// Its name, such as `M1`.
    pub id: String,
    /// What the heading says besides.
    pub title: String,
    /// Its line in the file.
    pub line: u32,
}

/// One criterion of success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Checkbox {
    /// Its name, such as `M1.1`; made from its position where it has none (`C3`).
    pub id: String,
    /// What it says besides.
    pub text: String,
    /// The milestone it belongs to.
    pub milestone: Option<String>,
    /// Whether the file says that it is done.
    pub checked: bool,
    /// Its line in the file.
    pub line: u32,
    /// Its own verify commands.
    pub verify: Vec<String>,
    /// The place of the byte between its brackets.
    #[serde(skip)]
    pub(super) mark: usize,
}

/// A checkbox before it has its name.
pub(super) struct RawBox {
    pub(super) text: String,
    /// The milestone whose heading is above it.
    pub(super) milestone: Option<String>,
    pub(super) checked: bool,
    pub(super) line: u32,
    pub(super) last_line: u32,
    pub(super) verify: Vec<String>,
    pub(super) mark: usize,
}

impl RawBox {
    /// Adds a line of its text, if it follows the one before; later paragraphs are explanations.
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

/// Gives every box its name. Names that are there already must be unique.
pub(super) fn name(
    boxes: Vec<RawBox>,
    milestones: &[Milestone],
    findings: &mut Vec<Finding>,
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
            id,
            text,
            checked: raw.checked,
            line: raw.line,
            verify: raw.verify,
            mark: raw.mark,
        });
    }
    name_by_position(&mut named, &lines);
    named
}

/// A box without a name is `C` and its position; if a box is called that, the next free number
/// behind all positions.
fn name_by_position(boxes: &mut [Checkbox], taken: &HashMap<String, u32>) {
    let mut spare = boxes.len();
    for (index, nameless) in boxes.iter_mut().enumerate() {
        if !nameless.id.is_empty() {
            continue;
        }
        let mut id = format!("C{}", index + 1);
        while taken.contains_key(&id) {
            spare += 1;
            id = format!("C{spare}");
        }
        nameless.id = id;
    }
}

/// Refuses milestones with the same name.
pub(super) fn refuse_duplicates(milestones: &[Milestone], findings: &mut Vec<Finding>) {
    let mut lines: HashMap<&str, u32> = HashMap::new();
    for milestone in milestones {
        let first = *lines.entry(&milestone.id).or_insert(milestone.line);
        if first != milestone.line {
            findings.push(duplicate("milestone", &milestone.id, first, milestone.line));
        }
    }
}

fn duplicate(what: &'static str, id: &str, first: u32, second: u32) -> Finding {
    let code = if what == "checkbox" {
        "duplicate-checkbox"
    } else {
        "duplicate-milestone"
    };
    Finding::error(
        code,
        format!("{what} `{id}` is there twice, in line {first} and in line {second}"),
        "give each one its own id",
    )
    .on_line(second)
}
