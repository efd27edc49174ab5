//! Finds the checkbox or milestone of a claim. Models claim by id, by text and by number.
//!
//! A claim is accepted only if it is unambiguous: one that matches two boxes or contradicts itself
//! is rejected.

use std::collections::BTreeSet;

use super::criteria::{Checkbox, Milestone};
use super::file::TaskFile;
use crate::parse_value;

/// The result of resolving a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamedBox<'t> {
    /// Exactly one box matches.
    One(&'t Checkbox),
    /// Several boxes match.
    Ambiguous(Vec<&'t Checkbox>),
    /// No box matches.
    Unknown,
}

/// Maximum number of characters of a box's text in a list.
const MAX_SHOWN_CHARS: usize = 80;

/// Words that may precede an id or a number.
const WORDS: [&str; 6] = ["checkbox", "box", "item", "task", "number", "criterion"];

/// Maximum number of words after an id that are compared with the ids of other boxes.
const MAX_WORDS: usize = 20;

/// The boxes of a task, with normalized texts for lookups.
pub struct BoxNames<'t> {
    boxes: &'t [Checkbox],
    /// For each box its text, without and with its own id.
    texts: Vec<(String, String)>,
}

impl TaskFile {
    /// Prepares the lookup of boxes by claims.
    pub fn box_names(&self) -> BoxNames<'_> {
        let texts = self
            .checkboxes
            .iter()
            .map(|checkbox| {
                (
                    strip_markdown(&checkbox.text),
                    strip_markdown(&checkbox.label()),
                )
            })
            .collect();
        BoxNames {
            boxes: &self.checkboxes,
            texts,
        }
    }

    /// Finds the milestone of a claim, by id or title.
    pub fn named_milestone(&self, claim: &str) -> Option<&Milestone> {
        let claim = strip_markdown(strip_list_marker(claim));
        let claim = claim.strip_prefix("milestone ").unwrap_or(&claim);
        let fits = |milestone: &&Milestone| {
            let (id, title) = (
                strip_markdown(&milestone.id),
                strip_markdown(&milestone.title),
            );
            claim == id || (!title.is_empty() && claim == title)
        };
        let mut found = self.milestones.iter().filter(fits);
        found.next().filter(|_| found.next().is_none())
    }

    /// Returns the open boxes, one line each: number, id and the beginning of the text.
    pub fn open_boxes(&self, ticked: &BTreeSet<String>) -> Vec<String> {
        let numbered = (1..).zip(&self.checkboxes);
        let open = numbered.filter(|(_, checkbox)| !ticked.contains(&checkbox.id));
        let line = |(number, checkbox): (usize, &Checkbox)| {
            let mut text: String = checkbox.text.chars().take(MAX_SHOWN_CHARS).collect();
            if text.len() < checkbox.text.len() {
                text.push('…');
            }
            format!("{number}. {}: {text}", checkbox.id)
        };
        open.map(line).collect()
    }

    /// Translates the ids of ticked boxes to the current ones. Earlier versions named a box without
    /// an id `C` and its position.
    pub fn current_ids(&self, ticked: &BTreeSet<String>) -> BTreeSet<String> {
        let current = |id: &String| match self.checkbox(id) {
            Some(_) => id.clone(),
            None => self
                .box_by_former_id(id)
                .map_or_else(|| id.clone(), |it| it.id.clone()),
        };
        ticked.iter().map(current).collect()
    }

    fn box_by_former_id(&self, id: &str) -> Option<&Checkbox> {
        let position = former_position(id)?;
        let checkbox = self.checkboxes.get(position)?;
        (!checkbox.has_own_id).then_some(checkbox)
    }
}

impl<'t> BoxNames<'t> {
    /// Finds the box of a claim: by its id, its text without Markdown, or its number in the file.
    pub fn find(&self, claim: &str) -> NamedBox<'t> {
        let claim = claim.trim();
        if let Some(checkbox) = self.boxes.iter().find(|it| it.id == claim) {
            return NamedBox::One(checkbox);
        }
        let bare = strip_list_marker(claim);
        let words = strip_markdown(bare);
        let mut found = self.positions(|at| self.texts[at].0 == words || self.texts[at].1 == words);
        found.extend(self.by_id(bare));
        found.extend(self.by_number(bare));
        let former = former_position(bare).filter(|at| *at < self.boxes.len());
        found.extend(former.filter(|at| !self.boxes[*at].has_own_id));
        found.sort_unstable();
        found.dedup();
        match found[..] {
            [] => NamedBox::Unknown,
            [at] => NamedBox::One(&self.boxes[at]),
            _ => NamedBox::Ambiguous(found.iter().map(|at| &self.boxes[*at]).collect()),
        }
    }

    /// Returns the positions of the matching boxes.
    fn positions(&self, fits: impl Fn(usize) -> bool) -> Vec<usize> {
        (0..self.boxes.len()).filter(|at| fits(*at)).collect()
    }

    fn with_own_id(&self, id: &str) -> Vec<usize> {
        let same = |it: &Checkbox| it.has_own_id && it.id.eq_ignore_ascii_case(id);
        self.positions(|at| same(&self.boxes[at]))
    }

    /// Finds boxes by id, ignoring case; other words in the claim must not match another box.
    fn by_id(&self, claim: &str) -> Vec<usize> {
        let claim = strip_leading_word(claim);
        let same = self.positions(|at| self.boxes[at].id.eq_ignore_ascii_case(claim));
        if !same.is_empty() {
            return same;
        }
        // Only ids from the file: a derived id could be the first word of another box.
        let first = trim_punctuation(claim.split(char::is_whitespace).next().unwrap_or_default());
        let mut found = self.with_own_id(first);
        if found.is_empty() {
            return found;
        }
        // The words after the id must not be the id or the text of another box.
        let rest = claim.split_once(char::is_whitespace).map_or("", |it| it.1);
        for word in rest.split(char::is_whitespace).take(MAX_WORDS) {
            found.extend(self.with_own_id(trim_punctuation(word)));
        }
        let rest = strip_markdown(rest.trim_start_matches(['-', '—', '–', ':', ' ']));
        found.extend(self.positions(|at| !rest.is_empty() && self.texts[at].0 == rest));
        found
    }

    /// Finds boxes by number: their position in the file, or a number at the start of their text.
    fn by_number(&self, claim: &str) -> Vec<usize> {
        let digits = strip_leading_word(claim).trim_start_matches(['#', ' ']);
        let end = digits.find(|c: char| !c.is_ascii_digit());
        let (number, rest) = digits.split_at(end.unwrap_or(digits.len()));
        let is_separated = rest.is_empty() || rest.starts_with(['.', ':', ')', ' ', ',']);
        let Ok(position) = number.parse::<usize>() else {
            return Vec::new();
        };
        let rest = strip_markdown(rest.trim_start_matches(['.', ':', ')', ',', ' ', '-', '—']));
        if !is_separated || rest.starts_with(|c: char| c.is_ascii_digit()) {
            return Vec::new();
        }
        let begins = |text: &str| {
            let after = text.strip_prefix(number);
            after.is_some_and(|after| after.starts_with(['.', ')', ':']))
        };
        let mut found = self.positions(|at| at + 1 == position || begins(&self.texts[at].0));
        // Words after the number must be those of the box.
        found.retain(|at| rest.is_empty() || self.texts[*at].0 == rest);
        found
    }
}

/// Returns the position for a box id of an earlier version.
fn former_position(id: &str) -> Option<usize> {
    parse_value::<usize>(id.strip_prefix('C')?)?.checked_sub(1)
}

/// Removes punctuation and Markdown markers around a word.
fn trim_punctuation(word: &str) -> &str {
    word.trim_matches(['*', '_', '`', ':', '.', ',', ')', '(', '[', ']'])
}

/// Removes the list marker, the box and the quotes around a claim.
fn strip_list_marker(claim: &str) -> &str {
    let mut claim = claim.trim();
    for marker in ["- ", "* ", "[ ]", "[x]", "[X]"] {
        claim = claim.strip_prefix(marker).unwrap_or(claim).trim_start();
    }
    claim.trim_matches(['"', '`', '\'', ' '])
}

/// Removes a word such as `box` before the id or number.
fn strip_leading_word(claim: &str) -> &str {
    let (first, rest) = claim.split_once([' ', ':', '#']).unwrap_or((claim, ""));
    let is_word = WORDS.iter().any(|word| first.eq_ignore_ascii_case(word));
    if is_word && !rest.is_empty() {
        rest.trim_start_matches([' ', ':', '#'])
    } else {
        claim
    }
}

/// Normalizes text: no Markdown markers, lower case, single spaces, no punctuation at the end.
fn strip_markdown(text: &str) -> String {
    let text: String = text
        .chars()
        .filter(|c| !matches!(c, '*' | '`' | '"' | '\'' | '“' | '”' | '‘' | '’'))
        .collect();
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ").to_lowercase();
    text.trim_end_matches(['.', '!', ',', ';', ':']).to_owned()
}
