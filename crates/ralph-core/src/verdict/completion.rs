//! What must be true before the clean room is worth its while.

/// Where a run stands when the model says it is done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CompletionState {
    /// The ids of the boxes that are not ticked.
    pub open_boxes: Vec<String>,
    /// The files with changes that are not committed.
    pub dirty_files: Vec<String>,
    /// The commits on the branch beyond its base.
    pub commits: u64,
}

/// How many open boxes are named.
const MAX_NAMED_BOXES: usize = 20;
/// How many files are named.
const MAX_NAMED_FILES: usize = 5;

/// Tells whether the run may be verified; if not, why not.
pub fn may_finish(standing: &CompletionState) -> Result<(), Vec<String>> {
    let mut reasons = Vec::new();
    if !standing.open_boxes.is_empty() {
        let boxes = count(&standing.open_boxes, "box is", "boxes are");
        let names = names(&standing.open_boxes, MAX_NAMED_BOXES);
        reasons.push(format!("{boxes} open: {names}"));
    }
    if !standing.dirty_files.is_empty() {
        let files = count(&standing.dirty_files, "file has", "files have");
        let names = names(&standing.dirty_files, MAX_NAMED_FILES);
        reasons.push(format!("{files} uncommitted changes: {names}"));
    }
    if standing.commits == 0 {
        reasons.push("there is no commit on the branch".to_owned());
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

    fn standing(open_boxes: &[&str], dirty_files: usize, commits: u64) -> CompletionState {
        CompletionState {
            open_boxes: open_boxes.iter().map(ToString::to_string).collect(),
            dirty_files: (1..=dirty_files).map(|n| format!("src/{n}.rs")).collect(),
            commits,
        }
    }

    #[test]
    fn a_run_may_finish_when_nothing_is_left() {
        assert_eq!(may_finish(&standing(&[], 0, 1)), Ok(()));
    }

    #[test]
    fn what_is_left_is_named() {
        for (standing, reasons) in [
            (standing(&["a"], 0, 1), vec!["1 box is open: `a`"]),
            (
                standing(&["a", "b"], 0, 1),
                vec!["2 boxes are open: `a`, `b`"],
            ),
            (
                standing(&[], 1, 1),
                vec!["1 file has uncommitted changes: `src/1.rs`"],
            ),
            (
                standing(&[], 7, 1),
                vec![
                    "7 files have uncommitted changes: `src/1.rs`, `src/2.rs`, `src/3.rs`, `src/4.rs`, `src/5.rs` and 2 more",
                ],
            ),
            (
                standing(&[], 0, 0),
                vec!["there is no commit on the branch"],
            ),
            (
                standing(&["a"], 1, 0),
                vec![
                    "1 box is open: `a`",
                    "1 file has uncommitted changes: `src/1.rs`",
                    "there is no commit on the branch",
                ],
            ),
        ] {
            let reasons = reasons.into_iter().map(str::to_owned).collect();
            assert_eq!(may_finish(&standing), Err(reasons));
        }
    }
}
