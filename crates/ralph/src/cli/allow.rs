//! `ralph allow`: lets the commands of a run reach a host, including those that are running.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use ralph_app::AppError;
use ralph_app::config::{AllowedHost, NetworkPolicySetting};
use ralph_app::steering::{AllowScope, allow_for_project, allow_for_run, parse_host};
use ralph_core::net::AllowlistEntry;

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
    let host = parse_host(&host)?;
    let dir = context.app.find_run(&run.run)?;
    let scope = if args.project {
        AllowScope::Project
    } else {
        AllowScope::Run
    };
    let output = context.output();
    let effect = allow_for_run(&dir, &host, scope, &context.app).await?;
    if let Some(effect) = &effect {
        // A problem with the project's file does not change the effect on the run.
        output.print_lines(&[run_line(&dir.state()?, effect)])?;
    }
    if args.project {
        let listed = allow_for_project(&host, &context.app)?;
        let mut lines = listing_lines(&listed, &host);
        if effect.is_none() {
            let later = effect_on_later_runs(listed.policy);
            lines.insert(0, run_line(&dir.state()?, later));
        }
        output.print_lines(&lines)?;
    }
    Ok(ExitCode::Success)
}

/// Describes the effect of an allowed host whose run has ended.
fn effect_on_later_runs(policy: NetworkPolicySetting) -> &'static str {
    match policy {
        NetworkPolicySetting::Allowlist | NetworkPolicySetting::AllowAll => {
            "it has ended; later runs can reach the host"
        }
        NetworkPolicySetting::Deny => "it has ended",
    }
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
