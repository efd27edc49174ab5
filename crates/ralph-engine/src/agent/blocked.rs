//! Obstacles that an agent reports in the progress file as `[blocked: why]`.

use crate::error::RunError;
use crate::recorder::Recorder;
use crate::workbench::Workbench;
use crate::workspace::repo_path;

/// The start of a reported obstacle, in lower case.
const BLOCKED_MARKER: &str = "[blocked:";
/// The most bytes of the progress file that are read.
const MAX_BYTES: u64 = 1 << 20;
/// The longest reported reason, in bytes.
const MAX_REASON: usize = 2_000;

/// Returns why the agent is blocked, if it reported that in this iteration.
pub(super) async fn agent_obstacle(
    recorder: &Recorder,
    bench: &Workbench,
) -> Result<Option<String>, RunError> {
    let path = repo_path(".ralph/progress.md")?;
    // A later inspection handles problems with the file.
    let Ok(bytes) = bench.sandbox.read(&path, MAX_BYTES).await else {
        return Ok(None);
    };
    let now = String::from_utf8_lossy(&bytes);
    let before = recorder.files.text("progress.md")?;
    Ok(last_new_obstacle(&before, &now))
}

/// Returns the last reason that the earlier text does not contain, or contains less often.
fn last_new_obstacle(before: &str, now: &str) -> Option<String> {
    let mut known = blocked_reasons(before);
    let is_new = |reason: &String| match known.iter().position(|old| old == reason) {
        Some(index) => {
            known.swap_remove(index);
            false
        }
        None => true,
    };
    blocked_reasons(now).into_iter().rfind(is_new)
}

/// Returns all reasons in a text, in order.
fn blocked_reasons(text: &str) -> Vec<String> {
    let lowercase = text.to_ascii_lowercase();
    let starts = lowercase
        .match_indices(BLOCKED_MARKER)
        .map(|(at, mark)| at + mark.len());
    starts
        .map(|start| {
            let rest = &text[start..];
            let reason = &rest[..rest.find([']', '\n']).unwrap_or(rest.len())];
            let reason = reason.trim();
            reason[..reason.floor_char_boundary(MAX_REASON)].to_owned()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::last_new_obstacle;

    #[test]
    fn the_last_new_reason_counts() {
        for (before, now, expected) in [
            ("", "", None),
            ("", "- did M1.1\n", None),
            ("", "- [blocked: no database]\n", Some("no database")),
            (
                "",
                "[BLOCKED: a]\n[Blocked:  the key is missing ]",
                Some("the key is missing"),
            ),
            ("", "[blocked: cut off", Some("cut off")),
            ("", "[blocked]", None),
            ("[blocked: a]", "[blocked: a]\ndone", None),
            ("[blocked: a]\n", "tidied up\n[blocked: a]\n", None),
            ("[blocked: a]", "[blocked: b]\n[blocked: a]", Some("b")),
            ("[blocked: a]", "[blocked: a]\n[blocked: a]", Some("a")),
        ] {
            assert_eq!(last_new_obstacle(before, now).as_deref(), expected, "{now}");
        }
    }
}
