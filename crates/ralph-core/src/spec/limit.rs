//! Keeps the body of an issue within the size limit of its host.

use std::collections::BTreeMap;

use super::document::{SpecDocument, StepUpdate};
use super::notes::MovedNotes;

/// The most characters of an issue's body, and of a comment.
pub const MAX_ISSUE_CHARS: usize = 65_536;

/// A body within the limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FittedIssue {
    /// `None` if it is too long even without notes.
    pub body: Option<String>,
    /// The notes that the body does not contain, the oldest first.
    pub moved: Vec<MovedNotes>,
}

/// Moves the oldest notes out of a body until it fits.
pub fn fit_issue(body: &str, most: usize) -> FittedIssue {
    let mut moved = Vec::new();
    let mut text = body.to_owned();
    let mut excess = text.chars().count().saturating_sub(most);
    if excess == 0 {
        return FittedIssue {
            body: Some(text),
            moved,
        };
    }
    let document = SpecDocument::parse(body);
    let mut updates = BTreeMap::new();
    for step in document.steps() {
        if excess == 0 {
            break;
        }
        let mut taken = 0;
        let mut freed = 0;
        // A line costs its characters, the mark of the quotation and the line end.
        while taken < step.notes.len() && freed < excess {
            freed += step.notes[taken].chars().count() + 2;
            taken += 1;
        }
        if taken == 0 {
            continue;
        }
        excess = excess.saturating_sub(freed);
        let (lines, rest) = step.notes.split_at(taken);
        moved.push(MovedNotes {
            step: step.number.clone(),
            lines: lines.to_vec(),
        });
        let update = StepUpdate {
            mark: step.mark.clone(),
            notes: rest.to_vec(),
        };
        updates.insert(step.number.clone(), update);
    }
    text = document.with_updates(&updates);
    let fits = text.chars().count() <= most;
    FittedIssue {
        body: fits.then_some(text),
        moved,
    }
}
