//! The connection of one client: writes frames, answers pings, and ends when the client is too far
//! behind.

use std::future::poll_fn;
use std::io;
use std::ops::ControlFlow;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::limits::StreamLimits;
use super::outgoing::Outgoing;
use super::source::{CloseReason, FrameSource, NextFrames};
use super::wire::{self, ClientFrame, ClientFrames, CloseCode};

/// The bytes that are read at once: clients only send control frames.
const READ_BYTES: usize = 512;

/// The connection of one client.
pub(super) struct ClientConnection<C> {
    io: C,
    outgoing: Outgoing,
    incoming: ClientFrames,
    /// The answer to the last ping of the client.
    pong: Option<Bytes>,
    /// The time of the last ping.
    pinged: Instant,
    /// The time at which the client last sent something.
    heard: Instant,
    /// The time at which the client last accepted bytes, or had none to accept.
    progress: Instant,
    /// Since when the client is behind a limit.
    late_since: Option<Instant>,
    /// Whether the client has been within the limits: until then it reads history, at its own speed.
    was_current: bool,
}

/// What happened to a connection.
enum Turn {
    Check,
    More,
    Exchanged(ControlFlow<CloseReason>),
}

impl<C: AsyncRead + AsyncWrite + Unpin + Send> ClientConnection<C> {
    pub(super) fn new(io: C) -> Self {
        let now = Instant::now();
        Self {
            io,
            outgoing: Outgoing::default(),
            incoming: ClientFrames::default(),
            pong: None,
            pinged: now,
            heard: now,
            progress: now,
            late_since: None,
            was_current: false,
        }
    }

    /// Sends frames until there is a reason to close the stream. An error is a lost connection.
    pub(super) async fn run(
        &mut self,
        mut source: impl FrameSource,
        limits: &StreamLimits,
        ends: impl Future<Output = CloseReason> + Send,
    ) -> io::Result<CloseReason> {
        let mut ends = pin!(ends);
        let mut checks = interval(limits.check);
        checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            if self.outgoing.is_empty() {
                match source.next().await {
                    NextFrames::Send(parts) => self.outgoing.extend(parts),
                    NextFrames::Wait => self.was_current = true,
                    NextFrames::End(reason) => return Ok(reason),
                }
                self.outgoing.push(self.pong.take().unwrap_or_default());
                self.progress = Instant::now();
            }
            let is_idle = self.outgoing.is_empty();
            let turn = tokio::select! {
                end = &mut ends => return Ok(end),
                exchanged = poll_fn(|context| self.poll_exchange(context)) => Turn::Exchanged(exchanged?),
                () = source.changed(), if is_idle => Turn::More,
                _ = checks.tick() => Turn::Check,
            };
            match turn {
                Turn::Exchanged(ControlFlow::Break(end)) => return Ok(end),
                Turn::Exchanged(ControlFlow::Continue(())) | Turn::More => {}
                Turn::Check => {
                    if let Some(end) = self.check(&source, limits) {
                        return Ok(end);
                    }
                }
            }
        }
    }

    /// Sends a ping when it is due, and decides whether the client is too slow.
    fn check(&mut self, source: &impl FrameSource, limits: &StreamLimits) -> Option<CloseReason> {
        let now = Instant::now();
        let mut lag = source.lag();
        lag.bytes += self.outgoing.bytes() as u64;
        if lag.exceeds(limits) {
            self.late_since = self.late_since.or_else(|| self.was_current.then_some(now));
        } else {
            self.late_since = None;
            self.was_current = true;
        }
        let is_over = |since: Instant| now.duration_since(since) >= limits.grace;
        if self.late_since.is_some_and(is_over) {
            return Some((
                CloseCode::TooSlow,
                "too far behind: continue from the last number",
            ));
        }
        if !self.outgoing.is_empty() && is_over(self.progress) {
            return Some((
                CloseCode::TooSlow,
                "nothing was read: continue from the last number",
            ));
        }
        if now.duration_since(self.heard) >= limits.ping * 3 + limits.grace {
            return Some((
                CloseCode::TooSlow,
                "no answer to pings: continue from the last number",
            ));
        }
        if now.duration_since(self.pinged) >= limits.ping {
            self.pinged = now;
            self.outgoing.push(wire::PING);
        }
        None
    }

    /// Reads and writes until something changed. The client's frames are read even if it accepts none.
    fn poll_exchange(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<ControlFlow<CloseReason>>> {
        if let Poll::Ready(read) = self.poll_read(context) {
            return Poll::Ready(read);
        }
        if self.outgoing.is_empty() {
            return Poll::Pending;
        }
        let slices = self.outgoing.slices();
        let accepted = ready!(Pin::new(&mut self.io).poll_write_vectored(context, &slices))?;
        if accepted == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        self.outgoing.advance(accepted);
        self.progress = Instant::now();
        Poll::Ready(Ok(ControlFlow::Continue(())))
    }

    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<ControlFlow<CloseReason>>> {
        let mut bytes = [0; READ_BYTES];
        let mut buffer = ReadBuf::new(&mut bytes);
        ready!(Pin::new(&mut self.io).poll_read(context, &mut buffer))?;
        if buffer.filled().is_empty() {
            return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
        }
        self.heard = Instant::now();
        self.incoming.push(buffer.filled());
        Poll::Ready(Ok(self.answer_client()))
    }

    fn answer_client(&mut self) -> ControlFlow<CloseReason> {
        loop {
            match self.incoming.next() {
                Ok(None) => return ControlFlow::Continue(()),
                Ok(Some(ClientFrame::Pong)) => {}
                Ok(Some(ClientFrame::Ping(payload))) if self.outgoing.is_empty() => {
                    self.outgoing.push(wire::pong(&payload));
                }
                // Only the last ping needs an answer.
                Ok(Some(ClientFrame::Ping(payload))) => self.pong = Some(wire::pong(&payload)),
                Ok(Some(ClientFrame::Close)) => return ControlFlow::Break((CloseCode::Normal, "")),
                Err(CloseCode::Unsupported) => {
                    return ControlFlow::Break((
                        CloseCode::Unsupported,
                        "this stream accepts no messages",
                    ));
                }
                Err(code) => return ControlFlow::Break((code, "invalid frame")),
            }
        }
    }

    /// Sends the rest of the current frame and the close frame.
    pub(super) async fn close(&mut self, (code, reason): CloseReason, limit: Duration) {
        self.outgoing.retain_current_frame();
        self.outgoing.push(wire::close(code, reason));
        send_last(&mut self.io, &mut self.outgoing, limit).await;
    }
}

/// Sends the last bytes, and waits until the client has closed the connection: a connection that is
/// closed with unread bytes would lose them.
async fn send_last<C>(io: &mut C, outgoing: &mut Outgoing, limit: Duration)
where
    C: AsyncRead + AsyncWrite + Unpin + Send,
{
    let sent = async {
        while !outgoing.is_empty() {
            let slices = outgoing.slices();
            let accepted = io.write_vectored(&slices).await?;
            outgoing.advance(accepted);
        }
        io.shutdown().await?;
        let mut unread = [0; 64];
        while io.read(&mut unread).await? > 0 {}
        io::Result::Ok(())
    };
    match timeout(limit, sent).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            tracing::debug!(%error, "a stream client left before the stream was closed");
        }
        Err(_) => tracing::debug!("a stream client did not accept the end of its stream"),
    }
}
