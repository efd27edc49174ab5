//! A run that goes in circles, and what is done about it.

use ralph_core::event::Event;
use ralph_core::mitigation::Skipped;

use super::pieces::{aside, reasons, warning};
use crate::terminal::line::Line;

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "`of` decides exhaustively which events come here"
)]
pub(super) fn lines(event: &Event) -> Vec<Line> {
    match event {
        Event::Gutter {
            score,
            consecutive,
            evidence,
            mitigation,
            skipped,
            ..
        } => {
            let done = mitigation.as_ref().map_or_else(
                || "there is progress all the same".into(),
                ToString::to_string,
            );
            let times = match consecutive {
                0 | 1 => String::new(),
                times => format!(", {times} times in a row"),
            };
            let mut lines = vec![warning(&format!(
                "going in circles (loop score {score:.1}{times}): {done}"
            ))];
            lines.extend(reasons(evidence.iter().map(String::as_str)));
            lines.extend(skipped.iter().map(passed_by));
            lines
        }
        _ => Vec::new(),
    }
}

fn passed_by(skipped: &Skipped) -> Line {
    aside(&format!("  no {}: {}", skipped.rung, skipped.why))
}
