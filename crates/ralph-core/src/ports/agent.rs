//! The agent port: a coding agent's program that works inside the sandbox, once per iteration.
//!
//! What a program prints is data: a reader makes events of it, and in the end says how it went. The
//! engine runs it, watches its time and believes nothing that it says about success.

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
    /// What it reads first: the prompt in the form that the program expects.
    pub stdin: Vec<u8>,
}

/// What an agent did, as far as it says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum AgentEvent {
    /// It has begun to work, with this model if it says.
    Started {
        /// The model.
        model: Option<String>,
    },
    /// It said something.
    Text {
        /// Its words, shortened.
        text: String,
    },
    /// It uses a tool.
    Tool {
        /// What tells this use from others.
        id: String,
        /// The tool.
        tool: String,
        /// What it is used for, shortened: a command, a path.
        label: String,
    },
    /// A tool has answered.
    ToolDone {
        /// Which use it was.
        id: String,
        /// Whether the tool did what it should.
        ok: bool,
    },
    /// Tokens that it says were used since it began.
    Usage {
        /// All of them.
        usage: TokenUsage,
    },
    /// A provider asks it to wait.
    Waiting {
        /// Why.
        why: String,
        /// For how long, if that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wait: Option<Duration>,
    },
    /// It took a message that was sent to it while it worked.
    Acknowledged {
        /// The message's own words.
        text: String,
    },
}

/// How an agent's work ended, as far as its output and its end tell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "end")]
pub enum AgentEnd {
    /// It did its work.
    Finished,
    /// It stopped by itself for a reason of its own, such as too many turns.
    GaveUp {
        /// Its reason.
        why: String,
    },
    /// Its credential was refused.
    Unauthorized {
        /// The provider's words.
        why: String,
    },
    /// The provider's usage limit is reached.
    Quota {
        /// The provider's words.
        why: String,
        /// How long until the limit is lifted, if the provider says.
        wait: Option<Duration>,
    },
    /// The provider is busy or broken for the moment.
    Overloaded {
        /// The provider's words.
        why: String,
    },
    /// The budget of the run is used up.
    OutOfBudget,
    /// Nothing came from it for too long.
    Stalled,
    /// Its time was up.
    TimedOut,
    /// A person wanted something else, and it was ended.
    Halted,
    /// It broke down.
    Crashed {
        /// How its process ended and what it said last.
        why: String,
    },
}

impl AgentEnd {
    /// Returns the word that logs and scripts show.
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

/// What an agent said about its whole work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentReport {
    /// Its last words, shortened.
    pub summary: String,
    /// Tokens that it says were used.
    pub usage: TokenUsage,
    /// What it says that cost, if it says.
    pub cost_usd: Option<Usd>,
    /// How many times it asked its model, if it says.
    pub turns: Option<u32>,
}

/// How long an agent is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentTimeouts {
    /// Until it prints anything.
    pub first_output: Duration,
    /// While it prints nothing and asks its model nothing.
    pub idle: Duration,
    /// Altogether.
    pub total: Duration,
    /// For its process to end after its last word.
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

/// Makes events of what an agent prints.
pub trait AgentReader: Send {
    /// Takes one line of its standard output, without the newline; lines are at most 1 MiB long.
    fn parse_line(&mut self, line: &str) -> Vec<AgentEvent>;
    /// Tells whether it has said its last word: what follows is only its process ending.
    fn is_done(&self) -> bool;
    /// Says how it went, from everything it printed, the end of its standard error, and how its
    /// process ended.
    fn finish(&mut self, ended: ExecStatus, stderr: &str) -> (AgentEnd, AgentReport);
}

/// A coding agent's program.
pub trait Agent: Send + Sync {
    /// Returns its name, such as `claude`.
    fn name(&self) -> &str;
    /// Returns how it is started with a prompt.
    fn command(&self, prompt: &str) -> AgentCommand;
    /// Returns what makes events of its output.
    fn reader(&self) -> Box<dyn AgentReader>;
    /// Returns how long it is waited for.
    fn timeouts(&self) -> AgentTimeouts {
        AgentTimeouts::default()
    }
    /// Returns a message to send it while it works, in the form that the program expects, where it
    /// can take any.
    fn message(&self, text: &str) -> Option<Vec<u8>>;
}
