//! Skips the reasoning that some models write in tags before the answer, which may contain drafts.

use super::error::ReplyError;

/// The names of tags that enclose reasoning.
const TAGS: [&str; 7] = [
    "think",
    "thinking",
    "thought",
    "reasoning",
    "analysis",
    "reflection",
    "scratchpad",
];

/// Returns the length of the reasoning block at the start of `text`, if there is one.
///
/// A block that is never closed means that the reply was truncated before its answer.
pub(super) fn block_len(text: &str) -> Result<Option<usize>, ReplyError> {
    let Some(tag) = TAGS.iter().find(|tag| is_tag(text, "<", tag)) else {
        return Ok(None);
    };
    let end = text
        .match_indices("</")
        .find(|(at, _)| is_tag(&text[*at..], "</", tag));
    let (at, _) = end.ok_or(ReplyError::Truncated)?;
    Ok(Some(at + tag.len() + "</>".len()))
}

/// Returns the length of the closing tag at the start of `text`.
pub(super) fn closing_tag_len(text: &str) -> Option<usize> {
    let tag = TAGS.iter().find(|tag| is_tag(text, "</", tag))?;
    Some(tag.len() + "</>".len())
}

fn is_tag(text: &str, start: &str, tag: &str) -> bool {
    let Some(name) = text.strip_prefix(start) else {
        return false;
    };
    let matches = name
        .get(..tag.len())
        .is_some_and(|name| name.eq_ignore_ascii_case(tag));
    matches && name[tag.len()..].starts_with('>')
}
