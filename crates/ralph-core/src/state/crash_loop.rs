//! Commands during which the program died.
//!
//! A command can end ralph itself: `kill -9 $PPID` in the sandbox `local`, or one that uses up the
//! memory of the machine. A resumed run repeats the command, so deaths at the same one are counted.

use super::RunState;
use crate::event::Event;
use crate::run::RunStatus;

/// After so many deaths in a row a command is not repeated.
pub const MAX_CRASHES: u32 = 2;

/// A command that ran when the program died.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrashedCommand {
    /// The command, or the agent.
    pub command: String,
    /// How often in a row.
    pub crashes: u32,
}

impl RunState {
    /// Returns the command that must not be repeated because the program died of it too often.
    pub fn crash_loop(&self) -> Option<&CrashedCommand> {
        let deadly = self.crashed_command.as_ref();
        deadly.filter(|deadly| deadly.crashes >= MAX_CRASHES)
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "all other events happen between commands or while one runs"
    )]
    pub(super) fn record_crashes(&mut self, event: &Event) {
        match event {
            Event::ActionStarted { action, label, .. } if action == "run" => {
                self.running_command = Some(label.clone());
            }
            Event::CheckStarted { command } => self.running_command = Some(command.clone()),
            Event::AgentStarted { agent, .. } => {
                self.running_command = Some(format!("the agent {agent}"));
            }
            Event::ActionFinished { .. }
            | Event::AgentFinished { .. }
            | Event::ClaimChecked { .. }
            | Event::TestsRun { .. }
            | Event::BaselineFinished { .. }
            | Event::VerifyFinished { .. }
            | Event::SandboxRemoved { .. }
            | Event::IterationFinished { .. } => self.running_command = None,
            Event::RunOpened { .. } if self.status.is_active() => self.record_crash(),
            // A person decides what follows, so that the counting starts over.
            Event::StatusChanged {
                status: RunStatus::Paused(_),
            } => {
                self.running_command = None;
                self.crashed_command = None;
            }
            _ => {}
        }
    }

    fn record_crash(&mut self) {
        let Some(command) = self.running_command.take() else {
            return;
        };
        let before = self.crashed_command.take();
        let before = before.filter(|deadly| deadly.command == command);
        self.crashed_command = Some(CrashedCommand {
            crashes: before.map_or(1, |deadly| deadly.crashes + 1),
            command,
        });
    }
}
