//! Searches for known secrets.
//!
//! The first eight bytes of every needle are in a small hash table, so that one multiplication and
//! one lookup per position exclude most of the text. Unlike an automaton over thousands of needles,
//! this fits into the fastest cache, and the needles can be wiped.

use super::Secret;
use super::encode::{EncodedSecret, encodings};
use super::fold::{FoldedText, fold_secret};
use super::patterns::ScanText;
use super::redaction_span::RedactionSpan;
use super::searchability;

/// The shortest secret that is searched for: shorter ones occur by chance.
pub(super) const MIN_SECRET_BYTES: usize = 8;

/// The first bytes of a needle.
type NeedleKey = [u8; MIN_SECRET_BYTES];

/// All spellings of all known secrets.
pub(super) struct Needles {
    /// Spellings as programs print them.
    exact: NeedleSet,
    /// Folded spellings: escapes are resolved, and invisible characters are dropped.
    folded: NeedleSet,
}

/// Needles with a fast filter for positions at which none of them starts.
struct NeedleSet {
    /// Sorted by bytes, without duplicates.
    sorted: Vec<Needle>,
    filter: NeedleFilter,
    longest: usize,
}

struct Needle {
    bytes: EncodedSecret,
    /// Index of the secret.
    secret: usize,
}

/// The match at one position.
enum NeedleMatch {
    Nothing,
    Secret {
        length: usize,
        secret: usize,
    },
    /// The text ends inside a potential needle.
    Undecided,
}

impl Needles {
    /// Prepares the spellings of secrets; skips secrets that are too short or too common.
    pub(super) fn new<'a>(secrets: impl IntoIterator<Item = &'a Secret>) -> Self {
        let (mut exact, mut folded) = (Vec::new(), Vec::new());
        for (secret, value) in secrets.into_iter().enumerate() {
            let value = value.expose().trim();
            if searchability::unsearchable_reason(value).is_some() {
                continue;
            }
            for bytes in encodings(value) {
                let fold = EncodedSecret::new(fold_secret(&bytes));
                // A fold that shrank to a few bytes would occur by chance.
                if fold.len() >= MIN_SECRET_BYTES {
                    folded.push(Needle {
                        bytes: fold,
                        secret,
                    });
                }
                exact.push(Needle { bytes, secret });
            }
        }
        Self {
            exact: NeedleSet::new(exact),
            folded: NeedleSet::new(folded),
        }
    }

    /// Adds a span for every needle that starts at or after `start`.
    ///
    /// Returns the first position at which more text could change the result, or the end.
    pub(super) fn scan(
        &self,
        text: ScanText<'_>,
        start: usize,
        folded: &FoldedText,
        spans: &mut Vec<RedactionSpan>,
    ) -> usize {
        let exact = self.scan_exact(text, start, spans);
        let hold = self.scan_folded(text, start, folded, spans);
        hold.min(exact).min(folded.hold())
    }

    /// Returns whether there are no needles.
    pub(super) fn is_empty(&self) -> bool {
        self.exact.sorted.is_empty()
    }

    fn scan_exact(
        &self,
        text: ScanText<'_>,
        start: usize,
        spans: &mut Vec<RedactionSpan>,
    ) -> usize {
        let bytes = text.bytes;
        for (index, key) in bytes[start..].array_windows().enumerate() {
            if self.exact.filter.may_contain(*key) {
                let at = start + index;
                match self.exact.match_at(&bytes[at..], text.is_last) {
                    NeedleMatch::Nothing => {}
                    NeedleMatch::Secret { length, secret } => {
                        spans.push(RedactionSpan::for_known_secret(bytes, at, length, secret));
                    }
                    NeedleMatch::Undecided => return at,
                }
            }
        }
        let tail = start.max((bytes.len() + 1).saturating_sub(MIN_SECRET_BYTES));
        (tail..bytes.len())
            .find(|at| !text.is_last && self.exact.has_prefix(&bytes[*at..]))
            .unwrap_or(bytes.len())
    }

    /// Searches the folded text in the ranges that differ from the source, and at its end, which
    /// may still change.
    fn scan_folded(
        &self,
        text: ScanText<'_>,
        start: usize,
        folded: &FoldedText,
        spans: &mut Vec<RedactionSpan>,
    ) -> usize {
        let bytes = folded.bytes();
        for (from, to) in folded.windows(self.folded.longest) {
            for at in from..to.min((bytes.len() + 1).saturating_sub(MIN_SECRET_BYTES)) {
                let Some(key) = bytes[at..].first_chunk() else {
                    break;
                };
                if !self.folded.filter.may_contain(*key) {
                    continue;
                }
                // A needle that may continue is found below, too.
                if let NeedleMatch::Secret { length, secret } =
                    self.folded.match_at(&bytes[at..], true)
                    && let Some((from, to)) = folded.source(at, at + length, start)
                {
                    spans.push(RedactionSpan::for_known_secret(
                        text.bytes,
                        from,
                        to - from,
                        secret,
                    ));
                }
            }
        }
        let tail = (bytes.len() + 1).saturating_sub(self.folded.longest);
        let undecided = |at: &usize| {
            let rest = &bytes[*at..];
            match rest.first_chunk() {
                Some(key) if !self.folded.filter.may_contain(*key) => false,
                Some(_) | None => self.folded.is_unfinished(rest),
            }
        };
        (tail..bytes.len())
            .find(|at| !text.is_last && undecided(at))
            .map_or(text.bytes.len(), |at| folded.position(at, start))
    }
}

impl NeedleSet {
    fn new(mut sorted: Vec<Needle>) -> Self {
        // Stable: of two secrets with the same value, the first one names it.
        sorted.sort_by(|a: &Needle, b: &Needle| a.bytes.cmp(&b.bytes));
        sorted.dedup_by(|later, earlier| later.bytes == earlier.bytes);
        let keys = sorted
            .iter()
            .filter_map(|needle| needle.bytes.first_chunk());
        Self {
            filter: NeedleFilter::new(keys, sorted.len()),
            longest: sorted
                .iter()
                .map(|needle| needle.bytes.len())
                .max()
                .unwrap_or(0),
            sorted,
        }
    }

    fn match_at(&self, text: &[u8], is_last: bool) -> NeedleMatch {
        let mut found = NeedleMatch::Nothing;
        for needle in self.with_prefix(&text[..MIN_SECRET_BYTES]) {
            if text.starts_with(&needle.bytes) {
                // A longer needle sorts after a shorter one that is its prefix.
                found = NeedleMatch::Secret {
                    length: needle.bytes.len(),
                    secret: needle.secret,
                };
            } else if !is_last && needle.bytes.starts_with(text) {
                return NeedleMatch::Undecided;
            }
        }
        found
    }

    fn has_prefix(&self, text: &[u8]) -> bool {
        self.with_prefix(text).next().is_some()
    }

    /// Returns whether `text` is a proper prefix of a needle.
    fn is_unfinished(&self, text: &[u8]) -> bool {
        self.with_prefix(text)
            .any(|needle| needle.bytes.len() > text.len())
    }

    /// Returns the needles with a prefix.
    fn with_prefix(&self, prefix: &[u8]) -> impl Iterator<Item = &Needle> {
        let first = self
            .sorted
            .partition_point(|needle| needle.bytes.as_slice() < prefix);
        self.sorted[first..]
            .iter()
            .take_while(move |needle| needle.bytes.starts_with(prefix))
    }
}

/// A Bloom filter with one hash function: no false negatives and few false positives.
struct NeedleFilter {
    bits: Vec<u64>,
    shift: u32,
}

impl NeedleFilter {
    /// Bits per key; the rate of false positives is one in this many.
    const BITS_PER_KEY: usize = 64;
    /// The smallest table, as a power of two.
    const MIN_POWER: u32 = 12;
    /// The largest table, as a power of two: 512 KiB.
    const MAX_POWER: u32 = 22;

    fn new<'a>(keys: impl Iterator<Item = &'a NeedleKey>, count: usize) -> Self {
        let power = (count * Self::BITS_PER_KEY)
            .next_power_of_two()
            .ilog2()
            .clamp(Self::MIN_POWER, Self::MAX_POWER);
        let mut filter = Self {
            bits: vec![0; 1 << (power - 6)],
            shift: 64 - power,
        };
        for key in keys {
            let (word, bit) = filter.bit_position(*key);
            filter.bits[word] |= bit;
        }
        filter
    }

    fn may_contain(&self, key: NeedleKey) -> bool {
        let (word, bit) = self.bit_position(key);
        self.bits[word] & bit != 0
    }

    /// Returns the word and the bit of a key in the table.
    fn bit_position(&self, key: NeedleKey) -> (usize, u64) {
        // Fibonacci hashing: the highest bits depend on all bytes.
        let hash = u64::from_le_bytes(key).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift;
        ((hash >> 6) as usize, 1 << (hash & 63))
    }
}
