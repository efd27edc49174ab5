//! The frames of a stream at the position of one client.

use bytes::Bytes;

use super::limits::StreamLag;
use super::wire::CloseCode;

/// Why a stream is closed: the code, and the reason for the user.
pub(super) type CloseReason = (CloseCode, &'static str);

/// What follows in a stream.
#[derive(Debug)]
pub(super) enum NextFrames {
    /// These bytes; each element starts and ends with a frame.
    Send(Vec<Bytes>),
    /// Nothing yet.
    Wait,
    /// The stream has ended.
    End(CloseReason),
}

/// The frames of a stream at the position of one client.
pub(super) trait FrameSource: Send + 'static {
    /// Returns the next frames, and moves the position behind them.
    fn next(&mut self) -> impl Future<Output = NextFrames> + Send;

    /// Waits until [`Self::next`] may return more. Can be cancelled.
    fn changed(&mut self) -> impl Future<Output = ()> + Send;

    /// Returns how far the position is behind the end of the stream.
    fn lag(&self) -> StreamLag;
}
