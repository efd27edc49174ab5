//! Finds checks that cannot fail by analysing their command lines.
//!
//! A check such as `pytest || true` proves nothing: the run would succeed regardless of the model's
//! work. The command line is parsed by the quoting rules of the shell, and the possible outcomes of
//! every part are computed. Commands with unsupported syntax are accepted.

mod exit_paths;
mod known_commands;
mod lexer;
mod parser;
#[cfg(test)]
mod tests;

use self::parser::{ShellOptions, evaluate};
use super::{LintFinding, excerpt};

/// Checks the command line of a check.
pub(crate) fn lint_command(command: &str) -> Option<LintFinding> {
    let paths = evaluate(command, ShellOptions::default(), 0)?;
    let shown = excerpt(command.trim());
    if !paths.can_fail() {
        let because = paths
            .reason
            .unwrap_or_else(|| "it always succeeds".to_owned());
        return Some(LintFinding::error(
            "check-cannot-fail",
            format!("the check `{shown}` cannot fail: {because}"),
            "write a command whose exit code shows whether the work is done",
        ));
    }
    // The script inspects the exit codes of the pipe itself.
    if command.contains("PIPESTATUS") {
        return None;
    }
    let hidden = paths.hidden_failures.into_iter().next()?;
    Some(LintFinding::warning(
        "check-hides-failure",
        format!("the check `{shown}` can succeed although something failed: {hidden}"),
        "let every failure reach the exit code: redirect to a file instead of a pipe (`COMMAND > log 2>&1`), use `bash -o pipefail -c '…'`, or start with `set -e`",
    ))
}
