//! `ralph allow`: lets the commands of a run reach a host, including those that are running.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use ralph_app::AppError;
use ralph_app::config::{AllowedHost, NetworkPolicySetting, allow_host_in_project};
use ralph_app::steering::{SentCommandOutcome, refused_error, send_command};
use ralph_app::trust::approve_host;
use ralph_core::net::AllowlistEntry;
use ralph_core::run::Command;
use ralph_core::state::RunState;

use super::context::Context;
use super::exit::ExitCode;
use super::run_arg::LeadingRunArg;
use super::steer::run_line;
use crate::terminal::styled_line::StyledLine;

/// Arguments of `allow`.
#[derive(Debug, Args)]
pub(super) struct AllowArgs {
    #[command(flatten)]
    pub run: LeadingRunArg,
    /// The host: a name, *.name for all its subdomains, or name:port
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub host: Option<String>,
    /// Also add it to the project's ralph.toml, for later runs
    #[arg(long)]
    pub project: bool,
}

/// Allows the host for the run and, with `--project`, for later runs. For a run that has ended, only
/// the latter is possible.
pub(super) async fn run(args: AllowArgs, context: &Context) -> Result<ExitCode, AppError> {
    let (run, host) = args.run.with_value(args.host, ("allow", "HOST"))?;
    let host = AllowlistEntry::parse(&host).map_err(|error| {
        AppError::usage(
            error.to_string(),
            "",
            "write a host as `example.com`, `*.example.com` or `example.com:8443`",
        )
    })?;
    let dir = context.app.find_run(&run.run)?;
    if args.project {
        let state = dir.state()?;
        if state.status.is_final() {
            return allow_for_later_runs(&state, &host, context);
        }
    }
    let command = Command::AllowHost {
        host: host.to_string(),
    };
    let outcome = Box::pin(send_command(&dir, command.clone(), &context.app)).await?;
    let state = dir.state()?;
    let effect = match outcome {
        SentCommandOutcome::Done(done) if done.succeeded => done.detail,
        SentCommandOutcome::Done(done) => {
            return Err(refused_error(&state, &command, &done.detail));
        }
        SentCommandOutcome::Deferred => {
            format!("commands can reach `{host}` once it resumes")
        }
    };
    context.output().print_lines(&[run_line(&state, &effect)])?;
    if args.project {
        let listed = allow_host_in_project(context.app.environment().working_dir(), &host)?;
        approve_host(&host, &context.app)?;
        context
            .output()
            .print_lines(&listing_lines(&listed, &host))?;
    }
    Ok(ExitCode::Success)
}

/// Adds the host to the project's file only, because the run has ended.
fn allow_for_later_runs(
    state: &RunState,
    host: &AllowlistEntry,
    context: &Context,
) -> Result<ExitCode, AppError> {
    let listed = allow_host_in_project(context.app.environment().working_dir(), host)?;
    approve_host(host, &context.app)?;
    let mut lines = listing_lines(&listed, host);
    lines.insert(
        0,
        run_line(
            state,
            match listed.policy {
                NetworkPolicySetting::Deny => "it has ended",
                NetworkPolicySetting::Allowlist | NetworkPolicySetting::AllowAll => {
                    "it has ended; later runs can reach the host"
                }
            },
        ),
    );
    context.output().print_lines(&lines)?;
    Ok(ExitCode::Success)
}

/// Describes the change in the project's file.
fn listing_lines(listed: &AllowedHost, host: &AllowlistEntry) -> Vec<StyledLine> {
    let path = listed.path.display();
    let first = if listed.is_changed {
        format!("`{path}` now lists `{host}`")
    } else {
        format!("`{path}` already lists `{host}`")
    };
    let mut lines = vec![StyledLine::from_text(&first)];
    match listed.policy {
        NetworkPolicySetting::Deny => lines.push(StyledLine::from_text(
            "its policy is `deny`, which ignores the list: set it to `allowlist`",
        )),
        NetworkPolicySetting::Allowlist | NetworkPolicySetting::AllowAll => {}
    }
    lines
}
