//! Lines about a circling run, the mitigations and the doctor.

use ralph_app::format;
use ralph_core::doctor::DoctorReport;
use ralph_core::event::DoctorEvent;
use ralph_core::mitigation::{MitigationStep, SkippedRung};

use super::Style;
use super::iteration::intent_lines;
use super::pieces::{reason_lines, short_quiet_line, warning_line};
use crate::terminal::styled_line::{StyledLine, Tone};

pub(super) fn gutter_lines(
    score: f64,
    consecutive: u32,
    evidence: &[String],
    mitigation: &MitigationStep,
    skipped: &[SkippedRung],
) -> Vec<StyledLine> {
    let times = match consecutive {
        0 | 1 => String::new(),
        times => format!(", {times} times in a row"),
    };
    let mut lines = vec![warning_line(&format!(
        "going in circles (loop score {score:.1}{times}): {mitigation}"
    ))];
    lines.extend(reason_lines(evidence.iter().map(String::as_str)));
    lines.extend(skipped.iter().map(skipped_line));
    lines
}

pub(super) fn doctor_lines(event: &DoctorEvent, style: Style) -> Vec<StyledLine> {
    match event {
        DoctorEvent::DoctorAsked { prompt_bytes, .. } => {
            let size = format::bytes(*prompt_bytes as u64);
            intent_lines(&format!("asking the doctor ({size})"), style)
        }
        DoctorEvent::DoctorReplied {
            usage,
            cost_usd,
            duration_ms,
            ..
        } => {
            let input = format::count(usage.input_tokens);
            let output = format::count(usage.output_tokens);
            let text = format!("the doctor answered: {input} tokens in, {output} out, {cost_usd}");
            vec![short_quiet_line(&text).right_aligned(&format::milliseconds(*duration_ms))]
        }
        DoctorEvent::DoctorAbandoned { cost_usd, .. } => vec![warning_line(&format!(
            "a reply of the doctor was incomplete; {cost_usd} is charged for it"
        ))],
        DoctorEvent::DoctorFailed { why, .. } => {
            vec![warning_line(&format!("the doctor could not help: {why}"))]
        }
        DoctorEvent::DoctorReported { number, report, .. } => report_lines(*number, report),
        DoctorEvent::DiagnosisApplied {
            number,
            signs,
            edits,
            profile,
            refused,
            ..
        } => {
            let profile = profile.as_ref();
            let profile = profile.map_or_else(String::new, |name| format!(", profile `{name}`"));
            let guardrails = format::plural(*signs as u64, "guardrail", "guardrails");
            let edits = format::plural(*edits as u64, "edit", "edits");
            let text = format!("report {number} applied: {guardrails}, {edits}{profile}");
            let mut lines = vec![StyledLine::from_text("  » ").wrapped(Tone::Plain, &text)];
            lines.extend(reason_lines(refused.iter().map(String::as_str)));
            lines
        }
    }
}

fn report_lines(number: u32, report: &DoctorReport) -> Vec<StyledLine> {
    let headline = format!("report {number} of the doctor: {}", report.summary);
    let mut lines = vec![StyledLine::from_text("  » ").wrapped(Tone::Strong, &headline)];
    let guardrails = report.guardrails.iter();
    let guardrails: Vec<String> = guardrails
        .map(|guardrail| format!("{}: {}", guardrail.name, guardrail.instruction))
        .collect();
    lines.extend(reason_lines(guardrails.iter().map(String::as_str)));
    lines
}

fn skipped_line(skipped: &SkippedRung) -> StyledLine {
    StyledLine::from_text("    ").wrapped(
        Tone::Quiet,
        &format!("no {}: {}", skipped.rung, skipped.why),
    )
}
