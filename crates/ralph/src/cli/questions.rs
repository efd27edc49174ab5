//! Questions to the user on a terminal.

use std::io::{self, IsTerminal as _, Write as _};

use ralph_app::runs::{StartQuestions, UnfinishedRun};
use ralph_app::trust::TrustReview;

use super::trust::review_lines;
use crate::terminal::styled_line::Colour;

/// Asks on standard error and reads the answer from standard input. Without a terminal, every
/// answer is no.
pub(super) struct TerminalQuestions;

impl StartQuestions for TerminalQuestions {
    fn approve(&self, review: &TrustReview) -> bool {
        confirm_proposals(review, "Approve and start?")
    }

    fn accept_local(&self, reason: &str) -> bool {
        let question =
            format!("ralph: {reason}.\nLet the agent work without isolation, as you? [y/N] ");
        matches!(ask(&question).as_deref(), Some("y" | "yes"))
    }

    fn continue_run(&self, run: &UnfinishedRun) -> bool {
        let (id, status) = (&run.plan.run, run.status);
        let question = format!("ralph: run {id} of this task is {status}. Continue it? [Y/n] ");
        matches!(ask(&question).as_deref(), Some("" | "y" | "yes"))
    }
}

/// Shows the proposals and asks whether the user approves them.
pub(super) fn confirm_proposals(review: &TrustReview, question: &str) -> bool {
    let mut proposals = format!("{} proposes:\n", review.repository());
    for line in review_lines(review) {
        proposals.push_str(&line.render(Colour::Unused, None));
        proposals.push('\n');
    }
    confirm(&format!("{proposals}{question}"))
}

/// Asks for a confirmation; without a terminal, the answer is no.
pub(super) fn confirm(question: &str) -> bool {
    matches!(
        ask(&format!("{question} [y/N] ")).as_deref(),
        Some("y" | "yes")
    )
}

/// Returns the answer in lower case, or `None` without a terminal or a readable answer.
fn ask(question: &str) -> Option<String> {
    let mut stderr = io::stderr();
    if !(io::stdin().is_terminal() && stderr.is_terminal()) {
        return None;
    }
    let written = write!(stderr, "{question}").and_then(|()| stderr.flush());
    let mut answer = String::new();
    match written.and_then(|()| io::stdin().read_line(&mut answer)) {
        // Ctrl-D is no answer, also for a question whose default is yes.
        Ok(0) => {
            if let Err(error) = writeln!(stderr) {
                tracing::debug!(%error, "cannot end the line of a question");
            }
            None
        }
        Ok(_) => Some(answer.trim().to_lowercase()),
        Err(_) => None,
    }
}
