//! Commands during which the program died.
//!
//! A command can end ralph itself: `kill -9 $PPID` in the sandbox `local`, or one that uses up the
//! memory of the machine. A resumed run repeats the command, so deaths at the same one are counted.

use super::RunState;
use crate::event::Event;
use crate::run::RunStatus;

/// After so many deaths in a row a command is not repeated.
pub const MAX_DEATHS: u32 = 2;

/// A command that ran when the program died.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadlyCommand {
    /// The command, or the agent.
    pub command: String,
    /// How often in a row.
    pub deaths: u32,
}

impl RunState {
    /// Returns the command that must not be repeated because the program died of it too often.
    pub fn crash_loop(&self) -> Option<&DeadlyCommand> {
        let deadly = self.died_during.as_ref();
        deadly.filter(|deadly| deadly.deaths >= MAX_DEATHS)
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "all other events happen between commands or while one runs"
    )]
    pub(super) fn note_deaths(&mut self, event: &Event) {
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
            Event::RunOpened { .. } if self.status.is_active() => self.note_death(),
            // A person decides what follows, so that the counting starts over.
            Event::StatusChanged {
                status: RunStatus::Paused(_),
            } => {
                self.running_command = None;
                self.died_during = None;
            }
            _ => {}
        }
    }

    fn note_death(&mut self) {
        let Some(command) = self.running_command.take() else {
            return;
        };
        let before = self.died_during.take();
        let before = before.filter(|deadly| deadly.command == command);
        self.died_during = Some(DeadlyCommand {
            deaths: before.map_or(1, |deadly| deadly.deaths + 1),
            command,
        });
    }
}
