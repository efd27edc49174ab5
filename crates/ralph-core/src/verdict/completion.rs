//! Preconditions for verifying a run in the clean room.

/// State of a run when the model claims that it is done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CompletionState {
    /// Ids of the boxes that are not ticked.
    pub open_boxes: Vec<String>,
    /// Files with uncommitted changes.
    pub dirty_files: Vec<String>,
    /// Number of commits on the branch since its base.
    pub commits: u64,
}

/// Maximum number of boxes named in a reason.
const MAX_NAMED_BOXES: usize = 20;
/// Maximum number of files named in a reason.
const MAX_NAMED_FILES: usize = 5;

/// Checks whether the run may be verified, or returns the reasons against it.
pub fn may_finish(state: &CompletionState) -> Result<(), Vec<String>> {
    let mut reasons = Vec::new();
    if !state.open_boxes.is_empty() {
        let boxes = count(&state.open_boxes, "box is", "boxes are");
        let names = names(&state.open_boxes, MAX_NAMED_BOXES);
        reasons.push(format!("{boxes} open: {names}"));
    }
    if !state.dirty_files.is_empty() {
        let files = count(&state.dirty_files, "file has", "files have");
        let names = names(&state.dirty_files, MAX_NAMED_FILES);
        reasons.push(format!("{files} uncommitted changes: {names}"));
    }
    if state.commits == 0 {
        reasons.push("the branch has no commits".to_owned());
    }
    if reasons.is_empty() {
        Ok(())
    } else {
        Err(reasons)
    }
}

fn count(things: &[String], one: &str, many: &str) -> String {
    let noun = if things.len() == 1 { one } else { many };
    format!("{} {noun}", things.len())
}

fn names(things: &[String], limit: usize) -> String {
    let named: Vec<String> = things
        .iter()
        .take(limit)
        .map(|thing| format!("`{thing}`"))
        .collect();
    match things.len().saturating_sub(limit) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(open_boxes: &[&str], dirty_files: usize, commits: u64) -> CompletionState {
        CompletionState {
            open_boxes: open_boxes.iter().map(ToString::to_string).collect(),
            dirty_files: (1..=dirty_files).map(|n| format!("src/{n}.rs")).collect(),
            commits,
        }
    }

    #[test]
    fn a_run_may_finish_when_nothing_is_left() {
        assert_eq!(may_finish(&state(&[], 0, 1)), Ok(()));
    }

    #[test]
    fn names_the_remaining_work() {
        for (state, reasons) in [
            (state(&["a"], 0, 1), vec!["1 box is open: `a`"]),
            (state(&["a", "b"], 0, 1), vec!["2 boxes are open: `a`, `b`"]),
            (
                state(&[], 1, 1),
                vec!["1 file has uncommitted changes: `src/1.rs`"],
            ),
            (
                state(&[], 7, 1),
                vec![
                    "7 files have uncommitted changes: `src/1.rs`, `src/2.rs`, `src/3.rs`, `src/4.rs`, `src/5.rs` and 2 more",
                ],
            ),
            (state(&[], 0, 0), vec!["the branch has no commits"]),
            (
                state(&["a"], 1, 0),
                vec![
                    "1 box is open: `a`",
                    "1 file has uncommitted changes: `src/1.rs`",
                    "the branch has no commits",
                ],
            ),
        ] {
            let reasons = reasons.into_iter().map(str::to_owned).collect();
            assert_eq!(may_finish(&state), Err(reasons));
        }
    }
}
