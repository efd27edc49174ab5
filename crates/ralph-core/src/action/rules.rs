//! Paths that the model must not change. The model sees a refusal in its next prompt; the rest of
//! the reply remains valid.
//!
//! The rules cover every spelling that some file system treats as the same name, because the
//! sandbox may run on one that ignores case, trailing dots or invisible characters.

use crate::path::WorkspacePath;
use crate::ports::WriteMode;

const GUARDRAILS: &str = ".ralph/guardrails.md";
const PROGRESS: &str = ".ralph/progress.md";
const NOTES: &str = ".ralph/notes.md";
const STATE_DIRECTORY: &str = ".ralph";
const CONTRACT: &str = "ralph_task.md";

/// Returns the reason why a file must not be written in this mode, if any.
pub fn refuse_write(path: &WorkspacePath, mode: WriteMode) -> Option<String> {
    match (path.as_str(), mode) {
        (PROGRESS, _) | (GUARDRAILS, WriteMode::Append) => None,
        (GUARDRAILS, WriteMode::Replace) => Some(append_only()),
        _ => refuse_change(path),
    }
}

/// Returns the reason why a file must not be patched, if any.
pub fn refuse_patch(path: &WorkspacePath) -> Option<String> {
    match path.as_str() {
        PROGRESS => None,
        GUARDRAILS => Some(append_only()),
        _ => refuse_change(path),
    }
}

/// Returns the reason why a path must not be listed in a commit action, if any.
pub fn refuse_commit(path: &WorkspacePath) -> Option<String> {
    let text = path.as_str();
    if text.starts_with([':', '-']) {
        return Some(format!(
            "`{text}` looks like an option or a pattern; list files and directories by name"
        ));
    }
    refuse_change(path)
}

/// Returns the reason why the user must not edit a file by its path, if any.
pub fn refuse_edit(path: &WorkspacePath) -> Option<String> {
    if path.as_str() == NOTES {
        return None;
    }
    if path.parts().any(is_git_directory) {
        return Some(format!("`{path}` is inside git's own directory"));
    }
    if is_secret_file(path) {
        return Some(format!("`{path}` usually contains secrets"));
    }
    let first = path.parts().next().map(fold)?;
    if first == CONTRACT && path.parts().count() == 1 {
        return Some("the contract is pinned; change the task of the run instead".into());
    }
    (first == STATE_DIRECTORY).then(|| {
        format!("`{path}` belongs to the runner; of these files you may only edit `{NOTES}`")
    })
}

/// Returns the reason why the user must not read a file of the workspace by its path, if any.
pub fn refuse_read(path: &WorkspacePath) -> Option<String> {
    if path.parts().any(is_git_directory) {
        return Some(format!("`{path}` is inside git's own directory"));
    }
    is_secret_file(path).then(|| format!("`{path}` usually contains secrets"))
}

/// Returns whether files of this name usually contain credentials.
fn is_secret_file(path: &WorkspacePath) -> bool {
    let Some(name) = path.parts().last().map(fold) else {
        return false;
    };
    let is_template = [".example", ".sample", ".template", ".dist"]
        .iter()
        .any(|suffix| name.ends_with(suffix));
    let is_environment = name == ".env" || (name.starts_with(".env.") && !is_template);
    let is_key = [".pem", ".key", ".p12", ".pfx"]
        .iter()
        .any(|suffix| name.ends_with(suffix));
    let is_known = [
        ".netrc",
        ".git-credentials",
        ".npmrc",
        ".pypirc",
        "id_rsa",
        "id_dsa",
        "id_ecdsa",
        "id_ed25519",
    ]
    .contains(&name.as_str());
    is_environment || is_key || is_known
}

/// Returns whether a path configures CI of the source host, which runs with secrets.
pub fn is_workflow(path: &WorkspacePath) -> bool {
    let parts: Vec<String> = path.parts().map(fold).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    matches!(
        parts[..],
        [".github", "workflows" | "actions", ..] | ["action.yml" | "action.yaml"]
    )
}

fn append_only() -> String {
    format!("`{GUARDRAILS}` is append-only; use a write with \"append\": true")
}

/// Refuses paths that belong to git, the user or the runner.
fn refuse_change(path: &WorkspacePath) -> Option<String> {
    if path.parts().any(is_git_directory) {
        return Some(format!(
            "`{path}` is inside git's own directory; use commit actions"
        ));
    }
    let mut parts = path.parts();
    let first = parts.next().map(fold)?;
    if first == CONTRACT && parts.next().is_none() {
        return Some(
            "the contract is pinned: ticks come from verified claims, and only the user may edit it"
                .into(),
        );
    }
    (first == STATE_DIRECTORY).then(|| {
        format!(
            "`{path}` belongs to the runner; you may only write `{PROGRESS}` and append to `{GUARDRAILS}`"
        )
    })
}

fn is_git_directory(part: &str) -> bool {
    let name = fold(part);
    // `git~1` is the short name of `.git` on file systems with 8.3 names.
    let is_short = name
        .strip_prefix("git~")
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()));
    name == ".git" || is_short
}

/// Normalises a name as file systems may do: ignores case, invisible characters, an NTFS stream
/// name after a colon, and trailing dots and spaces.
fn fold(part: &str) -> String {
    let visible: String = part.chars().filter(|c| !is_ignorable(*c)).collect();
    let name = visible.split(':').next().unwrap_or_default();
    name.trim_end_matches(['.', ' ']).to_lowercase()
}

fn is_ignorable(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
    )
}

#[cfg(test)]
mod tests;
