//! A survey of the workspace before git reads it. A command can leave entries that block git (a
//! pipe in place of a file), that take minutes to read (a file of 50 GB) or that fail (a directory
//! without permissions); the survey finds them without opening a file.

use ralph_core::ports::{Exec, ExecStatus};

use super::sandbox::{STATUS_TIMEOUT, SandboxGit};
use super::{GitError, MAX_COMMIT_BYTES};
use crate::error::RunError;
use crate::workspace::{TamperFinding, repo_path};

/// The most large files that are excluded individually, and the total length of their paths.
const MAX_PATHS: usize = 1000;
const MAX_PATH_BYTES: usize = 256 << 10;
/// The most bytes that a survey prints.
const MAX_SURVEY_OUTPUT: u64 = 16 << 20;
/// Longer paths cannot be arguments of a command.
const MAX_PATH: usize = 4000;

/// Restores the permissions of `.git`, removes pipes, sockets and devices that git could open, and
/// stale locks of a killed git; then prints links below `.git`, and large files.
///
/// Results other than large files start with `!`, a letter for their kind and a path.
const SCRIPT: &str = r#"
if [ -d .git ] && [ ! -L .git ]; then
  sealed=$(find .git \( -type d ! -perm -700 -o -type f ! -perm -400 \) -print 2>/dev/null | head -n 1)
  if [ -n "$sealed" ]; then chmod -R u+rwX .git; printf '!p.git\0'; fi
fi
find . \( -path '*/.git*' ! -type f ! -type d ! -type l -exec rm -f {} \; -exec printf '!s%s\0' {} \; \) \
  -o \( -path './.git/*' -name '*.lock' ! -type d -exec rm -f {} \; \) \
  -o \( \( -path ./.git -o -path './.git/*' \) -type l -exec printf '!l%s\0' {} \; \) \
  -o \( ! -path './.git/*' -type f -size "+${LIMIT}c" -print0 \)
"#;

/// Prints those of the given paths that are untracked or changed.
const CHANGED_PATHS_SCRIPT: &str =
    r#"git ls-files -z --others -- "$@"; git diff-files -z --name-only -- "$@""#;

/// The result of a survey.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    /// Files and directories that git must not read.
    pub large: Vec<String>,
    /// The repairs, one of each kind.
    pub findings: Vec<TamperFinding>,
}

impl SandboxGit<'_> {
    /// Surveys the workspace. A link in place of a part of `.git` is damage.
    pub(super) async fn survey(&self) -> Result<Survey, RunError> {
        let mut exec = Exec::shell(SCRIPT, STATUS_TIMEOUT);
        exec.output_limit = MAX_SURVEY_OUTPUT;
        let output = self
            .exec(exec.with_env("LIMIT", MAX_COMMIT_BYTES.to_string()))
            .await?;
        let mut survey = Survey::default();
        let mut candidates = Vec::new();
        for part in output.stdout.split(|byte| *byte == 0) {
            match part {
                [b'!', b'p', path @ ..] => {
                    survey.add_finding(path, "the permissions were removed; restored");
                }
                [b'!', b's', path @ ..] => survey.add_finding(path, "not a regular file; removed"),
                [b'!', b'l', path @ ..] => return Err(link_error(path)),
                [b'.', b'/', path @ ..] if path.len() <= MAX_PATH => {
                    candidates.push(path.to_vec());
                }
                _ => {}
            }
        }
        candidates.sort();
        let candidates = self.without_git_files(candidates, &mut survey).await?;
        if !candidates.is_empty() {
            let candidates = self.without_ignored(candidates).await?;
            survey.large = self.without_unchanged(candidates).await?;
        }
        Ok(survey)
    }

    /// Removes large files that git would read completely whenever it reads their directory.
    async fn without_git_files(
        &self,
        candidates: Vec<Vec<u8>>,
        survey: &mut Survey,
    ) -> Result<Vec<Vec<u8>>, RunError> {
        let mut kept = Vec::new();
        for path in candidates {
            let name = path.rsplit(|byte| *byte == b'/').next();
            let special = [&b".gitignore"[..], b".gitattributes", b".gitmodules"];
            if !name.is_some_and(|name| special.contains(&name)) {
                kept.push(path);
                continue;
            }
            let text = String::from_utf8_lossy(&path).into_owned();
            if let Ok(target) = repo_path(&text) {
                self.sandbox.delete(&target).await?;
                survey.add_finding(&path, "too large for git; removed");
            }
        }
        Ok(kept)
    }

    /// Leaves out files that git ignores.
    async fn without_ignored(&self, paths: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, RunError> {
        let argv = ["git", "check-ignore", "-z", "-v", "-n", "--stdin"];
        let mut exec = Exec::argv(argv, STATUS_TIMEOUT).with_stdin(paths.join(&0));
        exec.output_limit = MAX_SURVEY_OUTPUT;
        let output = self.exec(exec).await?;
        if !matches!(output.ended, ExecStatus::Exited(0 | 1)) {
            return Ok(paths);
        }
        // Source, line, pattern and path of each; all but the path are empty for no match.
        let fields: Vec<&[u8]> = output.stdout.split(|byte| *byte == 0).collect();
        let kept = fields.chunks_exact(4).filter_map(|record| match record {
            [_, _, pattern, path] if pattern.is_empty() || pattern.starts_with(b"!") => {
                Some(path.to_vec())
            }
            _ => None,
        });
        Ok(kept.collect())
    }

    /// Leaves out files that are unchanged in git.
    async fn without_unchanged(&self, paths: Vec<Vec<u8>>) -> Result<Vec<String>, RunError> {
        let bytes: usize = paths.iter().map(Vec::len).sum();
        let names: Vec<String> = paths
            .iter()
            .map(|path| String::from_utf8_lossy(path).into_owned())
            .collect();
        if names.len() > MAX_PATHS || bytes > MAX_PATH_BYTES {
            return Ok(top_level_directories(&names));
        }
        let argv = ["sh", "-c", CHANGED_PATHS_SCRIPT, "sh"].map(String::from);
        let argv = argv.into_iter().chain(names.iter().cloned());
        let exec = Exec::argv(argv, STATUS_TIMEOUT).with_env("GIT_LITERAL_PATHSPECS", "1");
        let output = self.exec(exec).await?;
        let changed: Vec<&[u8]> = output.stdout.split(|byte| *byte == 0).collect();
        let names = paths.iter().zip(names);
        Ok(names
            // A name that is not valid UTF-8 cannot be queried.
            .filter(|(path, name)| changed.contains(&path.as_slice()) || !is_text(name))
            .map(|(_, name)| name)
            .collect())
    }
}

impl Survey {
    fn add_finding(&mut self, path: &[u8], finding: &str) {
        let path = String::from_utf8_lossy(path);
        let path = path.strip_prefix("./").unwrap_or(&path);
        // One finding of each kind is enough: a command can create any number.
        if !self.findings.iter().any(|known| known.finding == finding) {
            self.findings.push(TamperFinding::new(path, finding));
        }
    }
}

fn link_error(path: &[u8]) -> RunError {
    let path = String::from_utf8_lossy(path);
    GitError::InSandbox {
        command: "status".into(),
        message: format!("`{}` is a link", path.strip_prefix("./").unwrap_or(&path)),
    }
    .into()
}

/// Returns the topmost directories of files that are too many to name individually.
fn top_level_directories(names: &[String]) -> Vec<String> {
    let tops: std::collections::BTreeSet<&str> = names
        .iter()
        .map(|name| name.split('/').next().unwrap_or(name))
        .collect();
    if tops.len() > MAX_PATHS {
        return vec![ALL_FILES.to_owned()];
    }
    tops.into_iter().map(str::to_owned).collect()
}

/// The name for all files, if too many of them are large.
const ALL_FILES: &str = ".";

fn is_text(name: &str) -> bool {
    !name.contains(char::REPLACEMENT_CHARACTER)
}

/// Returns the pathspecs that exclude files.
pub(super) fn exclude_pathspecs(large: &[String]) -> impl Iterator<Item = String> {
    large.iter().map(|name| {
        if name == ALL_FILES {
            ":(exclude)*".to_owned()
        } else if is_text(name) {
            format!(":(exclude,literal){name}")
        } else {
            format!(":(exclude,glob){}", glob_pattern(name))
        }
    })
}

/// Returns the pathspec that selects a file.
pub(super) fn literal_pathspec(name: &str) -> String {
    if is_text(name) {
        format!(":(literal){name}")
    } else {
        format!(":(glob){}", glob_pattern(name))
    }
}

/// Returns the pattern of a name that is not valid UTF-8: its invalid bytes match anything.
fn glob_pattern(name: &str) -> String {
    name.chars().map(escape_glob).collect()
}

fn escape_glob(character: char) -> String {
    match character {
        char::REPLACEMENT_CHARACTER => "*".to_owned(),
        '*' | '?' | '[' | '\\' => format!("\\{character}"),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_excluded_by_their_exact_name() {
        let names = ["a b.bin", "x*[y]", "bad\u{fffd}na*me", ALL_FILES].map(String::from);
        assert_eq!(literal_pathspec(&names[1]), ":(literal)x*[y]");
        assert_eq!(literal_pathspec(&names[2]), r":(glob)bad*na\*me");
        let excluded: Vec<String> = exclude_pathspecs(&names).collect();
        assert_eq!(
            excluded,
            [
                ":(exclude,literal)a b.bin",
                ":(exclude,literal)x*[y]",
                r":(exclude,glob)bad*na\*me",
                ":(exclude)*",
            ]
        );
    }

    #[test]
    fn too_many_files_are_excluded_by_their_directories() {
        let names = ["data/a/x", "data/b", "top"].map(String::from);
        assert_eq!(top_level_directories(&names), ["data", "top"]);
        let many: Vec<String> = (0..=MAX_PATHS).map(|n| n.to_string()).collect();
        assert_eq!(top_level_directories(&many), [ALL_FILES]);
    }
}
