//! A GitHub and a home whose environment names it.

use std::process::Command;

use ralph_test::{FakeGitHub, FakeGitHubToken};

use crate::support::{RalphOutput, TestRalph};

/// A classic token, assembled at run time so that secret scanners ignore it.
pub(super) fn classic() -> String {
    format!("ghp_{}", "c4N4ry".repeat(6))
}

pub(super) fn fine_grained() -> String {
    format!("github_pat_{}", "c4N4ry".repeat(10))
}

pub(super) struct ScmTest {
    pub(super) ralph: TestRalph,
    pub(super) github: FakeGitHub,
    variables: Vec<(String, String)>,
}

impl ScmTest {
    /// Starts a GitHub without tokens, and a home without a credential.
    pub(super) fn new() -> Self {
        let github = FakeGitHub::start().unwrap();
        let variables = vec![("GITHUB_API_URL".to_owned(), github.url())];
        Self {
            ralph: TestRalph::new(),
            github,
            variables,
        }
    }

    /// Starts a GitHub with a token in `GITHUB_PAT`.
    pub(super) fn with_token(value: &str, token: FakeGitHubToken) -> Self {
        let test = Self::new();
        test.github.state().tokens.insert(value.to_owned(), token);
        test.env("GITHUB_PAT", value)
    }

    pub(super) fn with_classic() -> Self {
        Self::with_token(&classic(), FakeGitHubToken::Classic("repo, workflow"))
    }

    /// Uses the App of the server.
    pub(super) fn with_app() -> Self {
        Self::new()
            .env("GITHUB_APP_ID", "4711")
            .env("GITHUB_APP_PRIVATE_KEY_PEM", FakeGitHub::APP_KEY)
    }

    pub(super) fn env(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(super) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.ralph.command(args);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    pub(super) fn run(&self, args: &[&str]) -> RalphOutput {
        self.command(args).output().unwrap().into()
    }

    /// Checks `octo/app`.
    pub(super) fn check(&self) -> RalphOutput {
        self.run(&["scm", "check", "octo/app"])
    }

    /// Checks `octo/app` and returns the code and the JSON.
    pub(super) fn check_json(&self) -> (i32, serde_json::Value) {
        let output = self.run(&["scm", "check", "octo/app", "--json"]);
        (output.code, serde_json::from_str(&output.stdout).unwrap())
    }

    /// Checks `octo/app`, which fails with this error.
    #[track_caller]
    pub(super) fn assert_error(&self, code: i32, error: &str) {
        let output = self.check();
        assert_eq!(output.code, code, "{output:?}");
        snapbox::assert_data_eq!(output.stderr.trim_end(), error.to_owned());
    }
}
