//! A connection between the host and the guest.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{
    self, UnboundedReceiver as Queue, UnboundedSender as Entrance, unbounded_channel,
};

use super::credit::Credit;
use super::frame::{Flow, Frame, FrameError, Kind, MAX_MESSAGE, WINDOW};
use super::stream::{Data, Hold, Messages, Opened, Sender, Stream};

/// How much is read from the connection at once.
const READ_BUFFER: usize = 128 * 1024;
/// Frames are gathered up to this much before they are written; longer ones are written directly.
const GATHERED: usize = 64 * 1024;
/// How many streams may be open at the same time.
const MAX_STREAMS: usize = 4096;
/// How many messages of one stream may wait to be read.
const MAX_MESSAGES: usize = 256;

/// Who this side is, which decides the numbers of its streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The one that asks.
    Host,
    /// The one that answers.
    Guest,
}

/// One end of a connection.
#[derive(Debug, Clone)]
pub struct Link {
    shared: Arc<Shared>,
}

/// Why a stream was not opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotOpened {
    /// The connection is over, or has too many streams.
    Over,
    /// The message is longer than [`MAX_MESSAGE`].
    TooLong,
}

/// The streams that the other side opens.
pub type Incoming = mpsc::UnboundedReceiver<Opened>;

#[derive(Debug)]
struct Shared {
    outgoing: Entrance<Frame>,
    streams: Mutex<Streams>,
}

#[derive(Debug)]
struct Streams {
    /// None when the connection is over.
    open: Option<HashMap<u32, Slot>>,
    next: u32,
}

/// What arrives for one stream goes here.
#[derive(Debug)]
struct Slot {
    messages: mpsc::Sender<Vec<u8>>,
    /// None after the other side's end.
    data: Option<Entrance<(Flow, Vec<u8>)>>,
    credit: Arc<Credit>,
    /// Bytes of the other side that nobody has taken credit back for.
    owed: usize,
}

impl Link {
    /// Makes an end of a connection. The future carries the frames; it ends with the connection.
    pub fn new<R, W>(
        side: Side,
        reader: R,
        writer: W,
    ) -> (
        Self,
        Incoming,
        impl Future<Output = Result<(), FrameError>> + Send,
    )
    where
        R: AsyncRead + Unpin + Send,
        W: AsyncWrite + Unpin + Send,
    {
        let (outgoing, frames) = unbounded_channel();
        let (accept, incoming) = unbounded_channel();
        let next = match side {
            Side::Host => 2,
            Side::Guest => 1,
        };
        let link = Self {
            shared: Arc::new(Shared {
                outgoing,
                streams: Mutex::new(Streams {
                    open: Some(HashMap::new()),
                    next,
                }),
            }),
        };
        let carried = link.clone();
        let carry = async move {
            let result = tokio::select! {
                read = carried.read(reader, accept) => read,
                written = write(writer, frames) => written,
            };
            carried.end();
            result
        };
        (link, incoming, carry)
    }

    /// Opens a stream with a message.
    pub fn open(&self, message: &impl Serialize) -> Result<Stream, NotOpened> {
        // Our own messages are plain structures, which always have a form in JSON.
        let payload = serde_json::to_vec(message).unwrap_or_default();
        if payload.len() > MAX_MESSAGE {
            return Err(NotOpened::TooLong);
        }
        let id = {
            let mut streams = self.streams();
            let id = streams.next;
            streams.next = streams.next.wrapping_add(2);
            id
        };
        let stream = self.enter(id).ok_or(NotOpened::Over)?;
        self.send(Frame {
            stream: id,
            kind: Kind::Open,
            payload,
        });
        Ok(stream)
    }

    /// Tells whether the connection is over.
    pub fn is_over(&self) -> bool {
        self.streams().open.is_none()
    }

    pub(super) fn send(&self, frame: Frame) {
        // Without a connection it goes nowhere; whoever waits for an answer sees that.
        self.shared.outgoing.send(frame).ok();
    }

    /// Forgets a stream and tells the other side, unless that was the one to close it.
    pub(super) fn close(&self, id: u32) {
        let known = self
            .streams()
            .open
            .as_mut()
            .and_then(|open| open.remove(&id));
        if known.is_some() {
            self.send(Frame {
                stream: id,
                kind: Kind::Close,
                payload: Vec::new(),
            });
        }
    }

    fn streams(&self) -> MutexGuard<'_, Streams> {
        self.shared
            .streams
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, id: u32) -> Option<Stream> {
        let (message_entrance, messages) = mpsc::channel(MAX_MESSAGES);
        let (data_entrance, data) = unbounded_channel();
        let credit = Arc::new(Credit::new());
        let mut streams = self.streams();
        let open = streams.open.as_mut()?;
        if open.len() >= MAX_STREAMS {
            return None;
        }
        open.insert(
            id,
            Slot {
                messages: message_entrance,
                data: Some(data_entrance),
                credit: credit.clone(),
                owed: 0,
            },
        );
        drop(streams);
        let hold = Arc::new(Hold {
            id,
            link: self.clone(),
        });
        Some(Stream {
            sender: Sender {
                hold: hold.clone(),
                credit,
            },
            messages: Messages {
                hold: hold.clone(),
                queue: messages,
            },
            data: Data {
                hold,
                queue: data,
                taken: 0,
            },
        })
    }

    async fn read(
        &self,
        reader: impl AsyncRead + Unpin,
        accept: Entrance<Opened>,
    ) -> Result<(), FrameError> {
        let mut reader = BufReader::with_capacity(READ_BUFFER, reader);
        while let Some(frame) = Frame::read(&mut reader).await? {
            if frame.kind == Kind::Open {
                if let Some(stream) = self.enter(frame.stream) {
                    let message = frame.payload;
                    accept.send(Opened { message, stream }).ok();
                }
            } else {
                self.take(frame)?;
            }
        }
        Ok(())
    }

    /// Hands a frame to its stream. One that is over has nobody to hand it to.
    fn take(&self, frame: Frame) -> Result<(), FrameError> {
        let mut streams = self.streams();
        let Some(open) = streams.open.as_mut() else {
            return Ok(());
        };
        let Some(slot) = open.get_mut(&frame.stream) else {
            return Ok(());
        };
        match frame.kind {
            Kind::Open => return Err(FrameError::Rule("a stream was opened twice")),
            Kind::Message => {
                if let Err(TrySendError::Full(_)) = slot.messages.try_send(frame.payload) {
                    return Err(FrameError::Rule("more messages came than anybody reads"));
                }
            }
            Kind::Data(flow) => {
                slot.owed += frame.payload.len();
                if slot.owed > WINDOW {
                    return Err(FrameError::Rule(
                        "more bytes came than there was credit for",
                    ));
                }
                if let Some(data) = &slot.data {
                    data.send((flow, frame.payload)).ok();
                }
            }
            Kind::End => slot.data = None,
            Kind::Credit => {
                let given = <[u8; 4]>::try_from(frame.payload.as_slice())
                    .map_err(|_| FrameError::Rule("credit without a number"))?;
                if !slot.credit.grant(u32::from_le_bytes(given) as usize) {
                    return Err(FrameError::Rule("more credit came than was taken"));
                }
            }
            Kind::Close => {
                if let Some(slot) = open.remove(&frame.stream) {
                    slot.credit.end();
                }
            }
        }
        Ok(())
    }

    /// Gives back what a stream has taken, so that the other side may send more.
    pub(super) fn give_back(&self, id: u32, bytes: usize) {
        let mut streams = self.streams();
        let Some(slot) = streams.open.as_mut().and_then(|open| open.get_mut(&id)) else {
            return;
        };
        slot.owed = slot.owed.saturating_sub(bytes);
        drop(streams);
        self.send(Frame {
            stream: id,
            kind: Kind::Credit,
            payload: u32::try_from(bytes)
                .unwrap_or(u32::MAX)
                .to_le_bytes()
                .to_vec(),
        });
    }

    fn end(&self) {
        for slot in self.streams().open.take().unwrap_or_default().into_values() {
            slot.credit.end();
        }
    }
}

/// Writes frames as they come, as many at once as there are.
async fn write(
    mut writer: impl AsyncWrite + Unpin,
    mut frames: Queue<Frame>,
) -> Result<(), FrameError> {
    let mut gathered = Vec::with_capacity(GATHERED);
    while let Some(frame) = frames.recv().await {
        let mut next = Some(frame);
        while let Some(frame) = next {
            gathered.extend(frame.head());
            if frame.payload.len() < GATHERED / 4 {
                gathered.extend(&frame.payload);
            } else {
                writer.write_all(&gathered).await?;
                writer.write_all(&frame.payload).await?;
                gathered.clear();
            }
            if gathered.len() >= GATHERED {
                break;
            }
            next = frames.try_recv().ok();
        }
        writer.write_all(&gathered).await?;
        writer.flush().await?;
        gathered.clear();
    }
    Ok(())
}
