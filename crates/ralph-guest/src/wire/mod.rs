//! The protocol between host and guest: many streams over one connection.
//!
//! A connection transfers frames; each belongs to a stream, which either side can open. A stream
//! has JSON messages, two byte flows in each direction, and an end. Bytes are sent only within the
//! credit granted by the peer, so that a slow reader of one stream does not block others and the
//! buffered data is bounded.
//!
//! - `frame` is the encoding; `link` is a connection, `stream` one stream of it, `credit` its flow
//!   control; `duplex` adapts a stream to a byte stream.
//! - `message` defines the messages.

mod credit;
mod duplex;
mod frame;
mod link;
mod message;
mod stream;

pub use duplex::Duplex;
pub use frame::{Flow, Frame, FrameError, FrameKind, MAX_MESSAGE, MAX_PAYLOAD, WINDOW};
pub use link::{IncomingStreams, Link, LinkSide, OpenStreamError};
pub use message::{
    ConnectRequest, ExecRequest, FileWriteMode, GuestFailure, GuestReply, GuestRequest,
    GuestWelcome, HostHello, ListenKind, PROTOCOL_VERSION, PathStat, SignalRequest,
};
pub use stream::{GuestStream, OpenedStream, StreamData, StreamMessages, StreamSender};
