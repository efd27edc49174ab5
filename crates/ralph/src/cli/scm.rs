//! `ralph scm`: checks a repository on its source host.

use clap::{Args, Subcommand};
use ralph_app::AppError;
use ralph_app::scm::{GitHubReport, LocalReport, PermissionCheck, ScmReport, check_repository};
use ralph_core::repo_address::RepoAddress;

use super::context::Context;
use super::exit::ExitCode;
use crate::terminal::styled_line::{StyledLine, Tone};
use crate::terminal::width;

/// Arguments of `scm`.
#[derive(Debug, Args)]
pub(super) struct ScmArgs {
    #[command(subcommand)]
    pub command: ScmCommand,
}

impl ScmArgs {
    /// Returns whether the output is JSON.
    pub(super) fn is_json(&self) -> bool {
        match &self.command {
            ScmCommand::Check(args) => args.json,
        }
    }
}

/// The subcommands of `scm`.
#[derive(Debug, Subcommand)]
pub(super) enum ScmCommand {
    /// Check that ralph can work with a repository: credential, permissions, state, rate limit
    #[command(
        after_help = "Examples:\n  ralph scm check\n  ralph scm check octocat/hello-world\n  ralph scm check https://github.example.com/team/app --json\n\nExit codes: 0 usable, 1 not usable, 2 invalid arguments or settings"
    )]
    Check(ScmCheckArgs),
}

/// Arguments of `scm check`.
#[derive(Debug, Args)]
pub(super) struct ScmCheckArgs {
    /// An https or ssh address, OWNER/NAME on github.com, or a path [default: the working directory]
    #[arg(value_name = "REPO", value_parser = RepoAddress::parse)]
    pub repo: Option<RepoAddress>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Runs the requested command.
pub(super) async fn run(args: ScmArgs, context: &Context) -> Result<ExitCode, AppError> {
    let ScmCommand::Check(args) = args.command;
    let report = check_repository(args.repo.as_ref(), &context.app).await?;
    let output = context.output();
    if args.json {
        output.print_json(&report.check_report(&context.app.redactor()))?;
    } else {
        output.print_lines(&match &report {
            ScmReport::GitHub(report) => github_lines(report),
            ScmReport::Local(report) => local_lines(report),
        })?;
    }
    if let ScmReport::GitHub(report) = &report {
        for problem in &report.problems {
            let problem = problem.clone().redacted(&context.app.redactor());
            let line = StyledLine::from_text("ralph: ").plain(&problem.to_string());
            output.print_stderr_lines([&line]);
        }
    }
    Ok(if report.is_usable() {
        ExitCode::Success
    } else {
        ExitCode::Runtime
    })
}

fn local_lines(report: &LocalReport) -> Vec<StyledLine> {
    vec![
        line("host", "local"),
        line("repository", &report.path),
        line(
            "offers",
            "branches in this repository, and pull requests as records: see `ralph pr`, `ralph merge` and `ralph discard`",
        ),
        line(
            "not there",
            "issues, CI and reviews; for these, add a remote `origin` on GitHub",
        ),
    ]
}

fn github_lines(report: &GitHubReport) -> Vec<StyledLine> {
    let mut lines = vec![line("host", &format!("{} ({})", report.host, report.api))];
    let renamed = match &report.renamed_from {
        Some(old) => format!(" (renamed from {old})"),
        None => String::new(),
    };
    let visibility = if report.is_private {
        "private"
    } else {
        "public"
    };
    let archived = if report.is_archived { ", archived" } else { "" };
    let repository = format!("{}{renamed}, {visibility}{archived}", report.repository);
    lines.push(line("repository", &repository));
    let protection = match report.is_default_branch_protected {
        Some(true) => ", protected",
        Some(false) => ", not protected",
        None => ", without commits or not readable",
    };
    let branch = format!("{}{protection}", report.default_branch);
    lines.push(line("default branch", &branch));
    let expiry = match &report.credential_expiry {
        Some(expiry) => format!(", expires {expiry}"),
        None => String::new(),
    };
    let credential = format!(
        "{} from {}{expiry}",
        report.credential_kind, report.credential_source
    );
    lines.push(line("credential", &credential));
    lines.push(line("acts as", &report.acts_as));
    lines.extend(report.permissions.iter().map(permission_line));
    let limit = match report.rate_limit {
        Some(limit) => format!(
            "{} of {} requests left until {}",
            limit.remaining, limit.limit, limit.reset
        ),
        None => "none".to_owned(),
    };
    lines.push(line("rate limit", &limit));
    lines.extend(report.notes.iter().map(|note| line("note", note)));
    lines
}

fn permission_line(check: &PermissionCheck) -> StyledLine {
    let (needs, granted) = (check.needs.as_str(), check.granted.as_str());
    let (tone, word) = if check.is_missing() && check.is_optional {
        (Tone::Warn, "missing")
    } else if check.is_missing() {
        (Tone::Bad, "MISSING")
    } else if check.is_unknown() {
        (Tone::Warn, "unknown")
    } else {
        (Tone::Good, "ok")
    };
    field(check.name)
        .span(tone, word)
        .plain(&format!(": needs {needs}, has {granted}"))
}

fn line(name: &str, value: &str) -> StyledLine {
    field(name).wrapped(Tone::Plain, value)
}

fn field(name: &str) -> StyledLine {
    StyledLine::new().quiet(&width::pad(&format!("  {name}"), 18))
}
