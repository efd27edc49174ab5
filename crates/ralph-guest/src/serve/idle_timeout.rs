//! A reader that fails after a period of silence.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// A reader that fails if no data arrives in time.
#[derive(Debug)]
pub(super) struct IdleTimeoutReader<R> {
    reader: R,
    idle_timeout: Duration,
    deadline: Pin<Box<Sleep>>,
}

impl<R> IdleTimeoutReader<R> {
    pub(super) fn new(reader: R, idle_timeout: Duration) -> Self {
        Self {
            reader,
            idle_timeout,
            deadline: Box::pin(sleep(idle_timeout)),
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for IdleTimeoutReader<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.reader).poll_read(context, buffer);
        if polled.is_ready() {
            let deadline = Instant::now() + self.idle_timeout;
            self.deadline.as_mut().reset(deadline);
            return polled;
        }
        match self.deadline.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    #[tokio::test]
    async fn silence_since_the_last_byte_times_out() {
        let timeout = Duration::from_millis(50);
        let (mut far, near) = duplex(16);
        let mut reader = IdleTimeoutReader::new(near, timeout);
        let mut byte = [0];
        for _ in 0..3 {
            tokio::time::sleep(timeout / 2).await;
            far.write_all(b"x").await.unwrap();
            assert_eq!(reader.read(&mut byte).await.unwrap(), 1);
        }
        let last_byte = Instant::now();
        let silent = reader.read(&mut byte).await.unwrap_err();
        assert_eq!(silent.kind(), io::ErrorKind::TimedOut);
        // The deadline was set just before `last_byte`.
        assert!(last_byte.elapsed() > timeout / 2, "{last_byte:?}");
    }
}
