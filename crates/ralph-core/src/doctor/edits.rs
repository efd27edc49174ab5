//! Carries out what the doctor proposes for the task file: in its body, and nowhere else.

use std::collections::BTreeSet;

use super::report::SpecEdit;
use crate::lint;
use crate::task::TaskFile;

/// How far an edit may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EditFreedom {
    /// A person has looked at it: anything in the body.
    Body,
    /// Nobody has: no box may lose its text or a check. What would weaken the task is left for a person.
    AddOnly,
}

/// A task file after edits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditedTask {
    /// The text.
    pub text: String,
    /// Which edits are in it, by index.
    pub applied: Vec<usize>,
    /// Why the others are not.
    pub refused: Vec<String>,
}

/// Applies the edits that can be applied to the body of a task file, one after the other.
///
/// The front matter stays as it is, byte for byte: it is not looked at when a place is searched, and a
/// result whose front matter differed would be refused.
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
    first.map_or_else(|| "it cannot be read".to_owned(), ToString::to_string)
}

fn try_edit(
    text: &str,
    edit: &SpecEdit,
    before: &TaskFile,
    freedom: EditFreedom,
) -> Result<String, String> {
    let body = body_start(text).ok_or("the front matter has no end")?;
    let (front, rest) = text.split_at(body);
    let changed = if edit.find.is_empty() {
        format!("{}\n\n{}\n", rest.trim_end(), edit.replace.trim_end())
    } else {
        match rest.matches(edit.find.as_str()).count() {
            1 => rest.replacen(edit.find.as_str(), &edit.replace, 1),
            0 => return Err("the text it looks for is not in the body of the task".into()),
            times => return Err(format!("the text it looks for is there {times} times")),
        }
    };
    let result = format!("{front}{changed}");
    let after = parse_task(&result)?;
    if after.front_matter() != before.front_matter() {
        return Err("it would change the front matter".into());
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

/// Returns where the body starts.
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

/// Refuses an edit after which a box is gone, says something else, or is checked less.
fn refuse_weaker(before: &TaskFile, after: &TaskFile) -> Result<(), String> {
    for was in &before.checkboxes {
        let Some(now) = after.checkbox(&was.id) else {
            return Err(format!(
                "box {} would be gone; a person has to apply it",
                was.id
            ));
        };
        if now.text != was.text {
            return Err(format!(
                "box {} would say something else; a person has to apply it",
                was.id
            ));
        }
        let kept: BTreeSet<&String> = now.verify.iter().collect();
        // A box without own checks has the global ones; own ones would replace them.
        let weaker = was.verify.iter().any(|command| !kept.contains(command))
            || (was.verify.is_empty() && !now.verify.is_empty());
        if weaker {
            return Err(format!(
                "box {} would lose a check; a person has to apply it",
                was.id
            ));
        }
    }
    Ok(())
}
