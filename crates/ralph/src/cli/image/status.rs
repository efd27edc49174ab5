//! Formats the status of an image.

use jiff::Timestamp;
use ralph_app::format;
use ralph_app::image::{ImageAvailability, ImageStatusReport};

use crate::terminal::styled_line::{StyledLine, Tone};

/// Returns a line per fact.
pub(super) fn status_lines(report: &ImageStatusReport, now: Timestamp) -> Vec<StyledLine> {
    let row = |label: &str| StyledLine::new().quiet(&format!("{label:<9}"));
    let mut lines = vec![row("image").strong(&report.name)];
    let problem = match &report.state {
        ImageAvailability::Present(image) => {
            lines.push(row("status").span(Tone::Good, "present"));
            lines.push(row("size").plain(&format::bytes(image.size)));
            let created = image.created.map_or_else(
                || "unknown".to_owned(),
                |at| {
                    format!(
                        "{} ({})",
                        at.strftime("%Y-%m-%d %H:%M UTC"),
                        format::age(now, at)
                    )
                },
            );
            lines.push(row("created").plain(&created));
            lines.push(row("tags").plain(&image.tags.join(", ")));
            lines.push(row("id").plain(&image.id));
            return lines;
        }
        ImageAvailability::Missing(problem) => {
            lines.push(row("status").span(Tone::Warn, "not found"));
            problem
        }
        ImageAvailability::Unknown(problem) => {
            lines.push(row("status").span(Tone::Warn, "unknown"));
            lines.push(row("why").wrapped(Tone::Plain, &problem.what));
            problem
        }
    };
    lines.push(row("fix").wrapped(Tone::Plain, &problem.fix));
    lines
}
