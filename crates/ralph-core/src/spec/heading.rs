//! The heading of a step: `### Step 3: Title [done]`.

/// The state of a step, as its heading shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepMark {
    /// No mark.
    Open,
    /// `[done]`.
    Done,
    /// `[blocked: reason]`.
    Blocked(String),
}

impl StepMark {
    /// Returns the text that is appended to a heading.
    pub(super) fn suffix(&self) -> String {
        match self {
            Self::Open => String::new(),
            Self::Done => " [done]".to_owned(),
            Self::Blocked(reason) => format!(" [blocked: {reason}]"),
        }
    }
}

/// The parts of a step's heading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StepHeading {
    /// Digits, or groups of them: `3`, `3.1`.
    pub(super) number: String,
    pub(super) title: String,
    pub(super) mark: StepMark,
    /// The number of bytes of the line before the marks.
    pub(super) base: usize,
}

/// The longest number of a step, in characters.
const MAX_NUMBER: usize = 12;

/// The longest reason of a blocked step, in bytes.
const MAX_REASON: usize = 2_000;

/// Parses a line with an ATX heading. Returns `None` for a heading that is not one of a step, and an error if
/// it resembles one.
pub(super) fn step_heading(line: &str) -> Option<Result<StepHeading, String>> {
    let indented = line.trim_start_matches(' ');
    let text = indented.trim_start_matches('#');
    if text.len() == indented.len() || !text.starts_with([' ', '\t']) {
        return None;
    }
    let start = line.len() - text.trim_start().len();
    let word = line.get(start..start + 4)?;
    let rest = &line[start + 4..];
    if !word.eq_ignore_ascii_case("step") || !rest.starts_with([' ', '\t']) {
        return None;
    }
    let rest = rest.trim_start();
    if !rest.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.'));
    let (number, after) = rest.split_at(end.unwrap_or(rest.len()));
    let number = number.trim_end_matches('.');
    let is_separated = after.is_empty() || after.starts_with([' ', '\t', ':', ')', '-', '–', '—']);
    if !is_separated || number.len() > MAX_NUMBER || number.contains("..") {
        return Some(Err(excerpt(rest)));
    }
    let title_start = line.len() - after.trim_start_matches(is_separator).len();
    let closing = line.trim_end().trim_end_matches('#');
    // Closing `#` are part of the heading's markup, unless they follow a word directly.
    let has_closing = closing.len() < line.trim_end().len() && closing.ends_with([' ', '\t']);
    let text_end = if has_closing {
        closing.trim_end().len()
    } else {
        line.trim_end().len()
    };
    let (base, mark) = split_marks(&line[..text_end], title_start.min(text_end));
    Some(Ok(StepHeading {
        number: number.to_owned(),
        title: line
            .get(title_start..base)
            .unwrap_or_default()
            .trim()
            .to_owned(),
        mark,
        base,
    }))
}

fn is_separator(c: char) -> bool {
    matches!(c, ' ' | '\t' | ':' | ')' | '-' | '–' | '—')
}

fn excerpt(text: &str) -> String {
    text.chars().take(40).collect()
}

/// Removes the marks at the end of a heading. The last one decides.
fn split_marks(line: &str, start: usize) -> (usize, StepMark) {
    let mut base = line.len();
    let mut mark = None;
    while let Some((at, found)) = last_mark(&line[start..base]) {
        base = start + at;
        mark.get_or_insert(found);
    }
    base = start.max(line[..base].trim_end().len());
    (base, mark.unwrap_or(StepMark::Open))
}

/// Returns the mark that ends a text, and its offset.
fn last_mark(text: &str) -> Option<(usize, StepMark)> {
    let text = text.trim_end();
    let inner = text.strip_suffix(']')?;
    let open = inner.rfind('[')?;
    let (word, reason) = match inner[open + 1..].split_once(':') {
        Some((word, reason)) => (word.trim(), reason.trim()),
        None => (inner[open + 1..].trim(), ""),
    };
    if word.eq_ignore_ascii_case("done") && reason.is_empty() {
        return Some((open, StepMark::Done));
    }
    let reason = &reason[..reason.floor_char_boundary(MAX_REASON)];
    word.eq_ignore_ascii_case("blocked")
        .then(|| (open, StepMark::Blocked(reason.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heading_has_a_number_a_title_and_a_mark() {
        let blocked = |why: &str| StepMark::Blocked(why.to_owned());
        for (line, number, title, mark) in [
            ("### Step 1: Add x", "1", "Add x", StepMark::Open),
            ("## step 2 — Add x [done]", "2", "Add x", StepMark::Done),
            ("### Step 3: Add x [DONE] ", "3", "Add x", StepMark::Done),
            ("### Step 3.1: Add x ###", "3.1", "Add x", StepMark::Open),
            ("### Step 4. Add x [done] ##", "4", "Add x", StepMark::Done),
            (
                "### Step 5: Use a[0] [blocked: no key]",
                "5",
                "Use a[0]",
                blocked("no key"),
            ),
            ("### Step 5: x [done] [blocked: y]", "5", "x", blocked("y")),
            (
                "### Step 5: x [blocked: y] [done]",
                "5",
                "x",
                StepMark::Done,
            ),
            ("### Step 6: Support C#", "6", "Support C#", StepMark::Open),
            ("### Step 7", "7", "", StepMark::Open),
            ("### Step 7 [done]", "7", "", StepMark::Done),
            ("### Step 8: [done]", "8", "", StepMark::Done),
        ] {
            let heading = step_heading(line).unwrap().unwrap();
            assert_eq!(
                (&*heading.number, &*heading.title, &heading.mark),
                (number, title, &mark),
                "{line}"
            );
            let again = format!("{}{}", &line[..heading.base], mark.suffix());
            let again = step_heading(&again).unwrap().unwrap();
            assert_eq!(
                (again.number, again.title, again.mark),
                (number.into(), title.into(), mark),
                "{line}"
            );
        }
        for line in [
            "Step 1: x",
            "### Steps",
            "### Step by step",
            "#Step 1: x",
            "### Über",
            "###",
        ] {
            assert_eq!(step_heading(line), None, "{line}");
        }
        for line in [
            "### Step 2a: x",
            "### Step 1..2: x",
            "### Step 1234567890123: x",
        ] {
            assert!(step_heading(line).unwrap().is_err(), "{line}");
        }
    }
}
