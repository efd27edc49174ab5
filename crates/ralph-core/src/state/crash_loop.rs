//! Commands during which the program crashed.
//!
//! A command can kill ralph itself: `kill -9 $PPID` in the sandbox `local`, or one that uses up the
//! memory of the machine. A resumed run repeats the command, so crashes at the same one are counted.

use super::RunState;

/// The number of consecutive crashes after which a command is not repeated.
pub const MAX_CRASHES: u32 = 2;

/// A command that ran when the program crashed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrashedCommand {
    /// The command, or the agent.
    pub command: String,
    /// The number of consecutive crashes.
    pub crashes: u32,
}

impl RunState {
    /// Returns the command that must not be repeated because the program crashed too often during it.
    pub fn crash_loop(&self) -> Option<&CrashedCommand> {
        let crashed = self.crashed_command.as_ref();
        crashed.filter(|crashed| crashed.crashes >= MAX_CRASHES)
    }

    /// Resets the count: the user decides what follows a pause.
    pub(super) fn forget_crashes(&mut self) {
        self.running_command = None;
        self.crashed_command = None;
    }

    /// Counts the command in progress, if any, when the run is opened after a crash.
    pub(super) fn record_crash(&mut self) {
        let Some(command) = self.running_command.take() else {
            return;
        };
        let before = self.crashed_command.take();
        let before = before.filter(|crashed| crashed.command == command);
        self.crashed_command = Some(CrashedCommand {
            crashes: before.map_or(1, |crashed| crashed.crashes + 1),
            command,
        });
    }
}
