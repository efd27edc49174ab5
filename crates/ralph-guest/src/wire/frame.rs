//! The format of a frame: a header of nine bytes, then the payload.
//!
//! ```text
//! length: u32   of the payload, little endian, at most 256 KiB of bytes or 4 MiB of a message
//! stream: u32   opened by the host if even, by the guest if odd
//! kind:   u8
//! ```

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The maximum payload of frames other than messages, in bytes.
pub const MAX_PAYLOAD: usize = 256 * 1024;
/// The maximum message: twice the limit of a Linux command line, in bytes.
pub const MAX_MESSAGE: usize = 4 * 1024 * 1024;
/// The maximum number of unacknowledged bytes per stream and direction.
pub const WINDOW: usize = 1024 * 1024;

pub(super) const HEAD_BYTES: usize = 9;

/// One of the two byte flows of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Input, standard output, or the bytes of a file or connection.
    Main,
    /// Standard error.
    Side,
}

/// The kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// Opens a stream; the payload is a message.
    Open,
    /// A message.
    Message,
    /// Bytes, which consume credit.
    Data(Flow),
    /// The end of the bytes from this side.
    End,
    /// Returns credit: four bytes, little endian.
    Credit,
    /// The stream is closed in both directions.
    Close,
}

impl FrameKind {
    fn code(self) -> u8 {
        match self {
            Self::Open => 0,
            Self::Message => 1,
            Self::Data(Flow::Main) => 2,
            Self::Data(Flow::Side) => 3,
            Self::End => 4,
            Self::Credit => 5,
            Self::Close => 6,
        }
    }

    /// Returns the maximum payload length.
    fn max_payload(self) -> usize {
        match self {
            Self::Open | Self::Message => MAX_MESSAGE,
            Self::Data(_) | Self::End | Self::Credit | Self::Close => MAX_PAYLOAD,
        }
    }

    fn from_code(code: u8) -> Result<Self, FrameError> {
        Ok(match code {
            0 => Self::Open,
            1 => Self::Message,
            2 => Self::Data(Flow::Main),
            3 => Self::Data(Flow::Side),
            4 => Self::End,
            5 => Self::Credit,
            6 => Self::Close,
            other => return Err(FrameError::UnknownKind(other)),
        })
    }
}

/// One frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub stream: u32,
    pub kind: FrameKind,
    pub payload: Vec<u8>,
}

/// An invalid frame or a failed connection.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The connection ended or failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The frame is too long.
    #[error("a frame has {length} bytes, at most {max} are allowed")]
    TooLong { length: usize, max: usize },
    /// The kind is unknown.
    #[error("unknown frame kind {0}")]
    UnknownKind(u8),
    /// The peer violated the protocol.
    #[error("{0}")]
    Protocol(&'static str),
}

impl Frame {
    /// Returns the nine bytes before the payload.
    pub(super) fn head(&self) -> [u8; HEAD_BYTES] {
        let length = u32::try_from(self.payload.len()).unwrap_or(u32::MAX);
        let mut head = [0; HEAD_BYTES];
        head[..4].copy_from_slice(&length.to_le_bytes());
        head[4..8].copy_from_slice(&self.stream.to_le_bytes());
        head[8] = self.kind.code();
        head
    }

    /// Reads the next frame; `None` at a clean end of the connection.
    pub async fn read(from: &mut (impl AsyncRead + Unpin)) -> Result<Option<Self>, FrameError> {
        let mut head = [0; HEAD_BYTES];
        let count = from.read(&mut head).await?;
        if count == 0 {
            return Ok(None);
        }
        from.read_exact(&mut head[count..]).await?;
        let [l0, l1, l2, l3, s0, s1, s2, s3, code] = head;
        let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        let kind = FrameKind::from_code(code)?;
        let max = kind.max_payload();
        if length > max {
            return Err(FrameError::TooLong { length, max });
        }
        let mut payload = vec![0; length];
        from.read_exact(&mut payload).await?;
        Ok(Some(Self {
            stream: u32::from_le_bytes([s0, s1, s2, s3]),
            kind,
            payload,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn frames_round_trip() {
        let kinds = [
            FrameKind::Open,
            FrameKind::Message,
            FrameKind::Data(Flow::Main),
            FrameKind::Data(Flow::Side),
            FrameKind::End,
            FrameKind::Credit,
            FrameKind::Close,
        ];
        let frames: Vec<Frame> = (7..)
            .zip(kinds)
            .map(|(stream, kind)| Frame {
                stream,
                kind,
                payload: vec![b'x'; stream as usize],
            })
            .collect();
        let mut bytes = Vec::new();
        for frame in &frames {
            bytes.extend(frame.head());
            bytes.extend(&frame.payload);
        }
        let mut from = bytes.as_slice();
        for frame in frames {
            assert_eq!(Frame::read(&mut from).await.unwrap(), Some(frame));
        }
        assert_eq!(Frame::read(&mut from).await.unwrap(), None);
    }

    #[tokio::test]
    async fn invalid_frames_are_rejected() {
        let long = [1, 0, 4, 0, 0, 0, 0, 0, 2];
        let long_message = [1, 0, 64, 0, 0, 0, 0, 0, 1];
        let unknown = [0, 0, 0, 0, 0, 0, 0, 0, 77];
        let torn = [9, 0, 0, 0, 0, 0, 0, 0, 1, b'x'];
        let mut texts = Vec::new();
        for bytes in [&long[..], &long_message, &unknown, &torn, &[0, 0]] {
            let error = Frame::read(&mut &*bytes).await.unwrap_err();
            texts.push(error.to_string());
        }
        assert_eq!(
            texts,
            [
                "a frame has 262145 bytes, at most 262144 are allowed",
                "a frame has 4194305 bytes, at most 4194304 are allowed",
                "unknown frame kind 77",
                "early eof",
                "early eof",
            ]
        );
    }
}
