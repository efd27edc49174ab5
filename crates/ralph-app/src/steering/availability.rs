//! Which commands a run accepts now, and why it does not accept the others.

use ralph_core::advice::{Guardrail, Note, NoteKind};
use ralph_core::budget::BudgetLimits;
use ralph_core::id::Digest;
use ralph_core::path::WorkspacePath;
use ralph_core::run::{self, Command, FileEdit, OfflineCommand};
use ralph_core::state::RunState;
use ralph_core::task::RunMode;
use ralph_engine::store::RunDir;
use serde::Serialize;
use utoipa::ToSchema;

/// A command of the user, and whether a run accepts it now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct CommandAvailability {
    /// As on the command line, such as `pause`.
    pub command: &'static str,
    pub allowed: bool,
    /// Why it is not allowed.
    pub reason: Option<String>,
}

/// Why a run does not accept a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandRejection {
    /// Another mode would permit it.
    Mode(String),
    /// The status does not permit it, in any mode.
    Status(String),
    /// The status and the mode permit such a command, but not this one.
    Content(String),
}

impl CommandRejection {
    /// Returns the reason.
    pub fn reason(&self) -> &str {
        match self {
            Self::Mode(why) | Self::Status(why) | Self::Content(why) => why,
        }
    }
}

/// Returns why a run does not accept a command; `None` if it does.
pub fn command_rejection(
    dir: &RunDir,
    state: &RunState,
    command: &Command,
) -> Option<CommandRejection> {
    let is_unattended = !dir.is_held();
    let is_interrupted = is_unattended && state.status.needs_process();
    if *command == Command::Resume && state.discarded {
        return Some(CommandRejection::Status("it was discarded".to_owned()));
    }
    // A process that is gone cannot pause, and its run can be resumed whatever its status.
    if *command == Command::Resume && (is_interrupted || state.may_continue) {
        return None;
    }
    if let Err(why) = run::legal(&state.status, state.mode, command) {
        let modes = [RunMode::Autonomous, RunMode::Guided, RunMode::Debug];
        let is_about_mode = modes
            .into_iter()
            .any(|mode| run::legal(&state.status, mode, command).is_ok());
        return Some(if is_about_mode {
            CommandRejection::Mode(why.to_owned())
        } else {
            CommandRejection::Status(why.to_owned())
        });
    }
    let needs_process = command.traits().offline == OfflineCommand::NeedsProcess;
    if is_unattended && needs_process && *command != Command::Resume {
        let why = "no process works on it; resume it first";
        return Some(CommandRejection::Status(why.to_owned()));
    }
    state
        .rejection_reason(command)
        .map(CommandRejection::Content)
}

/// Returns all commands, in the order of the command line's help.
pub fn available_commands(dir: &RunDir, state: &RunState) -> Vec<CommandAvailability> {
    let available = |command: Command| {
        let rejection = match command_rejection(dir, state, &command) {
            // Another text or host may be accepted.
            Some(CommandRejection::Content(_)) if depends_on_content(&command) => None,
            other => other,
        };
        CommandAvailability {
            command: command.verb(),
            allowed: rejection.is_none(),
            reason: rejection.map(|rejection| rejection.reason().to_owned()),
        }
    };
    examples(state).into_iter().map(available).collect()
}

/// Returns the names of the commands that a run accepts now.
pub fn allowed_commands(dir: &RunDir, state: &RunState) -> Vec<String> {
    let all = available_commands(dir, state).into_iter();
    all.filter(|command| command.allowed)
        .map(|command| command.command.to_owned())
        .collect()
}

/// Returns whether the run can reject one command of this kind and accept another.
fn depends_on_content(command: &Command) -> bool {
    match command {
        Command::Limits(_) => true,
        Command::Pause
        | Command::Resume
        | Command::Rotate
        | Command::Stop
        | Command::Profile { .. }
        | Command::Task { .. }
        | Command::Note(_)
        | Command::Guardrail(_)
        | Command::Diagnose
        | Command::Apply
        | Command::Debug { .. }
        | Command::AllowHost { .. }
        | Command::Message { .. }
        | Command::Answer { .. }
        | Command::Mode { .. }
        | Command::Edit(_) => false,
    }
}

/// Returns an acceptable command of every kind.
fn examples(state: &RunState) -> Vec<Command> {
    let text = || "text".to_owned();
    let other_mode = match state.wanted_mode.unwrap_or(state.mode) {
        RunMode::Autonomous => RunMode::Guided,
        RunMode::Guided | RunMode::Debug => RunMode::Autonomous,
    };
    let mut commands = vec![
        Command::Pause,
        Command::Resume,
        Command::Rotate,
        Command::Stop,
        Command::Answer { text: text() },
        Command::Message { text: text() },
        Command::Note(Note {
            kind: NoteKind::Clarify,
            text: text(),
            author: String::new(),
        }),
        Command::Guardrail(Guardrail {
            name: text(),
            trigger: text(),
            instruction: text(),
            evidence: String::new(),
        }),
        Command::Task {
            contract: state.contract.clone(),
        },
        Command::Profile { name: text() },
        Command::Mode { mode: other_mode },
        Command::Limits(BudgetLimits::default()),
        Command::AllowHost {
            host: "example.com".to_owned(),
        },
        Command::Diagnose,
        Command::Apply,
        Command::Debug { id: text() },
    ];
    if let Ok(path) = WorkspacePath::parse("README.md") {
        let content = Digest::compute(b"");
        commands.push(Command::Edit(FileEdit {
            path,
            content,
            replaces: None,
        }));
    }
    commands
}
