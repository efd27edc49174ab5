//! Redacts text that arrives in chunks.

use super::fold::FoldedText;
use super::patterns::{self, CONTEXT, ScanText};
use super::redaction_span::RedactionSpan;
use super::{RedactionCounts, Redactor};

/// Text on its way through a [`Redactor`].
///
/// Text is written as soon as no further input can change it. At most the longest spelling of a
/// known secret, or 4 KiB of text that resembles a token, is delayed.
///
/// ```
/// use ralph_core::secret::Redactor;
/// let redactor = Redactor::default();
/// let (mut stream, mut out) = (redactor.stream(), Vec::new());
/// stream.push(b"id: AKIAIOSF", &mut out);
/// assert_eq!(out, b"id: ");
/// stream.push(b"ODNN7EXAMPLE\n", &mut out);
/// stream.finish(&mut out);
/// assert_eq!(out, b"id: [REDACTED]\n");
/// ```
pub struct RedactStream {
    redactor: Redactor,
    /// A few bytes that are already written, then the delayed ones.
    buffer: Vec<u8>,
    /// The number of bytes in the buffer that are already written.
    context: usize,
    /// The spans that reach into the delayed bytes.
    spans: Vec<RedactionSpan>,
    /// The secret at the start of the delayed bytes, if any.
    region: Option<RedactedRegion>,
    hits: RedactionCounts,
}

/// Overlapping spans, replaced by one placeholder.
struct RedactedRegion {
    end: usize,
    is_open: bool,
    secret: Option<usize>,
}

impl RedactStream {
    pub(super) fn new(redactor: Redactor) -> Self {
        Self {
            redactor,
            buffer: Vec::new(),
            context: 0,
            spans: Vec::new(),
            region: None,
            hits: RedactionCounts::default(),
        }
    }

    /// Accepts the next chunk and appends all text that is now safe to `out`.
    pub fn push(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        self.buffer.extend_from_slice(piece);
        self.advance(false, out);
    }

    /// Ends the text, appends the rest to `out` and returns the number of redactions.
    pub fn finish(mut self, out: &mut Vec<u8>) -> RedactionCounts {
        self.advance(true, out);
        self.redactor.count(self.hits);
        self.hits
    }

    fn advance(&mut self, is_last: bool, out: &mut Vec<u8>) {
        let text = ScanText {
            bytes: &self.buffer,
            is_last,
        };
        let start = self.context;
        let mut spans = std::mem::take(&mut self.spans);
        for span in &mut spans {
            *span = span.extended(text.bytes);
        }
        let settled = spans.len();
        let by_shape = patterns::scan(text, start, self.redactor.shapes(), &mut spans);
        let secrets = self.redactor.known_secrets();
        let needles = secrets.needles();
        let folded = (!needles.is_empty()).then(|| FoldedText::new(text.bytes, start, is_last));
        let known = folded.as_ref().map_or(text.bytes.len(), |folded| {
            needles.scan(text, start, folded, &mut spans)
        });
        let mut hold = by_shape.min(known);
        if !is_last {
            hold = spans
                .iter()
                .map(|span| span.end.hold)
                .fold(hold, usize::min);
            // The rest must not start inside an escape: its meaning would change.
            hold = folded.map_or(hold, |folded| folded.token_start(hold));
        }
        // Matches in the delayed bytes are found again when those bytes are examined again.
        let mut index = 0;
        spans.retain(|span| {
            index += 1;
            index <= settled || span.at < hold
        });
        spans.sort_by_key(|span| span.from);
        self.write(&spans, hold, is_last, out);
        self.retain_pending(spans, hold);
    }

    /// Writes everything before `hold`.
    fn write(&mut self, spans: &[RedactionSpan], hold: usize, is_last: bool, out: &mut Vec<u8>) {
        let mut written = self.context;
        let mut region = self.region.take();
        for span in spans
            .iter()
            .filter(|span| span.continues || span.from < hold)
        {
            let is_open = span.end.is_open && !is_last;
            match &mut region {
                Some(region) if span.continues || span.from < region.end => {
                    region.end = region.end.max(span.end.at);
                    region.is_open |= is_open;
                    region.secret = region.secret.or(span.secret);
                }
                Some(_) | None => {
                    written = self.close(region.take(), written, out);
                    out.extend_from_slice(&self.buffer[written..span.from]);
                    region = Some(RedactedRegion {
                        end: span.end.at,
                        is_open,
                        secret: span.secret,
                    });
                }
            }
        }
        let is_done = |region: &RedactedRegion| region.end <= hold && !region.is_open;
        if region.as_ref().is_none_or(is_done) {
            written = self.close(region.take(), written, out);
            out.extend_from_slice(&self.buffer[written..hold]);
        }
        self.region = region;
    }

    /// Writes the placeholder of a region, if any; returns the position after it.
    fn close(
        &mut self,
        region: Option<RedactedRegion>,
        written: usize,
        out: &mut Vec<u8>,
    ) -> usize {
        let Some(region) = region else {
            return written;
        };
        let secrets = self.redactor.known_secrets();
        out.extend_from_slice(secrets.placeholder(region.secret).as_bytes());
        match region.secret {
            Some(_) => self.hits.known += 1,
            None => self.hits.by_shape += 1,
        }
        region.end
    }

    /// Drops the written bytes except the context, and retains the spans that reach beyond `hold`.
    fn retain_pending(&mut self, spans: Vec<RedactionSpan>, hold: usize) {
        let context = hold.min(CONTEXT);
        let dropped = hold - context;
        for kept in spans
            .into_iter()
            .filter_map(|span| span.rebased(hold, dropped))
        {
            // Runs of one class that continue are the same run from here on.
            if !self.spans.iter().any(|span| span.covers_same_bytes(&kept)) {
                self.spans.push(kept);
            }
        }
        if let Some(region) = &mut self.region {
            region.end = context;
            region.is_open = false;
        }
        self.buffer.drain(..dropped);
        self.context = context;
    }
}
