//! The bytes that a client has not accepted yet.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::Bytes;

use super::wire;

/// The most parts of one system call.
const MAX_PARTS: usize = 16;

/// The bytes that a client has not accepted yet. Each part starts and ends with a frame; the parts are
/// shared with other clients.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    parts: VecDeque<Bytes>,
    /// The bytes of the first part that the client accepted.
    written: usize,
}

impl Outgoing {
    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Returns the number of bytes.
    pub(super) fn bytes(&self) -> usize {
        self.parts.iter().map(Bytes::len).sum::<usize>() - self.written
    }

    pub(super) fn push(&mut self, part: Bytes) {
        if !part.is_empty() {
            self.parts.push_back(part);
        }
    }

    pub(super) fn extend(&mut self, parts: Vec<Bytes>) {
        for part in parts {
            self.push(part);
        }
    }

    /// Returns what to write next.
    pub(super) fn slices(&self) -> Vec<IoSlice<'_>> {
        let mut slices = Vec::with_capacity(self.parts.len().min(MAX_PARTS));
        let mut skip = self.written;
        for part in self.parts.iter().take(MAX_PARTS) {
            slices.push(IoSlice::new(&part[skip..]));
            skip = 0;
        }
        slices
    }

    /// Removes bytes that the client accepted.
    pub(super) fn advance(&mut self, accepted: usize) {
        self.written += accepted;
        while let Some(first) = self.parts.front() {
            if self.written < first.len() {
                return;
            }
            self.written -= first.len();
            self.parts.pop_front();
        }
        // An idle client needs no memory.
        self.parts = VecDeque::new();
    }

    /// Removes everything after the frame that the client accepted in part.
    pub(super) fn retain_current_frame(&mut self) {
        let Some(first) = self.parts.front().cloned() else {
            return;
        };
        self.parts.clear();
        let mut end = 0;
        while end < self.written {
            match wire::frame_length(&first[end..]) {
                Some(length) => end += length,
                None => break,
            }
        }
        if end > self.written {
            self.parts.push_back(first.slice(..end));
        } else {
            self.written = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(outgoing: &Outgoing) -> Vec<u8> {
        outgoing
            .slices()
            .iter()
            .flat_map(|slice| slice.to_vec())
            .collect()
    }

    #[test]
    fn whole_frames_remain_wherever_a_client_stopped_reading() {
        let part: Vec<u8> = [
            wire::text("one"),
            wire::text(&"x".repeat(300)),
            wire::text("three"),
        ]
        .concat();
        let close = wire::close(wire::CloseCode::TooSlow, "");
        for stop in 0..=part.len() {
            let mut outgoing = Outgoing::default();
            outgoing.push(Bytes::from(part.clone()));
            outgoing.push(wire::text("never"));
            let mut received = part[..stop].to_vec();
            outgoing.advance(stop);
            outgoing.retain_current_frame();
            outgoing.push(close.clone());
            assert_eq!(outgoing.bytes(), written(&outgoing).len());
            received.extend(written(&outgoing));
            let mut rest = received.as_slice();
            while rest != close {
                rest = &rest[wire::frame_length(rest).unwrap()..];
            }
        }
    }

    #[test]
    fn bytes_are_written_once_and_in_order() {
        let parts: Vec<Bytes> = (0..40_u8)
            .map(|n| Bytes::from(vec![n; usize::from(n)]))
            .collect();
        let mut outgoing = Outgoing::default();
        for part in &parts {
            outgoing.push(part.clone());
        }
        let mut received = Vec::new();
        while !outgoing.is_empty() {
            let slices = written(&outgoing);
            let accepted = slices.len().min(7);
            received.extend_from_slice(&slices[..accepted]);
            outgoing.advance(accepted);
        }
        assert_eq!(received, parts.concat());
    }
}
