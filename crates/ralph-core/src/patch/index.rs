//! Finds runs of lines in a file without comparing every line with every other.

use std::cell::Cell;
use std::collections::HashMap;

use super::error::Refusal;
use super::rows::Row;

/// How many lines are compared for one patch before the search is given up.
const MAX_COMPARISONS: usize = 20_000_000;
/// How many ways to fit a hunk with a gap are collected before the search is given up.
const MAX_GAPS: usize = 64;

/// The lines of a file, by their text without the whitespace around it.
pub(super) struct Index<'a> {
    rows: &'a [Row<'a>],
    /// For each line, the number of its text.
    texts: Vec<usize>,
    numbers: HashMap<&'a str, usize>,
    /// For each number, the lines that have the text.
    places: Vec<Vec<usize>>,
    comparisons: Cell<usize>,
}

impl<'a> Index<'a> {
    pub(super) fn new(rows: &'a [Row<'a>]) -> Self {
        let mut numbers = HashMap::new();
        let mut places: Vec<Vec<usize>> = Vec::new();
        let mut texts = Vec::with_capacity(rows.len());
        for (at, row) in rows.iter().enumerate() {
            let number = *numbers.entry(row.text.trim()).or_insert(places.len());
            if number == places.len() {
                places.push(Vec::new());
            }
            places[number].push(at);
            texts.push(number);
        }
        Self {
            rows,
            texts,
            numbers,
            places,
            comparisons: Cell::new(0),
        }
    }

    pub(super) fn line_count(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn text(&self, at: usize) -> &'a str {
        self.rows[at].text
    }

    /// Tells whether any line has this text, apart from whitespace around it.
    pub(super) fn has(&self, text: &str) -> bool {
        self.numbers.contains_key(text.trim())
    }

    fn numbers_of(&self, pattern: &[&str]) -> Option<Vec<usize>> {
        pattern
            .iter()
            .map(|text| self.numbers.get(text.trim()).copied())
            .collect()
    }

    fn rarest(&self, numbers: &[usize]) -> Option<usize> {
        (0..numbers.len()).min_by_key(|at| self.places[numbers[*at]].len())
    }

    pub(super) fn spend(&self, comparisons: usize) -> Result<(), Refusal> {
        self.comparisons.set(self.comparisons.get() + comparisons);
        if self.comparisons.get() > MAX_COMPARISONS {
            return Err(Refusal::TooManyPlaces);
        }
        Ok(())
    }

    /// Returns how many lines from `start` on are those of the pattern.
    fn same_ahead(&self, start: usize, numbers: &[usize]) -> Result<usize, Refusal> {
        let texts = self.texts.get(start..).unwrap_or_default();
        let same = texts.iter().zip(numbers).take_while(|(a, b)| a == b);
        let same = same.count();
        self.spend(same + 1)?;
        Ok(same)
    }

    /// Returns how many lines before `end` are those at the end of the pattern.
    fn same_behind(&self, end: usize, numbers: &[usize]) -> Result<usize, Refusal> {
        let texts = self.texts.get(..end).unwrap_or_default();
        let pairs = texts.iter().rev().zip(numbers.iter().rev());
        let same = pairs.take_while(|(a, b)| a == b).count();
        self.spend(same + 1)?;
        Ok(same)
    }

    /// Returns every line at which the pattern starts, apart from whitespace around the lines.
    pub(super) fn find(&self, pattern: &[&str]) -> Result<Vec<usize>, Refusal> {
        let mut found = Vec::new();
        let Some(numbers) = self.numbers_of(pattern) else {
            return Ok(found);
        };
        let Some(rarest) = self.rarest(&numbers) else {
            return Ok(found);
        };
        for place in &self.places[numbers[rarest]] {
            if let Some(start) = place.checked_sub(rarest)
                && self.same_ahead(start, &numbers)? == numbers.len()
            {
                found.push(start);
            }
        }
        Ok(found)
    }

    /// Returns every line at which the pattern starts, apart from trailing whitespace.
    pub(super) fn find_plain(&self, pattern: &[&str]) -> Result<Vec<usize>, Refusal> {
        let mut plain = Vec::new();
        for start in self.find(pattern)? {
            self.spend(pattern.len())?;
            if self.is_plain(start, pattern) {
                plain.push(start);
            }
        }
        Ok(plain)
    }

    /// Tells whether the pattern is at `start`, apart from trailing whitespace.
    pub(super) fn is_plain(&self, start: usize, pattern: &[&str]) -> bool {
        let rows = self.rows.get(start..).unwrap_or_default();
        rows.len() >= pattern.len()
            && rows
                .iter()
                .zip(pattern)
                .all(|(row, text)| row.text.trim_end() == text.trim_end())
    }

    /// Returns every way to fit the pattern with one more line of the file inside: where it starts
    /// and how many of its lines come before that line.
    pub(super) fn find_with_gap(&self, pattern: &[&str]) -> Result<Vec<(usize, usize)>, Refusal> {
        let mut found = Vec::new();
        let Some(numbers) = self.numbers_of(pattern) else {
            return Ok(found);
        };
        let Some(rarest) = self.rarest(&numbers) else {
            return Ok(found);
        };
        for place in &self.places[numbers[rarest]] {
            // The rarest line is before the gap or after it.
            for start in [place.checked_sub(rarest), place.checked_sub(rarest + 1)] {
                let Some(start) = start else { continue };
                let end = start + numbers.len() + 1;
                if end > self.rows.len() {
                    continue;
                }
                let ahead = self.same_ahead(start, &numbers)?;
                let behind = self.same_behind(end, &numbers)?;
                let gaps = numbers.len().saturating_sub(behind).max(1)..=ahead;
                for gap in gaps.filter(|gap| *gap < numbers.len()) {
                    self.spend(numbers.len())?;
                    if self.is_plain(start, &pattern[..gap])
                        && self.is_plain(start + gap + 1, &pattern[gap..])
                        && !found.contains(&(start, gap))
                    {
                        found.push((start, gap));
                    }
                    if found.len() > MAX_GAPS {
                        return Err(Refusal::TooManyPlaces);
                    }
                }
            }
        }
        Ok(found)
    }

    /// Returns the line of the pattern that an error quotes: the first that the file does not have,
    /// else the first after the longest beginning that fits anywhere.
    pub(super) fn first_unmatched<'p>(&self, pattern: &[&'p str]) -> Result<&'p str, Refusal> {
        if let Some(line) = pattern.iter().find(|line| !self.has(line)) {
            return Ok(line);
        }
        let numbers = self.numbers_of(pattern).unwrap_or_default();
        let mut longest = 0;
        for place in numbers.first().map_or(&[][..], |it| &self.places[*it]) {
            longest = longest.max(self.same_ahead(*place, &numbers)?);
        }
        let last = pattern.len().saturating_sub(1);
        Ok(pattern.get(longest.min(last)).copied().unwrap_or_default())
    }
}
