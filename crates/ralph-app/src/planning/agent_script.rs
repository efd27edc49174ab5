//! Checks that an agent's script in the repository is part of the base commit.

use ralph_engine::git::{GitError, HostGit};
use ralph_providers::agent::Preset;

use super::repository;
use super::source_repository::SourceRepository;
use crate::error::AppError;

/// Returns an error if the sandbox would not contain the agent's script.
pub(crate) async fn require_committed_script(
    preset: &Preset,
    source: &SourceRepository,
    git: &HostGit,
) -> Result<(), AppError> {
    let Some(script) = repository_script(&preset.command) else {
        return Ok(());
    };
    let object = format!("{}:{script}", source.base);
    let kind = git
        .run_as_user(&source.path, &["cat-file", "-t", &object])
        .await;
    match kind {
        Ok(kind) if kind.trim() == "blob" => return Ok(()),
        // Git fails if there is no such object.
        Ok(_) | Err(GitError::Failed { .. }) => {}
        Err(error) => return Err(repository::unreadable(&source.path, &error)),
    }
    let (branch, base) = (&source.base_branch, source.base.short());
    Err(AppError::usage(
        format!("the agent `{}` has no script", preset.name),
        format!("`{script}` is not in commit {base} of branch `{branch}`"),
        format!("commit {script}"),
    ))
}

/// Returns the repository's script that a command passes to a shell, if it does so.
fn repository_script(command: &[String]) -> Option<&str> {
    let [program, script, ..] = command else {
        return None;
    };
    let is_shell = matches!(program.as_str(), "sh" | "bash");
    let script = script.strip_prefix("./").unwrap_or(script);
    (is_shell && !script.starts_with(['-', '/']) && !script.contains(['{', '$'])).then_some(script)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_scripts_in_the_repository_are_checked() {
        for (command, expected) in [
            ("sh .agent-loop/agent", Some(".agent-loop/agent")),
            ("bash ./tools/agent.sh --once", Some("tools/agent.sh")),
            ("sh -c true", None),
            ("sh /opt/agent", None),
            ("sh", None),
            ("claude -p", None),
        ] {
            let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
            assert_eq!(repository_script(&words), expected, "{command}");
        }
    }
}
