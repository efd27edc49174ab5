//! Thoughts: what some models write in tags before their answer. They may hold drafts of it.

use super::error::ReplyError;

/// What some models wrap around their thoughts.
const TAGS: [&str; 7] = [
    "think",
    "thinking",
    "thought",
    "reasoning",
    "analysis",
    "reflection",
    "scratchpad",
];

/// Returns the length of the thoughts that a text begins with; none if it does not begin with any.
///
/// Thoughts without an end are all there is: what they mention was never said.
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

/// Returns the length of the closing tag that a text begins with.
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
