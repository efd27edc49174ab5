//! A whole task file: its contract, its criteria and its text.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

use super::body;
use super::contract::Contract;
use super::criteria::{self, Checkbox, MAX_CHECKBOXES, Milestone};
use super::decode::{DecodedContract, decode};
use super::keys::KeyLines;
use super::split::{BYTE_ORDER_MARK, TaskParts, decode_text, split};
use super::yaml::{self, Completeness, YamlValue};
use crate::lint::{LintFinding, sort_and_truncate};

/// A parsed and validated task file. Equality ignores line ends.
#[derive(Debug, Clone)]
pub struct TaskFile {
    pub contract: Contract,
    /// The first level-1 heading, without `Task:`.
    pub title: Option<String>,
    /// In file order.
    pub milestones: Vec<Milestone>,
    /// In file order.
    pub checkboxes: Vec<Checkbox>,
    /// The whole text, with `\n` line ends and without a byte order mark.
    pub text: String,
    front: Range<usize>,
    /// The original file, if it differs from `text`.
    original: Option<String>,
    pub(crate) closing_line: u32,
    pub(crate) key_lines: KeyLines,
    /// Lint findings about ignored or unusual lines.
    pub(crate) remarks: Vec<LintFinding>,
}

/// The ticks in another copy of a task file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TicksInCopy {
    /// Ids of the ticked boxes.
    pub ticked: BTreeSet<String>,
    /// Whether the copy differs in more than ticks.
    pub differs: bool,
}

/// A partially parsed task, and everything that is wrong with it.
pub(crate) struct TaskDraft {
    /// If there are findings, only the linter may use it.
    pub(crate) task: Option<TaskFile>,
    pub(crate) findings: Vec<LintFinding>,
}

impl TaskFile {
    /// Parses the bytes of a task file. All returned findings are errors.
    pub fn parse(bytes: &[u8]) -> Result<Self, Vec<LintFinding>> {
        let mut draft = Self::parse_draft(bytes);
        match draft.task {
            Some(task) if draft.findings.is_empty() => Ok(task),
            Some(_) | None => {
                sort_and_truncate(&mut draft.findings);
                Err(draft.findings)
            }
        }
    }

    /// Parses as much as possible.
    pub(crate) fn parse_draft(bytes: &[u8]) -> TaskDraft {
        let cut = decode_text(bytes).and_then(|text| split(&text).map(|parts| (text, parts)));
        let (text, parts) = match cut {
            Ok(cut) => cut,
            Err(finding) => {
                return TaskDraft {
                    task: None,
                    findings: vec![finding],
                };
            }
        };
        let mut findings = Vec::new();
        let decoded = parse_front(&text[parts.front.clone()], &mut findings);
        for finding in &mut findings {
            finding.line.get_or_insert(parts.closing_line);
        }
        let body = parse_named_body(&text, &parts, &mut findings);
        let original = match std::str::from_utf8(bytes) {
            Ok(original) if original != text => Some(original.to_owned()),
            // Bytes that are not UTF-8 are a finding already.
            Ok(_) | Err(_) => None,
        };
        let task = decoded.map(|decoded| Self {
            contract: decoded.contract,
            title: body.title,
            milestones: body.milestones,
            checkboxes: body.checkboxes,
            text,
            front: parts.front,
            original,
            closing_line: parts.closing_line,
            key_lines: decoded.lines,
            remarks: [decoded.remarks, body.remarks].concat(),
        });
        TaskDraft { task, findings }
    }

    /// Returns the front matter without its `---` lines.
    pub fn front_matter(&self) -> &str {
        &self.text[self.front.clone()]
    }

    /// Returns the checkbox with this id.
    pub fn checkbox(&self, id: &str) -> Option<&Checkbox> {
        self.checkboxes.iter().find(|checkbox| checkbox.id == id)
    }

    /// Returns the checkboxes of a milestone.
    pub fn milestone_boxes<'t>(&'t self, id: &'t str) -> impl Iterator<Item = &'t Checkbox> {
        self.checkboxes
            .iter()
            .filter(move |checkbox| checkbox.milestone.as_deref() == Some(id))
    }

    /// Returns the commands that verify a box: its own, or else the global ones, or else the test
    /// command.
    pub fn box_commands<'t>(&'t self, checkbox: &'t Checkbox) -> Vec<&'t str> {
        if checkbox.verify.is_empty() {
            return self.contract.default_box_commands();
        }
        checkbox.verify.iter().map(String::as_str).collect()
    }

    /// Returns every verify command once: those of the front matter, then those of the checkboxes.
    pub fn all_verify_commands(&self) -> Vec<&str> {
        let global = self.contract.verify_commands.iter();
        let own = self.checkboxes.iter().flat_map(|checkbox| &checkbox.verify);
        let mut seen = HashSet::new();
        global
            .chain(own)
            .map(String::as_str)
            .filter(|command| seen.insert(*command))
            .collect()
    }

    /// Returns the boxes that are ticked in another copy of the file, which may differ in other
    /// ways. A box counts if the copy contains its text unchanged and only once.
    pub fn ticks_in(&self, copy: &str) -> TicksInCopy {
        let Ok(copy) = decode_text(copy.as_bytes()) else {
            return TicksInCopy {
                ticked: BTreeSet::new(),
                differs: true,
            };
        };
        let mark = |checkbox: &Checkbox| copy.as_bytes().get(checkbox.mark).copied();
        let same = self.text.len() == copy.len()
            && std::iter::zip(self.text.bytes(), copy.bytes())
                .enumerate()
                .all(|(at, (ours, theirs))| {
                    ours == theirs || self.checkboxes.iter().any(|checkbox| checkbox.mark == at)
                });
        if same {
            let is_ticked = |it: &&Checkbox| matches!(mark(it), Some(b'x' | b'X'));
            let ticked = self.checkboxes.iter().filter(is_ticked);
            return TicksInCopy {
                ticked: ticked.map(|checkbox| checkbox.id.clone()).collect(),
                differs: false,
            };
        }
        let theirs = Self::parse_draft(copy.as_bytes()).task;
        let theirs = theirs.map_or_else(Vec::new, |task| task.checkboxes);
        let is_ticked = |ours: &&Checkbox| {
            let mut found = theirs.iter().filter(|it| it.id == ours.id);
            let same = |it: &Checkbox| it.checked && it.text == ours.text;
            found.next().is_some_and(same) && found.next().is_none()
        };
        let ticked = self.checkboxes.iter().filter(is_ticked);
        TicksInCopy {
            ticked: ticked.map(|checkbox| checkbox.id.clone()).collect(),
            differs: true,
        }
    }

    /// Returns the file with exactly these boxes ticked and all others open. The byte order mark
    /// and the line ends are preserved.
    pub fn with_ticks(&self, ticked: &BTreeSet<String>) -> String {
        let mut text = String::with_capacity(self.text.len());
        let mut copied = 0;
        for checkbox in &self.checkboxes {
            text.push_str(&self.text[copied..checkbox.mark]);
            text.push(if ticked.contains(&checkbox.id) {
                'x'
            } else {
                ' '
            });
            copied = checkbox.mark + 1;
        }
        text.push_str(&self.text[copied..]);
        match &self.original {
            None => text,
            Some(original) => with_original_line_endings(original, &text),
        }
    }
}

/// Restores the byte order mark and the line ends of an original with the same lines.
fn with_original_line_endings(original: &str, text: &str) -> String {
    let mut result = String::with_capacity(original.len());
    if original.starts_with(BYTE_ORDER_MARK) {
        result.push(BYTE_ORDER_MARK);
    }
    let originals = original.split_inclusive('\n');
    for (line, original_line) in text.split_inclusive('\n').zip(originals) {
        match line.strip_suffix('\n') {
            Some(line) if original_line.ends_with("\r\n") => {
                result.push_str(line);
                result.push_str("\r\n");
            }
            Some(_) | None => result.push_str(line),
        }
    }
    result
}

impl PartialEq for TaskFile {
    /// Everything else is derived from the text.
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for TaskFile {}

fn parse_front(front: &str, findings: &mut Vec<LintFinding>) -> Option<DecodedContract> {
    let tree = yaml::parse_front_matter(front);
    findings.extend(tree.findings);
    if tree.completeness == Completeness::Partial {
        return None;
    }
    match tree.root.map(|node| (node.location, node.value)) {
        None => Some(decode(&[], findings)),
        Some((_, YamlValue::Map(entries))) => Some(decode(&entries, findings)),
        Some((_, YamlValue::Plain(text))) if text.is_empty() => Some(decode(&[], findings)),
        Some((location, YamlValue::Plain(_) | YamlValue::Quoted(_) | YamlValue::List(_))) => {
            let finding = LintFinding::error(
                "front-matter-not-a-map",
                "the front matter is not a list of settings",
                "write each setting as `key: value` on its own line",
            );
            findings.push(finding.at_location(location));
            None
        }
    }
}

/// The body with all ids assigned.
struct NamedBody {
    title: Option<String>,
    milestones: Vec<Milestone>,
    checkboxes: Vec<Checkbox>,
    remarks: Vec<LintFinding>,
}

fn parse_named_body(text: &str, parts: &TaskParts, findings: &mut Vec<LintFinding>) -> NamedBody {
    let mut body = body::parse_body(text, parts.body, parts.closing_line + 1);
    if body.box_count > MAX_CHECKBOXES {
        // Verify lines of boxes beyond the limit would be reported as stray.
        body.remarks.clear();
        findings.push(LintFinding::error(
            "too-many-checkboxes",
            format!(
                "the task has {} checkboxes, limit {MAX_CHECKBOXES}",
                body.box_count
            ),
            "split the task",
        ));
    }
    criteria::refuse_duplicates(&body.milestones, findings);
    NamedBody {
        checkboxes: criteria::name_boxes(body.boxes, &body.milestones, findings),
        title: body.title,
        milestones: body.milestones,
        remarks: body.remarks,
    }
}
