//! Directories read from commits of real repositories.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use tempfile::TempDir;

use super::*;

/// A repository with a work tree.
struct ProjectRepository {
    directory: TempDir,
    git: HostGit,
}

impl ProjectRepository {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = std::env::var_os("PATH").unwrap().into_string().unwrap();
        let git = HostGit::new(&path, directory.path().join("gitconfig"), None).unwrap();
        let repository = Self { directory, git };
        std::fs::create_dir_all(repository.path().join(".agent-loop")).unwrap();
        repository.run(&["init", "--quiet", "."]).await;
        repository
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("project")
    }

    async fn run(&self, args: &[&str]) -> String {
        self.git.run_as_user(&self.path(), args).await.unwrap()
    }

    fn write(&self, path: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    async fn commit(&self) -> CommitId {
        self.run(&["add", "--all"]).await;
        self.run(&["commit", "--quiet", "--allow-empty", "--message", "x"])
            .await;
        CommitId::parse(self.run(&["rev-parse", "HEAD"]).await.trim()).unwrap()
    }

    async fn read(&self, commit: &CommitId) -> Result<ProjectConfig, ProjectConfigError> {
        self.git.project_config(&self.path(), commit).await
    }
}

#[tokio::test]
async fn a_commit_decides_and_not_the_work_tree() {
    let repository = ProjectRepository::new().await;
    repository.write("README.md", b"x");
    repository.write(".agent-loopy/other", b"x");
    let empty = repository.commit().await;
    repository.write(".agent-loop/dependencies", b"jq\n");
    let first = repository.commit().await;
    repository.write(".agent-loop/dependencies", b"git\n");
    let second = repository.commit().await;
    repository.write(".agent-loop/dependencies", b"changed\n");
    repository.write(".agent-loop/Dockerfile.sandbox", b"FROM x\n");

    let read = async |commit| repository.read(commit).await.unwrap();
    assert_eq!(read(&empty).await, ProjectConfig::default());
    assert_eq!(
        read(&first).await,
        ProjectConfig::from_files([("dependencies", "jq\n")])
    );
    assert_eq!(
        read(&second).await,
        ProjectConfig::from_files([("dependencies", "git\n")])
    );
}

#[tokio::test]
async fn every_kind_of_file_is_read_as_it_is() {
    let repository = ProjectRepository::new().await;
    let program = repository.write(".agent-loop/bin/run me.sh", b"#!/bin/sh\n");
    std::fs::set_permissions(program, PermissionsExt::from_mode(0o755)).unwrap();
    repository.write(".agent-loop/.agent-loop/empty", b"");
    repository.write(".agent-loop/binary", b"\0\n\xff blob 3\n");
    repository.write(".agent-loop/zeile\numbruch", b"x");
    symlink(
        "../../etc/passwd",
        repository.path().join(".agent-loop/link"),
    )
    .unwrap();
    let commit = repository.commit().await;

    let mut expected = ProjectConfig::from_files([
        ("bin/run me.sh", &b"#!/bin/sh\n"[..]),
        (".agent-loop/empty", b""),
        ("binary", b"\0\n\xff blob 3\n"),
        ("zeile\numbruch", b"x"),
        ("link", b"../../etc/passwd"),
    ]);
    expected.files.get_mut("bin/run me.sh").unwrap().kind = ProjectConfigFileKind::Executable;
    expected.files.get_mut("link").unwrap().kind = ProjectConfigFileKind::Link;
    assert_eq!(repository.read(&commit).await.unwrap(), expected);
}

#[tokio::test]
async fn a_repository_is_read_from_below_and_without_a_work_tree() {
    let repository = ProjectRepository::new().await;
    repository.write(".agent-loop/dependencies", b"jq\n");
    repository.write("deep/down/x", b"x");
    let commit = repository.commit().await;
    let bare = repository.directory.path().join("bare.git");
    let source = repository.path().display().to_string();
    let target = bare.display().to_string();
    repository
        .run(&[
            "-c",
            "protocol.file.allow=always",
            "clone",
            "--quiet",
            "--bare",
            &source,
            &target,
        ])
        .await;
    for place in [repository.path().join("deep/down"), bare] {
        let config = repository
            .git
            .project_config(&place, &commit)
            .await
            .unwrap();
        assert_eq!(
            config,
            ProjectConfig::from_files([("dependencies", "jq\n")]),
            "{place:?}"
        );
    }
}

#[tokio::test]
async fn an_oversized_directory_is_refused() {
    let repository = ProjectRepository::new().await;
    for number in 0..=MAX_FILES {
        repository.write(&format!(".agent-loop/{number}"), b"x");
    }
    let many = repository.commit().await;
    let error = repository.read(&many).await.unwrap_err();
    assert_eq!(error.to_string(), "`.agent-loop` has more than 1000 files");

    repository
        .run(&["rm", "-r", "--quiet", "--force", ".agent-loop"])
        .await;
    repository.write(".agent-loop/large", &vec![0; (20 << 20) + 1]);
    let large = repository.commit().await;
    let error = repository.read(&large).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "`.agent-loop` has 20971521 bytes, at most 20971520 are read"
    );
}

#[tokio::test]
async fn a_missing_commit_is_an_error() {
    let repository = ProjectRepository::new().await;
    repository.commit().await;
    let unknown = CommitId::parse(&"0".repeat(40)).unwrap();
    let error = repository.read(&unknown).await.unwrap_err();
    assert!(matches!(error, ProjectConfigError::Git(_)), "{error}");
}
