//! Checks the text of a task file with the rules of the linter and the settings of a directory.

use ralph_core::lint::{self, LintFinding};
use ralph_core::plan::EngineKind;
use ralph_core::task::TaskFile;

use super::plan::model_choice;
use super::sandbox_choice::unavailable_sandbox;
use crate::app::App;

/// Returns the findings in a task file, in the order of its lines.
pub fn lint_task(bytes: &[u8], app: &App) -> Vec<LintFinding> {
    let report = lint::check(bytes);
    let mut findings = report.findings;
    if let Some(task) = &report.task {
        findings.extend(unavailable_sandbox(task));
        findings.extend(unknown_price(task, app));
    }
    findings.sort_by_key(|finding| (finding.line, finding.column, finding.severity));
    findings
}

/// Returns a finding if the task has a cost limit and its model has no price. Ignores a profile that
/// does not exist here, and the models of agents, whose calls the gate charges.
fn unknown_price(task: &TaskFile, app: &App) -> Option<LintFinding> {
    if task.contract.engine == EngineKind::Agent {
        return None;
    }
    let Ok(choice) = model_choice(None, None, Some(task), app) else {
        return None;
    };
    lint::unenforceable_cost_limit(task, &choice.model, choice.price.as_ref())
}
