//! Reads a workspace while a command works in it.

use std::time::Duration;

use ralph_core::id::CommitId;
use ralph_core::path::{SandboxPath, WorkspacePath};
use ralph_core::ports::{
    Exec, Sandbox, SandboxEntryKind, SandboxError, SandboxProvider as _, SandboxSpec, WriteMode,
};
use ralph_engine::error::RunError;
use ralph_engine::inspect::{self, MAX_DIFF_BYTES, MAX_FILE_BYTES};
use ralph_providers::sandbox::LocalProvider;
use ralph_test::CollectedOutput;
use tempfile::TempDir;

/// A local sandbox with a repository that has one commit.
struct InspectedSandbox {
    sandbox: Box<dyn Sandbox>,
    _directory: TempDir,
}

impl InspectedSandbox {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let sandboxes = directory.path().join("sandboxes");
        let provider = LocalProvider::new(sandboxes, "/usr/local/bin:/usr/bin:/bin");
        let sandbox = provider.create(&SandboxSpec::default()).await.unwrap();
        let inspected = Self {
            sandbox,
            _directory: directory,
        };
        inspected.run(
            "git init --quiet && mkdir src && echo old >src/kept.txt && echo out >.gitignore && git add . \
             && git -c user.name=a -c user.email=a@localhost commit --quiet --message base",
        )
        .await;
        inspected
    }

    async fn run(&self, command: &str) -> String {
        let mut output = CollectedOutput::default();
        let exec = Exec::shell(command, Duration::from_mins(1));
        let outcome = self.sandbox.exec(exec, None, &mut output).await.unwrap();
        assert!(outcome.ended.is_success(), "{command}: {output:?}");
        output.stdout_text()
    }

    async fn head(&self) -> CommitId {
        CommitId::parse(self.run("git rev-parse HEAD").await.trim()).unwrap()
    }

    async fn write(&self, path: &str, bytes: &[u8]) {
        let path = SandboxPath::in_repo(&WorkspacePath::parse(path).unwrap());
        let written = self.sandbox.write(&path, bytes, WriteMode::Replace);
        written.await.unwrap();
    }
}

#[tokio::test]
async fn a_running_command_is_not_disturbed() {
    let inspected = InspectedSandbox::new().await;
    let head = inspected.head().await;
    // The lock of the index is held, as by a `git commit` that waits for a hook.
    let command = "echo new >src/new.txt; echo changed >src/kept.txt; touch .git/index.lock out; \
        until test -e ../scratch/seen; do sleep 0.05; done; rm .git/index.lock; git status --porcelain";
    let inspection = async {
        while inspect::read_file(&*inspected.sandbox, &WorkspacePath::parse("out").unwrap())
            .await
            .is_err()
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let before = inspected
            .run("find .git | sort; sha256sum .git/index")
            .await;
        let diff = inspect::diff(&*inspected.sandbox, &head).await.unwrap();
        let tree = inspect::tree(&*inspected.sandbox).await.unwrap();
        let file = WorkspacePath::parse("src/new.txt").unwrap();
        let file = inspect::read_file(&*inspected.sandbox, &file)
            .await
            .unwrap();
        let after = inspected
            .run("find .git | sort; sha256sum .git/index")
            .await;
        assert_eq!(before, after);
        assert_eq!(inspected.run("ls -A ../scratch").await, "");
        inspected.run("touch ../scratch/seen").await;
        (diff, tree, file)
    };
    let (status, (diff, tree, file)) = tokio::join!(inspected.run(command), inspection);
    assert_eq!(status, " M src/kept.txt\n?? src/new.txt\n");
    let patch = String::from_utf8(diff.patch).unwrap();
    assert!(patch.contains("-old\n+changed\n"), "{patch}");
    assert!(patch.contains("+++ b/src/new.txt\n"), "{patch}");
    assert!(!patch.contains("out"), "{patch}");
    assert!(!diff.is_truncated && !tree.is_truncated);
    let listed: Vec<(&str, SandboxEntryKind)> = tree
        .entries
        .iter()
        .map(|entry| (entry.path.as_str(), entry.kind))
        .collect();
    assert_eq!(
        listed,
        [
            (".gitignore", SandboxEntryKind::File),
            ("out", SandboxEntryKind::File),
            ("src", SandboxEntryKind::Directory),
            ("src/kept.txt", SandboxEntryKind::File),
            ("src/new.txt", SandboxEntryKind::File),
        ]
    );
    assert_eq!(file, b"new\n");
}

#[tokio::test]
async fn results_are_limited() {
    let inspected = InspectedSandbox::new().await;
    let head = inspected.head().await;
    let large = b"0123456789abcde\n".repeat(usize::try_from(MAX_FILE_BYTES).unwrap() / 16 + 1);
    inspected.write("large.txt", &large).await;
    let diff = inspect::diff(&*inspected.sandbox, &head).await.unwrap();
    assert_eq!(
        (diff.patch.len(), diff.is_truncated),
        (MAX_DIFF_BYTES, true)
    );
    let path = WorkspacePath::parse("large.txt").unwrap();
    let read = inspect::read_file(&*inspected.sandbox, &path).await;
    let refused = read.unwrap_err();
    assert!(
        matches!(
            refused,
            SandboxError::TooLarge {
                limit: MAX_FILE_BYTES,
                ..
            }
        ),
        "{refused}"
    );
    inspected
        .run("mkdir many && cd many && seq 1 20100 | xargs touch")
        .await;
    let tree = inspect::tree(&*inspected.sandbox).await.unwrap();
    assert_eq!(tree.entries.len(), inspect::MAX_TREE_ENTRIES);
    assert!(tree.is_truncated);
}

#[tokio::test]
async fn a_damaged_repository_is_an_error_and_not_an_empty_diff() {
    let inspected = InspectedSandbox::new().await;
    let head = inspected.head().await;
    inspected.run("rm -rf .git/objects/*").await;
    let failed = inspect::diff(&*inspected.sandbox, &head).await.unwrap_err();
    assert!(matches!(failed, RunError::Git(_)), "{failed}");
    assert_eq!(inspected.run("ls -A ../scratch").await, "");
}
