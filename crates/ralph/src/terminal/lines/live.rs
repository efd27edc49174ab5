//! Lines of the live output of a running command or agent.

use ralph_engine::live_output::{LiveLine, LiveLineKind};

use crate::terminal::styled_line::StyledLine;

/// Formats a line of live output as shown below the events.
pub fn live_line(line: &LiveLine) -> StyledLine {
    let mark = match line.kind {
        LiveLineKind::Command => "$ ",
        LiveLineKind::Agent => "> ",
        LiveLineKind::CommandOutput | LiveLineKind::AgentOutput => "| ",
        LiveLineKind::Notice => "",
    };
    StyledLine::from_text("    ")
        .quiet(mark)
        .quiet(&line.text)
        .cut()
}
