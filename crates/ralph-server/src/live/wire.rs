//! The bytes of WebSocket frames (RFC 6455).
//!
//! Frames of a server are not masked, so the bytes of an event are the same for every client and are
//! encoded once. Clients have nothing to send but control frames; everything else ends the
//! connection, so the memory for a client's bytes is bounded by the longest control frame.

use bytes::Bytes;

/// The longest payload of a control frame.
const MAX_CONTROL_PAYLOAD: usize = 125;

/// A ping without a payload.
pub(super) const PING: Bytes = Bytes::from_static(&[0x89, 0]);

/// Why the server closes a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum CloseCode {
    /// The client closed the stream.
    Normal = 1000,
    /// The server stops, or the stream has to be opened again.
    GoingAway = 1001,
    /// The client violated the protocol.
    ProtocolError = 1002,
    /// The client sent a message; these streams accept none.
    Unsupported = 1003,
    /// The server cannot read the run.
    Failed = 1011,
    /// The request has no valid session or token.
    NotSignedIn = 4001,
    /// The run does not exist, or was removed.
    NoSuchRun = 4004,
    /// The client is too far behind. It can continue from the last number that it received.
    TooSlow = 4008,
}

/// Appends a text frame.
pub(super) fn push_text(out: &mut Vec<u8>, text: &[u8]) {
    let length = text.len() as u64;
    out.push(0x81);
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(short), _) if short < 126 => out.push(short),
        (_, Ok(middle)) => {
            out.push(126);
            out.extend_from_slice(&middle.to_be_bytes());
        }
        _ => {
            out.push(127);
            out.extend_from_slice(&length.to_be_bytes());
        }
    }
    out.extend_from_slice(text);
}

/// Returns a text frame.
pub(super) fn text(text: &str) -> Bytes {
    let mut out = Vec::with_capacity(text.len() + 10);
    push_text(&mut out, text.as_bytes());
    out.into()
}

/// Returns a close frame. A long reason is cut.
pub(super) fn close(code: CloseCode, reason: &str) -> Bytes {
    let mut payload = (code as u16).to_be_bytes().to_vec();
    let room = reason.floor_char_boundary(MAX_CONTROL_PAYLOAD - payload.len());
    payload.extend_from_slice(&reason.as_bytes()[..room]);
    control(0x88, &payload)
}

/// Returns the answer to a ping.
pub(super) fn pong(payload: &[u8]) -> Bytes {
    control(0x8a, payload)
}

fn control(first: u8, payload: &[u8]) -> Bytes {
    let payload = &payload[..payload.len().min(MAX_CONTROL_PAYLOAD)];
    let length = u8::try_from(payload.len()).unwrap_or(0);
    let mut out = vec![first, length];
    out.extend_from_slice(payload);
    out.into()
}

/// Returns the length of the first frame of a server, with its header.
pub(super) fn frame_length(bytes: &[u8]) -> Option<usize> {
    let (header, payload) = match *bytes.get(1)? {
        126 => (
            4,
            u64::from(u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?)),
        ),
        127 => (10, u64::from_be_bytes(*bytes.get(2..)?.first_chunk()?)),
        length => (2, u64::from(length)),
    };
    match usize::try_from(payload) {
        Ok(payload) => Some(header + payload),
        Err(_) => None,
    }
}

/// A frame from a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ClientFrame {
    Ping(Vec<u8>),
    Pong,
    Close,
}

/// Parses the frames of a client.
#[derive(Debug, Default)]
pub(super) struct ClientFrames {
    buffer: Vec<u8>,
}

impl ClientFrames {
    /// Adds bytes that were received.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the next frame, none if it is incomplete, or why the connection must be closed.
    pub(super) fn next(&mut self) -> Result<Option<ClientFrame>, CloseCode> {
        let [first, second, ..] = self.buffer[..] else {
            return Ok(None);
        };
        let length = usize::from(second & 0x7f);
        if matches!(first & 0x0f, 0..=2) {
            return Err(CloseCode::Unsupported);
        }
        if first & 0xf0 != 0x80 || second & 0x80 == 0 || length > MAX_CONTROL_PAYLOAD {
            return Err(CloseCode::ProtocolError);
        }
        let Some(frame) = self.buffer.get(2..6 + length) else {
            return Ok(None);
        };
        let (mask, payload) = frame.split_at(4);
        let bytes = payload.iter().zip(mask.iter().cycle());
        let frame = match first & 0x0f {
            0x8 => ClientFrame::Close,
            0x9 => ClientFrame::Ping(bytes.map(|(byte, mask)| byte ^ mask).collect()),
            0xa => ClientFrame::Pong,
            _ => return Err(CloseCode::ProtocolError),
        };
        self.buffer.drain(..6 + length);
        Ok(Some(frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_as_long_as_its_header_says() {
        for length in [0, 1, 125, 126, 127, 65_535, 65_536, 200_000] {
            let mut out = Vec::new();
            push_text(&mut out, &vec![b'x'; length]);
            assert_eq!(frame_length(&out), Some(out.len()), "{length}");
            for cut in 0..out.len().min(10) {
                let known = frame_length(&out[..cut]);
                assert!(
                    known.is_none() || known == Some(out.len()),
                    "{length} {cut}"
                );
            }
        }
        let long = close(CloseCode::TooSlow, &"ä".repeat(200));
        assert_eq!(frame_length(&long), Some(long.len()));
        assert_eq!(long[2..4], 4008_u16.to_be_bytes());
        assert!(std::str::from_utf8(&long[4..]).is_ok());
    }

    #[test]
    fn control_frames_are_parsed_however_they_are_split() {
        let mask = [1, 2, 3, 4];
        let masked = |first: u8, payload: &[u8]| {
            let body = payload.iter().zip(mask.iter().cycle()).map(|(b, m)| b ^ m);
            let head = [first, 0x80 | u8::try_from(payload.len()).unwrap()];
            head.into_iter()
                .chain(mask)
                .chain(body)
                .collect::<Vec<u8>>()
        };
        let bytes = [
            masked(0x89, b"hello"),
            masked(0x8a, b""),
            masked(0x88, &[3, 232]),
        ]
        .concat();
        let mut frames = ClientFrames::default();
        let mut parsed = Vec::new();
        for byte in bytes {
            frames.push(&[byte]);
            parsed.extend(frames.next().unwrap());
        }
        let hello = ClientFrame::Ping(b"hello".to_vec());
        assert_eq!(parsed, [hello, ClientFrame::Pong, ClientFrame::Close]);
    }

    #[test]
    fn anything_but_a_masked_control_frame_ends_the_connection() {
        for (bytes, code) in [
            ([0x81, 0x85], CloseCode::Unsupported),
            ([0x82, 0xff], CloseCode::Unsupported),
            ([0x89, 0x05], CloseCode::ProtocolError),
            ([0x09, 0x85], CloseCode::ProtocolError),
            ([0xc9, 0x85], CloseCode::ProtocolError),
            ([0x89, 0xfe], CloseCode::ProtocolError),
            ([0x8b, 0x80], CloseCode::ProtocolError),
        ] {
            let mut frames = ClientFrames::default();
            frames.push(&bytes);
            frames.push(&[0; 6]);
            assert_eq!(frames.next(), Err(code), "{bytes:x?}");
        }
    }
}
