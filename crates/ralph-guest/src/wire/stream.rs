//! One stream of a connection.

use std::sync::Arc;
use std::task::{Context, Poll};

use serde::Serialize;
use tokio::sync::mpsc;

use super::credit::Credit;
use super::frame::{Flow, Frame, FrameKind, MAX_PAYLOAD, WINDOW};
use super::link::Link;
use crate::available;

/// The number of consumed bytes after which credit is returned.
const CREDIT_BATCH: usize = WINDOW / 4;
/// The maximum data per frame: small enough for streams to take turns.
const MAX_DATA_PAYLOAD: usize = MAX_PAYLOAD / 2;

/// A stream opened by the peer, with its first message.
#[derive(Debug)]
pub struct OpenedStream {
    pub message: Vec<u8>,
    pub stream: GuestStream,
}

/// One stream. Dropping all of its parts closes it.
#[derive(Debug)]
pub struct GuestStream {
    pub sender: StreamSender,
    pub messages: StreamMessages,
    pub data: StreamData,
}

/// Closes the stream when the last part is dropped.
#[derive(Debug)]
pub(super) struct StreamGuard {
    pub(super) id: u32,
    pub(super) link: Link,
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        self.link.close(self.id);
    }
}

/// The sending part of a stream.
#[derive(Debug)]
pub struct StreamSender {
    pub(super) guard: Arc<StreamGuard>,
    pub(super) credit: Arc<Credit>,
}

/// The receiver of messages.
#[derive(Debug)]
pub struct StreamMessages {
    pub(super) guard: Arc<StreamGuard>,
    pub(super) queue: mpsc::Receiver<Vec<u8>>,
}

/// The receiver of bytes.
#[derive(Debug)]
pub struct StreamData {
    pub(super) guard: Arc<StreamGuard>,
    pub(super) queue: mpsc::UnboundedReceiver<(Flow, Vec<u8>)>,
    pub(super) uncredited: usize,
}

impl StreamSender {
    /// Sends a message; dropped if the stream is closed.
    pub fn send_message(&self, message: &impl Serialize) {
        let payload = super::link::message_bytes(message);
        self.send_frame(FrameKind::Message, payload);
    }

    /// Returns whether `bytes` can be sent without waiting.
    pub fn has_room(&self, bytes: usize) -> bool {
        self.credit.available() >= bytes
    }

    /// Waits until `bytes` can be sent. Cancel-safe.
    pub async fn wait_for_room(&self, bytes: usize) {
        self.credit.wait_for(bytes).await;
    }

    /// Polls for the number of bytes that can be sent, once it is not zero.
    pub(super) fn poll_room(&self, context: &Context<'_>) -> Poll<usize> {
        self.credit.poll_available(context)
    }

    /// Sends bytes within the available credit.
    pub fn send_data(&self, flow: Flow, bytes: Vec<u8>) {
        self.credit.spend(bytes.len());
        self.send_frame(FrameKind::Data(flow), bytes);
    }

    /// Sends any number of bytes, as fast as the peer consumes them.
    pub async fn send_all(&self, flow: Flow, bytes: &[u8]) {
        for chunk in bytes.chunks(MAX_DATA_PAYLOAD) {
            self.wait_for_room(chunk.len()).await;
            self.send_data(flow, chunk.to_vec());
        }
    }

    /// Returns whether the stream is closed.
    pub fn is_closed(&self) -> bool {
        self.credit.is_closed()
    }

    /// Signals the end of the bytes.
    pub fn finish(&self) {
        self.send_frame(FrameKind::End, Vec::new());
    }

    fn send_frame(&self, kind: FrameKind, payload: Vec<u8>) {
        self.guard.link.send(Frame {
            stream: self.guard.id,
            kind,
            payload,
        });
    }
}

impl StreamMessages {
    /// Returns the next message, or `None` when the stream is closed. Cancel-safe.
    pub async fn next(&mut self) -> Option<Vec<u8>> {
        self.queue.recv().await
    }

    /// Returns the number of the stream.
    pub fn stream_id(&self) -> u32 {
        self.guard.id
    }
}

impl StreamData {
    /// Returns the next bytes, or `None` at the end. Cancel-safe.
    pub async fn next(&mut self) -> Option<(Flow, Vec<u8>)> {
        let chunk = self.queue.recv().await?;
        Some(self.record_consumed(chunk))
    }

    /// Polls for the next bytes.
    pub(super) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        self.queue
            .poll_recv(context)
            .map(|chunk| chunk.map(|chunk| self.record_consumed(chunk).1))
    }

    /// Returns the next bytes if they have arrived already.
    pub fn try_next(&mut self) -> Option<(Flow, Vec<u8>)> {
        let chunk = available(self.queue.try_recv())?;
        Some(self.record_consumed(chunk))
    }

    fn record_consumed(&mut self, (flow, bytes): (Flow, Vec<u8>)) -> (Flow, Vec<u8>) {
        self.uncredited += bytes.len();
        if self.uncredited >= CREDIT_BATCH {
            self.guard
                .link
                .return_credit(self.guard.id, self.uncredited);
            self.uncredited = 0;
        }
        (flow, bytes)
    }
}
