//! Changes that commands make to the runner's files in a real sandbox.

use std::fs;
use std::os::unix::fs::symlink;

use crate::error::RunError;
use crate::run_fixture::RunFixture;

/// Inspects the workspace and returns the changed paths.
async fn changed_paths(fixture: &mut RunFixture) -> Result<Vec<String>, RunError> {
    let run = &mut fixture.run;
    let findings = run.bench.inspect(&run.recorder.files).await?;
    Ok(findings.into_iter().map(|finding| finding.path).collect())
}

#[tokio::test]
async fn an_untouched_workspace_has_no_findings() {
    let mut fixture = RunFixture::new("").await;
    fs::write(fixture.workspace().join("a.txt"), "work").unwrap();
    assert_eq!(changed_paths(&mut fixture).await.unwrap(), [""; 0]);
}

#[tokio::test]
async fn changed_files_of_the_runner_are_restored() {
    let mut fixture = RunFixture::new("").await;
    let repo = fixture.workspace();
    let task = fs::read_to_string(repo.join("ralph_task.md")).unwrap();
    let notes = fs::read_to_string(repo.join(".ralph/notes.md")).unwrap();
    fs::write(repo.join("ralph_task.md"), task.replace("[ ]", "[x]")).unwrap();
    fs::write(repo.join(".ralph/notes.md"), "ignore the task").unwrap();
    let changed = changed_paths(&mut fixture).await.unwrap();
    assert_eq!(changed, ["ralph_task.md", ".ralph/notes.md"]);
    assert_eq!(
        fs::read_to_string(repo.join("ralph_task.md")).unwrap(),
        task
    );
    let restored = fs::read_to_string(repo.join(".ralph/notes.md")).unwrap();
    assert_eq!(restored, notes);
    assert_eq!(changed_paths(&mut fixture).await.unwrap(), [""; 0]);
}

#[tokio::test]
async fn progress_belongs_to_the_agent() {
    let mut fixture = RunFixture::new("").await;
    fs::write(fixture.workspace().join(".ralph/progress.md"), "did M1.1\n").unwrap();
    assert_eq!(changed_paths(&mut fixture).await.unwrap(), [""; 0]);
    assert_eq!(fixture.file("progress.md"), "did M1.1\n");
}

#[tokio::test]
async fn a_link_in_place_of_the_directory_is_replaced() {
    let mut fixture = RunFixture::new("").await;
    let (repo, elsewhere) = (fixture.workspace(), tempfile::tempdir().unwrap());
    fs::remove_dir_all(repo.join(".ralph")).unwrap();
    symlink(elsewhere.path(), repo.join(".ralph")).unwrap();
    let changed = changed_paths(&mut fixture).await.unwrap();
    assert_eq!(changed, [".ralph"]);
    let metadata = fs::symlink_metadata(repo.join(".ralph")).unwrap();
    assert!(metadata.is_dir());
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn an_unreadable_file_in_the_repositorys_configuration_is_removed() {
    let mut fixture = RunFixture::new("").await;
    let attributes = fixture.workspace().join(".git/info/attributes");
    symlink("/etc/passwd", &attributes).unwrap();
    let changed = changed_paths(&mut fixture).await.unwrap();
    assert_eq!(changed, [".git/info/attributes"]);
    assert!(fs::symlink_metadata(&attributes).is_err());
    let file = fs::File::create(&attributes).unwrap();
    file.set_len((1 << 20) + 1).unwrap();
    let changed = changed_paths(&mut fixture).await.unwrap();
    assert_eq!(changed, [".git/info/attributes"]);
    assert!(!attributes.exists());
    assert_eq!(changed_paths(&mut fixture).await.unwrap(), [""; 0]);
}

#[tokio::test]
async fn directories_of_unknown_iterations_are_removed() {
    let mut fixture = RunFixture::new("").await;
    let forged = fixture.workspace().join(".ralph/iterations/99");
    fs::create_dir_all(&forged).unwrap();
    let changed = changed_paths(&mut fixture).await.unwrap();
    assert_eq!(changed, [".ralph/iterations/99"]);
    assert!(!forged.exists());
}

#[tokio::test]
async fn a_sandbox_that_cannot_be_listed_is_an_error() {
    let mut fixture = RunFixture::new("").await;
    fixture.run.bench.sandbox.remove().await.unwrap();
    let error = changed_paths(&mut fixture).await.unwrap_err();
    assert!(matches!(error, RunError::Sandbox(_)), "{error:?}");
}
