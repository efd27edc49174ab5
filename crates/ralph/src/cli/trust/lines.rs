//! Formats a review.

use ralph_app::trust::{TrustReview, proposal_text};

use crate::terminal::styled_line::{StyledLine, Tone};

/// Returns the lines of a review, which are empty if the repository proposes nothing.
pub(in crate::cli) fn review_lines(review: &TrustReview) -> Vec<StyledLine> {
    let mut lines = Vec::new();
    for overreach in &review.overreach {
        lines.push(entry_line(
            (Tone::Bad, "not allowed"),
            &format!(
                "{}: {} = {}",
                overreach.file, overreach.key, overreach.value
            ),
        ));
        lines.push(detail_line(&overreach.allows));
        if let Some(file) = overreach.user_file {
            lines.push(detail_line(&format!("belongs in your own {file}")));
        }
    }
    for proposal in &review.pending {
        lines.push(entry_line(
            (Tone::Warn, "needs approval"),
            &proposal_text(proposal),
        ));
        lines.push(detail_line(&proposal.allows));
        for earlier in review.previously_approved(proposal) {
            lines.push(detail_line(&format!("approved before: {earlier}")));
        }
    }
    for proposal in &review.approved {
        lines.push(entry_line(
            (Tone::Good, "approved"),
            &proposal_text(proposal),
        ));
    }
    lines.extend(
        review
            .notes
            .iter()
            .map(|note| StyledLine::from_text("note: ").plain(note)),
    );
    lines
}

fn entry_line((tone, word): (Tone, &str), text: &str) -> StyledLine {
    StyledLine::from_text("  ")
        .span(tone, &format!("{word:<16}"))
        .plain(text)
}

fn detail_line(text: &str) -> StyledLine {
    StyledLine::from_text("                  ").quiet(text)
}
