//! What keeps an agent from its task, in its own words: `[blocked: why]`, added to the progress.

use crate::error::RunError;
use crate::run::Run;
use crate::workspace::in_repo;

/// The most of the progress that is read back.
const MAX_BYTES: u64 = 1 << 20;
/// The longest reason that is told, in bytes.
const MAX_REASON: usize = 2_000;

impl Run {
    /// Returns why the agent cannot go on, if it has said so in this iteration.
    pub(super) async fn agents_obstacle(&self) -> Result<Option<String>, RunError> {
        let path = in_repo(".ralph/progress.md")?;
        // What is wrong with the file is for the inspection, which comes later.
        let Ok(bytes) = self.sandbox.read(&path, MAX_BYTES).await else {
            return Ok(None);
        };
        let now = String::from_utf8_lossy(&bytes);
        let before = self.files.text("progress.md")?;
        Ok(obstacle(now.strip_prefix(before.as_str()).unwrap_or(&now)))
    }
}

/// Finds the last reason in what was added.
fn obstacle(added: &str) -> Option<String> {
    let marks = added.to_ascii_lowercase();
    let start = marks.rfind("[blocked:")? + "[blocked:".len();
    let end = added[start..].find(']').map(|end| start + end);
    let reason = added[start..end.unwrap_or(added.len())].trim();
    let mut end = reason.len().min(MAX_REASON);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    Some(reason[..end].to_owned())
}

#[cfg(test)]
mod tests {
    use super::obstacle;

    #[test]
    fn the_last_reason_counts() {
        for (added, expected) in [
            ("", None),
            ("- did M1.1\n", None),
            ("- [blocked: no database]\n", Some("no database")),
            (
                "[BLOCKED: a]\n[Blocked:  the key is missing ]",
                Some("the key is missing"),
            ),
            ("[blocked: cut off", Some("cut off")),
            ("[blocked]", None),
        ] {
            assert_eq!(obstacle(added).as_deref(), expected, "{added}");
        }
    }
}
