//! The process that works on a run, according to its journal.

use std::fs;

use ralph_core::state::RunState;

/// Describes the process that works on a run: its id, and whether it is stopped.
pub(crate) fn describe_owner(state: &RunState) -> String {
    let Some(pid) = state.pid else {
        return "another process works on it".to_owned();
    };
    if is_process_stopped(pid) {
        return format!(
            "process {pid} works on it and is stopped; continue it with `kill -CONT {pid}`"
        );
    }
    format!("process {pid} works on it")
}

/// Returns whether a process on this machine was stopped by a signal.
fn is_process_stopped(pid: u32) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else {
        return false;
    };
    let state = status.lines().find_map(|line| line.strip_prefix("State:"));
    state.is_some_and(|state| state.trim_start().starts_with(['T', 't']))
}
