//! One stream of a connection.

use std::sync::Arc;
use std::task::{Context, Poll};

use serde::Serialize;
use tokio::sync::mpsc;

use super::credit::Credit;
use super::frame::{Flow, Frame, Kind, MAX_PAYLOAD, WINDOW};
use super::link::Link;

/// How much is taken before credit is given back.
const GIVE_BACK: usize = WINDOW / 4;
/// How much of a flow goes into one frame: small enough that streams take turns.
const PIECE: usize = MAX_PAYLOAD / 2;

/// A stream that the other side has opened, with its first message.
#[derive(Debug)]
pub struct Opened {
    /// What it was opened with.
    pub message: Vec<u8>,
    /// The stream.
    pub stream: Stream,
}

/// One stream. Dropping all of its parts closes it.
#[derive(Debug)]
pub struct Stream {
    /// What is sent.
    pub sender: Sender,
    /// The messages that come.
    pub messages: Messages,
    /// The bytes that come.
    pub data: Data,
}

/// Closes the stream when nobody holds it any more.
#[derive(Debug)]
pub(super) struct Hold {
    pub(super) id: u32,
    pub(super) link: Link,
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.link.close(self.id);
    }
}

/// The part that sends.
#[derive(Debug)]
pub struct Sender {
    pub(super) hold: Arc<Hold>,
    pub(super) credit: Arc<Credit>,
}

/// The part that takes messages.
#[derive(Debug)]
pub struct Messages {
    pub(super) hold: Arc<Hold>,
    pub(super) queue: mpsc::Receiver<Vec<u8>>,
}

/// The part that takes bytes.
#[derive(Debug)]
pub struct Data {
    pub(super) hold: Arc<Hold>,
    pub(super) queue: mpsc::UnboundedReceiver<(Flow, Vec<u8>)>,
    pub(super) taken: usize,
}

impl Sender {
    /// Sends a message. On a stream that is over it goes nowhere.
    pub fn message(&self, message: &impl Serialize) {
        // Our own messages are plain structures, which always have a form in JSON.
        let payload = serde_json::to_vec(message).unwrap_or_default();
        self.frame(Kind::Message, payload);
    }

    /// Tells whether `bytes` can be sent without waiting.
    pub fn has_room(&self, bytes: usize) -> bool {
        self.credit.left() >= bytes
    }

    /// Waits until `bytes` can be sent. Dropping the wait loses nothing.
    pub async fn room(&self, bytes: usize) {
        self.credit.at_least(bytes).await;
    }

    /// Returns how much can be sent, as soon as it is anything.
    pub(super) fn poll_room(&self, context: &Context<'_>) -> Poll<usize> {
        self.credit.poll_any(context)
    }

    /// Sends bytes that there is room for.
    pub fn data(&self, flow: Flow, bytes: Vec<u8>) {
        self.credit.spend(bytes.len());
        self.frame(Kind::Data(flow), bytes);
    }

    /// Sends any number of bytes, as fast as the other side takes them.
    pub async fn all(&self, flow: Flow, bytes: &[u8]) {
        for piece in bytes.chunks(PIECE) {
            self.room(piece.len()).await;
            self.data(flow, piece.to_vec());
        }
    }

    /// Tells whether the stream is over.
    pub fn is_over(&self) -> bool {
        self.credit.is_over()
    }

    /// Says that no more bytes come.
    pub fn end(&self) {
        self.frame(Kind::End, Vec::new());
    }

    fn frame(&self, kind: Kind, payload: Vec<u8>) {
        self.hold.link.send(Frame {
            stream: self.hold.id,
            kind,
            payload,
        });
    }
}

impl Messages {
    /// Waits for the next message; none when the stream is over. Dropping the wait loses nothing.
    pub async fn next(&mut self) -> Option<Vec<u8>> {
        self.queue.recv().await
    }

    /// Returns the number of the stream, for telling streams apart.
    pub fn stream(&self) -> u32 {
        self.hold.id
    }
}

impl Data {
    /// Waits for the next bytes; none when no more come. Dropping the wait loses nothing.
    pub async fn next(&mut self) -> Option<(Flow, Vec<u8>)> {
        let piece = self.queue.recv().await?;
        Some(self.take(piece))
    }

    /// Polls for the next bytes.
    pub(super) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        self.queue
            .poll_recv(context)
            .map(|piece| piece.map(|piece| self.take(piece).1))
    }

    /// Returns the next bytes if they are here already.
    pub fn ready(&mut self) -> Option<(Flow, Vec<u8>)> {
        let piece = self.queue.try_recv().ok()?;
        Some(self.take(piece))
    }

    fn take(&mut self, (flow, bytes): (Flow, Vec<u8>)) -> (Flow, Vec<u8>) {
        self.taken += bytes.len();
        if self.taken >= GIVE_BACK {
            self.hold.link.give_back(self.hold.id, self.taken);
            self.taken = 0;
        }
        (flow, bytes)
    }
}
