//! Extracts the `data:` lines of an event stream; chunks may end anywhere.

/// The maximum length of a line, in bytes; longer lines are skipped.
const MAX_LINE_BYTES: usize = 8 * 1024 * 1024;
/// The buffer capacity retained between events, in bytes.
const RETAINED_CAPACITY: usize = 8 * 1024;

/// Assembles lines from chunks and passes on their data.
#[derive(Default)]
pub(super) struct SseDataReader {
    rest: Vec<u8>,
    is_too_long: bool,
}

impl SseDataReader {
    /// Reads a chunk and passes the `data:` object of every completed line to `each`.
    pub(super) fn feed(&mut self, chunk: &[u8], mut each: impl FnMut(&[u8])) {
        let mut chunk = chunk;
        while let Some(end) = chunk.iter().position(|b| *b == b'\n') {
            let (line, rest) = chunk.split_at(end);
            chunk = &rest[1..];
            if self.is_too_long {
                self.is_too_long = false;
            } else if self.rest.is_empty() {
                data_field(line).map(&mut each);
            } else {
                self.rest.extend_from_slice(line);
                data_field(&self.rest).map(&mut each);
            }
            self.rest.clear();
            self.rest.shrink_to(RETAINED_CAPACITY);
        }
        if self.is_too_long {
            return;
        }
        self.rest.extend_from_slice(chunk);
        if self.rest.len() > MAX_LINE_BYTES {
            self.skip_line();
        }
    }

    /// Passes the `data:` object of an unterminated last line to `each`.
    pub(super) fn finish(self, each: impl FnMut(&[u8])) {
        data_field(&self.rest).map(each);
    }

    /// Returns the buffer size of the current line, in bytes.
    pub(super) fn buffered(&self) -> usize {
        self.rest.capacity()
    }

    /// Skips the rest of the current line.
    pub(super) fn skip_line(&mut self) {
        self.is_too_long = true;
        self.rest = Vec::new();
    }
}

/// Returns the value after `data:`, if it is a JSON object. `[DONE]` is not one.
fn data_field(line: &[u8]) -> Option<&[u8]> {
    let data = line.strip_prefix(b"data:")?.trim_ascii();
    data.starts_with(b"{").then_some(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_may_end_anywhere() {
        let text = b"event: a\ndata: {\"a\":1}\r\n\r\n: ping\ndata:{\"b\":2}\n\ndata: [DONE]\n\n";
        for size in 1..text.len() {
            let (mut reader, mut found) = (SseDataReader::default(), Vec::new());
            for chunk in text.chunks(size) {
                reader.feed(chunk, |data| {
                    found.push(String::from_utf8(data.to_vec()).unwrap());
                });
            }
            assert_eq!(found, ["{\"a\":1}", "{\"b\":2}"], "{size}");
        }
    }

    #[test]
    fn a_last_line_needs_no_end() {
        let (mut reader, mut found) = (SseDataReader::default(), Vec::new());
        reader.feed(b"data: {\"a\":1}\n\ndata: {\"b\"", |_| {});
        reader.feed(b":2}", |_| {});
        reader.finish(|data| found.extend_from_slice(data));
        assert_eq!(found, b"{\"b\":2}");
    }

    #[test]
    fn overlong_lines_are_skipped() {
        let (mut reader, mut found) = (SseDataReader::default(), 0);
        for _ in 0..=MAX_LINE_BYTES / (1 << 16) {
            reader.feed(&vec![b'x'; 1 << 16], |_| found += 1);
        }
        assert_eq!(reader.rest.capacity(), 0);
        reader.feed(b"end of it\ndata: {}\n", |_| found += 1);
        assert_eq!(found, 1);
    }
}
