//! `ralph diagnose`: asks the doctor why a run is stuck, shows its report and applies it.

use clap::Args;
use ralph_app::AppError;
use ralph_app::steering::{SentCommandOutcome, command_failed, send_command};
use ralph_core::doctor::DoctorReport;
use ralph_core::run::Command;
use ralph_core::state::RunState;

use super::context::Context;
use super::exit::ExitCode;
use super::run_arg::RunArg;
use super::steer::run_line;
use crate::terminal::lines::field_line;
use crate::terminal::styled_line::{StyledLine, Tone};

/// Arguments of `diagnose`.
#[derive(Debug, Args)]
pub(super) struct DiagnoseArgs {
    #[command(flatten)]
    pub run: RunArg,
    /// Apply the last report; ask first if there is none
    #[arg(long)]
    pub apply: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Shows the doctor's report and, with `--apply`, applies it. Asks the doctor first, unless there is
/// an unapplied report for `--apply`.
pub(super) async fn run(args: DiagnoseArgs, context: &Context) -> Result<ExitCode, AppError> {
    let dir = context.app.find_run(&args.run.run)?;
    let mut state = dir.state()?;
    let output = context.output();
    if !args.apply || state.doctor.report.is_none() {
        let outcome = Box::pin(send_command(&dir, Command::Diagnose, &context.app)).await?;
        state = dir.state()?;
        match outcome {
            SentCommandOutcome::Done(done) if done.succeeded => {}
            SentCommandOutcome::Done(done) => {
                return Err(command_failed(&state, "diagnose", &done.detail));
            }
            SentCommandOutcome::Deferred => {
                let effect = Command::Diagnose.effect(state.plan.agent.is_some());
                output.print_lines(&[run_line(&state, &effect)])?;
                return Ok(ExitCode::Success);
            }
        }
    }
    if let Some((number, report)) = state.doctor.report.clone() {
        if args.json {
            output.print_json(&report)?;
        } else {
            output.print_lines(&report_lines(&state, number, &report))?;
        }
    }
    if args.apply {
        return Box::pin(apply_report(&args, context)).await;
    }
    Ok(ExitCode::Success)
}

async fn apply_report(args: &DiagnoseArgs, context: &Context) -> Result<ExitCode, AppError> {
    let dir = context.app.find_run(&args.run.run)?;
    if dir.state()?.doctor.report.is_none() {
        // The task's policy has already applied the report.
        return Ok(ExitCode::Success);
    }
    let outcome = Box::pin(send_command(&dir, Command::Apply, &context.app)).await?;
    let state = dir.state()?;
    let effect = match outcome {
        SentCommandOutcome::Done(done) if done.succeeded => format!("applied {}", done.detail),
        SentCommandOutcome::Done(done) => {
            return Err(command_failed(&state, "apply the report to", &done.detail));
        }
        SentCommandOutcome::Deferred => Command::Apply.effect(state.plan.agent.is_some()),
    };
    if !args.json {
        context.output().print_lines(&[run_line(&state, &effect)])?;
    }
    Ok(ExitCode::Success)
}

fn report_lines(state: &RunState, number: u32, report: &DoctorReport) -> Vec<StyledLine> {
    let mut lines = vec![
        StyledLine::new()
            .strong(&format!("report {number}"))
            .quiet(&format!(" of run {}", state.plan.run)),
        StyledLine::from_text("  ").wrapped(Tone::Plain, &report.summary),
    ];
    let entries = |name: &str, texts: &[String]| -> Vec<StyledLine> {
        texts.iter().map(|text| field_line(name, text)).collect()
    };
    lines.extend(entries("pattern", &report.patterns));
    lines.extend(entries("cause", &report.root_causes));
    for guardrail in &report.guardrails {
        let text = format!(
            "guardrail {}: {}: {}",
            guardrail.name, guardrail.trigger, guardrail.instruction
        );
        lines.push(field_line("add", &text));
    }
    for edit in &report.spec_edits {
        lines.push(field_line(
            "edit",
            &format!("{} {}", edit.replace, edit.why),
        ));
    }
    if let Some(profile) = &report.model_profile {
        lines.push(field_line("profile", profile));
    }
    let next = format!("`ralph diagnose {} --apply` applies it", state.plan.run);
    lines.push(StyledLine::from_text("  ").wrapped(Tone::Accent, &next));
    lines
}
