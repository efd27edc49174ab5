//! Splits a byte stream into server-sent events, regardless of chunk boundaries.

/// Maximum size of an event.
const MAX_EVENT_BYTES: usize = 8 * 1024 * 1024;

/// A server-sent event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SseEvent {
    /// Empty if unnamed.
    pub(super) name: String,
    /// Multiple lines are joined by line breaks.
    pub(super) data: String,
}

/// Incremental decoder for an event stream.
#[derive(Debug, Default)]
pub(super) struct SseDecoder {
    /// The incomplete line.
    line: Vec<u8>,
    name: String,
    data: Option<String>,
    after_return: bool,
}

/// An event exceeds the maximum size.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SseEventTooLong;

impl SseDecoder {
    /// Adds a chunk and returns the events that it completes.
    pub(super) fn push(&mut self, chunk: &[u8]) -> Result<Vec<SseEvent>, SseEventTooLong> {
        let mut events = Vec::new();
        for byte in chunk {
            let was_return = std::mem::replace(&mut self.after_return, *byte == b'\r');
            match byte {
                // The preceding carriage return already ended the line.
                b'\n' if was_return => {}
                b'\n' | b'\r' => events.extend(self.end_line()),
                other => self.line.push(*other),
            }
            if self.line.len() + self.data.as_ref().map_or(0, String::len) > MAX_EVENT_BYTES {
                return Err(SseEventTooLong);
            }
        }
        Ok(events)
    }

    /// Returns the last event of a stream that ended without a final empty line.
    pub(super) fn finish(mut self) -> Option<SseEvent> {
        if !self.line.is_empty() {
            self.end_line();
        }
        self.end_line()
    }

    fn end_line(&mut self) -> Option<SseEvent> {
        let bytes = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&bytes);
        let line = line.trim_start_matches('\u{feff}');
        if line.is_empty() {
            let name = std::mem::take(&mut self.name);
            return self.data.take().map(|data| SseEvent { name, data });
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" => {
                let data = self.data.get_or_insert_default();
                if !data.is_empty() {
                    data.push('\n');
                }
                data.push_str(value);
            }
            // Comments keep a connection alive; ids and retry times are not used.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = "\u{feff}: hello\r\n\r\nevent: ping\ndata: {\"a\": 1}\n\n\
        data:first\ndata: second\r\rid: 7\nretry: 5\ndata\n\ndata: héllo\n\nevent: lost\ndata: half";

    fn event(name: &str, data: &str) -> SseEvent {
        SseEvent {
            name: name.into(),
            data: data.into(),
        }
    }

    #[test]
    fn a_stream_decodes_the_same_however_it_is_split() {
        let expected = [
            event("ping", "{\"a\": 1}"),
            event("", "first\nsecond"),
            event("", ""),
            event("", "héllo"),
        ];
        for size in 1..=STREAM.len() {
            let mut decoder = SseDecoder::default();
            let events: Vec<SseEvent> = STREAM
                .as_bytes()
                .chunks(size)
                .flat_map(|chunk| decoder.push(chunk).unwrap())
                .collect();
            assert_eq!(events, expected, "{size}");
            assert_eq!(decoder.finish(), Some(event("lost", "half")));
        }
    }

    #[test]
    fn an_endless_event_is_rejected() {
        let mut decoder = SseDecoder::default();
        let chunk = vec![b'x'; MAX_EVENT_BYTES / 2];
        assert_eq!(decoder.push(b"data: "), Ok(Vec::new()));
        assert_eq!(decoder.push(&chunk), Ok(Vec::new()));
        assert_eq!(decoder.push(&chunk), Err(SseEventTooLong));
    }
}
