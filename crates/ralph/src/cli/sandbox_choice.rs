//! Which sandbox provider a run has.

use ralph_core::task::{Contract, TaskFile};
use ralph_core::trust;

use super::args::RunArgs;
use super::container;
use super::context::Context;
use super::error::CliError;
use crate::config::user_provider;

/// Returns the provider of a run, which must be one that there is.
pub(super) fn require_known_provider(
    args: &RunArgs,
    task: &TaskFile,
    context: &Context,
) -> Result<String, CliError> {
    let name = provider_name(args, Some(task), context)?;
    container::require_known(&name)?;
    Ok(name)
}

/// Flag, task, environment, file: the first that names a sandbox provider wins. A task or a `.env`
/// cannot choose one that isolates less than the provider that the user chose.
pub(super) fn provider_name(
    args: &RunArgs,
    task: Option<&TaskFile>,
    context: &Context,
) -> Result<String, CliError> {
    if let Some(name) = args.sandbox.clone() {
        return Ok(name);
    }
    let environment = context.environment();
    let of_task = task.and_then(|task| task.contract.sandbox_provider);
    let asked = of_task
        .map(|kind| kind.name().to_owned())
        .or_else(|| environment.default_provider().map(str::to_owned));
    let asked = match asked {
        Some(asked) => asked,
        None => context.settings()?.sandbox_provider().to_owned(),
    };
    Ok(match user_choice(context)? {
        Some(chosen) if trust::is_weaker_sandbox(&asked, &chosen) => chosen,
        Some(_) | None => asked,
    })
}

/// Returns the sandbox provider that the user chose in the environment or in the own `ralph.toml`.
fn user_choice(context: &Context) -> Result<Option<String>, CliError> {
    match context.environment().user_provider() {
        Some(name) => Ok(Some(name.to_owned())),
        None => Ok(user_provider(&context.layers())?),
    }
}

/// Says that a task asks for a sandbox that isolates less than the one that is used.
pub(super) fn weaker_sandbox_notice(
    args: &RunArgs,
    contract: &Contract,
    sandbox: &str,
) -> Option<String> {
    let asked = contract.sandbox_provider?.name();
    let is_kept = args.sandbox.is_none() && trust::is_weaker_sandbox(asked, sandbox);
    is_kept.then(|| {
        format!(
            "the task asks for the sandbox `{asked}`; you chose `{sandbox}`, which isolates more and is used; \
             `--sandbox {asked}` wins over it"
        )
    })
}
