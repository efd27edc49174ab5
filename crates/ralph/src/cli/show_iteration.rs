//! `ralph show --iteration`: shows one iteration of a run.

use ralph_app::AppError;
use ralph_app::format;
use ralph_app::results::{IterationReport, IterationSection, TextLimit, iteration_report};
use ralph_core::state::RunState;
use ralph_engine::store::RunDir;

use super::context::Context;
use super::diff;
use super::exit::ExitCode;
use crate::terminal::sanitize;
use crate::terminal::styled_line::{StyledLine, Tone};

/// How much of each file the text output shows.
const TEXT_LIMIT: TextLimit = TextLimit {
    bytes: 32 << 10,
    lines: 200,
};
/// How much of each file the JSON contains.
const JSON_LIMIT: TextLimit = TextLimit {
    bytes: 1 << 20,
    lines: usize::MAX,
};

/// Prints the files of an iteration, each up to its limit.
pub(super) fn run(
    (dir, state): (&RunDir, &RunState),
    number: u32,
    is_json: bool,
    context: &Context,
) -> Result<ExitCode, AppError> {
    let output = context.output();
    if is_json {
        output.print_json(&iteration_report(dir, state, number, JSON_LIMIT)?)?;
        return Ok(ExitCode::Success);
    }
    let report = iteration_report(dir, state, number, TEXT_LIMIT)?;
    output.print_lines(&[headline(&report)])?;
    let sections = [
        ("prompt", &report.prompt),
        ("reply", &report.reply),
        ("actions", &report.actions),
        ("test output", &report.test_output),
    ];
    for (title, section) in sections {
        output.print_lines(&[StyledLine::new(), title_line(title, section)])?;
        let text = sanitize::text(&section.text);
        let newline = if text.is_empty() { "" } else { "\n" };
        output.print_text(&format!("{text}{newline}"))?;
        output.print_lines(&cut_line(section))?;
    }
    let section = &report.diff;
    output.print_lines(&[StyledLine::new(), title_line("diff", section)])?;
    output.print_text(&diff::coloured(
        section.text.as_bytes(),
        output.style().colour(),
    ))?;
    output.print_lines(&cut_line(section))?;
    output.print_lines(&transcript_lines(&report))?;
    Ok(ExitCode::Success)
}

fn headline(report: &IterationReport) -> StyledLine {
    let line = StyledLine::from_text("iteration ")
        .strong(&report.iteration.to_string())
        .plain(" of run ")
        .strong(report.run.as_str());
    let Some(metrics) = &report.metrics else {
        let state = if report.open {
            "in progress"
        } else {
            "without metrics"
        };
        return line.quiet(&format!(" · {state}"));
    };
    line.quiet(&format!(
        " · {} · {} · {} · +{} −{}",
        format::milliseconds(metrics.duration_ms),
        format::plural(metrics.usage.total(), "token", "tokens"),
        metrics.cost_usd,
        metrics.diff.added,
        metrics.diff.removed
    ))
}

fn title_line(title: &str, section: &IterationSection) -> StyledLine {
    let size = match section.bytes {
        0 => "empty".to_owned(),
        bytes => format::bytes(bytes),
    };
    StyledLine::from_text("── ")
        .strong(title)
        .quiet(&format!(" · {size}"))
}

/// Names the file with the output of the agent, if an agent worked.
fn transcript_lines(report: &IterationReport) -> Vec<StyledLine> {
    let Some(transcript) = &report.transcript else {
        return Vec::new();
    };
    let size = match transcript.bytes {
        0 => "empty".to_owned(),
        bytes => format::bytes(bytes),
    };
    let title = StyledLine::from_text("── ")
        .strong("transcript of the agent")
        .quiet(&format!(" · {size}"));
    let path = transcript.path.display().to_string();
    vec![
        StyledLine::new(),
        title,
        StyledLine::from_text(&sanitize::text(&path)),
    ]
}

/// Names the file with the whole text, if a part of it is missing.
fn cut_line(section: &IterationSection) -> Option<StyledLine> {
    section.cut.then(|| {
        let path = section.path.display();
        StyledLine::new().span(Tone::Warn, &format!("… cut; all of it is in {path}"))
    })
}
