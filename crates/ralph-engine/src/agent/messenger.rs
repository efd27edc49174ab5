//! Sends messages of the user to an agent while it works, and records which ones it acknowledged.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ralph_core::event::{CommandEvent, MessageState};
use ralph_core::ports::{Agent, InputSource};
use ralph_core::secret::Redactor;
use ralph_core::state::Message;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::sink::AgentActivity;
use crate::error::RunError;
use crate::journal::Journal;

/// How often the input checks whether the agent is done.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// The sending end of the messages to an agent.
pub(super) struct AgentMessenger<'a> {
    agent: &'a dyn Agent,
    redactor: Redactor,
    activity: Arc<AgentActivity>,
    sender: Option<UnboundedSender<Vec<u8>>>,
}

/// The agent's input after the prompt: open until the agent is done; closed from the start if it
/// accepts no messages.
pub(super) struct AgentInput {
    activity: Arc<AgentActivity>,
    receiver: Option<UnboundedReceiver<Vec<u8>>>,
}

impl<'a> AgentMessenger<'a> {
    /// Creates both ends.
    pub(super) fn new(
        agent: &'a dyn Agent,
        redactor: &Redactor,
        activity: &Arc<AgentActivity>,
    ) -> (Self, AgentInput) {
        // The number of queued messages is limited, so the channel needs no bound.
        let (sender, receiver) = unbounded_channel();
        let accepts_messages = agent.message("").is_some();
        let messenger = Self {
            agent,
            redactor: redactor.clone(),
            activity: activity.clone(),
            sender: accepts_messages.then_some(sender),
        };
        let input = AgentInput {
            activity: activity.clone(),
            receiver: accepts_messages.then_some(receiver),
        };
        (messenger, input)
    }

    /// Sends the queued messages to the agent, unless it is done: then the next prompt contains
    /// them.
    pub(super) fn send_queued(&self, journal: &mut Journal) -> Result<(), RunError> {
        let Some(sender) = &self.sender else {
            return Ok(());
        };
        if self.activity.is_done() {
            return Ok(());
        }
        let queued = |message: &&Message| message.state == MessageState::Queued;
        let queued: Vec<Message> = journal
            .state()
            .messages
            .iter()
            .filter(queued)
            .cloned()
            .collect();
        for message in queued {
            let text = self.redactor.redact(&message.text);
            let Some(bytes) = self.agent.message(&text) else {
                return Ok(());
            };
            if sender.send(bytes).is_err() {
                return Ok(());
            }
            record_message_state(journal, &message, MessageState::Delivered)?;
        }
        Ok(())
    }

    /// Records that the agent acknowledged a message, which it does by repeating it.
    pub(super) fn record_acknowledgement(
        &self,
        journal: &mut Journal,
        text: &str,
    ) -> Result<(), RunError> {
        let is_acknowledged = |message: &&Message| {
            message.state == MessageState::Delivered
                && self.redactor.redact(&message.text).trim() == text.trim()
        };
        let message = journal
            .state()
            .messages
            .iter()
            .find(is_acknowledged)
            .cloned();
        message.map_or(Ok(()), |message| {
            record_message_state(journal, &message, MessageState::Acknowledged)
        })
    }
}

fn record_message_state(
    journal: &mut Journal,
    message: &Message,
    to: MessageState,
) -> Result<(), RunError> {
    journal.append(CommandEvent::MessageMoved {
        id: message.id.clone(),
        text: message.text.clone(),
        to,
    })?;
    Ok(())
}

#[async_trait]
impl InputSource for AgentInput {
    async fn next(&mut self) -> Option<Vec<u8>> {
        let receiver = self.receiver.as_mut()?;
        while !self.activity.is_done() {
            // A receive that is cancelled by the timeout loses no message.
            if let Ok(message) = tokio::time::timeout(POLL_INTERVAL, receiver.recv()).await {
                return message;
            }
        }
        None
    }
}
