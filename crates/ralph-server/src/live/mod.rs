//! The streams of events over WebSocket.
//!
//! [`LiveStreams`] opens streams and owns their tasks. A stream is a [`source`] of frames and a
//! [`connection`] that sends them. The journals are the only memory: a client that is behind gets older
//! frames from the files, so it needs no buffer, and it can come back with the last number it received.
//!
//! - `handshake` and `wire` are the WebSocket protocol, `limits` decides which clients are too slow.
//! - `frame_log` encodes a growing file once for all clients, `kept_frames` are the frames in memory, and
//!   `outgoing` is what a client has not accepted yet.
//! - `run` is the stream of one run, `feed` that of all runs.

mod connection;
mod feed;
mod frame_log;
mod handshake;
mod kept_frames;
mod limits;
mod outgoing;
mod run;
mod source;
mod streams;
mod wire;

#[cfg(test)]
mod tests;

pub(crate) use feed::FeedStart;
pub(crate) use handshake::wants_websocket;
pub(crate) use limits::StreamLimits;
pub(crate) use run::{OutputStart, RunStreamStart};
pub(crate) use streams::LiveStreams;
pub(crate) use wire::CloseCode;
