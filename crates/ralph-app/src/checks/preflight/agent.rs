//! Checks that the coding agent of the run exists and can log in.

use ralph_core::task::AgentChoice;
use ralph_providers::agent::Preset;

use super::preflight_context::{PreflightContext, PreflightWorker};
use crate::agent;
use crate::checks::CheckOutcome;
use crate::error::AppError;
use crate::planning::{SourceRepository, agent_script, fallback_agent, worker};
use crate::tokens::stores::find_program;
use crate::tokens::{FoundToken, format_date};

/// Checks that the agent exists.
pub(super) async fn check_agent(context: &PreflightContext<'_>) -> Option<CheckOutcome> {
    match &context.worker {
        PreflightWorker::Model => None,
        PreflightWorker::Unknown => Some(CheckOutcome::NotRun(
            "the task file may choose an agent, but cannot be used".into(),
        )),
        PreflightWorker::Contradiction(error) | PreflightWorker::Agent(Err(error)) => {
            Some(error.clone().into())
        }
        PreflightWorker::Agent(Ok(preset)) => {
            Some(match worker::refuse_profile(&context.request) {
                Ok(()) => check_startable(preset, context).await,
                Err(error) => error.into(),
            })
        }
    }
}

/// Checks for the agent's program if the agent works on this machine (an image contains its own),
/// and for a script of the repository.
async fn check_startable(preset: &Preset, context: &PreflightContext<'_>) -> CheckOutcome {
    let program = preset.command.first().map_or("", String::as_str);
    let search_path = context.app.search_path();
    let is_local = context.sandbox.as_deref() == Ok("local");
    if is_local && !program.contains('/') && find_program(search_path, program).is_none() {
        return CheckOutcome::failed(
            format!(
                "`{program}`, the program of agent `{}`, is not on PATH",
                preset.name
            ),
            "install it, or run the agent in a container with `--sandbox docker`",
        );
    }
    if let Err(error) = check_script(preset, context).await {
        return error.into();
    }
    CheckOutcome::Passed(format!("{}, started as `{program}`", preset.name))
}

/// Checks for the agent's script. Another check reports a missing repository.
async fn check_script(preset: &Preset, context: &PreflightContext<'_>) -> Result<(), AppError> {
    let (Some(file), Some(task)) = (&context.task, context.usable_task()) else {
        return Ok(());
    };
    let git = context.app.git_read_only();
    let found = SourceRepository::find(&context.request, task, &file.path, &git, context.app).await;
    match found {
        Ok(source) => agent_script::require_committed_script(preset, &source, &git).await,
        Err(_) => Ok(()),
    }
}

/// Checks that the agent has a credential that stays valid for some time. Does not ask the
/// provider.
pub(super) async fn check_credential(context: &PreflightContext<'_>) -> Option<CheckOutcome> {
    let preset = match &context.worker {
        PreflightWorker::Model | PreflightWorker::Unknown => return None,
        PreflightWorker::Contradiction(_) | PreflightWorker::Agent(Err(_)) => {
            return Some(CheckOutcome::NotRun("no agent is chosen".into()));
        }
        PreflightWorker::Agent(Ok(preset)) => preset,
    };
    Some(match describe_found_credential(preset, context).await {
        Ok(description) => CheckOutcome::Passed(description),
        Err(error) => error.into(),
    })
}

/// Checks that the agent that replaces the run's agent exists and has a credential.
pub(super) async fn check_fallback(context: &PreflightContext<'_>) -> Option<CheckOutcome> {
    let agent = context.worker.preset()?;
    let contract = context.usable_task().map(|task| &task.contract);
    let choice = match worker::fallback_choice(&context.request, contract, context.app) {
        Ok(choice) => choice?,
        // The check of the settings reports it.
        Err(_) => return None,
    };
    Some(match describe_fallback(agent, &choice, context).await {
        Ok(outcome) => outcome,
        Err(error) => error.into(),
    })
}

/// Returns the outcome of the first check that a fallback agent does not pass, or describes it.
async fn describe_fallback(
    agent: &Preset,
    choice: &AgentChoice,
    context: &PreflightContext<'_>,
) -> Result<CheckOutcome, AppError> {
    let preset = worker::find_preset(&choice.name, context.app)?;
    agent::require_model(&preset, choice.model.as_deref())?;
    if let Some(Ok(container)) = &context.container {
        fallback_agent::require_image_for(agent, &preset, &container.image)?;
    }
    let startable = check_startable(&preset, context).await;
    if !matches!(startable, CheckOutcome::Passed(_)) {
        return Ok(startable);
    }
    let credential = describe_found_credential(&preset, context).await?;
    Ok(CheckOutcome::Passed(format!(
        "{choice}; credential: {credential}"
    )))
}

/// Finds the agent's credential and describes it.
async fn describe_found_credential(
    preset: &Preset,
    context: &PreflightContext<'_>,
) -> Result<String, AppError> {
    let tokens = context.app.tokens_read_only()?;
    let Some(chosen) = agent::find_credential(preset, None, &tokens).await? else {
        return Ok(format!("`{}` needs none", preset.name));
    };
    let description = describe_credential(&chosen.found, tokens.now());
    agent::login_from_credential(chosen)?;
    Ok(description)
}

/// Describes a credential without revealing it: its kind, its configured destination, its store and
/// its expiry.
pub(in crate::checks) fn describe_credential(found: &FoundToken, now: jiff::Timestamp) -> String {
    let FoundToken {
        token, mode, store, ..
    } = found;
    let address = token.base_url.as_ref();
    let mode = address.map_or_else(
        || mode.to_string(),
        |address| format!("{mode} to {address}"),
    );
    match (token.expires, token.days_left(now)) {
        (Some(expires), Some(days)) => {
            let date = format_date(expires);
            format!("{mode}, found in {store}, expires {date}, {days} days remaining")
        }
        (_, _) => format!("{mode}, found in {store}, no expiry known"),
    }
}
