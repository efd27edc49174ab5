//! The text of a pull request that people edit, too: ralph owns one marked block of its body.
//!
//! The block starts with a hidden marker that records the last title, base, labels and state that ralph set. A value
//! that differs from its record was changed by a person, and ralph does not change it any more. Text outside of the
//! block is never changed. [`plan_edit`] decides about an update, [`new_body`] is the body of a new pull
//! request. Source hosts call both.

use crate::id::Digest;
use crate::ports::{PullDraft, PullState};

/// The longest body of a pull request, an issue or a comment, in characters.
pub const MAX_BODY_CHARS: usize = 65_536;

/// The longest title, in characters.
pub const MAX_TITLE_CHARS: usize = 256;

const MARKER_START: &str = "<!-- ralph:pull ";
const MARKER_END: &str = " -->";
const BLOCK_END: &str = "<!-- ralph:end -->";

/// The note at the end of a text that was cut.
const CUT_NOTE: &str = "\n\n*(The rest was cut: the host accepts at most 65536 characters.)*";

/// The number of hex digits of a recorded value.
const DIGEST_DIGITS: usize = 16;

/// A pull request as the host has it now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PullOnHost<'a> {
    pub title: &'a str,
    /// Markdown.
    pub body: &'a str,
    /// The branch to merge into.
    pub base: &'a str,
    pub is_draft: bool,
    pub labels: &'a [String],
}

/// The changes that an update needs. The labels and the state are changed before the text, because the text
/// records them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PullEdit {
    pub title: Option<String>,
    pub body: Option<String>,
    pub base: Option<String>,
    /// The labels to add.
    pub labels: Vec<String>,
    /// Whether the pull request becomes a draft or ready for review.
    pub is_draft: Option<bool>,
}

impl PullEdit {
    /// Returns whether the title, the body or the base change.
    pub fn changes_text(&self) -> bool {
        self.title.is_some() || self.body.is_some() || self.base.is_some()
    }
}

/// The values that ralph set last.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LastPullEdit {
    run: String,
    title: String,
    base: String,
    /// `-` before the labels were added.
    labels: String,
    is_draft: bool,
}

impl LastPullEdit {
    fn parse(marker: &str) -> Option<Self> {
        let field = |name: &str| {
            let mut pairs = marker.split(' ').filter_map(|pair| pair.split_once('='));
            let (_, value) = pairs.find(|(key, _)| *key == name)?;
            Some(value.to_owned())
        };
        Some(Self {
            run: field("run")?,
            title: field("title")?,
            base: field("base")?,
            labels: field("labels")?,
            is_draft: field("state")? == "draft",
        })
    }

    fn marker(&self) -> String {
        let Self {
            run,
            title,
            base,
            labels,
            is_draft,
        } = self;
        let state = if *is_draft { "draft" } else { "ready" };
        format!(
            "{MARKER_START}run={run} title={title} base={base} labels={labels} state={state}{MARKER_END}"
        )
    }
}

/// Returns the title of a new pull request.
pub fn new_title(draft: &PullDraft) -> String {
    let line = draft.title.split_whitespace().collect::<Vec<_>>().join(" ");
    cut(&line, MAX_TITLE_CHARS, "…")
}

/// Returns the body of a new pull request. It has no labels yet.
pub fn new_body(draft: &PullDraft) -> String {
    let record = LastPullEdit {
        run: plain(&draft.run),
        title: digest(&new_title(draft)),
        base: digest(&draft.base),
        labels: "-".to_owned(),
        is_draft: draft.state == PullState::Draft,
    };
    block(&record, &draft.body, MAX_BODY_CHARS)
}

/// Returns the run that owns the block of a body, if it has one.
pub fn owner(body: &str) -> Option<String> {
    split(body).record.map(|record| record.run)
}

/// Decides how a pull request changes.
pub fn plan_edit(current: &PullOnHost<'_>, draft: &PullDraft) -> PullEdit {
    let parts = split(current.body);
    let recorded = parts.record.as_ref();
    let mut edit = PullEdit::default();
    let title = new_title(draft);
    // A title without a record is that of a person.
    let owns_title = recorded.is_some_and(|record| record.title == digest(current.title));
    if owns_title && title != current.title {
        edit.title = Some(title.clone());
    }
    let owns_base = recorded.is_some_and(|record| record.base == digest(current.base));
    if owns_base && draft.base != current.base {
        edit.base = Some(draft.base.clone());
    }
    let labels = digest(&draft.labels.join("\n"));
    if recorded.is_none_or(|record| record.labels != labels) {
        let is_missing = |name: &&String| {
            let mut current = current.labels.iter();
            !current.any(|label| label.eq_ignore_ascii_case(name))
        };
        edit.labels = draft.labels.iter().filter(is_missing).cloned().collect();
    }
    let wants_draft = draft.state == PullState::Draft;
    edit.is_draft = state_change(current.is_draft, wants_draft, recorded);
    let record = LastPullEdit {
        run: plain(&draft.run),
        title: match recorded {
            Some(record) if !owns_title => record.title.clone(),
            Some(_) => digest(&title),
            None => digest_if_equal(&title, current.title),
        },
        base: match recorded {
            Some(record) if !owns_base => record.base.clone(),
            Some(_) => digest(&draft.base),
            None => digest_if_equal(&draft.base, current.base),
        },
        labels,
        is_draft: wants_draft,
    };
    let outside = parts.before.chars().count() + parts.after.chars().count();
    let room = MAX_BODY_CHARS.saturating_sub(outside);
    let own = block(&record, &draft.body, room);
    let body = format!("{}{own}{}", parts.before, parts.after);
    if body != current.body && body.chars().count() <= MAX_BODY_CHARS {
        edit.body = Some(body);
    }
    edit
}

/// Returns the new state, unless a person has chosen the current one since ralph last set it.
fn state_change(
    is_draft: bool,
    wants_draft: bool,
    recorded: Option<&LastPullEdit>,
) -> Option<bool> {
    if is_draft == wants_draft {
        return None;
    }
    let is_new = match recorded {
        Some(record) => record.is_draft != wants_draft,
        // The pull request of a person becomes ready, but never a draft.
        None => !wants_draft,
    };
    is_new.then_some(wants_draft)
}

/// A body in three parts.
struct BodyParts<'a> {
    before: String,
    record: Option<LastPullEdit>,
    after: &'a str,
}

/// Finds the block. Without one, the new block comes after the text; a block without an end is text of a person.
fn split(body: &str) -> BodyParts<'_> {
    if let Some(start) = body.find(MARKER_START) {
        let rest = &body[start + MARKER_START.len()..];
        if let (Some(marker), Some(end)) = (rest.find(MARKER_END), rest.find(BLOCK_END))
            && let Some(record) = LastPullEdit::parse(&rest[..marker])
            && marker < end
        {
            return BodyParts {
                before: body[..start].to_owned(),
                record: Some(record),
                after: &rest[end + BLOCK_END.len()..],
            };
        }
    }
    // The remains of a damaged block must not be found again.
    let text = body.replace(MARKER_START, "").replace(BLOCK_END, "");
    let before = if text.trim().is_empty() {
        String::new()
    } else {
        format!("{}\n\n", text.trim_end())
    };
    BodyParts {
        before,
        record: None,
        after: "",
    }
}

/// Returns the block with a text, which is cut so that the block has at most `room` characters.
fn block(record: &LastPullEdit, text: &str, room: usize) -> String {
    let marker = record.marker();
    let frame = marker.chars().count() + BLOCK_END.chars().count() + 2;
    // A marker in the text would be found as that of the block.
    let text = text.replace("<!-- ralph:", "&lt;!-- ralph:");
    let text = cut(text.trim_end(), room.saturating_sub(frame), CUT_NOTE);
    format!("{marker}\n{text}\n{BLOCK_END}")
}

/// Returns a text with at most `limit` characters. A text that is cut ends with a note if there is room.
pub fn cut(text: &str, limit: usize, note: &str) -> String {
    if text.chars().count() <= limit {
        return text.to_owned();
    }
    let kept = limit.saturating_sub(note.chars().count());
    let note = note.chars().take(limit - kept);
    text.chars().take(kept).chain(note).collect()
}

/// Returns a comment with a hidden marker of its key. It has at most the accepted number of characters.
pub fn keyed_comment(key: &str, text: &str) -> String {
    let marker = comment_marker(key);
    let text = text.replace("<!-- ralph:", "&lt;!-- ralph:");
    let room = MAX_BODY_CHARS - marker.chars().count() - 1;
    format!("{marker}\n{}", cut(&text, room, CUT_NOTE))
}

/// Returns the text of a comment with a key; `None` if it has another key or none.
pub fn text_of_comment(body: &str, key: &str) -> Option<String> {
    let text = body.strip_prefix(&comment_marker(key))?;
    Some(text.trim_start_matches(['\r', '\n']).to_owned())
}

fn comment_marker(key: &str) -> String {
    let key: String = plain(key).chars().take(128).collect();
    format!("<!-- ralph:comment {key} -->")
}

/// Returns a text that a marker may contain: a comment of HTML must not contain `--`.
fn plain(text: &str) -> String {
    let is_accepted = |c: char| c.is_ascii_alphanumeric() || "._".contains(c);
    let words = text.split(|c| !is_accepted(c));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join("-")
}

/// Returns the record of a value that a person may have chosen: `-` unless it is the one of ralph.
fn digest_if_equal(own: &str, current: &str) -> String {
    if own == current {
        digest(own)
    } else {
        "-".to_owned()
    }
}

fn digest(text: &str) -> String {
    Digest::compute(text.as_bytes()).as_str()[..DIGEST_DIGITS].to_owned()
}

#[cfg(test)]
mod tests;
