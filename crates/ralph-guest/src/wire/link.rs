//! A connection between host and guest.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::credit::Credit;
use super::frame::{Flow, Frame, FrameError, FrameKind, MAX_MESSAGE, WINDOW};
use super::stream::{
    GuestStream, OpenedStream, StreamData, StreamGuard, StreamMessages, StreamSender,
};
use crate::{available, best_effort};

/// The read buffer of a connection, in bytes.
const READ_BUFFER: usize = 128 * 1024;
/// Frames are buffered up to this size before they are written. Payloads of a quarter of it or more
/// are written directly.
const WRITE_BUFFER: usize = 64 * 1024;
/// The maximum number of open streams.
const MAX_STREAMS: usize = 4096;
/// The maximum number of unread messages per stream.
const MAX_MESSAGES: usize = 256;

/// The side of a connection, which determines the numbers of its streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkSide {
    /// The side that sends requests.
    Host,
    /// The side that answers requests.
    Guest,
}

/// One end of a connection.
#[derive(Debug, Clone)]
pub struct Link {
    shared: Arc<LinkState>,
}

/// Returns the bytes of one of our own messages, which are plain structures.
pub(super) fn message_bytes(message: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(message).expect("a plain structure is valid JSON")
}

/// The reason a stream was not opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OpenStreamError {
    /// The connection is over, or has too many streams.
    #[error("the connection is closed, or has too many streams")]
    Closed,
    /// The message is longer than [`MAX_MESSAGE`].
    #[error("the message is too long")]
    TooLong,
}

/// The streams opened by the peer.
pub type IncomingStreams = UnboundedReceiver<OpenedStream>;

#[derive(Debug)]
struct LinkState {
    outgoing: UnboundedSender<Frame>,
    streams: Mutex<StreamTable>,
}

#[derive(Debug)]
struct StreamTable {
    /// `None` when the connection is closed.
    open: Option<HashMap<u32, StreamSlot>>,
    next_id: u32,
}

/// The receivers of one stream.
#[derive(Debug)]
struct StreamSlot {
    messages: mpsc::Sender<Vec<u8>>,
    /// `None` after the peer has finished.
    data: Option<UnboundedSender<(Flow, Vec<u8>)>>,
    credit: Arc<Credit>,
    /// Received bytes for which no credit was returned yet.
    uncredited: usize,
}

impl Link {
    /// Creates an end of a connection. The future transfers the frames and ends with the
    /// connection.
    pub fn new<R, W>(
        side: LinkSide,
        reader: R,
        writer: W,
    ) -> (
        Self,
        IncomingStreams,
        impl Future<Output = Result<(), FrameError>> + Send,
    )
    where
        R: AsyncRead + Unpin + Send,
        W: AsyncWrite + Unpin + Send,
    {
        let (outgoing, frames) = unbounded_channel();
        let (accept, incoming) = unbounded_channel();
        let next = match side {
            LinkSide::Host => 2,
            LinkSide::Guest => 1,
        };
        let link = Self {
            shared: Arc::new(LinkState {
                outgoing,
                streams: Mutex::new(StreamTable {
                    open: Some(HashMap::new()),
                    next_id: next,
                }),
            }),
        };
        let shared_link = link.clone();
        let transfer = async move {
            let result = tokio::select! {
                read = shared_link.read_frames(reader, accept) => read,
                written = write_frames(writer, frames) => written,
            };
            shared_link.close_streams();
            result
        };
        (link, incoming, transfer)
    }

    /// Opens a stream with a message.
    pub fn open(&self, message: &impl Serialize) -> Result<GuestStream, OpenStreamError> {
        let payload = message_bytes(message);
        if payload.len() > MAX_MESSAGE {
            return Err(OpenStreamError::TooLong);
        }
        let id = {
            let mut streams = self.streams();
            let id = streams.next_id;
            streams.next_id = streams.next_id.wrapping_add(2);
            id
        };
        let stream = self.register(id).ok_or(OpenStreamError::Closed)?;
        self.send(Frame {
            stream: id,
            kind: FrameKind::Open,
            payload,
        });
        Ok(stream)
    }

    /// Returns whether the connection is closed.
    pub fn is_closed(&self) -> bool {
        self.streams().open.is_none()
    }

    pub(super) fn send(&self, frame: Frame) {
        // Fails after the connection has ended, which every open stream notices by itself.
        best_effort(self.shared.outgoing.send(frame));
    }

    /// Removes a stream and notifies the peer, unless the peer has closed it.
    pub(super) fn close(&self, id: u32) {
        let removed = self
            .streams()
            .open
            .as_mut()
            .and_then(|open| open.remove(&id));
        if removed.is_some() {
            self.send(Frame {
                stream: id,
                kind: FrameKind::Close,
                payload: Vec::new(),
            });
        }
    }

    fn is_open(&self, id: u32) -> bool {
        let streams = self.streams();
        let open = streams.open.as_ref();
        open.is_some_and(|open| open.contains_key(&id))
    }

    fn streams(&self) -> MutexGuard<'_, StreamTable> {
        self.shared
            .streams
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn register(&self, id: u32) -> Option<GuestStream> {
        let (message_sender, messages) = mpsc::channel(MAX_MESSAGES);
        let (data_sender, data) = unbounded_channel();
        let credit = Arc::new(Credit::new());
        let mut streams = self.streams();
        let open = streams.open.as_mut()?;
        if open.len() >= MAX_STREAMS {
            return None;
        }
        open.insert(
            id,
            StreamSlot {
                messages: message_sender,
                data: Some(data_sender),
                credit: credit.clone(),
                uncredited: 0,
            },
        );
        drop(streams);
        let guard = Arc::new(StreamGuard {
            id,
            link: self.clone(),
        });
        Some(GuestStream {
            sender: StreamSender {
                guard: guard.clone(),
                credit,
            },
            messages: StreamMessages {
                guard: guard.clone(),
                queue: messages,
            },
            data: StreamData {
                guard,
                queue: data,
                uncredited: 0,
            },
        })
    }

    async fn read_frames(
        &self,
        reader: impl AsyncRead + Unpin,
        accept: UnboundedSender<OpenedStream>,
    ) -> Result<(), FrameError> {
        let mut reader = BufReader::with_capacity(READ_BUFFER, reader);
        while let Some(frame) = Frame::read(&mut reader).await? {
            if frame.kind == FrameKind::Open && !self.is_open(frame.stream) {
                if let Some(stream) = self.register(frame.stream) {
                    let message = frame.payload;
                    // Without a receiver the stream is dropped, which closes it.
                    best_effort(accept.send(OpenedStream { message, stream }));
                }
            } else {
                self.dispatch(frame)?;
            }
        }
        Ok(())
    }

    /// Dispatches a frame to its stream. Frames of closed streams are dropped.
    fn dispatch(&self, frame: Frame) -> Result<(), FrameError> {
        let mut streams = self.streams();
        let Some(open) = streams.open.as_mut() else {
            return Ok(());
        };
        let Some(slot) = open.get_mut(&frame.stream) else {
            return Ok(());
        };
        match frame.kind {
            FrameKind::Open => return Err(FrameError::Protocol("a stream was opened twice")),
            FrameKind::Message => {
                if let Err(TrySendError::Full(_)) = slot.messages.try_send(frame.payload) {
                    return Err(FrameError::Protocol("too many unread messages"));
                }
            }
            FrameKind::Data(flow) => {
                slot.uncredited += frame.payload.len();
                if slot.uncredited > WINDOW {
                    return Err(FrameError::Protocol(
                        "the peer sent more bytes than its credit allows",
                    ));
                }
                if let Some(data) = &slot.data {
                    // The send fails if the stream has no reader any more.
                    best_effort(data.send((flow, frame.payload)));
                }
            }
            FrameKind::End => slot.data = None,
            FrameKind::Credit => {
                let bytes = <[u8; 4]>::try_from(frame.payload.as_slice())
                    .map_err(|_| FrameError::Protocol("invalid credit frame"))?;
                if !slot.credit.grant(u32::from_le_bytes(bytes) as usize) {
                    return Err(FrameError::Protocol(
                        "the peer returned more credit than was used",
                    ));
                }
            }
            FrameKind::Close => {
                if let Some(slot) = open.remove(&frame.stream) {
                    slot.credit.close();
                }
            }
        }
        Ok(())
    }

    /// Returns credit for consumed bytes, so that the peer may send more.
    pub(super) fn return_credit(&self, id: u32, bytes: usize) {
        let mut streams = self.streams();
        let Some(slot) = streams.open.as_mut().and_then(|open| open.get_mut(&id)) else {
            return;
        };
        slot.uncredited = slot.uncredited.saturating_sub(bytes);
        drop(streams);
        self.send(Frame {
            stream: id,
            kind: FrameKind::Credit,
            payload: u32::try_from(bytes)
                .unwrap_or(u32::MAX)
                .to_le_bytes()
                .to_vec(),
        });
    }

    fn close_streams(&self) {
        for slot in self.streams().open.take().unwrap_or_default().into_values() {
            slot.credit.close();
        }
    }
}

/// Writes frames as they arrive, batching those that are ready.
async fn write_frames(
    mut writer: impl AsyncWrite + Unpin,
    mut frames: UnboundedReceiver<Frame>,
) -> Result<(), FrameError> {
    let mut buffer = Vec::with_capacity(WRITE_BUFFER);
    while let Some(frame) = frames.recv().await {
        let mut next = Some(frame);
        while let Some(frame) = next {
            buffer.extend(frame.head());
            if frame.payload.len() < WRITE_BUFFER / 4 {
                buffer.extend(&frame.payload);
            } else {
                writer.write_all(&buffer).await?;
                writer.write_all(&frame.payload).await?;
                buffer.clear();
            }
            if buffer.len() >= WRITE_BUFFER {
                break;
            }
            next = available(frames.try_recv());
        }
        writer.write_all(&buffer).await?;
        writer.flush().await?;
        buffer.clear();
    }
    Ok(())
}
