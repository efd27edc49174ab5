//! `ralph allow`: lets the commands of a run reach a host, also while they run.

use ralph_core::net::Entry;
use ralph_core::run::Command;
use ralph_core::state::RunState;

use super::context::Context;
use super::errand::{self, Answer};
use super::error::CliError;
use super::exit::ExitCode;
use super::steer::refused;
use super::steer_args::AllowArgs;
use super::trust;
use crate::config::{ListError, Listed, Policy, list_host};
use crate::terminal::line::Line;

/// Allows the host for the run, and lists it for later ones if that is wanted. A run that has ended reaches
/// nothing any more: then the list is all there is to do.
pub(super) async fn run(args: AllowArgs, context: &Context) -> Result<ExitCode, CliError> {
    let host = Entry::parse(&args.host).map_err(|error| {
        CliError::usage(
            error.to_string(),
            "",
            "write a host as `example.com`, `*.example.com` or `example.com:8443`",
        )
    })?;
    let dir = context.find(&args.run)?;
    if args.project {
        let state = dir.state()?;
        if state.status.is_final() {
            return list_after(&state, &host, context);
        }
    }
    let command = Command::AllowHost {
        host: host.to_string(),
    };
    let answer = Box::pin(errand::give(&dir, command.clone(), context)).await?;
    let state = dir.state()?;
    let said = match answer {
        Answer::Done(done) if done.done => done.detail,
        Answer::Done(done) => return Err(refused(&state, &command, &done.detail)),
        Answer::Later => format!("commands can reach `{host}` when it goes on"),
    };
    context.output().lines(&[errand::line(&state, &said)])?;
    if args.project {
        let listed = list_host(context.environment().directory(), &host)?;
        trust::approve_host(&host, context)?;
        context.output().lines(&told(&listed, &host))?;
    }
    Ok(ExitCode::Success)
}

/// Lists the host for later runs, where the run itself has ended.
fn list_after(state: &RunState, host: &Entry, context: &Context) -> Result<ExitCode, CliError> {
    let listed = list_host(context.environment().directory(), host)?;
    trust::approve_host(host, context)?;
    let mut lines = told(&listed, host);
    lines.insert(
        0,
        errand::line(
            state,
            match listed.policy {
                Policy::Deny => "it has ended",
                Policy::Allowlist | Policy::AllowAll => {
                    "it has ended; later runs can reach the host"
                }
            },
        ),
    );
    context.output().lines(&lines)?;
    Ok(ExitCode::Success)
}

/// Says what became of the host in the project's file.
fn told(listed: &Listed, host: &Entry) -> Vec<Line> {
    let path = listed.path.display();
    let first = if listed.is_new {
        format!("`{path}` lists `{host}` now")
    } else {
        format!("`{path}` lists `{host}` already")
    };
    let mut lines = vec![Line::of(&first)];
    match listed.policy {
        Policy::Deny => lines.push(Line::of(
            "its policy is `deny`: set it to `allowlist` to have the list hold",
        )),
        Policy::Allowlist | Policy::AllowAll => {}
    }
    lines
}

impl From<ListError> for CliError {
    fn from(error: ListError) -> Self {
        match error {
            ListError::Config(error) => error.into(),
            ListError::Store(error) => error.into(),
        }
    }
}
