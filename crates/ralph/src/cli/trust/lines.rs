//! What a review looks like.

use ralph_core::trust::Proposal;
use serde_json::{Value, json};

use super::review::Review;
use crate::terminal::line::{Line, Tone};

/// Returns the lines of a review; none if the repository asks for nothing.
pub(in crate::cli) fn shown(review: &Review) -> Vec<Line> {
    let mut lines = Vec::new();
    for overreach in &review.overreach {
        lines.push(entry(
            (Tone::Bad, "not allowed"),
            &format!(
                "{}: {} = {}",
                overreach.file, overreach.key, overreach.value
            ),
        ));
        lines.push(detail(&overreach.allows));
        if let Some(file) = overreach.user_file {
            lines.push(detail(&format!("belongs into your own {file}")));
        }
    }
    for proposal in &review.pending {
        lines.push(entry((Tone::Warn, "needs approval"), &stated(proposal)));
        lines.push(detail(&proposal.allows));
        for earlier in review.earlier(proposal) {
            lines.push(detail(&format!("approved before: {earlier}")));
        }
    }
    for proposal in &review.approved {
        lines.push(entry((Tone::Good, "approved"), &stated(proposal)));
    }
    lines.extend(
        review
            .notes
            .iter()
            .map(|note| Line::of("note: ").plain(note)),
    );
    lines
}

fn entry((tone, word): (Tone, &str), text: &str) -> Line {
    Line::of("  ")
        .with(tone, &format!("{word:<16}"))
        .plain(text)
}

fn detail(text: &str) -> Line {
    Line::of("                  ").quiet(text)
}

/// Returns a proposal as its file states it.
pub(super) fn stated(proposal: &Proposal) -> String {
    let Proposal {
        file, key, value, ..
    } = proposal;
    format!("{file}: {key} = {value}")
}

/// Returns a review for scripts.
pub(in crate::cli) fn json(review: &Review) -> Value {
    let proposal = |proposal: &Proposal| {
        json!({
            "file": proposal.file,
            "key": proposal.key,
            "value": proposal.value,
            "allows": proposal.allows,
            "approved_before": review.earlier(proposal),
        })
    };
    let pending: Vec<Value> = review.pending.iter().map(proposal).collect();
    let approved: Vec<Value> = review.approved.iter().map(proposal).collect();
    let refused = review.overreach.iter().map(|overreach| {
        json!({
            "file": overreach.file,
            "key": overreach.key,
            "value": overreach.value,
            "allows": overreach.allows,
            "user_file": overreach.user_file,
        })
    });
    json!({
        "repository": review.repository(),
        "pending": pending,
        "approved": approved,
        "not_allowed": refused.collect::<Vec<_>>(),
    })
}
