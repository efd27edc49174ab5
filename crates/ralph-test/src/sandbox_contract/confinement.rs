//! Confinement: file operations never leave the sandbox.

use std::time::Duration;

use ralph_core::ports::{SandboxError, WriteMode};

use super::contract_sandbox::{ContractSandbox, READ_LIMIT, repo_path};

/// The time limit of an operation that must not block.
const IMMEDIATE_TIMEOUT: Duration = Duration::from_secs(5);

/// Creates a directory outside the sandbox, with links to it in the repository, and returns its
/// path.
async fn create_outside_directory(fixture: &ContractSandbox<'_>) -> String {
    let line = r#"out=$(mktemp -d /tmp/contract.XXXXXX); echo kept > "$out/file"
        ln -s "$out" dir; ln -s "$out/file" link; ln -s "$out/new" dangling
        mkdir d; ln -s "../dir" d/twice; echo "$out""#;
    fixture.sh(line).await.trim().to_owned()
}

/// Asserts that the outside directory is unchanged, and removes it.
async fn assert_outside_unchanged(fixture: &ContractSandbox<'_>, out: &str) {
    let seen = fixture
        .sh(&format!("cd {out} && ls -A && cat file && rm -r {out}"))
        .await;
    assert_eq!(seen, "file\nkept\n", "the outside directory was changed");
}

pub(super) async fn links_outside_are_not_read(fixture: &ContractSandbox<'_>) {
    fixture
        .sh("ln -s /etc x; ln -s /etc/passwd y; ln -s ../../../../../../../etc/passwd z; mkdir d; ln -s ../x d/x")
        .await;
    for path in ["x/passwd", "y", "z", "d/x/passwd"] {
        let read = fixture.read(path).await;
        assert!(
            matches!(&read, Err(SandboxError::Escapes(_))),
            "{path}: {read:?}"
        );
    }
    for path in ["x", "d/x"] {
        let list = fixture.sandbox.list(&repo_path(path)).await;
        assert!(
            matches!(&list, Err(SandboxError::Escapes(_))),
            "{path}: {list:?}"
        );
    }
}

pub(super) async fn links_outside_are_not_written(fixture: &ContractSandbox<'_>) {
    let out = create_outside_directory(fixture).await;
    for path in [
        "dir/file",
        "dir/new",
        "dir/a/new",
        "link",
        "dangling",
        "d/twice/file",
    ] {
        for mode in [WriteMode::Replace, WriteMode::Append] {
            let written = fixture
                .sandbox
                .write(&repo_path(path), b"changed", mode)
                .await;
            assert!(
                matches!(&written, Err(SandboxError::Escapes(_))),
                "{path}, {mode:?}: {written:?}"
            );
        }
    }
    assert_outside_unchanged(fixture, &out).await;
}

pub(super) async fn deleting_does_not_follow_links(fixture: &ContractSandbox<'_>) {
    let out = create_outside_directory(fixture).await;
    for path in ["dir/file", "d/twice/file"] {
        let deleted = fixture.sandbox.delete(&repo_path(path)).await;
        assert!(
            matches!(&deleted, Err(SandboxError::Escapes(_))),
            "{path}: {deleted:?}"
        );
    }
    for path in ["link", "dir", "dangling", "d"] {
        let deleted = fixture.sandbox.delete(&repo_path(path)).await;
        assert!(deleted.is_ok(), "{path}: {deleted:?}");
    }
    assert_eq!(fixture.sh("ls -A").await, "");
    assert_outside_unchanged(fixture, &out).await;
}

pub(super) async fn pipes_and_directories_are_not_files(fixture: &ContractSandbox<'_>) {
    fixture.sh("mkfifo pipe; ln -s pipe link; mkdir dir").await;
    for path in ["pipe", "link", "dir"] {
        let path = repo_path(path);
        let all = async {
            let read = fixture.sandbox.read(&path, READ_LIMIT).await;
            let replace = fixture.sandbox.write(&path, b"x", WriteMode::Replace).await;
            let append = fixture.sandbox.write(&path, b"x", WriteMode::Append).await;
            [read.map(drop), replace, append]
        };
        let all = tokio::time::timeout(IMMEDIATE_TIMEOUT, all).await;
        for result in all.expect("no operation blocks on a pipe") {
            assert!(
                matches!(&result, Err(SandboxError::NotRegular(_))),
                "{path}: {result:?}"
            );
        }
    }
}
