//! Whoever does the work instead of a model that ralph asks: there is one, and it can log in.

use ralph_providers::agent::Preset;

use super::ground::{Ground, Worker};
use crate::cli::checks::Outcome;
use crate::cli::error::CliError;
use crate::cli::planning::Source;
use crate::cli::{agent, agent_script};
use crate::tokens::place::find_program;
use crate::tokens::{Found, date};

/// The agent is one that there is.
pub(super) async fn preset(ground: &Ground<'_>) -> Option<Outcome> {
    match &ground.worker {
        Worker::Model => None,
        Worker::Unknown => Some(Outcome::NotRun(
            "the task file cannot be used, and may choose one".into(),
        )),
        Worker::Contradiction(error) | Worker::Agent(Err(error)) => Some(error.clone().into()),
        Worker::Agent(Ok(preset)) => Some(match agent::refuse_profile(&ground.args) {
            Ok(()) => startable(preset, ground).await,
            Err(error) => error.into(),
        }),
    }
}

/// Looks for the program of an agent that works on this machine, where an image has its own, and for a
/// script of the repository.
async fn startable(preset: &Preset, ground: &Ground<'_>) -> Outcome {
    let program = preset.command.first().map_or("", String::as_str);
    let search_path = ground.context.search_path();
    let is_local = ground.sandbox.as_deref() == Ok("local");
    if is_local && !program.contains('/') && find_program(search_path, program).is_none() {
        return Outcome::failed(
            format!(
                "there is no `{program}` on PATH, which the agent `{}` is started as",
                preset.name
            ),
            "install it, or let it work in a container with `--sandbox docker`",
        );
    }
    if let Err(error) = script(preset, ground).await {
        return error.into();
    }
    Outcome::Passed(format!("{}, which is started as `{program}`", preset.name))
}

/// Looks for the agent's script; why there is no repository to have it is told by another check.
async fn script(preset: &Preset, ground: &Ground<'_>) -> Result<(), CliError> {
    let (Some(file), Some(task)) = (&ground.task, ground.usable_task()) else {
        return Ok(());
    };
    let git = ground.context.git_to_look();
    let found = Source::find(&ground.args, task, &file.path, &git, ground.context).await;
    match found {
        Ok(source) => agent_script::require(preset, &source, &git).await,
        Err(_) => Ok(()),
    }
}

/// The agent can log in, for a while yet. Its provider is not asked.
pub(super) async fn credential(ground: &Ground<'_>) -> Option<Outcome> {
    let preset = match &ground.worker {
        Worker::Model | Worker::Unknown => return None,
        Worker::Contradiction(_) | Worker::Agent(Err(_)) => {
            return Some(Outcome::NotRun("nobody knows which agent needs it".into()));
        }
        Worker::Agent(Ok(preset)) => preset,
    };
    Some(match found(preset, ground).await {
        Ok(told) => Outcome::Passed(told),
        Err(error) => error.into(),
    })
}

async fn found(preset: &Preset, ground: &Ground<'_>) -> Result<String, CliError> {
    let tokens = ground.context.tokens_to_look()?;
    let Some(chosen) = agent::find(preset, None, &tokens).await? else {
        return Ok(format!("`{}` needs none", preset.name));
    };
    let told = place_and_end(&chosen.found, tokens.now());
    agent::login(chosen)?;
    Ok(told)
}

/// Says where a credential goes if a person named that, where it was found and how long it holds, and nothing
/// of itself.
pub(in crate::cli) fn place_and_end(found: &Found, now: jiff::Timestamp) -> String {
    let Found { token, mode, place } = found;
    let address = token.base_url.as_ref();
    let mode = address.map_or_else(
        || mode.to_string(),
        |address| format!("{mode} to {address}"),
    );
    match (token.expires, token.days_left(now)) {
        (Some(expires), Some(days)) => {
            let date = date(expires);
            format!("{mode}, found in {place}, expires {date}, {days} days remaining")
        }
        (_, _) => format!("{mode}, found in {place}, no expiry known"),
    }
}
