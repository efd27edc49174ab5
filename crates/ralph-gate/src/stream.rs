//! Stream wrappers: read-ahead bytes, limits and counters.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use crate::audit::Traffic;

/// A bidirectional byte stream.
pub trait ByteStream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> ByteStream for S {}

/// Ends a connection that is idle for too long or carries too many bytes.
pub(crate) struct LimitedStream<S> {
    inner: S,
    idle: Duration,
    last_activity: Instant,
    idle_timer: Pin<Box<Sleep>>,
    max_bytes: u64,
    read: u64,
    written: u64,
}

impl<S> LimitedStream<S> {
    pub(crate) fn new(inner: S, idle: Duration, max_bytes: u64) -> Self {
        Self {
            inner,
            idle,
            last_activity: Instant::now(),
            idle_timer: Box::pin(tokio::time::sleep(idle)),
            max_bytes,
            read: 0,
            written: 0,
        }
    }

    /// Fails if the stream was idle for too long; otherwise schedules a wakeup for that time.
    fn poll_idle<T>(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        // The timer is only reset when it fires, so that moving bytes does not touch it.
        loop {
            ready!(self.idle_timer.as_mut().poll(cx));
            let end = self.last_activity + self.idle;
            if end <= Instant::now() {
                let text = format!("no data for {}s", self.idle.as_secs());
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, text)));
            }
            self.idle_timer.as_mut().reset(end);
        }
    }

    fn check_limit(&self) -> io::Result<()> {
        if self.read > self.max_bytes || self.written > self.max_bytes {
            let text = format!("more than {} bytes in one direction", self.max_bytes);
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, text));
        }
        Ok(())
    }
}

use std::future::Future as _;

impl<S: AsyncRead + Unpin> AsyncRead for LimitedStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        match Pin::new(&mut this.inner).poll_read(cx, buf) {
            Poll::Pending => this.poll_idle(cx),
            Poll::Ready(result) => {
                result?;
                this.last_activity = Instant::now();
                this.read += (buf.filled().len() - before) as u64;
                Poll::Ready(this.check_limit())
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> LimitedStream<S> {
    fn record_write(
        &mut self,
        cx: &mut Context<'_>,
        result: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        match result {
            Poll::Pending => self.poll_idle(cx),
            Poll::Ready(result) => {
                let count = result?;
                self.last_activity = Instant::now();
                self.written += count as u64;
                self.check_limit()?;
                Poll::Ready(Ok(count))
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for LimitedStream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let result = Pin::new(&mut this.inner).poll_write(cx, buf);
        this.record_write(cx, result)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let result = Pin::new(&mut this.inner).poll_write_vectored(cx, bufs);
        this.record_write(cx, result)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(cx)
    }
}

/// Returns read-ahead bytes first, then reads from the stream; counts all bytes.
pub(crate) struct CountingStream<S> {
    inner: S,
    read_ahead: Vec<u8>,
    replayed: usize,
    traffic: Arc<Traffic>,
}

impl<S> CountingStream<S> {
    pub(crate) fn new(inner: S, read_ahead: Vec<u8>, traffic: Arc<Traffic>) -> Self {
        Self {
            inner,
            read_ahead,
            replayed: 0,
            traffic,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for CountingStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        if this.replayed < this.read_ahead.len() {
            let count = buf.remaining().min(this.read_ahead.len() - this.replayed);
            buf.put_slice(&this.read_ahead[this.replayed..this.replayed + count]);
            this.replayed += count;
            if this.replayed == this.read_ahead.len() {
                this.read_ahead = Vec::new();
                this.replayed = 0;
            }
        } else {
            ready!(Pin::new(&mut this.inner).poll_read(cx, buf))?;
        }
        this.traffic.add_sent(buf.filled().len() - before);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for CountingStream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let count = ready!(Pin::new(&mut this.inner).poll_write(cx, buf))?;
        this.traffic.add_received(count);
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(cx)
    }
}
