//! A diff of a workspace in which other commands work at the same time.

use std::time::Duration;

use ralph_core::id::CommitId;
use ralph_core::ports::Exec;

use super::sandbox::{SandboxGit, WITHOUT_OWN_FILES};
use crate::error::RunError;

/// Adds new files to a private copy of the index, so that neither the index nor its lock is
/// touched; git writes an empty object for them into a private directory. 141 is the status of a
/// diff that is truncated at the limit.
const SCRIPT: &str = r#"
set -e
mkdir -p ../scratch
private=$(mktemp -d ../scratch/diff.XXXXXX)
trap 'rm -rf "$private"' EXIT
mkdir "$private/objects"
if [ -e .git/index ]; then cp .git/index "$private/index"; fi
export GIT_INDEX_FILE="$private/index" GIT_OPTIONAL_LOCKS=0
export GIT_OBJECT_DIRECTORY="$private/objects" GIT_ALTERNATE_OBJECT_DIRECTORIES="$PWD/.git/objects"
git add --intent-to-add --all --ignore-errors -- "$@" >/dev/null 2>&1 || true
{
  status=0
  git diff --no-color --no-ext-diff --no-textconv "$FROM" -- "$@" || status=$?
  echo "$status" >"$private/status"
} | head -c "$LIMIT"
read -r status <"$private/status"
[ "$status" = 0 ] || [ "$status" = 141 ]
"#;

impl SandboxGit<'_> {
    /// Returns the first `limit` bytes of the diff of the workspace against a commit. Unlike
    /// [`SandboxGit::diff`], it repairs nothing and takes no lock, so it can run beside commands
    /// that use the repository.
    pub(crate) async fn diff_unlocked(
        &self,
        from: &CommitId,
        limit: usize,
        timeout: Duration,
    ) -> Result<Vec<u8>, RunError> {
        let argv = ["sh", "-c", SCRIPT, "sh"];
        let exec = Exec::argv(argv.iter().chain(&WITHOUT_OWN_FILES).copied(), timeout)
            .with_env("FROM", from.as_str())
            .with_env("LIMIT", limit.to_string());
        self.exec_checked("diff", exec).await
    }
}
