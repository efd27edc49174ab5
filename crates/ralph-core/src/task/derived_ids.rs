//! Ids for checkboxes without one, derived from the words of their text.
//!
//! An id depends only on the text, so it does not change when boxes are inserted, removed or moved.
//! Ids in a task file start with a capital letter, so they never collide with these.

use std::collections::{HashMap, HashSet};

use super::criteria::Checkbox;
use crate::id::Digest;

/// The longest id, in characters, without the suffix that distinguishes boxes with the same words.
const MAX_CHARS: usize = 40;

/// Number of digest digits that distinguish two boxes starting with the same words.
const DIGEST_CHARS: usize = 4;

/// Assigns an id to every box without one.
pub(super) fn derive_ids(boxes: &mut [Checkbox]) {
    let words: Vec<String> = boxes.iter().map(|it| words(&it.text)).collect();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for (checkbox, words) in boxes.iter().zip(&words) {
        *counts.entry(words).or_default() += usize::from(!checkbox.has_own_id);
    }
    // Boxes with the same text are numbered.
    let mut wanted: HashMap<String, usize> = HashMap::new();
    let mut taken: HashSet<String> = HashSet::new();
    for (checkbox, words) in boxes.iter_mut().zip(&words) {
        if checkbox.has_own_id {
            continue;
        }
        let is_shared = counts.get(words.as_str()).is_some_and(|count| *count > 1);
        let base = if is_shared {
            let digest = Digest::compute(checkbox.text.as_bytes());
            format!("{words}-{}", &digest.as_str()[..DIGEST_CHARS])
        } else {
            words.clone()
        };
        let number = wanted.entry(base.clone()).or_default();
        loop {
            *number += 1;
            checkbox.id = match *number {
                1 => base.clone(),
                number => format!("{base}-{number}"),
            };
            if taken.insert(checkbox.id.clone()) {
                break;
            }
        }
    }
}

/// Returns the first words of `text`, in lower case and separated by dashes.
fn words(text: &str) -> String {
    let mut id = String::new();
    let words = text.split(|c: char| !c.is_alphanumeric());
    for word in words.filter(|word| !word.is_empty()) {
        let room = MAX_CHARS.saturating_sub(id.chars().count());
        if id.is_empty() {
            id = word.to_lowercase().chars().take(room).collect();
        } else if word.chars().count() < room {
            id.push('-');
            id.push_str(&word.to_lowercase());
        } else {
            break;
        }
    }
    // A number alone would be mistaken for the position of a box.
    if id.chars().all(|c| c.is_ascii_digit()) {
        id.insert_str(0, if id.is_empty() { "box" } else { "box-" });
    }
    id
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn an_id_is_the_first_words() {
        for (text, id) in [
            (
                "Without a name it greets the world",
                "without-a-name-it-greets-the-world",
            ),
            ("`GET /health` **returns** 200", "get-health-returns-200"),
            ("Größe ändert sich", "größe-ändert-sich"),
            ("日本語", "日本語"),
            ("404", "box-404"),
            ("***", "box"),
            ("", "box"),
            (
                "The endpoint answers every request with valid JSON",
                "the-endpoint-answers-every-request-with",
            ),
        ] {
            assert_eq!(words(text), id, "{text}");
        }
        assert_eq!(words(&"x".repeat(100)), "x".repeat(40));
    }
}
