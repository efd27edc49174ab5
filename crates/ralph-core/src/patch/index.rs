//! Finds runs of lines in a file without comparing every line with every other.

use std::cell::Cell;
use std::collections::HashMap;

use super::error::HunkError;
use super::file_lines::FileLine;

/// Maximum number of line comparisons for one patch.
const MAX_COMPARISONS: usize = 20_000_000;
/// Maximum number of matches with a gap.
const MAX_GAPS: usize = 64;

/// The lines of a file, indexed by their trimmed text.
pub(super) struct FileLineIndex<'a> {
    rows: &'a [FileLine<'a>],
    /// The text id of each line.
    texts: Vec<usize>,
    numbers: HashMap<&'a str, usize>,
    /// The lines of each text id.
    positions: Vec<Vec<usize>>,
    comparisons: Cell<usize>,
}

impl<'a> FileLineIndex<'a> {
    pub(super) fn new(rows: &'a [FileLine<'a>]) -> Self {
        let mut numbers = HashMap::new();
        let mut positions: Vec<Vec<usize>> = Vec::new();
        let mut texts = Vec::with_capacity(rows.len());
        for (at, row) in rows.iter().enumerate() {
            let number = *numbers.entry(row.text.trim()).or_insert(positions.len());
            if number == positions.len() {
                positions.push(Vec::new());
            }
            positions[number].push(at);
            texts.push(number);
        }
        Self {
            rows,
            texts,
            numbers,
            positions,
            comparisons: Cell::new(0),
        }
    }

    pub(super) fn line_count(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn text(&self, at: usize) -> &'a str {
        self.rows[at].text
    }

    /// Returns whether a line has this text, ignoring surrounding whitespace.
    pub(super) fn contains(&self, text: &str) -> bool {
        self.numbers.contains_key(text.trim())
    }

    fn text_ids(&self, pattern: &[&str]) -> Option<Vec<usize>> {
        pattern
            .iter()
            .map(|text| self.numbers.get(text.trim()).copied())
            .collect()
    }

    fn rarest(&self, numbers: &[usize]) -> Option<usize> {
        (0..numbers.len()).min_by_key(|at| self.positions[numbers[*at]].len())
    }

    pub(super) fn charge_comparisons(&self, comparisons: usize) -> Result<(), HunkError> {
        self.comparisons.set(self.comparisons.get() + comparisons);
        if self.comparisons.get() > MAX_COMPARISONS {
            return Err(HunkError::TooManyMatches);
        }
        Ok(())
    }

    /// Returns how many lines from `start` on match the pattern.
    fn matching_prefix_len(&self, start: usize, numbers: &[usize]) -> Result<usize, HunkError> {
        let texts = self.texts.get(start..).unwrap_or_default();
        let same = texts.iter().zip(numbers).take_while(|(a, b)| a == b);
        let same = same.count();
        self.charge_comparisons(same + 1)?;
        Ok(same)
    }

    /// Returns how many lines before `end` match the end of the pattern.
    fn matching_suffix_len(&self, end: usize, numbers: &[usize]) -> Result<usize, HunkError> {
        let texts = self.texts.get(..end).unwrap_or_default();
        let pairs = texts.iter().rev().zip(numbers.iter().rev());
        let same = pairs.take_while(|(a, b)| a == b).count();
        self.charge_comparisons(same + 1)?;
        Ok(same)
    }

    /// Returns every line at which the pattern starts, ignoring whitespace around the lines.
    pub(super) fn find(&self, pattern: &[&str]) -> Result<Vec<usize>, HunkError> {
        let mut found = Vec::new();
        let Some(numbers) = self.text_ids(pattern) else {
            return Ok(found);
        };
        let Some(rarest) = self.rarest(&numbers) else {
            return Ok(found);
        };
        for position in &self.positions[numbers[rarest]] {
            if let Some(start) = position.checked_sub(rarest)
                && self.matching_prefix_len(start, &numbers)? == numbers.len()
            {
                found.push(start);
            }
        }
        Ok(found)
    }

    /// Returns every line at which the pattern starts, ignoring trailing whitespace.
    pub(super) fn find_ignoring_trailing(&self, pattern: &[&str]) -> Result<Vec<usize>, HunkError> {
        let mut plain = Vec::new();
        for start in self.find(pattern)? {
            self.charge_comparisons(pattern.len())?;
            if self.matches_ignoring_trailing(start, pattern) {
                plain.push(start);
            }
        }
        Ok(plain)
    }

    /// Returns whether the pattern is at `start`, ignoring trailing whitespace.
    pub(super) fn matches_ignoring_trailing(&self, start: usize, pattern: &[&str]) -> bool {
        let rows = self.rows.get(start..).unwrap_or_default();
        rows.len() >= pattern.len()
            && rows
                .iter()
                .zip(pattern)
                .all(|(row, text)| row.text.trim_end() == text.trim_end())
    }

    /// Returns every match of the pattern with one additional line of the file inside: the start,
    /// and the number of pattern lines before that line.
    pub(super) fn find_with_gap(&self, pattern: &[&str]) -> Result<Vec<(usize, usize)>, HunkError> {
        let mut found = Vec::new();
        let Some(numbers) = self.text_ids(pattern) else {
            return Ok(found);
        };
        let Some(rarest) = self.rarest(&numbers) else {
            return Ok(found);
        };
        for position in &self.positions[numbers[rarest]] {
            // The rarest line is before or after the gap.
            for start in [
                position.checked_sub(rarest),
                position.checked_sub(rarest + 1),
            ] {
                let Some(start) = start else { continue };
                let end = start + numbers.len() + 1;
                if end > self.rows.len() {
                    continue;
                }
                let ahead = self.matching_prefix_len(start, &numbers)?;
                let behind = self.matching_suffix_len(end, &numbers)?;
                let gaps = numbers.len().saturating_sub(behind).max(1)..=ahead;
                for gap in gaps.filter(|gap| *gap < numbers.len()) {
                    self.charge_comparisons(numbers.len())?;
                    if self.matches_ignoring_trailing(start, &pattern[..gap])
                        && self.matches_ignoring_trailing(start + gap + 1, &pattern[gap..])
                        && !found.contains(&(start, gap))
                    {
                        found.push((start, gap));
                    }
                    if found.len() > MAX_GAPS {
                        return Err(HunkError::TooManyMatches);
                    }
                }
            }
        }
        Ok(found)
    }

    /// Returns the line of the pattern that an error quotes: the first that the file does not
    /// contain, or the first after the longest matching prefix.
    pub(super) fn first_unmatched<'p>(&self, pattern: &[&'p str]) -> Result<&'p str, HunkError> {
        if let Some(line) = pattern.iter().find(|line| !self.contains(line)) {
            return Ok(line);
        }
        let numbers = self.text_ids(pattern).unwrap_or_default();
        let mut longest = 0;
        for position in numbers.first().map_or(&[][..], |it| &self.positions[*it]) {
            longest = longest.max(self.matching_prefix_len(*position, &numbers)?);
        }
        let last = pattern.len().saturating_sub(1);
        Ok(pattern.get(longest.min(last)).copied().unwrap_or_default())
    }
}
