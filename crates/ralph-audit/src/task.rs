//! Parses the relevant parts of a task file: its boxes, its contract, its limits.

use super::boxes;
use super::digest::sha256;

/// A box, identified by the position of its mark in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TaskBox {
    mark: usize,
}

impl TaskBox {
    /// Returns the name of the box in the text, such as `M1.2`.
    pub(super) fn name(self, text: &str) -> Option<&str> {
        let word = text.get(self.mark + 2..)?.split_whitespace().next()?;
        let word = word.trim_end_matches([':', '.', ')']);
        let (milestone, number) = word.strip_prefix('M')?.split_once('.')?;
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        (is_number(milestone) && is_number(number)).then_some(word)
    }
}

/// Returns a task file as text with plain line endings and without a byte order mark.
pub(super) fn normalize(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    text.replace("\r\n", "\n")
}

/// Returns the digest of the text with all boxes open.
pub(super) fn contract_digest(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for found in checkboxes(text) {
        bytes[found.mark] = match bytes[found.mark] {
            b'x' | b'X' => b' ',
            open => open,
        };
    }
    sha256(&bytes)
}

/// Returns the value of a front matter setting, without quotes and comment.
pub(super) fn front_matter_value<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    let front = &text[..body_start(text)];
    front.lines().find_map(|line| {
        let value = line.strip_prefix(key)?.trim_start().strip_prefix(':')?;
        let value = value.split(" #").next().unwrap_or_default();
        Some(value.trim().trim_matches(['"', '\'']))
    })
}

fn body_start(text: &str) -> usize {
    let is_fence = |line: &str| line.trim_end() == "---";
    let mut lines = text.split_inclusive('\n');
    let mut at = lines.next().map_or(0, str::len);
    if !text.lines().next().is_some_and(is_fence) {
        return 0;
    }
    for line in lines {
        at += line.len();
        if is_fence(line) {
            break;
        }
    }
    at
}

/// Returns the boxes of a task, in order.
pub(super) fn checkboxes(text: &str) -> Vec<TaskBox> {
    let start = body_start(text);
    let marks = boxes::checkbox_marks(&text[start..]).into_iter();
    marks.map(|mark| TaskBox { mark: start + mark }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASK: &str = "---\ntask_id: a # it\nmax_iterations: \"7\"\nlist:\n  - [x] no\n---\n\
        - [ ] M1.1 one\n- [ ] M2.10: two\n- [ ] Mx.1 three\n- [ ] four\n";

    #[test]
    fn a_contract_digest_ignores_ticks() {
        let ticked = TASK
            .replace("- [ ] M1.1", "- [x] M1.1")
            .replace("- [ ] four", "- [X] four");
        assert_eq!(contract_digest(&ticked), sha256(TASK.as_bytes()));
        assert_ne!(
            contract_digest(&TASK.replace("four", "five")),
            contract_digest(TASK)
        );
        let windows = format!("\u{feff}{}", TASK.replace('\n', "\r\n"));
        assert_eq!(normalize(windows.as_bytes()), TASK);
    }

    #[test]
    fn checkboxes_are_named_by_the_text() {
        let names: Vec<_> = checkboxes(TASK)
            .iter()
            .map(|found| found.name(TASK))
            .collect();
        assert_eq!(names, [Some("M1.1"), Some("M2.10"), None, None]);
    }

    #[test]
    fn settings_are_read_from_the_front_matter() {
        assert_eq!(front_matter_value(TASK, "task_id"), Some("a"));
        assert_eq!(front_matter_value(TASK, "max_iterations"), Some("7"));
        assert_eq!(front_matter_value(TASK, "max_iteration"), None);
        assert_eq!(
            front_matter_value("max_iterations: 3\n", "max_iterations"),
            None
        );
    }
}
