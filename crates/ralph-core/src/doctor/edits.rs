//! Applies the doctor's proposed edits to the body of the task file, never to its front matter.

use std::collections::BTreeSet;

use super::report::SpecEdit;
use crate::lint;
use crate::task::TaskFile;

/// The extent of edits that may be applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EditFreedom {
    /// The user has approved the edit: anything in the body may change.
    Body,
    /// The edit is unreviewed: no box may lose its text or a check. Edits that would weaken the
    /// task are left to the user.
    AddOnly,
}

/// A task file after edits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditedTask {
    pub text: String,
    /// Indices of the applied edits.
    pub applied: Vec<usize>,
    /// The reasons for refusing the other edits.
    pub refused: Vec<String>,
}

/// Applies the edits one after the other to the body of a task file, skipping refused ones.
///
/// The front matter stays byte for byte the same: it is not searched, and an edit that would change
/// it is refused.
pub fn edit_body(
    text: &str,
    edits: &[SpecEdit],
    freedom: EditFreedom,
) -> Result<EditedTask, String> {
    let before = parse_task(text)?;
    let mut edited = EditedTask {
        text: text.to_owned(),
        applied: Vec::new(),
        refused: Vec::new(),
    };
    for (index, edit) in edits.iter().enumerate() {
        match try_edit(&edited.text, edit, &before, freedom) {
            Ok(text) => {
                edited.text = text;
                edited.applied.push(index);
            }
            Err(why) => edited.refused.push(format!("edit {}: {why}", index + 1)),
        }
    }
    Ok(edited)
}

fn parse_task(text: &str) -> Result<TaskFile, String> {
    TaskFile::parse(text.as_bytes()).map_err(|findings| first_finding(&findings))
}

fn first_finding(findings: &[lint::LintFinding]) -> String {
    let first = findings.first();
    first.map_or_else(
        || "cannot parse the task file".to_owned(),
        ToString::to_string,
    )
}

fn try_edit(
    text: &str,
    edit: &SpecEdit,
    before: &TaskFile,
    freedom: EditFreedom,
) -> Result<String, String> {
    let body = body_start(text).ok_or("the front matter is not closed")?;
    let (front, rest) = text.split_at(body);
    let changed = if edit.find.is_empty() {
        format!("{}\n\n{}\n", rest.trim_end(), edit.replace.trim_end())
    } else {
        match rest.matches(edit.find.as_str()).count() {
            1 => rest.replacen(edit.find.as_str(), &edit.replace, 1),
            0 => return Err("the text to replace is not in the body of the task".into()),
            times => {
                return Err(format!(
                    "the text to replace occurs {times} times in the body of the task"
                ));
            }
        }
    };
    let result = format!("{front}{changed}");
    let after = parse_task(&result)?;
    if after.front_matter() != before.front_matter() {
        return Err("the front matter would change".into());
    }
    if freedom == EditFreedom::AddOnly {
        refuse_weaker(before, &after)?;
    }
    let report = lint::check(result.as_bytes());
    if report.is_ok() {
        Ok(result)
    } else {
        Err(first_finding(&report.findings))
    }
}

/// Returns the byte offset of the body.
fn body_start(text: &str) -> Option<usize> {
    let mut at = 0;
    let mut fences = 0;
    for line in text.split_inclusive('\n') {
        at += line.len();
        let line = line.trim_start_matches('\u{feff}');
        fences += usize::from(line.trim_end() == "---");
        if fences == 2 {
            return Some(at);
        }
    }
    None
}

/// Refuses an edit that removes a box, changes its text, or weakens its checks.
fn refuse_weaker(before: &TaskFile, after: &TaskFile) -> Result<(), String> {
    for was in &before.checkboxes {
        let Some(now) = after.checkbox(&was.id) else {
            return Err(format!(
                "box {} would be removed; only the user can apply this edit",
                was.id
            ));
        };
        if now.text != was.text {
            return Err(format!(
                "the text of box {} would change; only the user can apply this edit",
                was.id
            ));
        }
        let kept: BTreeSet<&String> = now.verify.iter().collect();
        // A box without its own checks uses the global ones, which its own checks would replace.
        let weaker = was.verify.iter().any(|command| !kept.contains(command))
            || (was.verify.is_empty() && !now.verify.is_empty());
        if weaker {
            return Err(format!(
                "box {} would lose a check; only the user can apply this edit",
                was.id
            ));
        }
    }
    Ok(())
}
