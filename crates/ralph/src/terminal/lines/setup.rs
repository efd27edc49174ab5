//! The lines about the set-up of a run.

use ralph_core::event::SandboxEvent;
use ralph_core::plan::{EcosystemRegistries, SetupPlan, SetupSource};
use ralph_core::state::RunState;

use super::pieces::{field_line, quiet_line, short_quiet_line, warning_line};
use crate::terminal::styled_line::StyledLine;

/// The most lockfiles and manifests that are shown.
const MAX_SHOWN_FILES: usize = 64;

/// Returns the lines of a plan: the command, its files and the registries.
pub(super) fn plan_lines(setup: &SetupPlan) -> Vec<StyledLine> {
    let source = match setup.source {
        SetupSource::Task => "task file",
        SetupSource::Settings => "ralph.toml",
        SetupSource::AgentLoop => ".agent-loop/config.json",
    };
    let command = format!("{} · {source}", setup.command);
    let shown = &setup.files[..setup.files.len().min(MAX_SHOWN_FILES)];
    let rest = match setup.files.len() - shown.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let files = if shown.is_empty() {
        "no lockfile or manifest is known, whose change would run it again".to_owned()
    } else {
        format!("again when these change: {}{rest}", shown.join(", "))
    };
    let mut lines = vec![field_line("set-up", &command), field_line("", &files)];
    lines.extend(setup.registries.iter().map(registry_line));
    lines
}

fn registry_line(registries: &EcosystemRegistries) -> StyledLine {
    let hosts: Vec<String> = registries
        .hosts
        .iter()
        .map(|host| format!("{} ({})", host.host, host.source))
        .collect();
    let hosts = if hosts.is_empty() {
        "no registry is known".to_owned()
    } else {
        hosts.join(", ")
    };
    let name = registries.ecosystem;
    field_line("", &format!("reachable for {name}: {hosts}"))
}

/// Returns the lines of an event of set-up. Set-up in a clean room is shown only if something is
/// wrong.
pub(super) fn setup_lines(event: &SandboxEvent, state: &RunState) -> Vec<StyledLine> {
    let SandboxEvent::SetupFinished {
        sandbox,
        command,
        ended,
        duration_ms,
        cached,
        changed,
        output,
        ..
    } = event
    else {
        return Vec::new();
    };
    let is_work = state.sandbox.as_ref() == Some(sandbox);
    let location = if is_work { "" } else { "clean room: " };
    let seconds = duration_ms / 1000;
    let mut lines = Vec::new();
    if !ended.is_success() {
        let text = format!("{location}set-up `{command}`: {ended}");
        lines.push(warning_line(&text));
        let output = output.lines();
        lines.extend(output.map(|line| short_quiet_line(&format!("  {line}"))));
    } else if is_work && *cached {
        lines.push(quiet_line(&format!(
            "set-up `{command}`: copied from an earlier set-up of this commit in {seconds} s"
        )));
    } else if is_work {
        lines.push(quiet_line(&format!("set-up `{command}`: {seconds} s")));
    }
    if !changed.is_empty() {
        lines.push(warning_line(&format!(
            "{location}set-up changed committed files: {}",
            changed.join(", ")
        )));
    }
    lines
}
