//! Adapts a stream to a byte stream.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::frame::{Flow, MAX_PAYLOAD};
use super::stream::{GuestStream, StreamData, StreamMessages, StreamSender};

/// A stream as a byte stream; messages of the peer are ignored.
#[derive(Debug)]
pub struct Duplex {
    sender: StreamSender,
    data: StreamData,
    /// Keeps the stream open.
    _messages: StreamMessages,
    chunk: Vec<u8>,
    read: usize,
}

impl From<GuestStream> for Duplex {
    fn from(stream: GuestStream) -> Self {
        Self {
            sender: stream.sender,
            data: stream.data,
            _messages: stream.messages,
            chunk: Vec::new(),
            read: 0,
        }
    }
}

impl AsyncRead for Duplex {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.read == self.chunk.len() {
            match ready!(self.data.poll_next(context)) {
                Some(chunk) => (self.chunk, self.read) = (chunk, 0),
                None => return Poll::Ready(Ok(())),
            }
        }
        let count = buffer.remaining().min(self.chunk.len() - self.read);
        buffer.put_slice(&self.chunk[self.read..self.read + count]);
        self.read += count;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Duplex {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let room = ready!(self.sender.poll_room(context));
        if self.sender.is_closed() {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let count = bytes.len().min(room).min(MAX_PAYLOAD);
        self.sender.send_data(Flow::Main, bytes[..count].to_vec());
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.sender.finish();
        Poll::Ready(Ok(()))
    }
}
