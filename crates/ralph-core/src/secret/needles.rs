//! Finds known texts.
//!
//! The first eight bytes of every needle are in a small hashed table; one multiplication and one
//! look-up per position of the text tell that nothing starts there. Unlike an automaton over
//! thousands of needles this stays in the fastest cache, and the needles can be wiped.

use super::Secret;
use super::encode::{EncodedSecret, encodings};
use super::fold::{FoldedText, fold_secret};
use super::patterns::ScanText;
use super::redaction_span::RedactionSpan;
use super::searchability;

/// The shortest text that is looked for: shorter ones occur by chance.
pub(super) const MIN_SECRET_BYTES: usize = 8;

/// The first bytes of a needle.
type NeedleKey = [u8; MIN_SECRET_BYTES];

/// All spellings of all known secrets.
pub(super) struct Needles {
    /// As programs write them.
    exact: NeedleSet,
    /// As they read when escapes are resolved and invisible characters are dropped.
    folded: NeedleSet,
}

/// Texts with a quick way to tell that none of them starts somewhere.
struct NeedleSet {
    /// Sorted by their bytes, each once.
    sorted: Vec<Needle>,
    filter: NeedleFilter,
    longest: usize,
}

struct Needle {
    bytes: EncodedSecret,
    /// Which secret it spells.
    secret: usize,
}

/// What starts at one position of a text.
enum NeedleMatch {
    Nothing,
    Secret {
        length: usize,
        secret: usize,
    },
    /// The text ends inside something that may become a needle.
    Undecided,
}

impl Needles {
    /// Prepares the spellings of some secrets; those that are too short or too common are left out.
    pub(super) fn new<'a>(secrets: impl IntoIterator<Item = &'a Secret>) -> Self {
        let (mut spelt, mut folded) = (Vec::new(), Vec::new());
        for (secret, value) in secrets.into_iter().enumerate() {
            let value = value.expose().trim();
            if searchability::unsearchable_reason(value).is_some() {
                continue;
            }
            for bytes in encodings(value) {
                let fold = EncodedSecret::new(fold_secret(&bytes));
                // One that shrank to a few bytes would occur by chance.
                if fold.len() >= MIN_SECRET_BYTES {
                    folded.push(Needle {
                        bytes: fold,
                        secret,
                    });
                }
                spelt.push(Needle { bytes, secret });
            }
        }
        Self {
            exact: NeedleSet::new(spelt),
            folded: NeedleSet::new(folded),
        }
    }

    /// Adds a cover for every needle that starts at `start` or later.
    ///
    /// Returns the first position where more text could change the answer; without one, the end.
    pub(super) fn scan(
        &self,
        text: ScanText<'_>,
        start: usize,
        folded: &FoldedText,
        covers: &mut Vec<RedactionSpan>,
    ) -> usize {
        let spelt = self.scan_exact(text, start, covers);
        let hold = self.scan_folded(text, start, folded, covers);
        hold.min(spelt).min(folded.hold())
    }

    /// Tells whether nothing is searched for.
    pub(super) fn is_empty(&self) -> bool {
        self.exact.sorted.is_empty()
    }

    fn scan_exact(
        &self,
        text: ScanText<'_>,
        start: usize,
        covers: &mut Vec<RedactionSpan>,
    ) -> usize {
        let bytes = text.bytes;
        for (index, key) in bytes[start..].array_windows().enumerate() {
            if self.exact.filter.may_contain(*key) {
                let at = start + index;
                match self.exact.match_at(&bytes[at..], text.is_last) {
                    NeedleMatch::Nothing => {}
                    NeedleMatch::Secret { length, secret } => {
                        covers.push(RedactionSpan::for_known_secret(bytes, at, length, secret));
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

    /// Searches the folded text where it differs from the source, and at its end, where what follows
    /// may make it differ.
    fn scan_folded(
        &self,
        text: ScanText<'_>,
        start: usize,
        folded: &FoldedText,
        covers: &mut Vec<RedactionSpan>,
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
                // A needle that may go on is found below, too.
                if let NeedleMatch::Secret { length, secret } =
                    self.folded.match_at(&bytes[at..], true)
                    && let Some((from, to)) = folded.source(at, at + length, start)
                {
                    covers.push(RedactionSpan::for_known_secret(
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
        // Stable: of two secrets with the same value the first gives its name.
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
        let mut start = NeedleMatch::Nothing;
        for needle in self.with_prefix(&text[..MIN_SECRET_BYTES]) {
            if text.starts_with(&needle.bytes) {
                // A longer needle sorts after a shorter one that it starts with.
                start = NeedleMatch::Secret {
                    length: needle.bytes.len(),
                    secret: needle.secret,
                };
            } else if !is_last && needle.bytes.starts_with(text) {
                return NeedleMatch::Undecided;
            }
        }
        start
    }

    fn has_prefix(&self, text: &[u8]) -> bool {
        self.with_prefix(text).next().is_some()
    }

    /// Tells whether some needle starts with a text and is longer.
    fn is_unfinished(&self, text: &[u8]) -> bool {
        self.with_prefix(text)
            .any(|needle| needle.bytes.len() > text.len())
    }

    /// Returns the needles that start with some bytes.
    fn with_prefix(&self, prefix: &[u8]) -> impl Iterator<Item = &Needle> {
        let first = self
            .sorted
            .partition_point(|needle| needle.bytes.as_slice() < prefix);
        self.sorted[first..]
            .iter()
            .take_while(move |needle| needle.bytes.starts_with(prefix))
    }
}

/// A set of keys that never denies one of its own and seldom claims a foreign one.
struct NeedleFilter {
    bits: Vec<u64>,
    shift: u32,
}

impl NeedleFilter {
    /// How many bits there are for each key: one foreign key in this many is claimed.
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

    /// Returns a key's word in the table and its bit there.
    fn bit_position(&self, key: NeedleKey) -> (usize, u64) {
        // Fibonacci hashing: the highest bits depend on all bytes.
        let hash = u64::from_le_bytes(key).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift;
        ((hash >> 6) as usize, 1 << (hash & 63))
    }
}
