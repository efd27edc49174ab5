//! An agent that is a shell script, one for each start, and a gate.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ralph_core::budget::Budget;
use ralph_core::money::Usd;
use ralph_core::ports::{
    Agent, AgentCommand, AgentEnd, AgentEvent, AgentReader, AgentReport, AgentTimeouts, Allowance,
    ExecStatus, GateControl, GateEvent, ProviderFailure, TokenUsage, TranscriptFormat,
};

/// An agent whose output lines are commands to its reader:
///
/// - `ack WORDS`: it has acknowledged a message
/// - `wait MILLISECONDS`: its provider asked it to wait
/// - `end KIND`: its outcome, and that it is done
/// - any other line is a text of the agent
pub(super) struct ScriptedAgent {
    /// The script of each start; the last one is repeated.
    pub(super) scripts: Vec<String>,
    pub(super) takes_messages: bool,
    pub(super) patience: AgentTimeouts,
    pub(super) starts: AtomicUsize,
}

impl ScriptedAgent {
    pub(super) fn new(scripts: &[&str]) -> Self {
        Self {
            scripts: scripts.iter().map(|&script| script.to_owned()).collect(),
            takes_messages: false,
            patience: AgentTimeouts {
                first_output: Duration::from_secs(20),
                idle: Duration::from_secs(20),
                total: Duration::from_secs(40),
                after_done: Duration::from_millis(300),
            },
            starts: AtomicUsize::new(0),
        }
    }

    /// Lets the agent accept messages.
    pub(super) fn with_messages(mut self) -> Self {
        self.takes_messages = true;
        self
    }

    pub(super) fn with_idle_timeout(mut self, idle: Duration) -> Self {
        self.patience.idle = idle;
        self
    }
}

impl Agent for ScriptedAgent {
    fn name(&self) -> &'static str {
        "script"
    }

    fn command(&self, prompt: &str) -> AgentCommand {
        let start = self.starts.fetch_add(1, Ordering::SeqCst);
        let script = &self.scripts[start.min(self.scripts.len() - 1)];
        // An agent that accepts messages reads lines, so its prompt is one line.
        let stdin = if self.takes_messages {
            "the prompt\n".into()
        } else {
            prompt.into()
        };
        AgentCommand {
            argv: ["sh", "-c", script].map(String::from).into(),
            env: BTreeMap::new(),
            stdin,
        }
    }

    fn reader(&self) -> Box<dyn AgentReader> {
        Box::new(ScriptedAgentReader::default())
    }

    fn transcript_format(&self) -> TranscriptFormat {
        TranscriptFormat::Text
    }

    fn timeouts(&self) -> AgentTimeouts {
        self.patience
    }

    fn message(&self, text: &str) -> Option<Vec<u8>> {
        self.takes_messages.then(|| format!("{text}\n").into())
    }
}

#[derive(Default)]
struct ScriptedAgentReader {
    end: Option<AgentEnd>,
    summary: String,
}

fn agent_end(kind: &str) -> AgentEnd {
    let why = "as the script says".to_owned();
    match kind {
        "finished" => AgentEnd::Finished,
        "unauthorized" => AgentEnd::Unauthorized { why },
        "quota" => AgentEnd::Quota {
            why,
            wait: Some(Duration::from_secs(1)),
        },
        "weekly-quota" => AgentEnd::Quota {
            why,
            wait: Some(Duration::from_hours(1)),
        },
        "overloaded" => AgentEnd::Overloaded { why },
        "budget" => AgentEnd::OutOfBudget,
        "gave-up" => AgentEnd::GaveUp { why },
        other => panic!("no end is called `{other}`"),
    }
}

impl AgentReader for ScriptedAgentReader {
    fn parse_line(&mut self, line: &str) -> Vec<AgentEvent> {
        let event = match line.split_once(' ') {
            Some(("ack", text)) => AgentEvent::Acknowledged { text: text.into() },
            Some(("wait", milliseconds)) => AgentEvent::Waiting {
                why: "busy".into(),
                wait: Some(Duration::from_millis(milliseconds.parse().unwrap())),
            },
            Some(("end", kind)) => {
                self.end = Some(agent_end(kind));
                return Vec::new();
            }
            _ => {
                line.clone_into(&mut self.summary);
                AgentEvent::Text { text: line.into() }
            }
        };
        vec![event]
    }

    fn is_done(&self) -> bool {
        self.end.is_some()
    }

    fn finish(&mut self, ended: ExecStatus, _stderr: &str) -> (AgentEnd, AgentReport) {
        let report = AgentReport {
            summary: std::mem::take(&mut self.summary),
            ..AgentReport::default()
        };
        let end = self.end.take().unwrap_or(match ended {
            ExecStatus::Exited(0) => AgentEnd::Finished,
            ExecStatus::TimedOut => AgentEnd::TimedOut,
            ExecStatus::Exited(_)
            | ExecStatus::Signalled(_)
            | ExecStatus::OutputLimit
            | ExecStatus::DiskLimit
            | ExecStatus::OutOfMemory => AgentEnd::Crashed {
                why: ended.to_string(),
            },
        });
        (end, report)
    }
}

/// A gate that records calls, and returns events that a test has queued.
#[derive(Default)]
pub(super) struct RecordingGate {
    pub(super) news: Mutex<Vec<GateEvent>>,
    pub(super) allowances: Mutex<Vec<Allowance>>,
    pub(super) hosts: Mutex<Vec<String>>,
    pub(super) unaffordable: Mutex<Option<Budget>>,
    pub(super) failure: Mutex<Option<ProviderFailure>>,
    /// The charge for a call whose usage is never reported.
    pub(super) reserved: Mutex<Option<f64>>,
}

impl RecordingGate {
    pub(super) fn push_blocked(&self, host: &str, port: u16) {
        self.news.lock().unwrap().push(GateEvent::Blocked {
            host: host.into(),
            port,
            reason: "not on the list".into(),
            command: None,
        });
    }

    pub(super) fn push_charge(&self, dollars: f64) {
        self.news.lock().unwrap().push(GateEvent::Charged {
            model: "m".into(),
            usage: TokenUsage {
                input_tokens: 10,
                ..TokenUsage::default()
            },
            cost_usd: Usd::from_dollars(dollars).unwrap(),
        });
    }
}

impl GateControl for RecordingGate {
    fn drain_events(&self) -> Vec<GateEvent> {
        std::mem::take(&mut *self.news.lock().unwrap())
    }

    fn set_allowance(&self, allowance: Allowance) {
        self.allowances.lock().unwrap().push(allowance);
    }

    fn has_unsettled_calls(&self) -> bool {
        self.reserved.lock().unwrap().is_some()
    }

    fn settle_open_calls(&self) {
        let reserved = self.reserved.lock().unwrap().take();
        if let Some(dollars) = reserved {
            self.push_charge(dollars);
        }
    }

    fn exhausted_budget(&self) -> Option<Budget> {
        *self.unaffordable.lock().unwrap()
    }

    fn provider_failure(&self) -> Option<ProviderFailure> {
        self.failure.lock().unwrap().clone()
    }

    fn allow_host(&self, host: &str) -> Result<(), String> {
        if host == "bad.example" {
            return Err("the gate does not want it".into());
        }
        self.hosts.lock().unwrap().push(host.into());
        Ok(())
    }

    fn reset_blocked_host(&self, _: &str) {}
}
