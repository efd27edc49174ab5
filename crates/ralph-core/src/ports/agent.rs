//! The agent port: a coding agent that runs inside the sandbox, once per iteration.
//!
//! An [`AgentReader`] parses the program's output into events and reports how the session ended.
//! The engine runs the program, enforces its timeouts and does not trust its claims of success.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::model::TokenUsage;
use super::sandbox::ExecStatus;
use crate::money::Usd;

/// How an agent is started for one iteration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentCommand {
    /// The program and its arguments, without a shell. The prompt is among them only for a program
    /// that does not read its standard input.
    pub argv: Vec<String>,
    /// Environment on top of the sandbox's: switches, never a credential.
    pub env: BTreeMap<String, String>,
    /// The prompt in the form that the program expects.
    pub stdin: Vec<u8>,
}

/// An event parsed from an agent's output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum AgentEvent {
    /// The session has started.
    Started {
        /// `None` if the program does not report it.
        model: Option<String>,
    },
    /// The agent wrote text.
    Text {
        /// Shortened.
        text: String,
    },
    /// The agent calls a tool.
    Tool {
        /// Identifies this call; [`AgentEvent::ToolDone`] repeats it.
        id: String,
        tool: String,
        /// The command or path that the tool is applied to, shortened.
        label: String,
    },
    /// A tool call has ended.
    ToolDone { id: String, ok: bool },
    /// Tokens used since the start of the session, as reported by the program.
    Usage { usage: TokenUsage },
    /// The provider asks the agent to wait.
    Waiting {
        why: String,
        /// `None` if the provider does not name a time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wait: Option<Duration>,
    },
    /// The agent received a message that was sent while it worked.
    Acknowledged {
        /// The text of that message.
        text: String,
    },
}

/// How an agent session ended, judged by the program's output and exit status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "end")]
pub enum AgentEnd {
    /// The agent finished its work.
    Finished,
    /// The agent stopped early, for example because of its turn limit.
    GaveUp { why: String },
    /// The provider rejected the agent's credential.
    Unauthorized {
        /// The provider's message.
        why: String,
    },
    /// The provider's usage limit is reached.
    Quota {
        /// The provider's message.
        why: String,
        /// Time until the limit is lifted, if the provider reports it.
        wait: Option<Duration>,
    },
    /// The provider is temporarily overloaded or unavailable.
    Overloaded {
        /// The provider's message.
        why: String,
    },
    /// The run's budget is used up.
    OutOfBudget,
    /// The program produced no output for too long.
    Stalled,
    /// The session exceeded its total timeout.
    TimedOut,
    /// The session was ended because of a user command.
    Halted,
    /// The program crashed.
    Crashed {
        /// The exit status and the last output.
        why: String,
    },
}

impl AgentEnd {
    /// Returns the name that logs and scripts use.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::GaveUp { .. } => "gave_up",
            Self::Unauthorized { .. } => "unauthorized",
            Self::Quota { .. } => "quota",
            Self::Overloaded { .. } => "overloaded",
            Self::OutOfBudget => "out_of_budget",
            Self::Stalled => "stalled",
            Self::TimedOut => "timed_out",
            Self::Halted => "halted",
            Self::Crashed { .. } => "crashed",
        }
    }
}

/// The agent's own summary of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentReport {
    /// The last message, shortened.
    pub summary: String,
    pub usage: TokenUsage,
    /// Cost as reported by the agent.
    pub cost_usd: Option<Usd>,
    /// Number of model requests as reported by the agent.
    pub turns: Option<u32>,
}

/// Timeouts of an agent session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentTimeouts {
    /// Until the first output.
    pub first_output: Duration,
    /// Without output and without a model request.
    pub idle: Duration,
    pub total: Duration,
    /// For the process to exit after its final message.
    pub after_done: Duration,
}

impl Default for AgentTimeouts {
    fn default() -> Self {
        Self {
            first_output: Duration::from_mins(3),
            idle: Duration::from_mins(15),
            total: Duration::from_hours(1),
            after_done: Duration::from_secs(10),
        }
    }
}

/// Parses an agent's output into events.
pub trait AgentReader: Send {
    /// Parses one line of standard output, without the newline; lines are at most 1 MiB long.
    fn parse_line(&mut self, line: &str) -> Vec<AgentEvent>;
    /// Returns whether the final message has arrived, so that only the exit of the process is
    /// pending.
    fn is_done(&self) -> bool;
    /// Returns how the session ended, based on all parsed lines, the end of standard error and the
    /// exit status.
    fn finish(&mut self, ended: ExecStatus, stderr: &str) -> (AgentEnd, AgentReport);
}

/// The form of an agent's output, which is stored as the transcript of an iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TranscriptFormat {
    /// A JSON object per line.
    JsonLines,
    /// Text without a structure.
    Text,
}

impl TranscriptFormat {
    /// All formats.
    pub const ALL: [Self; 2] = [Self::JsonLines, Self::Text];

    /// Returns the name of the transcript in the directory of an iteration.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::JsonLines => "transcript.jsonl",
            Self::Text => "transcript.txt",
        }
    }
}

/// A coding agent.
pub trait Agent: Send + Sync {
    /// Returns the agent's name, such as `claude`.
    fn name(&self) -> &str;
    /// Returns the command that starts the agent with a prompt.
    fn command(&self, prompt: &str) -> AgentCommand;
    /// Returns a reader for the output of one session.
    fn reader(&self) -> Box<dyn AgentReader>;
    /// Returns the form of the program's standard output.
    fn transcript_format(&self) -> TranscriptFormat;
    /// Returns the session's timeouts.
    fn timeouts(&self) -> AgentTimeouts {
        AgentTimeouts::default()
    }
    /// Encodes a message to the running program, or returns `None` if the program cannot receive
    /// messages.
    fn message(&self, text: &str) -> Option<Vec<u8>>;
}
