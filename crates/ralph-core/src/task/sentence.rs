//! The description of a task in one sentence.

use std::fmt;

/// The longest title, in characters.
const MAX_TITLE_CHARS: usize = 72;

/// The user's description of a task in one sentence, on one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskSentence(String);

/// The reason why a text is not a sentence for a task.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SentenceError {
    #[error("it is empty")]
    Empty,
    #[error("it has {chars} characters, limit {}", TaskSentence::MAX_CHARS)]
    TooLong { chars: usize },
    #[error("it contains the control character {character:?}")]
    ControlCharacter { character: char },
}

impl TaskSentence {
    /// The longest accepted sentence.
    pub const MAX_CHARS: usize = 1000;

    /// Parses a text. Line breaks and repeated blanks become one blank.
    pub fn parse(text: &str) -> Result<Self, SentenceError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let line = words.join(" ");
        let chars = line.chars().count();
        if chars == 0 {
            return Err(SentenceError::Empty);
        }
        if chars > Self::MAX_CHARS {
            return Err(SentenceError::TooLong { chars });
        }
        match line.chars().find(|c| c.is_control()) {
            Some(character) => Err(SentenceError::ControlCharacter { character }),
            None => Ok(Self(line)),
        }
    }

    /// Returns the sentence.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns a title: the sentence without its full stop, or its first words.
    pub(super) fn title(&self) -> String {
        let sentence = self.0.strip_suffix('.').unwrap_or(&self.0);
        if sentence.chars().count() <= MAX_TITLE_CHARS {
            return sentence.to_owned();
        }
        let start: String = sentence.chars().take(MAX_TITLE_CHARS).collect();
        let words = start.rsplit_once(' ').map_or(&*start, |(words, _)| words);
        format!("{words}…")
    }
}

impl fmt::Display for TaskSentence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
