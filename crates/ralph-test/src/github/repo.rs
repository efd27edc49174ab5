//! The pull requests, issues and checks of a repository, and the actions of its other users.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// The head of every branch of a repository without git.
pub(super) const EXAMPLE_COMMIT: &str = "6dcb09b5b57875f334f61aebed695e2e4193db5e";

/// The contents of a repository.
#[derive(Debug, Clone, Default)]
pub struct FakeRepo {
    pub(super) full_name: String,
    /// The login of the tokens' user.
    pub(super) login: String,
    /// The bare repository, if the server has a directory for them.
    pub(super) bare: Option<PathBuf>,
    /// The issues and pull requests by number.
    pub issues: BTreeMap<u64, FakeIssue>,
    /// The comments on issues and pull requests by id.
    pub comments: BTreeMap<u64, FakeIssueComment>,
    /// The labels of the repository.
    pub labels: Vec<FakeLabel>,
    /// The check runs of each commit, oldest first.
    pub checks: BTreeMap<String, Vec<FakeCheck>>,
    /// The statuses of each commit, oldest first.
    pub statuses: BTreeMap<String, Vec<FakeStatus>>,
    /// The heads of branches, for a repository without git.
    pub branches: BTreeMap<String, String>,
    /// The protected branches.
    pub protected: BTreeSet<String>,
    pub(super) last_id: u64,
}

/// An issue or a pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakeIssue {
    pub number: u64,
    pub title: String,
    pub body: String,
    pub author: String,
    pub labels: Vec<String>,
    pub is_open: bool,
    /// Set for a pull request.
    pub pull: Option<FakePull>,
}

/// The part of a pull request that an issue does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakePull {
    pub node_id: String,
    pub head: String,
    pub base: String,
    /// The last known commit of `head`.
    pub commit: String,
    pub is_draft: bool,
    pub is_merged: bool,
    /// The changed files, for a repository without git.
    pub files: Vec<String>,
    pub reviews: Vec<FakeReview>,
}

/// A comment on an issue or a pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakeIssueComment {
    pub id: u64,
    pub issue: u64,
    pub author: String,
    pub body: String,
}

/// A label of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakeLabel {
    pub name: String,
    pub color: String,
    pub description: String,
}

/// A review of a pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakeReview {
    pub id: u64,
    pub author: String,
    /// `APPROVED`, `CHANGES_REQUESTED`, `COMMENTED` or `DISMISSED`.
    pub state: String,
    /// The author's relation to the repository, such as `COLLABORATOR` or `NONE`.
    pub association: String,
    pub body: String,
    /// The path, the line and the text of each comment.
    pub comments: Vec<(String, u64, String)>,
}

/// A check run. Its id is also that of its job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakeCheck {
    pub id: u64,
    pub name: String,
    /// `queued`, `in_progress` or `completed`.
    pub status: String,
    /// Set for a completed check.
    pub conclusion: Option<String>,
    /// The summary of its output.
    pub summary: Option<String>,
    /// The path, the line and the message of each annotation.
    pub annotations: Vec<(String, u64, String)>,
    /// The log of its job; `None` if it has no job.
    pub log: Option<String>,
}

/// A status of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakeStatus {
    pub id: u64,
    pub context: String,
    pub state: String,
    pub description: Option<String>,
    pub target_url: Option<String>,
}

impl FakeCheck {
    /// Returns a completed check.
    pub fn completed(name: &str, conclusion: &str) -> Self {
        Self {
            status: "completed".into(),
            conclusion: Some(conclusion.into()),
            ..Self::running(name)
        }
    }

    /// Returns a check in progress.
    pub fn running(name: &str) -> Self {
        Self {
            id: 0,
            name: name.into(),
            status: "in_progress".into(),
            conclusion: None,
            summary: None,
            annotations: Vec::new(),
            log: None,
        }
    }

    /// Sets the log of its job.
    #[must_use]
    pub fn with_log(self, log: &str) -> Self {
        Self {
            log: Some(log.into()),
            ..self
        }
    }
}

impl FakeRepo {
    pub(super) fn new(full_name: &str, login: &str) -> Self {
        Self {
            full_name: full_name.to_owned(),
            login: login.to_owned(),
            ..Self::default()
        }
    }

    /// Returns an id that no other object has.
    pub(super) fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        1000 + self.last_id
    }

    fn next_number(&self) -> u64 {
        self.issues.keys().next_back().map_or(1, |last| last + 1)
    }

    /// Opens an issue as the user of the tokens, and returns its number.
    pub fn add_issue(&mut self, title: &str, body: &str, labels: &[&str]) -> u64 {
        let author = self.login.clone();
        self.add(title, body, &author, labels, None)
    }

    /// Opens an issue as another user, and returns its number.
    pub fn add_issue_by(&mut self, author: &str, title: &str, body: &str, labels: &[&str]) -> u64 {
        self.add(title, body, author, labels, None)
    }

    /// Opens a pull request, and returns its number.
    pub fn add_pull(&mut self, title: &str, head: &str, base: &str, files: &[&str]) -> u64 {
        let pull = FakePull {
            node_id: String::new(),
            head: head.to_owned(),
            base: base.to_owned(),
            commit: self.head(head).unwrap_or_default(),
            is_draft: false,
            is_merged: false,
            files: files.iter().map(ToString::to_string).collect(),
            reviews: Vec::new(),
        };
        let author = self.login.clone();
        self.add(title, "", &author, &[], Some(pull))
    }

    pub(super) fn add(
        &mut self,
        title: &str,
        body: &str,
        author: &str,
        labels: &[&str],
        pull: Option<FakePull>,
    ) -> u64 {
        let number = self.next_number();
        let node_id = format!("PR_{}_{number}", self.full_name);
        for label in labels {
            self.ensure_label(label);
        }
        let issue = FakeIssue {
            number,
            title: title.to_owned(),
            body: body.to_owned(),
            author: author.to_owned(),
            labels: labels.iter().map(ToString::to_string).collect(),
            is_open: true,
            pull: pull.map(|pull| FakePull { node_id, ..pull }),
        };
        self.issues.insert(number, issue);
        number
    }

    pub(super) fn ensure_label(&mut self, name: &str) {
        if !self
            .labels
            .iter()
            .any(|label| label.name.eq_ignore_ascii_case(name))
        {
            self.labels.push(FakeLabel {
                name: name.to_owned(),
                color: "ededed".into(),
                description: String::new(),
            });
        }
    }

    /// Returns an issue or a pull request, which a test may edit like a person.
    ///
    /// # Panics
    /// If it does not exist.
    pub fn issue(&mut self, number: u64) -> &mut FakeIssue {
        self.issues
            .get_mut(&number)
            .expect("an issue with the number")
    }

    /// Returns the pull requests, oldest first.
    pub fn pulls(&self) -> Vec<FakeIssue> {
        let pulls = self.issues.values().filter(|issue| issue.pull.is_some());
        pulls.cloned().collect()
    }

    /// Returns the texts of the comments on an issue or a pull request, oldest first.
    pub fn comments_on(&self, number: u64) -> Vec<String> {
        let comments = self.comments.values();
        let on_it = comments.filter(|comment| comment.issue == number);
        on_it.map(|comment| comment.body.clone()).collect()
    }

    /// Comments as a user.
    pub fn add_comment(&mut self, number: u64, author: &str, body: &str) -> u64 {
        let id = self.next_id();
        let comment = FakeIssueComment {
            id,
            issue: number,
            author: author.to_owned(),
            body: body.to_owned(),
        };
        self.comments.insert(id, comment);
        id
    }

    /// Adds a run of a check to a commit, which replaces an earlier one with the same name in the latest
    /// checks. Returns its id.
    pub fn set_check(&mut self, commit: &str, check: FakeCheck) -> u64 {
        let id = self.next_id();
        let checks = self.checks.entry(commit.to_owned()).or_default();
        checks.push(FakeCheck { id, ..check });
        id
    }

    /// Sets a status of a commit.
    pub fn set_status(&mut self, commit: &str, context: &str, state: &str) {
        let id = self.next_id();
        let statuses = self.statuses.entry(commit.to_owned()).or_default();
        statuses.push(FakeStatus {
            id,
            context: context.to_owned(),
            state: state.to_owned(),
            description: None,
            target_url: None,
        });
    }

    /// Reviews a pull request with comments: path, line and text.
    ///
    /// # Panics
    /// If there is no pull request with the number.
    pub fn add_review(
        &mut self,
        number: u64,
        author: &str,
        state: &str,
        body: &str,
        comments: &[(&str, u64, &str)],
    ) -> u64 {
        let id = self.next_id();
        let comments = comments.iter();
        let comments = comments.map(|(path, line, text)| ((*path).into(), *line, (*text).into()));
        let review = FakeReview {
            id,
            author: author.to_owned(),
            state: state.to_owned(),
            association: "COLLABORATOR".to_owned(),
            body: body.to_owned(),
            comments: comments.collect(),
        };
        let pull = self.issue(number).pull.as_mut();
        pull.expect("a pull request").reviews.push(review);
        id
    }

    /// Closes a pull request or an issue.
    pub fn close(&mut self, number: u64) {
        self.refresh_head(number);
        self.issue(number).is_open = false;
    }

    /// Merges a pull request. With git, the base branch is set to its head.
    ///
    /// # Panics
    /// If there is no pull request with the number, or git fails.
    pub fn merge(&mut self, number: u64) {
        self.close(number);
        let pull = self.issue(number).pull.as_mut().expect("a pull request");
        pull.is_merged = true;
        let (base, commit) = (format!("refs/heads/{}", pull.base), pull.commit.clone());
        if self.bare.as_ref().is_some_and(|bare| bare.exists()) {
            self.run_git(&["update-ref", &base, &commit]);
        }
    }

    /// Returns the current head of a branch, if it exists.
    pub fn head(&self, branch: &str) -> Option<String> {
        let Some(bare) = self.bare.as_ref().filter(|bare| bare.exists()) else {
            let known = self.branches.get(branch).cloned();
            let example = self.branches.is_empty().then(|| EXAMPLE_COMMIT.to_owned());
            return known.or(example);
        };
        let reference = format!("refs/heads/{branch}");
        if let Ok(commit) = fs::read_to_string(bare.join(&reference)) {
            return Some(commit.trim().to_owned());
        }
        let packed = fs::read_to_string(bare.join("packed-refs")).unwrap_or_else(|_| String::new());
        packed.lines().find_map(|line| {
            let (commit, name) = line.split_once(' ')?;
            (name == reference).then(|| commit.to_owned())
        })
    }

    /// Records the current head of an open pull request: pushes update it.
    pub(super) fn refresh_head(&mut self, number: u64) {
        let Some(issue) = self.issues.get(&number).filter(|issue| issue.is_open) else {
            return;
        };
        let head = issue.pull.as_ref().and_then(|pull| self.head(&pull.head));
        let pull = self
            .issues
            .get_mut(&number)
            .and_then(|issue| issue.pull.as_mut());
        if let (Some(pull), Some(head)) = (pull, head) {
            pull.commit = head;
        }
    }

    /// Returns the changed files of a pull request.
    pub(super) fn files(&self, pull: &FakePull) -> Vec<String> {
        if self.bare.as_ref().is_none_or(|bare| !bare.exists()) {
            return pull.files.clone();
        }
        let range = format!("{}...{}", pull.base, pull.commit);
        let names = self.run_git(&["diff", "--name-only", "--no-renames", &range]);
        names.lines().map(str::to_owned).collect()
    }

    /// Returns whether the server has git for this repository.
    pub(super) fn has_git(&self) -> bool {
        self.bare.as_ref().is_some_and(|bare| bare.exists())
    }

    fn run_git(&self, arguments: &[&str]) -> String {
        let bare = self.bare.as_ref().expect("a bare repository");
        let output = Command::new("git")
            .args(arguments)
            .current_dir(bare)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .expect("git can be started");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}
