//! The lines that show each event.

use ralph_core::event::{Event, JournalRecord};
use ralph_core::state::RunState;

use super::{agent, circling, delivery, iteration, lifecycle};
use crate::terminal::styled_line::StyledLine;

/// The kind of output that the lines are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// A terminal of this width; a spinner shows the work in progress.
    Rich { columns: usize },
    /// Plain lines, also for work that starts.
    Plain,
}

/// Returns the lines that show a record.
pub fn event_lines(record: &JournalRecord, state: &RunState, style: Style) -> Vec<StyledLine> {
    match &record.event {
        Event::Run(event) => lifecycle::run_lines(event, state, style),
        Event::Command(event) => lifecycle::command_lines(event),
        Event::Sandbox(event) => lifecycle::sandbox_lines(event, state),
        Event::Iteration(event) => iteration::iteration_lines(event, state, style),
        Event::Model(event) => iteration::model_lines(event, style),
        Event::Agent(event) => agent::session_lines(event, state, style),
        Event::Egress(event) => agent::egress_lines(event, state),
        Event::Verification(event) => delivery::verification_lines(event, style),
        Event::Delivery(event) => delivery::delivery_lines(event),
        Event::Doctor(event) => circling::doctor_lines(event, style),
    }
}
