//! How the host and the guest speak: many streams over one connection.
//!
//! A connection carries frames; each belongs to a stream, which either side can open. A stream has
//! messages in JSON, two flows of bytes in each direction, and an end. Bytes are sent only as far as
//! the other side has given credit, so that a slow reader of one stream holds up nobody else and
//! what waits in memory is bounded.
//!
//! - `frame` is the form on the wire; `link` is a connection, `stream` one stream of it, `credit`
//!   how much may be sent; `duplex` makes a connection of a stream.
//! - `message` is what host and guest say to each other.

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
