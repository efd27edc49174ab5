//! Selects the line of git's error output that the user sees.

/// A warning of newer git versions about a setting that older ones need.
const DEPRECATED: &str = "warning: core.fsyncObjectFiles is deprecated";

/// Returns the most informative line: the first one marked as a refusal or an error, else the last.
pub(super) fn most_relevant_line(stderr: &str) -> Option<&str> {
    let lines = || {
        stderr
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with(DEPRECATED))
    };
    ["! [", "fatal: ", "error: "]
        .iter()
        .find_map(|start| lines().find(|line| line.starts_with(start)))
        .or_else(|| lines().next_back())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_line_is_preferred_to_advice() {
        let locked = "fatal: Unable to create '.git/index.lock': File exists.\n\nremove the file manually to continue.\n";
        assert_eq!(
            most_relevant_line(locked),
            Some("fatal: Unable to create '.git/index.lock': File exists.")
        );
        assert_eq!(
            most_relevant_line("warning: x\n  last words \n\n"),
            Some("last words")
        );
        assert_eq!(most_relevant_line(" \n"), None);
        let deprecated = "warning: core.fsyncObjectFiles is deprecated; use core.fsync instead\n";
        assert_eq!(most_relevant_line(deprecated), None);
    }
}
