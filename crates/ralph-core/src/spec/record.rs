//! Decides what is written back to an issue, so that no edit of a human is lost.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::document::{SpecDocument, StepUpdate, normalise_body};
use super::heading::StepMark;
use super::notes::MovedNotes;

/// The known bodies of an issue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpecRecord {
    /// The body that was last read or written.
    pub last: String,
    /// The last version of a human since the run started, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited: Option<String>,
    /// The body of a write whose result is not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writing: Option<String>,
    /// The steps whose marks a human removed: they stay open.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub reopened: BTreeSet<String>,
}

/// What to write to an issue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecWrite {
    /// The new body; `None` if the issue already has it.
    pub body: Option<String>,
    /// Whether a human edited the issue since the last write.
    pub is_edited: bool,
    /// The notes of steps that the human removed.
    pub dropped: Vec<MovedNotes>,
    /// The steps that the run does not know.
    pub new_steps: Vec<String>,
    /// The steps whose marks a human removed.
    pub reopened: Vec<String>,
}

impl SpecRecord {
    /// Starts with the body that the run was planned with.
    pub fn new(body: &str) -> Self {
        Self {
            last: normalise_body(body),
            edited: None,
            writing: None,
            reopened: BTreeSet::new(),
        }
    }

    /// Compares the run's version with the issue's. A body that is not the last known one was edited by a human:
    /// it stays, with the run's marks and notes. The caller records the written body with
    /// [`SpecRecord::record_written`].
    pub fn reconcile(&mut self, ours: &str, remote: &str) -> SpecWrite {
        let (ours, remote) = (normalise_body(ours), normalise_body(remote));
        if self.writing.take().is_some_and(|writing| writing == remote) {
            // A crash followed the write.
            self.last.clone_from(&remote);
        }
        let is_edited = remote != self.last;
        if is_edited {
            self.record_reopened(&remote);
            self.edited = Some(remote.clone());
            self.last.clone_from(&remote);
        }
        let merged = match &self.edited {
            Some(edited) => merge(&ours, edited, &self.reopened),
            None => (ours, Vec::new(), Vec::new()),
        };
        let (body, dropped, new_steps) = merged;
        SpecWrite {
            body: (body != remote).then_some(body),
            is_edited,
            dropped,
            new_steps,
            reopened: self.reopened.iter().cloned().collect(),
        }
    }

    /// Records which marks a human removed from the last known body, or added again.
    fn record_reopened(&mut self, remote: &str) {
        let (last, remote) = (SpecDocument::parse(&self.last), SpecDocument::parse(remote));
        for step in remote.steps() {
            let was_done = last
                .step(&step.number)
                .is_some_and(|before| before.title == step.title && before.mark == StepMark::Done);
            match (was_done, &step.mark) {
                (_, StepMark::Done) => {
                    self.reopened.remove(&step.number);
                }
                (true, StepMark::Open | StepMark::Blocked(_)) => {
                    self.reopened.insert(step.number.clone());
                }
                (false, StepMark::Open | StepMark::Blocked(_)) => {}
            }
        }
    }

    /// Records a body before it is written. The caller stores the record first, so that a crash does not turn the
    /// write into a human's edit.
    pub fn record_intent(&mut self, body: &str) {
        self.writing = Some(normalise_body(body));
    }

    /// Records the body that the issue has after a write.
    pub fn record_written(&mut self, body: &str) {
        self.last = normalise_body(body);
        self.writing = None;
    }
}

/// Returns a human's text with the run's marks and notes, the notes of steps that it does not have, and the
/// numbers of the steps that the run does not have.
fn merge(
    ours: &str,
    theirs: &str,
    reopened: &BTreeSet<String>,
) -> (String, Vec<MovedNotes>, Vec<String>) {
    let (ours, theirs) = (SpecDocument::parse(ours), SpecDocument::parse(theirs));
    let mut updates = BTreeMap::new();
    let mut dropped = Vec::new();
    for step in ours.steps() {
        let Some(other) = theirs
            .step(&step.number)
            .filter(|other| other.title == step.title)
        else {
            if !step.notes.is_empty() {
                dropped.push(MovedNotes {
                    step: step.number.clone(),
                    lines: step.notes.clone(),
                });
            }
            continue;
        };
        // Only the run knows which steps are verified, and only a human may take a mark of it back.
        let mark = match &step.mark {
            StepMark::Done if reopened.contains(&step.number) => other.mark.clone(),
            mark @ (StepMark::Done | StepMark::Open | StepMark::Blocked(_)) => mark.clone(),
        };
        let mut notes = other.notes.clone();
        let new = step.notes.iter().filter(|line| !other.notes.contains(line));
        notes.extend(new.cloned());
        updates.insert(step.number.clone(), StepUpdate { mark, notes });
    }
    let is_new = |number: &&String| !updates.contains_key(*number);
    let numbers = theirs.steps().iter().map(|step| &step.number);
    let new_steps = numbers.filter(is_new).cloned().collect();
    (theirs.with_updates(&updates), dropped, new_steps)
}
