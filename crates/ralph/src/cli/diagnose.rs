//! `ralph diagnose`: asks the doctor why a run is stuck, shows its report, applies it.

use ralph_core::doctor::Report;
use ralph_core::run::Command;
use ralph_core::state::RunState;

use super::args::DiagnoseArgs;
use super::context::Context;
use super::errand::{Answer, failed, give, line};
use super::error::CliError;
use super::exit::ExitCode;
use crate::terminal::line::{Line, Tone};
use crate::terminal::lines::field;

/// Asks, shows, and applies if that is wanted.
pub(super) async fn run(args: DiagnoseArgs, context: &Context) -> Result<ExitCode, CliError> {
    let dir = context.find(&args.run)?;
    let mut state = dir.state()?;
    let output = context.output();
    if !args.apply || state.doctor.report.is_none() {
        let answer = Box::pin(give(&dir, Command::Diagnose, context)).await?;
        state = dir.state()?;
        match answer {
            Answer::Done(done) if done.done => {}
            Answer::Done(done) => return Err(failed(&state, "diagnose", &done.detail)),
            Answer::Later => {
                let said = "diagnose accepted; the doctor is asked before the next iteration";
                output.lines(&[line(&state, said)])?;
                return Ok(ExitCode::Success);
            }
        }
    }
    if let Some((number, report)) = state.doctor.report.clone() {
        if args.json {
            output.json(&report)?;
        } else {
            output.lines(&block(&state, number, &report))?;
        }
    }
    if args.apply {
        return Box::pin(apply(&args, context)).await;
    }
    Ok(ExitCode::Success)
}

async fn apply(args: &DiagnoseArgs, context: &Context) -> Result<ExitCode, CliError> {
    let dir = context.find(&args.run)?;
    if dir.state()?.doctor.report.is_none() {
        // The task's own policy was faster.
        return Ok(ExitCode::Success);
    }
    let answer = Box::pin(give(&dir, Command::Apply, context)).await?;
    let state = dir.state()?;
    let said = match answer {
        Answer::Done(done) if done.done => format!("applied {}", done.detail),
        Answer::Done(done) => return Err(failed(&state, "apply the report to", &done.detail)),
        Answer::Later => "apply accepted; it is done before the next iteration".to_owned(),
    };
    if !args.json {
        context.output().lines(&[line(&state, &said)])?;
    }
    Ok(ExitCode::Success)
}

fn block(state: &RunState, number: u32, report: &Report) -> Vec<Line> {
    let mut lines = vec![
        Line::new()
            .strong(&format!("report {number}"))
            .quiet(&format!(" of run {}", state.plan.run)),
        Line::of("  ").folded(Tone::Plain, &report.summary),
    ];
    let entries = |name: &str, texts: &[String]| -> Vec<Line> {
        texts.iter().map(|text| field(name, text)).collect()
    };
    lines.extend(entries("pattern", &report.patterns));
    lines.extend(entries("cause", &report.root_causes));
    for sign in &report.guardrails {
        let text = format!("{}: {}: {}", sign.name, sign.trigger, sign.instruction);
        lines.push(field("sign", &text));
    }
    for edit in &report.spec_edits {
        lines.push(field("edit", &format!("{} {}", edit.replace, edit.why)));
    }
    if let Some(profile) = &report.model_profile {
        lines.push(field("profile", profile));
    }
    let next = format!("`ralph diagnose {} --apply` applies it", state.plan.run);
    lines.push(Line::of("  ").folded(Tone::Accent, &next));
    lines
}
