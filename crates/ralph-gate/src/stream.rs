//! Streams with something added: bytes that were read ahead, bounds, counters.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use crate::audit::Traffic;

/// Anything that bytes go through in both directions.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// Ends a connection that carries nothing for too long, or too much.
pub(crate) struct Bounded<S> {
    inner: S,
    idle: Duration,
    last: Instant,
    alarm: Pin<Box<Sleep>>,
    most: u64,
    read: u64,
    written: u64,
}

impl<S> Bounded<S> {
    pub(crate) fn new(inner: S, idle: Duration, most: u64) -> Self {
        Self {
            inner,
            idle,
            last: Instant::now(),
            alarm: Box::pin(tokio::time::sleep(idle)),
            most,
            read: 0,
            written: 0,
        }
    }

    /// Fails when nothing has moved for too long; otherwise wakes the task when it would be.
    fn poll_idle<T>(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        // The alarm is only moved when it rings, so that moving bytes costs no timer.
        loop {
            ready!(self.alarm.as_mut().poll(cx));
            let end = self.last + self.idle;
            if end <= Instant::now() {
                let text = format!("nothing moved for {}s", self.idle.as_secs());
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, text)));
            }
            self.alarm.as_mut().reset(end);
        }
    }

    fn check(&self) -> io::Result<()> {
        if self.read > self.most || self.written > self.most {
            let text = format!("more than {} bytes in one direction", self.most);
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, text));
        }
        Ok(())
    }
}

use std::future::Future as _;

impl<S: AsyncRead + Unpin> AsyncRead for Bounded<S> {
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
                this.last = Instant::now();
                this.read += (buf.filled().len() - before) as u64;
                Poll::Ready(this.check())
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> Bounded<S> {
    fn wrote(
        &mut self,
        cx: &mut Context<'_>,
        result: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        match result {
            Poll::Pending => self.poll_idle(cx),
            Poll::Ready(result) => {
                let count = result?;
                self.last = Instant::now();
                self.written += count as u64;
                self.check()?;
                Poll::Ready(Ok(count))
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Bounded<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let result = Pin::new(&mut this.inner).poll_write(cx, buf);
        this.wrote(cx, result)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let result = Pin::new(&mut this.inner).poll_write_vectored(cx, bufs);
        this.wrote(cx, result)
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

/// Gives back some bytes that were read ahead, then goes on; counts what passes.
pub(crate) struct Counted<S> {
    inner: S,
    ahead: Vec<u8>,
    given: usize,
    traffic: Arc<Traffic>,
}

impl<S> Counted<S> {
    pub(crate) fn new(inner: S, ahead: Vec<u8>, traffic: Arc<Traffic>) -> Self {
        Self {
            inner,
            ahead,
            given: 0,
            traffic,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        if this.given < this.ahead.len() {
            let count = buf.remaining().min(this.ahead.len() - this.given);
            buf.put_slice(&this.ahead[this.given..this.given + count]);
            this.given += count;
            if this.given == this.ahead.len() {
                this.ahead = Vec::new();
                this.given = 0;
            }
        } else {
            ready!(Pin::new(&mut this.inner).poll_read(cx, buf))?;
        }
        this.traffic.add_out(buf.filled().len() - before);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let count = ready!(Pin::new(&mut this.inner).poll_write(cx, buf))?;
        this.traffic.add_back(count);
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(cx)
    }
}
