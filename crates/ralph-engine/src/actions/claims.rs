//! Checks the claims of a reply: a claimed box is ticked only if its verify commands succeed.

use std::collections::BTreeSet;

use ralph_core::action::Claims;
use ralph_core::event::IterationEvent;
use ralph_core::task::NamedBox;
use ralph_core::verdict::{self, CheckResult, Verdict};

use crate::check_results::run_check;
use crate::contract::PinnedTask;
use crate::contract_change::set_ticks;
use crate::error::RunError;
use crate::recorder::Recorder;
use crate::run::Run;

/// How much of a claim is shown, in characters.
const MAX_SHOWN_CHARS: usize = 120;

/// The most boxes that a message about an unclear claim lists.
const MAX_LISTED: usize = 20;

/// Returns a claim as messages show it: one line without control characters.
fn display_claim(claim: &str) -> String {
    let line = claim.chars().map(|c| if c.is_control() { ' ' } else { c });
    line.take(MAX_SHOWN_CHARS).collect()
}

/// Joins the first entries of a list and counts the rest.
fn join_first(entries: &[&str], separator: &str) -> String {
    let listed = entries[..entries.len().min(MAX_LISTED)].join(separator);
    match entries.len().saturating_sub(MAX_LISTED) {
        0 => listed,
        more => format!("{listed}{separator}and {more} more"),
    }
}

/// Checks every claim and ticks the boxes that are verified.
pub(crate) async fn check_claims(run: &mut Run, claims: &Claims) -> Result<(), RunError> {
    let before = complete_milestones(&run.recorder, &run.pinned);
    let mut ticked = run.recorder.state().ticked.clone();
    let (claimed, unclear) = claimed_boxes(&run.pinned, claims);
    for id in claimed {
        if ticked.contains(&id) {
            continue;
        }
        let (checks, refusal) = verify_box(run, &id).await?;
        let verified = refusal.is_none();
        let why = refusal.unwrap_or_default();
        if verified {
            ticked.insert(id.clone());
            run.recorder
                .log_activity(&format!("box {id} is verified"))?;
        } else {
            let line = format!("box {id} was claimed but is not ticked: {why}");
            run.recorder.log_activity(&line)?;
            run.recorder.log_error(&line)?;
        }
        let iteration = run.recorder.state().iteration;
        run.recorder.append(IterationEvent::ClaimChecked {
            iteration,
            checkbox: id,
            verified,
            why,
            checks,
        })?;
    }
    run.scratch.newly_ticked += ticked.difference(&run.recorder.state().ticked).count();
    set_ticks(&mut run.recorder, &mut run.bench, &mut run.pinned, &ticked)?;
    reject_unclear_claims(&mut run.recorder, &run.pinned, unclear)?;
    check_milestones(&mut run.recorder, &run.pinned, claims)?;
    let complete = complete_milestones(&run.recorder, &run.pinned);
    // After a crash it is unknown which were complete before; one additional push is harmless.
    let unknown = run.scratch.resumed && !complete.is_empty();
    run.scratch.milestone_reached = complete != before || unknown;
    Ok(())
}

/// Returns the ids of the boxes that are claimed, and the claims that name no box or more than one,
/// each with the reason.
fn claimed_boxes(
    pinned: &PinnedTask,
    claims: &Claims,
) -> (BTreeSet<String>, Vec<(String, String)>) {
    let mut boxes = BTreeSet::new();
    let mut unclear = Vec::new();
    let names = pinned.task().box_names();
    for claim in &claims.checkboxes_checked {
        let claimed = display_claim(claim);
        match names.find(claim) {
            NamedBox::One(checkbox) => {
                boxes.insert(checkbox.id.clone());
            }
            NamedBox::Ambiguous(found) => {
                let ids: Vec<&str> = found.iter().map(|it| it.id.as_str()).collect();
                let why = format!("it matches several checkboxes: {}", join_first(&ids, ", "));
                unclear.push((claimed, why));
            }
            NamedBox::Unknown => {
                let why = format!("the task has no checkbox `{claimed}`");
                unclear.push((claimed, why));
            }
        }
    }
    (boxes, unclear)
}

/// Records unclear claims as rejected, and lists the open boxes for the next prompt.
fn reject_unclear_claims(
    recorder: &mut Recorder,
    pinned: &PinnedTask,
    unclear: Vec<(String, String)>,
) -> Result<(), RunError> {
    if unclear.is_empty() {
        return Ok(());
    }
    for (claim, why) in unclear {
        let line = format!("box {claim} was claimed but is not ticked: {why}");
        recorder.log_activity(&line)?;
        recorder.log_error(&line)?;
        record_rejected_claim(recorder, claim, why)?;
    }
    let open = pinned.task().open_boxes(&recorder.state().ticked);
    let open: Vec<&str> = open.iter().map(String::as_str).collect();
    let list = if open.is_empty() {
        "none".to_owned()
    } else {
        join_first(&open, "; ")
    };
    recorder.log_error(&format!(
        "claim checkboxes by their id; open checkboxes: {list}"
    ))
}

/// Records a claim that was not checked.
fn record_rejected_claim(
    recorder: &mut Recorder,
    claim: String,
    why: String,
) -> Result<(), RunError> {
    let iteration = recorder.state().iteration;
    recorder.append(IterationEvent::ClaimChecked {
        iteration,
        checkbox: claim,
        verified: false,
        why,
        checks: Vec::new(),
    })?;
    Ok(())
}

/// Runs the verify commands of a box, or the task's commands if it has none. Returns their results,
/// and why the box is not ticked.
async fn verify_box(
    run: &mut Run,
    id: &str,
) -> Result<(Vec<CheckResult>, Option<String>), RunError> {
    let task = run.pinned.task();
    let Some(checkbox) = task.checkbox(id) else {
        return Ok((Vec::new(), Some(format!("the task has no checkbox `{id}`"))));
    };
    let commands: Vec<String> = task
        .box_commands(checkbox)
        .into_iter()
        .map(str::to_owned)
        .collect();
    let mut checks = Vec::new();
    for command in &commands {
        checks.push(
            run_check(
                &mut run.recorder,
                &run.bench,
                &mut run.controls,
                &mut run.scratch,
                id,
                command,
            )
            .await?,
        );
    }
    match verdict::judge(&checks) {
        Verdict::Green => Ok((checks, None)),
        Verdict::Red { reasons } => Ok((checks, Some(reasons.join("; ")))),
    }
}

fn check_milestones(
    recorder: &mut Recorder,
    pinned: &PinnedTask,
    claims: &Claims,
) -> Result<(), RunError> {
    let complete = complete_milestones(recorder, pinned);
    for id in &claims.milestones_completed {
        let milestone = pinned.task().named_milestone(id);
        let why = match milestone.map(|milestone| &milestone.id) {
            Some(id) if complete.contains(id) => continue,
            Some(id) => format!("milestone `{id}` still has open boxes"),
            None => format!("the task has no milestone `{}`", display_claim(id)),
        };
        recorder.log_error(&why)?;
        record_rejected_claim(recorder, display_claim(id), why)?;
    }
    Ok(())
}

fn complete_milestones(recorder: &Recorder, pinned: &PinnedTask) -> BTreeSet<String> {
    let task = pinned.task();
    let ticked = &recorder.state().ticked;
    task.milestones
        .iter()
        .filter(|milestone| {
            let mut boxes = task.milestone_boxes(&milestone.id).peekable();
            boxes.peek().is_some() && boxes.all(|checkbox| ticked.contains(&checkbox.id))
        })
        .map(|milestone| milestone.id.clone())
        .collect()
}
