//! The changes that an agent may make to a specification: marks of steps, and notes below them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::document::{SpecDocument, SpecStep, StepUpdate};
use super::heading::{StepMark, step_heading};
use super::notes;

/// The most lines of notes of one step.
const MAX_NOTES: usize = 400;

/// The accepted part of an agent's changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedEdits {
    /// The known text with the new notes and obstacles. Steps that the agent marked as done stay open, because
    /// the runner verifies them.
    pub text: String,
    /// The steps that the agent newly marked as done.
    pub claimed: BTreeSet<String>,
    /// Why the agent cannot complete a step, if it reported that: the number of the step and the reason.
    pub blocked: Option<(String, String)>,
    /// Whether the copy also changes text that the agent must not change.
    pub differs: bool,
}

impl SpecDocument {
    /// Accepts marks and notes from the agent's copy.
    pub fn accept_edits(&self, copy: &str) -> AcceptedEdits {
        let copy = Self::parse(copy);
        let mut updates = BTreeMap::new();
        let mut claimed = BTreeSet::new();
        let mut blocked = None;
        for step in &self.steps {
            let Some(theirs) = copy.step(&step.number) else {
                continue;
            };
            let mark = match (&step.mark, &theirs.mark) {
                (StepMark::Done, _) => StepMark::Done,
                (known, StepMark::Done) => {
                    claimed.insert(step.number.clone());
                    known.clone()
                }
                (known, StepMark::Blocked(_)) if theirs.mark == *known => known.clone(),
                (known, StepMark::Blocked(reason)) => {
                    // After a crash, the copy may still contain the reason as the agent wrote it.
                    let mark = StepMark::Blocked(notes::cleaned_reason(reason));
                    if mark != *known {
                        blocked = Some((step.number.clone(), reason.clone()));
                    }
                    mark
                }
                (StepMark::Open | StepMark::Blocked(_), StepMark::Open) => StepMark::Open,
            };
            let mut lines = step.notes.clone();
            // After a crash, the copy may still contain notes as the agent wrote them.
            let mut added = added_lines(self.section(step), copy.section(theirs));
            added.retain(|line| line.is_empty() || !step.notes.contains(line));
            lines.extend(added);
            lines.truncate(MAX_NOTES);
            updates.insert(step.number.clone(), StepUpdate { mark, notes: lines });
        }
        AcceptedEdits {
            text: self.with_updates(&updates),
            claimed,
            blocked,
            differs: self.differs_outside_notes(&copy),
        }
    }

    fn section(&self, step: &SpecStep) -> &[String] {
        &self.lines[step.heading + 1..step.end]
    }

    /// Returns whether a copy lacks a line, or has another one outside of the sections of steps. The marks of
    /// headings do not count.
    fn differs_outside_notes(&self, copy: &Self) -> bool {
        let unmarked = |document: &Self| -> Vec<String> {
            let lines = document.lines.iter().filter(|line| !line.trim().is_empty());
            lines.map(|line| without_mark(line)).collect()
        };
        let known = unmarked(self);
        let missing = difference(&known, &unmarked(copy));
        if !missing.is_empty() {
            return true;
        }
        let outside = |document: &Self| -> Vec<String> {
            let mut lines = Vec::new();
            let mut next = 0;
            for step in &document.steps {
                lines.extend_from_slice(&document.lines[next.min(step.heading)..step.heading]);
                lines.push(without_mark(&document.lines[step.heading]));
                next = step.end;
            }
            lines.extend_from_slice(&document.lines[next.min(document.lines.len())..]);
            lines.retain(|line| !line.trim().is_empty());
            lines
        };
        outside(self) != outside(copy)
    }
}

fn without_mark(line: &str) -> String {
    match step_heading(line) {
        Some(Ok(heading)) => line[..heading.base].to_owned(),
        Some(Err(_)) | None => line.trim_end().to_owned(),
    }
}

/// Returns the notes in the lines that a section has and the known one does not, without blank lines around
/// them.
fn added_lines(known: &[String], found: &[String]) -> Vec<String> {
    let added = difference(found, known);
    let mut notes: Vec<String> = added
        .iter()
        .filter_map(|line| notes::cleaned(line))
        .collect();
    let first = notes.iter().position(|line| !line.trim().is_empty());
    notes.drain(..first.unwrap_or(notes.len()));
    while notes.last().is_some_and(|line| line.trim().is_empty()) {
        notes.pop();
    }
    notes
}

/// Returns the lines that occur more often in the first text than in the second one, in their order. Blank
/// lines count only between others.
fn difference(lines: &[String], others: &[String]) -> Vec<String> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for line in others {
        *counts.entry(line.trim_end()).or_default() += 1;
    }
    let mut result: Vec<String> = Vec::new();
    for line in lines {
        let line = line.trim_end();
        if line.is_empty() {
            if result.last().is_some_and(|last| !last.is_empty()) {
                result.push(String::new());
            }
            continue;
        }
        match counts.get_mut(line) {
            Some(count) if *count > 0 => *count -= 1,
            Some(_) | None => result.push(line.to_owned()),
        }
    }
    while result.last().is_some_and(String::is_empty) {
        result.pop();
    }
    result
}
