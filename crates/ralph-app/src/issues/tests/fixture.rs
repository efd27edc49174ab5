//! A repository with an agent that is a script, and an issue tracker in memory.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use ralph_core::budget::BudgetLimits;
use ralph_core::image::ImageEffort;
use ralph_core::ports::{HostIssue, IssueLabel, IssueTracker, KeyedComment, ScmError};
use ralph_core::repo_address::{RemoteRepo, RepoAddress};
use ralph_core::run::RunStatus;
use tempfile::TempDir;
use tokio::sync::{Barrier, watch};

use crate::app::App;
use crate::config::Environment;
use crate::error::AppError;
use crate::image::ImageProgress;
use crate::issues::{
    IssueCaller, IssueEnd, IssueEvent, IssueFrontEnd, IssueRepository, IssueRunOptions,
    PendingRebuild, work_on_issue,
};
use crate::runs::{ReadyRun, StartQuestions, UnfinishedRun};
use crate::trust::TrustReview;

/// Does the first open step of `.ralph/spec.md`: creates `<number>.txt`, commits, marks the step and adds a note.
pub(super) const DILIGENT: &str = r#"
cat >/dev/null
heading=$(grep '^### Step' .ralph/spec.md | grep -v '\[done\]' | head -n 1)
test -n "$heading" || exit 0
number=$(echo "$heading" | sed 's/### Step \([0-9]*\):.*/\1/')
echo done >"$number.txt"
git add "$number.txt"
git -c user.name=a -c user.email=a@localhost commit --quiet --message "Do step $number"
sed -i "s/^\(### Step $number:.*\)/\1 [done]/" .ralph/spec.md
sed -i "/^### Step $number:/a Chose the name $number.txt, as @octocat wants" .ralph/spec.md
sed -i "s/^Conventions: tabs/Conventions: none/" .ralph/spec.md
"#;

/// Two steps with checks of their own.
pub(super) const TWO_STEPS: &str = "---
branch: feat/files
---
### Step 1: One is there

Verify: `test -e 1.txt`

### Step 2: Two is there

Verify: `test -e 2.txt`

## Rules

Conventions: tabs
";

/// An issue tracker in memory.
#[derive(Debug, Default)]
pub(super) struct MemoryTracker {
    issues: Mutex<BTreeMap<u64, HostIssue>>,
    comments: Mutex<BTreeMap<(u64, String), String>>,
    /// The texts that a human adds to an issue, one after each read.
    pub(super) edits: Mutex<Vec<String>>,
    /// The next removal of a label is performed, and its response is lost.
    pub(super) loses_removal: AtomicBool,
    /// An old list of issues, returned instead of the current one.
    pub(super) old_list: Mutex<Option<Vec<HostIssue>>>,
}

impl MemoryTracker {
    pub(super) fn add(&self, number: u64, body: &str, labels: &[&str]) {
        let issue = HostIssue {
            number,
            url: format!("https://github.com/octo/app/issues/{number}"),
            title: format!("Issue {number}"),
            body: body.to_owned(),
            labels: labels.iter().map(|label| (*label).to_owned()).collect(),
            author: "octocat".to_owned(),
            open: true,
        };
        self.lock().insert(number, issue);
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, HostIssue>> {
        self.issues.lock().unwrap()
    }

    pub(super) fn body(&self, number: u64) -> String {
        self.lock()[&number].body.clone()
    }

    /// Returns the labels besides `spec`.
    pub(super) fn status(&self, number: u64) -> String {
        let mut labels = self.lock()[&number].labels.clone();
        labels.retain(|label| label != "spec");
        labels.join(" ")
    }

    pub(super) fn comment_on(&self, number: u64, key: &str) -> Option<String> {
        self.comments
            .lock()
            .unwrap()
            .get(&(number, key.to_owned()))
            .cloned()
    }

    pub(super) fn comment_count(&self, number: u64) -> usize {
        let comments = self.comments.lock().unwrap();
        comments
            .keys()
            .filter(|(issue, _)| *issue == number)
            .count()
    }
}

#[async_trait]
impl IssueTracker for MemoryTracker {
    async fn viewer(&self) -> Result<Option<String>, ScmError> {
        Ok(Some("Octocat".to_owned()))
    }

    async fn issue(&self, number: u64) -> Result<Option<HostIssue>, ScmError> {
        let mut issues = self.lock();
        let found = issues.get(&number).cloned();
        if let (Some(issue), Some(edit)) =
            (issues.get_mut(&number), self.edits.lock().unwrap().pop())
        {
            issue.body.push_str(&edit);
        }
        Ok(found)
    }

    async fn open_issues(&self, labels: &[&str]) -> Result<Vec<HostIssue>, ScmError> {
        let old = self.old_list.lock().unwrap().clone();
        let issues = match old {
            Some(old) => old.into_iter().map(|issue| (issue.number, issue)).collect(),
            None => self.lock().clone(),
        };
        let fits = |issue: &&HostIssue| {
            issue.open
                && labels
                    .iter()
                    .all(|label| issue.labels.iter().any(|has| has == label))
        };
        Ok(issues.values().filter(fits).cloned().collect())
    }

    async fn set_body(&self, number: u64, body: &str) -> Result<(), ScmError> {
        // A host returns what a browser sends.
        let body = body.replace('\n', "\r\n");
        if let Some(issue) = self.lock().get_mut(&number) {
            issue.body = body;
        }
        Ok(())
    }

    async fn add_labels(&self, number: u64, labels: &[&str]) -> Result<(), ScmError> {
        if let Some(issue) = self.lock().get_mut(&number) {
            for label in labels {
                if !issue.labels.iter().any(|has| has == label) {
                    issue.labels.push((*label).to_owned());
                }
            }
        }
        Ok(())
    }

    async fn remove_label(&self, number: u64, label: &str) -> Result<bool, ScmError> {
        let mut issues = self.lock();
        let Some(issue) = issues.get_mut(&number) else {
            return Ok(false);
        };
        let before = issue.labels.len();
        issue.labels.retain(|has| has != label);
        if self.loses_removal.swap(false, Ordering::SeqCst) {
            return Err(ScmError::Io {
                doing: "remove a label".into(),
                source: std::io::Error::other("the response was lost"),
            });
        }
        Ok(issue.labels.len() < before)
    }

    async fn create_labels(&self, _: &[IssueLabel]) -> Result<(), ScmError> {
        Ok(())
    }

    async fn comment(&self, number: u64, comment: &KeyedComment) -> Result<(), ScmError> {
        let key = (number, comment.key.clone());
        self.comments
            .lock()
            .unwrap()
            .insert(key, comment.body.clone());
        Ok(())
    }

    async fn find_comment(&self, number: u64, key: &str) -> Result<Option<String>, ScmError> {
        Ok(self.comment_on(number, key))
    }
}

/// A front end without a user that records the events.
#[derive(Default)]
pub(super) struct RecordingFrontEnd {
    events: Mutex<Vec<IssueEvent>>,
    /// Interrupts everything when these issues are done.
    stop_after: Option<(Vec<u64>, watch::Sender<bool>)>,
    /// The runs start when all of them have reached it.
    pub(super) meeting: Option<Barrier>,
}

impl RecordingFrontEnd {
    pub(super) fn stopping_after(issues: &[u64], stop: watch::Sender<bool>) -> Self {
        Self {
            events: Mutex::default(),
            stop_after: Some((issues.to_vec(), stop)),
            meeting: None,
        }
    }

    pub(super) fn events(&self) -> Vec<IssueEvent> {
        self.events.lock().unwrap().clone()
    }
}

struct NoUser;

impl StartQuestions for NoUser {
    fn approve(&self, _: &TrustReview) -> bool {
        false
    }

    fn accept_local(&self, _: &str) -> bool {
        false
    }

    fn continue_run(&self, _: &UnfinishedRun) -> bool {
        false
    }
}

#[async_trait(?Send)]
impl IssueFrontEnd for RecordingFrontEnd {
    fn report(&self, event: &IssueEvent) {
        let mut events = self.events.lock().unwrap();
        events.push(event.clone());
        let is_done = |number: &u64| {
            let is_end = |event: &IssueEvent| matches!(event, IssueEvent::Ended { number: ended, end: IssueEnd::Done { .. } } if ended == number);
            events.iter().any(is_end)
        };
        if let Some((issues, stop)) = &self.stop_after
            && issues.iter().all(is_done)
        {
            stop.send_replace(true);
        }
    }

    fn questions(&self) -> &dyn StartQuestions {
        &NoUser
    }

    fn show_image_progress(&self, _: ImageProgress) {}

    async fn drive(
        &self,
        run: ReadyRun,
        interrupted: watch::Receiver<bool>,
    ) -> Result<RunStatus, AppError> {
        if let Some(meeting) = &self.meeting {
            meeting.wait().await;
        }
        run.drive(interrupted).await
    }
}

/// A repository, its state directory and its issues.
pub(super) struct IssueProject {
    pub(super) repository: Arc<IssueRepository>,
    pub(super) tracker: Arc<MemoryTracker>,
    directory: TempDir,
    _state: TempDir,
}

impl IssueProject {
    /// Creates a repository whose agent is a script.
    pub(super) async fn new(script: &str) -> Self {
        let tracker = Arc::new(MemoryTracker::default());
        Self::with_tracker(script, tracker).await
    }

    /// Creates a checkout of the same repository on another machine.
    pub(super) async fn with_tracker(script: &str, tracker: Arc<MemoryTracker>) -> Self {
        let (directory, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = directory.path().canonicalize().unwrap();
        git(&path, &["init", "--quiet", "--initial-branch=main"]);
        std::fs::create_dir(path.join(".agent-loop")).unwrap();
        std::fs::write(path.join(".agent-loop/agent"), script).unwrap();
        std::fs::write(
            path.join("ralph.toml"),
            "[issues]\nagent = \"command\"\ntest_command = \"test -e ralph.toml\"\n",
        )
        .unwrap();
        git(&path, &["add", "."]);
        git(&path, &["commit", "--quiet", "--message", "Start"]);
        let variables = [
            ("RALPH_HOME", state.path().to_str().unwrap()),
            ("RALPH_CONFIG_DIR", state.path().to_str().unwrap()),
            ("RALPH_DEFAULT_PROVIDER", "local"),
            ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ];
        let variables = variables.map(|(name, value)| (name.into(), value.into()));
        let app = App::new(Environment::new(variables, path.clone()));
        let shared: Arc<dyn IssueTracker> = tracker.clone();
        let opened = {
            let source = RepoAddress::Path(path.to_str().unwrap().to_owned());
            IssueRepository::with_tracker((source, address()), shared, app)
        };
        Self {
            repository: Arc::new(opened.await.unwrap()),
            tracker,
            directory,
            _state: state,
        }
    }

    pub(super) async fn work(&self, number: u64, caller: IssueCaller) -> IssueEnd {
        self.work_until(number, caller, &watch::channel(false).1)
            .await
    }

    pub(super) async fn work_until(
        &self,
        number: u64,
        caller: IssueCaller,
        interrupted: &watch::Receiver<bool>,
    ) -> IssueEnd {
        let front_end = RecordingFrontEnd::default();
        let (repository, options) = ((&self.repository, number), options());
        let work = work_on_issue(
            repository,
            caller,
            &options,
            &front_end,
            interrupted.clone(),
        );
        Box::pin(work).await.unwrap()
    }

    pub(super) fn git(&self, arguments: &[&str]) -> String {
        git(self.directory.path(), arguments)
    }
}

/// Longer than anything takes on a busy machine.
pub(super) const WAIT_TIMEOUT: Duration = Duration::from_mins(3);

/// Waits for a state.
pub(super) async fn wait_until(what: &str, is_true: impl Fn() -> bool) {
    let waiting = async {
        while !is_true() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let waited = tokio::time::timeout(WAIT_TIMEOUT, waiting).await;
    assert!(
        waited.is_ok(),
        "waited {WAIT_TIMEOUT:?} in vain until {what}"
    );
}

/// Returns options without overrides.
pub(super) fn options() -> IssueRunOptions {
    IssueRunOptions {
        sandbox: None,
        engine: None,
        agent: None,
        profile: None,
        model: None,
        limits: BudgetLimits::default(),
        rebuild: PendingRebuild::new(ImageEffort::Reuse),
    }
}

fn address() -> RemoteRepo {
    match RepoAddress::parse("https://github.com/octo/app").unwrap() {
        RepoAddress::Remote(address) => address,
        RepoAddress::Path(path) => panic!("{path}"),
    }
}

fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@localhost"])
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}
