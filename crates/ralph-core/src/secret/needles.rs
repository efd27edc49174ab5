//! Finds known texts.
//!
//! The first eight bytes of every needle are in a small hashed table; one multiplication and one
//! look-up per position of the text tell that nothing starts there. Unlike an automaton over
//! thousands of needles this stays in the fastest cache, and the needles can be wiped.

use super::Secret;
use super::common;
use super::cover::Cover;
use super::encode::{Form, forms};
use super::fold::{Folded, fold_secret};
use super::patterns::Text;

/// The shortest text that is looked for: shorter ones occur by chance.
pub(super) const LEAST_BYTES: usize = 8;

/// The first bytes of a needle.
type Key = [u8; LEAST_BYTES];

/// All spellings of all known secrets.
pub(super) struct Needles {
    /// As programs write them.
    spelt: NeedleSet,
    /// As they read when escapes are resolved and invisible characters are dropped.
    folded: NeedleSet,
}

/// Texts with a quick way to tell that none of them starts somewhere.
struct NeedleSet {
    /// Sorted by their bytes, each once.
    sorted: Vec<Needle>,
    filter: Filter,
    longest: usize,
}

struct Needle {
    bytes: Form,
    /// Which secret it spells.
    secret: usize,
}

/// What starts at one position of a text.
enum Start {
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
            if common::unsearchable(value).is_some() {
                continue;
            }
            for bytes in forms(value) {
                let fold = Form::new(fold_secret(&bytes));
                // One that shrank to a few bytes would occur by chance.
                if fold.len() >= LEAST_BYTES {
                    folded.push(Needle {
                        bytes: fold,
                        secret,
                    });
                }
                spelt.push(Needle { bytes, secret });
            }
        }
        Self {
            spelt: NeedleSet::new(spelt),
            folded: NeedleSet::new(folded),
        }
    }

    /// Adds a cover for every needle that starts at `start` or later.
    ///
    /// Returns the first position where more text could change the answer; without one, the end.
    pub(super) fn scan(
        &self,
        text: Text<'_>,
        start: usize,
        folded: &Folded,
        covers: &mut Vec<Cover>,
    ) -> usize {
        let spelt = self.scan_spelt(text, start, covers);
        let hold = self.scan_folded(text, start, folded, covers);
        hold.min(spelt).min(folded.hold())
    }

    /// Tells whether nothing is searched for.
    pub(super) fn is_empty(&self) -> bool {
        self.spelt.sorted.is_empty()
    }

    fn scan_spelt(&self, text: Text<'_>, start: usize, covers: &mut Vec<Cover>) -> usize {
        let bytes = text.bytes;
        for (index, key) in bytes[start..].array_windows().enumerate() {
            if self.spelt.filter.may_have(*key) {
                let at = start + index;
                match self.spelt.start(&bytes[at..], text.is_last) {
                    Start::Nothing => {}
                    Start::Secret { length, secret } => {
                        covers.push(Cover::known(bytes, at, length, secret));
                    }
                    Start::Undecided => return at,
                }
            }
        }
        let tail = start.max((bytes.len() + 1).saturating_sub(LEAST_BYTES));
        (tail..bytes.len())
            .find(|at| !text.is_last && self.spelt.has_prefix(&bytes[*at..]))
            .unwrap_or(bytes.len())
    }

    /// Searches the folded text where it differs from the source, and at its end, where what follows
    /// may make it differ.
    fn scan_folded(
        &self,
        text: Text<'_>,
        start: usize,
        folded: &Folded,
        covers: &mut Vec<Cover>,
    ) -> usize {
        let bytes = folded.bytes();
        for (from, to) in folded.windows(self.folded.longest) {
            for at in from..to.min((bytes.len() + 1).saturating_sub(LEAST_BYTES)) {
                let Some(key) = bytes[at..].first_chunk() else {
                    break;
                };
                if !self.folded.filter.may_have(*key) {
                    continue;
                }
                // A needle that may go on is found below, too.
                if let Start::Secret { length, secret } = self.folded.start(&bytes[at..], true)
                    && let Some((from, to)) = folded.source(at, at + length, start)
                {
                    covers.push(Cover::known(text.bytes, from, to - from, secret));
                }
            }
        }
        let tail = (bytes.len() + 1).saturating_sub(self.folded.longest);
        let undecided = |at: &usize| {
            let rest = &bytes[*at..];
            match rest.first_chunk() {
                Some(key) if !self.folded.filter.may_have(*key) => false,
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
            filter: Filter::new(keys, sorted.len()),
            longest: sorted
                .iter()
                .map(|needle| needle.bytes.len())
                .max()
                .unwrap_or(0),
            sorted,
        }
    }

    fn start(&self, text: &[u8], is_last: bool) -> Start {
        let mut start = Start::Nothing;
        for needle in self.sharing(&text[..LEAST_BYTES]) {
            if text.starts_with(&needle.bytes) {
                // A longer needle sorts after a shorter one that it starts with.
                start = Start::Secret {
                    length: needle.bytes.len(),
                    secret: needle.secret,
                };
            } else if !is_last && needle.bytes.starts_with(text) {
                return Start::Undecided;
            }
        }
        start
    }

    fn has_prefix(&self, text: &[u8]) -> bool {
        self.sharing(text).next().is_some()
    }

    /// Tells whether some needle starts with a text and is longer.
    fn is_unfinished(&self, text: &[u8]) -> bool {
        self.sharing(text)
            .any(|needle| needle.bytes.len() > text.len())
    }

    /// Returns the needles that start with some bytes.
    fn sharing(&self, prefix: &[u8]) -> impl Iterator<Item = &Needle> {
        let first = self
            .sorted
            .partition_point(|needle| needle.bytes.as_slice() < prefix);
        self.sorted[first..]
            .iter()
            .take_while(move |needle| needle.bytes.starts_with(prefix))
    }
}

/// A set of keys that never denies one of its own and seldom claims a foreign one.
struct Filter {
    bits: Vec<u64>,
    shift: u32,
}

impl Filter {
    /// How many bits there are for each key: one foreign key in this many is claimed.
    const BITS_PER_KEY: usize = 64;
    /// The smallest table, as a power of two.
    const LEAST_POWER: u32 = 12;
    /// The largest table, as a power of two: 512 KiB.
    const MOST_POWER: u32 = 22;

    fn new<'a>(keys: impl Iterator<Item = &'a Key>, count: usize) -> Self {
        let power = (count * Self::BITS_PER_KEY)
            .next_power_of_two()
            .ilog2()
            .clamp(Self::LEAST_POWER, Self::MOST_POWER);
        let mut filter = Self {
            bits: vec![0; 1 << (power - 6)],
            shift: 64 - power,
        };
        for key in keys {
            let (word, bit) = filter.place(*key);
            filter.bits[word] |= bit;
        }
        filter
    }

    fn may_have(&self, key: Key) -> bool {
        let (word, bit) = self.place(key);
        self.bits[word] & bit != 0
    }

    /// Returns a key's word in the table and its bit there.
    fn place(&self, key: Key) -> (usize, u64) {
        // Fibonacci hashing: the highest bits depend on all bytes.
        let hash = u64::from_le_bytes(key).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift;
        ((hash >> 6) as usize, 1 << (hash & 63))
    }
}
