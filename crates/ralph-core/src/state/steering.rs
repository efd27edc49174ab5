//! Steering of a run: its commands, allowed and blocked hosts, messages and screened tools.

use super::RunState;
use crate::action::rules;
use crate::budget::{self, Budget, BudgetLimits, BudgetUse};
use crate::event::{CommandEvent, EgressEvent, MessageState};
use crate::net::{AllowlistEntry, Endpoint, ProviderToolAction};
use crate::ports::Isolation;
use crate::run::{self, Command, FailReason, RunStatus};

/// The maximum size of a message.
pub const MAX_MESSAGE_BYTES: usize = 8 << 10;
/// The maximum size of an answer; with the question before it, it fits into a message.
const MAX_ANSWER_BYTES: usize = 6 << 10;
/// The bytes of a question that precede its answer.
const MAX_QUESTION_BYTES: usize = 1 << 10;
/// The maximum number of waiting messages.
pub const MAX_WAITING_MESSAGES: usize = 100;
/// The number of acknowledged messages that are remembered.
const MAX_DELIVERED_MESSAGES: usize = 20;
/// The number of blocked hosts that are remembered, and the maximum number of allowed ones.
const MAX_HOSTS: usize = 1_000;
/// The number of provider-side tools that are remembered.
const MAX_PROVIDER_TOOLS: usize = 100;

/// A provider-side tool in a request to a model, and the gate's decision about it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ScreenedTool {
    /// The decision.
    pub action: ProviderToolAction,
    /// The part of the request.
    pub what: String,
    /// The provider's host.
    pub provider: String,
}

/// A message of the user to the agent or model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The id of the command that sent it.
    pub id: String,
    /// The text of the message.
    pub text: String,
    /// Its state of delivery.
    pub state: MessageState,
    /// Whether it is part of the last prompt.
    pub is_in_prompt: bool,
}

impl Message {
    /// Returns whether it is not acknowledged yet.
    pub fn is_waiting(&self) -> bool {
        match self.state {
            MessageState::Queued | MessageState::Delivered => true,
            MessageState::Acknowledged => false,
        }
    }
}

impl RunState {
    /// Returns why a command is rejected in this state; `None` if it is accepted.
    pub fn rejection_reason(&self, command: &Command) -> Option<String> {
        if let Err(why) = run::legal(&self.status, self.mode, command) {
            return Some(why.to_owned());
        }
        let is_requested = self.doctor.due
            || self
                .pending_commands
                .iter()
                .any(|(_, pending)| *pending == Command::Diagnose);
        match command {
            Command::Diagnose if is_requested => {
                Some("a consultation of the doctor is already requested".into())
            }
            Command::Apply if self.doctor.report.is_none() => {
                Some("the doctor has no report to apply".into())
            }
            Command::Note(note) => note
                .missing_field()
                .map(|what| format!("a note needs {what}")),
            Command::Guardrail(guardrail) => guardrail
                .missing_field()
                .map(|what| format!("a guardrail needs {what}")),
            Command::Profile { .. } if self.plan.agent.is_some() => {
                Some("an agent does the work and calls its own model".into())
            }
            Command::AllowHost { host } => self.host_rejection_reason(host),
            Command::Message { text } => {
                self.text_rejection_reason("message", text, MAX_MESSAGE_BYTES)
            }
            Command::Answer { text } => {
                self.text_rejection_reason("answer", text, MAX_ANSWER_BYTES)
            }
            Command::Mode { mode } if self.wanted_mode.unwrap_or(self.mode) == *mode => {
                Some(format!("its mode is already `{}`", mode.as_str()))
            }
            Command::Limits(change) => self.limits_rejection_reason(change),
            Command::Edit(edit) => rules::refuse_edit(&edit.path),
            Command::Pause
            | Command::Resume
            | Command::Rotate
            | Command::Stop
            | Command::Profile { .. }
            | Command::Task { .. }
            | Command::Diagnose
            | Command::Apply
            | Command::Debug { .. }
            | Command::Mode { .. } => None,
        }
    }

    /// Returns an answer as the next session reads it: a fresh session does not know the question.
    pub fn answer_message(&self, answer: &str) -> String {
        let Some(question) = &self.question else {
            return answer.to_owned();
        };
        let end = question.floor_char_boundary(MAX_QUESTION_BYTES);
        let (shown, more) = match question.get(..end) {
            Some(shown) if end < question.len() => (shown, "…"),
            Some(_) | None => (question.as_str(), ""),
        };
        format!("an earlier session asked: {shown}{more}\nthe answer: {answer}")
    }

    /// Returns the messages that are not acknowledged, oldest first.
    pub fn waiting_messages(&self) -> impl Iterator<Item = &Message> {
        self.messages.iter().filter(|message| message.is_waiting())
    }

    /// Returns whether the user sent a message, a note or a guardrail that the last prompt does not
    /// contain.
    pub fn has_unread_input(&self) -> bool {
        self.unread_advice > 0 || self.waiting_messages().any(|message| !message.is_in_prompt)
    }

    /// Returns the messages of the next prompt: the oldest ones, up to [`MAX_MESSAGE_BYTES`].
    pub fn messages_for_prompt(&self) -> impl Iterator<Item = &Message> {
        let mut bytes = 0;
        self.waiting_messages().take_while(move |message| {
            bytes += message.text.len();
            bytes <= MAX_MESSAGE_BYTES
        })
    }

    /// Returns whether this host and port are recorded as blocked.
    pub fn is_blocked(&self, host: &str, port: u16) -> bool {
        self.blocked_hosts.contains(&host_entry(host, port))
    }

    pub(super) fn apply_command(&mut self, event: &CommandEvent) {
        match event {
            CommandEvent::CommandReceived {
                id,
                command,
                refused,
            } => {
                self.last_command_file = Some(id.clone());
                if refused.is_none() {
                    self.accept_command(id, command);
                }
            }
            CommandEvent::CommandDone { id, .. } => {
                self.pending_commands.retain(|(known, _)| known != id);
            }
            CommandEvent::HostAllowed { host } => self.allow_host(host),
            CommandEvent::MessageMoved { id, text, to } => self.move_message(id, text, *to),
        }
    }

    pub(super) fn apply_egress(&mut self, event: &EgressEvent) {
        match event {
            EgressEvent::HostBlocked { host, port, .. } => {
                self.add_blocked(host_entry(host, *port));
            }
            EgressEvent::FurtherHostsBlocked { count, .. } => {
                self.further_blocked = self.further_blocked.saturating_add(*count);
            }
            EgressEvent::ProviderToolScreened {
                provider,
                what,
                action,
                ..
            } => {
                if self.provider_tools.len() < MAX_PROVIDER_TOOLS {
                    self.provider_tools.insert(ScreenedTool {
                        action: *action,
                        what: what.clone(),
                        provider: provider.clone(),
                    });
                }
            }
        }
    }

    fn accept_command(&mut self, id: &str, command: &Command) {
        if let Command::Profile { name } = command {
            self.wanted_profile = Some(name.clone());
        }
        if let Command::Mode { mode } = command {
            self.wanted_mode = Some(*mode);
        }
        if let Command::Task { contract } = command {
            self.wanted_contract = Some(contract.clone());
        }
        self.unread_advice += usize::from(command.is_advice());
        if command.needs_execution() {
            self.pending_commands.push((id.to_owned(), command.clone()));
        }
    }

    fn allow_host(&mut self, host: &str) {
        if let Ok(entry) = AllowlistEntry::parse(host) {
            self.blocked_hosts.retain(|blocked| {
                !Endpoint::parse(blocked, 443).is_ok_and(|host| entry.covers(&host))
            });
            let blocked = &self.blocked_hosts;
            self.blocked_order.retain(|host| blocked.contains(host));
        }
        self.allowed_hosts.insert(host.to_owned());
    }

    fn add_blocked(&mut self, entry: String) {
        if !self.blocked_hosts.insert(entry.clone()) {
            return;
        }
        self.blocked_order.push_back(entry);
        if self.blocked_order.len() > MAX_HOSTS
            && let Some(oldest) = self.blocked_order.pop_front()
        {
            self.blocked_hosts.remove(&oldest);
            self.further_blocked = self.further_blocked.saturating_add(1);
        }
    }

    fn move_message(&mut self, id: &str, text: &str, to: MessageState) {
        match self.messages.iter_mut().find(|message| message.id == id) {
            Some(message) => message.state = to,
            None => self.messages.push(Message {
                id: id.to_owned(),
                text: text.to_owned(),
                state: to,
                is_in_prompt: false,
            }),
        }
        let old = self.messages.iter().filter(|message| !message.is_waiting());
        let mut surplus = old.count().saturating_sub(MAX_DELIVERED_MESSAGES);
        self.messages.retain(|message| {
            let is_kept = message.is_waiting() || surplus == 0;
            surplus -= usize::from(!is_kept);
            is_kept
        });
    }

    /// Marks the messages that are part of the prompt that is sent now.
    pub(super) fn record_prompt(&mut self) {
        let shown: Vec<String> = self
            .messages_for_prompt()
            .filter(|message| message.state == MessageState::Delivered)
            .map(|message| message.id.clone())
            .collect();
        for message in &mut self.messages {
            message.is_in_prompt = shown.contains(&message.id);
        }
    }

    /// Returns why a host cannot be allowed.
    pub(super) fn host_rejection_reason(&self, host: &str) -> Option<String> {
        if self.plan.isolation == Isolation::None {
            let sandbox = &self.plan.sandbox;
            return Some(format!(
                "its sandbox `{sandbox}` does not restrict network access"
            ));
        }
        if self.allowed_hosts.len() >= MAX_HOSTS {
            return Some(format!("{MAX_HOSTS} hosts are already allowed"));
        }
        AllowlistEntry::parse(host)
            .err()
            .map(|error| error.to_string())
    }

    /// Returns why budgets are rejected: each must leave something to spend, and a failed run needs
    /// more of the budget that it failed on.
    pub fn limits_rejection_reason(&self, change: &BudgetLimits) -> Option<String> {
        if change.is_empty() {
            return Some("no budget is given".into());
        }
        let limits = self.limits.changed_by(change);
        let spent = self.spent();
        let used_up = match &self.status {
            RunStatus::Failed(FailReason::Budget { budget }) if !change.sets(*budget) => {
                return Some(format!(
                    "it failed because `{}` is used up, and no new limit is given for it",
                    budget.key()
                ));
            }
            RunStatus::Failed(_) => budget::may_start_iteration(&limits, &spent).err(),
            // An iteration in progress is already paid for.
            RunStatus::Created
            | RunStatus::Preparing
            | RunStatus::Running
            | RunStatus::Paused(_)
            | RunStatus::WaitingQuota(_)
            | RunStatus::WaitingProvider(_)
            | RunStatus::WaitingCi(_)
            | RunStatus::WaitingHost(_)
            | RunStatus::Verifying
            | RunStatus::Succeeded
            | RunStatus::Stopped
            | RunStatus::SandboxLost => {
                let too_few = change
                    .max_iterations
                    .is_some_and(|most| most < self.iteration);
                let iterations = too_few.then_some(Budget::Iterations);
                iterations.or_else(|| budget::exhausted(change, &spent))
            }
        }?;
        let mut all = budget::budget_uses(&limits, &spent).into_iter();
        let BudgetUse { used, limit, .. } = all.find(|one| one.budget == used_up)?;
        let key = used_up.key();
        Some(format!("`{key}` would be used up: {used} of {limit}"))
    }

    /// Returns why a message or an answer is rejected.
    fn text_rejection_reason(&self, kind: &str, text: &str, max_bytes: usize) -> Option<String> {
        let bytes = text.len();
        if text.trim().is_empty() {
            return Some(format!("the {kind} is empty"));
        }
        if bytes > max_bytes {
            return Some(format!(
                "the {kind} has {bytes} bytes, at most {max_bytes} are allowed"
            ));
        }
        (self.waiting_messages().count() >= MAX_WAITING_MESSAGES)
            .then(|| format!("{MAX_WAITING_MESSAGES} messages are already waiting"))
    }
}

/// Returns the allowlist entry that allows a host on a port.
pub fn host_entry(host: &str, port: u16) -> String {
    match port {
        80 | 443 => host.to_owned(),
        port => format!("{host}:{port}"),
    }
}
