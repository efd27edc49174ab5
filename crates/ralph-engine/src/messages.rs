//! The state of the user's messages to the model or agent: queued, delivered, acknowledged.

use ralph_core::event::{CommandEvent, Event, MessageState};
use ralph_core::state::Message;

use crate::error::RunError;
use crate::recorder::Recorder;

/// Returns the event that records a new state of a message.
pub(crate) fn moved_event(message: &Message, to: MessageState) -> Event {
    Event::Command(CommandEvent::MessageMoved {
        id: message.id.clone(),
        text: message.text.clone(),
        to,
    })
}

/// Records that queued messages are delivered with the prompt that is built next.
pub(crate) fn mark_messages_delivered(recorder: &mut Recorder) -> Result<(), RunError> {
    let moved: Vec<Event> = recorder
        .state()
        .messages_for_prompt()
        .filter(|message| message.state == MessageState::Queued)
        .map(|message| moved_event(message, MessageState::Delivered))
        .collect();
    if moved.is_empty() {
        return Ok(());
    }
    recorder.append_all(moved)
}

/// Returns the events which record that the messages of the last prompt were read.
pub(crate) fn acknowledged_messages(recorder: &Recorder) -> Vec<Event> {
    recorder
        .state()
        .waiting_messages()
        .filter(|message| message.is_in_prompt)
        .map(|message| moved_event(message, MessageState::Acknowledged))
        .collect()
}
