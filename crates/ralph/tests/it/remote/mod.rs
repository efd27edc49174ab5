//! Runs whose repository is on GitHub.

mod delivery;
mod reading;
#[cfg(target_os = "linux")]
mod secrecy;
mod starting;
mod surroundings;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ralph_test::{FakeCertificate, FakeGitHub, FakeGitHubToken, git};
use serde_json::Value;
use tempfile::TempDir;

use crate::project::{LiveRun, Project, ProjectOutput};

/// The name of the run's branch.
const BRANCH: &str = "ralph/task/make-two-files";

/// Longer than anything takes on a busy machine.
const WAIT_TIMEOUT: Duration = Duration::from_mins(5);

/// A token, assembled at run time so that secret scanners ignore it.
pub(crate) fn token() -> String {
    format!("ghp_{}", "c4N4ry".repeat(6))
}

/// Asserts that no file in a directory contains a token.
#[track_caller]
pub(crate) fn assert_no_token_in(directory: &Path, token: &str) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let kind = fs::symlink_metadata(&path).unwrap().file_type();
        if kind.is_dir() {
            assert_no_token_in(&path, token);
        } else if kind.is_file() {
            let bytes = fs::read(&path).unwrap();
            let has_token = bytes
                .windows(token.len())
                .any(|part| part == token.as_bytes());
            assert!(!has_token, "{}", path.display());
        }
    }
}

/// A project whose repository is also on a GitHub, under the name `octo/app`.
pub(crate) struct RemoteProject {
    pub(crate) project: Project,
    pub(crate) github: FakeGitHub,
    pub(crate) hosted: TempDir,
}

impl RemoteProject {
    pub(crate) fn new() -> Self {
        Self::with(Project::new())
    }

    /// Copies the repository of a project to a GitHub, which accepts [`token`]. A run waits for no checks
    /// unless a test changes that.
    pub(crate) fn with(project: Project) -> Self {
        // Logs of jobs are on `localhost`.
        let certificate = FakeCertificate::for_hosts(&["127.0.0.1", "localhost"]);
        let github = FakeGitHub::start_tls(&certificate).unwrap();
        github.add_token(&token(), FakeGitHubToken::Classic("repo, workflow"));
        let hosted = tempfile::tempdir().unwrap();
        github.serve_git(hosted.path());
        github.host_repository("octo/app", &project.repo());
        let authority = project.path("authority.pem");
        fs::write(&authority, certificate.authority()).unwrap();
        project.configure("ralph.toml", "[ci]\ngrace = \"0s\"\n");
        let project = project
            .env("GITHUB_API_URL", github.url())
            .env("GITHUB_PAT", token())
            .env("SSL_CERT_FILE", authority.to_str().unwrap());
        Self {
            project,
            github,
            hosted,
        }
    }

    /// Changes the project.
    pub(crate) fn change(self, change: impl FnOnce(Project) -> Project) -> Self {
        Self {
            project: change(self.project),
            ..self
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("{}/octo/app", self.github.url())
    }

    /// Returns the path of the hosted repository.
    pub(crate) fn bare(&self) -> PathBuf {
        self.hosted.path().join("octo/app.git")
    }

    /// Runs the task on GitHub to completion.
    fn run(&self) -> ProjectOutput {
        self.run_with(&[])
    }

    fn run_with(&self, more: &[&str]) -> ProjectOutput {
        let url = self.url();
        self.project.run_with(&[&["--repo", &url], more].concat())
    }

    fn start(&self) -> LiveRun<'_> {
        let (model, url) = (self.project.model(), self.url());
        self.project
            .spawn(&["run", "--model", &model, "--repo", &url])
    }

    /// Returns the commit of a branch on GitHub, if it exists.
    pub(crate) fn branch(&self, name: &str) -> Option<String> {
        let reference = format!("refs/heads/{name}");
        let format = "--format=%(objectname)";
        let found = git(&self.bare(), &["for-each-ref", format, &reference]);
        (!found.is_empty()).then_some(found)
    }

    /// Returns whether a request was performed and its response was lost.
    pub(crate) fn has_lost(&self, operation: &str) -> bool {
        let ledger = self.github.ledger();
        let mut lost = ledger.iter().filter(|exchange| exchange.is_lost);
        lost.any(|exchange| exchange.operation().starts_with(operation))
    }

    /// Waits until a response was lost.
    #[track_caller]
    pub(crate) fn wait_for_lost(&self, operation: &str) {
        let start = Instant::now();
        while !self.has_lost(operation) {
            assert!(start.elapsed() < WAIT_TIMEOUT, "{operation} is not sent");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns the plan of the newest run.
    fn plan(&self) -> Value {
        self.project.journal()[0]["plan"].take()
    }

    /// Commits a file to a branch on GitHub, as another user.
    fn commit_as(&self, author: &str, branch: &str, file: &str) {
        let clone = tempfile::tempdir().unwrap();
        let (bare, work) = (self.bare(), clone.path().join("work"));
        let bare = bare.to_str().unwrap();
        git(clone.path(), &["clone", "--quiet", bare, "work"]);
        git(
            &work,
            &[
                "checkout",
                "--quiet",
                "-B",
                branch,
                &format!("origin/{branch}"),
            ],
        );
        fs::write(work.join(file), "theirs\n").unwrap();
        git(&work, &["add", "."]);
        let author = format!("--author={author} <someone@localhost>");
        git(&work, &["commit", "--quiet", "--message=Theirs", &author]);
        git(&work, &["push", "--quiet", "origin", branch]);
    }
}
