//! `ralph adopt`: rebuilds a run whose directory is gone.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use ralph_app::AppError;
use ralph_app::runs::{
    AdoptedContract, AdoptionOptions, ApprovalMode, PendingAdoption, RunSummary, inspect_orphan,
    require_approval,
};
use ralph_core::task::TaskFile;

use super::context::Context;
use super::exit::ExitCode;
use super::image::ImageProgressOutput;
use super::questions::{self, TerminalQuestions};
use crate::terminal::lines::field_line;
use crate::terminal::lines::lifecycle::plan_lines;
use crate::terminal::styled_line::{StyledLine, Tone};

/// The most boxes and commands of a contract that are shown; the path names the whole file.
const MAX_SHOWN: usize = 20;

/// Arguments of `adopt`.
#[derive(Debug, Args)]
pub(super) struct AdoptArgs {
    /// The orphaned run: its id, a prefix of it, or its task's id
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub run: String,
    /// Accept the sandbox of a snapshot: with local, commands run as you
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub sandbox: Option<String>,
    /// Use this agent, if the run is rebuilt from its sandbox
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub agent: Option<String>,
    /// Use this model profile, if the run is rebuilt from its sandbox
    #[arg(long, conflicts_with = "model", value_parser = NonEmptyStringValueParser::new())]
    pub profile: Option<String>,
    /// Use this model, if the run is rebuilt from its sandbox
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    pub model: Option<String>,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Shows the origin and the contract, asks, and rebuilds the run.
pub(super) async fn run(args: AdoptArgs, context: &Context) -> Result<ExitCode, AppError> {
    let app = &context.app;
    let pending = Box::pin(inspect_orphan(&args.run, app)).await?;
    let output = context.output();
    if !args.json {
        output.print_lines(&pending_lines(&pending))?;
    }
    let id = pending.orphan.run.to_string();
    let options = AdoptionOptions {
        sandbox: args.sandbox,
        agent: args.agent,
        profile: args.profile,
        model: args.model,
    };
    let unapproved = Box::pin(pending.unapproved(&options, app)).await?;
    if !args.json {
        let tone = Tone::Warn;
        let lines = unapproved
            .iter()
            .map(|part| field_line("", "").wrapped(tone, part));
        output.print_lines(&lines.collect::<Vec<_>>())?;
    }
    require_confirmation(&id, &unapproved, args.yes)?;
    let request = pending.request(&options, app);
    let task = (pending.contract.file.as_path(), &pending.contract.task);
    let questions = (app, &TerminalQuestions as _);
    require_approval(&request, task, ApprovalMode::Require, questions).await?;
    let mode = context.view_mode(args.json, &app.settings()?);
    let mut progress = ImageProgressOutput::with_mode(mode);
    let mut show_progress = |step| progress.show(step);
    let adopted = Box::pin(pending.adopt(&options, app, &mut show_progress)).await;
    let dir = adopted.map_err(|error| progress.into_error(error))?;
    let state = dir.state()?;
    if args.json {
        output.print_json(&RunSummary::from_state(&dir, &state))?;
    } else {
        let line = StyledLine::from_text("adopted run ")
            .strong(&id)
            .plain(&format!("; `ralph resume {id}` continues it"));
        output.print_lines(&[line])?;
    }
    Ok(ExitCode::Success)
}

/// Asks the user, who has to answer if only the snapshot decides about a power of the run.
fn require_confirmation(
    id: &str,
    unapproved: &[String],
    is_confirmed: bool,
) -> Result<(), AppError> {
    let question = format!("ralph: rebuild run {id} from this copy?");
    let Some(first) = unapproved.first() else {
        if is_confirmed || questions::confirm(&question) {
            return Ok(());
        }
        return Err(AppError::usage(
            format!("run `{id}` is not adopted"),
            "it needs your confirmation",
            "answer y, or use `--yes`",
        ));
    };
    let question = format!(
        "{question} A new run here would not have: {}.",
        unapproved.join("; ")
    );
    if !is_confirmed && questions::confirm(&question) {
        return Ok(());
    }
    let more = match unapproved.len() - 1 {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    Err(AppError::usage(
        format!("run `{id}` is not adopted"),
        format!("only its snapshot decides this, which others can write: {first}{more}"),
        "answer y on a terminal without `--yes`, or decide it in your own ralph.toml or with `--sandbox`",
    ))
}

fn pending_lines(pending: &PendingAdoption) -> Vec<StyledLine> {
    let orphan = &pending.orphan;
    let mut lines = vec![field_line("run", orphan.run.as_str())];
    if let Some(sandbox) = &orphan.sandbox {
        let text = format!("{} `{}`", sandbox.provider, sandbox.id);
        lines.push(field_line("sandbox", &text));
    }
    if let Some(saved) = &orphan.saved {
        let text = format!("{} at commit {}", saved.reference, saved.commit.short());
        lines.push(field_line("snapshot", &text));
    }
    lines.extend(contract_lines(&pending.contract, pending.saved.is_some()));
    lines.extend(
        pending
            .saved
            .iter()
            .flat_map(|saved| plan_lines(&saved.plan)),
    );
    lines
}

/// Describes a contract that the agent could have changed.
fn contract_lines(contract: &AdoptedContract, is_saved: bool) -> Vec<StyledLine> {
    let AdoptedContract {
        file,
        task,
        is_known,
    } = contract;
    let mut lines = vec![field_line("contract", &file.display().to_string())];
    let origin = if *is_known {
        "it is the same as the task file here, apart from ticks"
    } else if is_saved {
        "it is not the task file here, and others can write a snapshot: read it before you confirm"
    } else {
        "it is not the task file here, and the agent could write it: read it before you confirm"
    };
    let tone = if *is_known { Tone::Plain } else { Tone::Warn };
    lines.push(field_line("", "").wrapped(tone, origin));
    let title = task.title.as_deref().unwrap_or_default();
    lines.push(field_line("title", title));
    lines.push(field_line("tests", &test_command(task)));
    let boxes = task.checkboxes.iter().take(MAX_SHOWN);
    lines.extend(boxes.map(|entry| field_line("", &format!("[ ] {} {}", entry.id, entry.text))));
    let commands = task.all_verify_commands();
    let shown = commands.iter().take(MAX_SHOWN);
    lines.extend(shown.map(|command| field_line("", &format!("verify: {command}"))));
    lines
}

fn test_command(task: &TaskFile) -> String {
    task.contract.test_command.clone().unwrap_or_default()
}
