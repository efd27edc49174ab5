//! Continues a run with other budgets: one that failed because a budget was used up, or one that
//! waits.

use ralph_core::budget::{Budget, BudgetLimits};
use ralph_core::run::{self, Command, FailReason, RunStatus};
use ralph_core::state::RunState;

use super::attention::flag;
use super::resume::discarded_error;
use crate::app::App;
use crate::error::AppError;
use crate::steering::{self, SentCommandOutcome, SteerReport};

/// Puts the given budgets in force before the run is resumed. Returns the effect if a process works on
/// the run and continues it by itself.
pub async fn set_limits(
    query: &str,
    change: &BudgetLimits,
    app: &App,
) -> Result<Option<SteerReport>, AppError> {
    let dir = app.find_run(query)?;
    let state = dir.state()?;
    if state.discarded {
        return Err(discarded_error(&state));
    }
    if state.status.is_final() && !matches!(state.status, RunStatus::Failed(_)) {
        // Refused by the resume, with and without budgets.
        return Ok(None);
    }
    if !change.is_empty() {
        require_useful_limits(&state, change)?;
        let command = Command::Limits(change.clone());
        let sent = Box::pin(steering::send_command(&dir, command.clone(), app)).await?;
        if let SentCommandOutcome::Done(result) = &sent
            && !result.succeeded
        {
            let verb = command.verb();
            return Err(steering::command_failed(&state, verb, &result.detail));
        }
        if dir.is_held() && dir.state()?.status.is_active() {
            return Ok(Some(SteerReport {
                effect: command.effect(state.plan.agent.is_some()),
                run: state.plan.run,
            }));
        }
    } else if let Some(budget) = budget_to_raise(&state) {
        return Err(AppError::usage(
            format!("cannot continue run `{}`", state.plan.run),
            format!("the budget `{}` is used up", budget.key()),
            format!("raise it: `{} …`", flag(budget)),
        ));
    }
    Ok(None)
}

/// Returns the budget that a run failed on, unless the user has raised it since.
fn budget_to_raise(state: &RunState) -> Option<Budget> {
    match &state.status {
        RunStatus::Failed(FailReason::Budget { budget }) if !state.may_continue => Some(*budget),
        RunStatus::Failed(_)
        | RunStatus::Created
        | RunStatus::Preparing
        | RunStatus::Running
        | RunStatus::Paused(_)
        | RunStatus::WaitingQuota(_)
        | RunStatus::WaitingProvider(_)
        | RunStatus::WaitingCi(_)
        | RunStatus::WaitingHost(_)
        | RunStatus::Verifying
        | RunStatus::Succeeded
        | RunStatus::Stopped
        | RunStatus::SandboxLost => None,
    }
}

/// Rejects budgets that would be used up at once.
pub fn require_useful_limits(state: &RunState, change: &BudgetLimits) -> Result<(), AppError> {
    // A status that forbids the command is reported by the command itself.
    if run::legal(&state.status, state.mode, &Command::Limits(change.clone())).is_err() {
        return Ok(());
    }
    let Some(why) = state.limits_rejection_reason(change) else {
        return Ok(());
    };
    let fix = match budget_to_raise(state) {
        Some(budget) => format!("give a higher limit with `{} …`", flag(budget)),
        None => "give a higher limit".to_owned(),
    };
    Err(AppError::usage(
        format!("cannot continue run `{}`", state.plan.run),
        why,
        fix,
    ))
}
