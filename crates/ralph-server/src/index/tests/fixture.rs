//! A state directory with runs that real journals describe, and an index of it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ralph_app::App;
use ralph_app::config::Environment;
use ralph_core::budget::BudgetLimits;
use ralph_core::event::{
    DiffSize, Event, IterationEvent, IterationMetrics, IterationOutcome, RunEvent,
};
use ralph_core::id::{CommitId, Digest, RunId, TaskId};
use ralph_core::money::Usd;
use ralph_core::plan::{Delivery, EngineKind, RunPlan};
use ralph_core::ports::{Isolation, TokenUsage};
use ralph_core::run::{PauseReason, RunStatus};
use ralph_core::secret::Redactor;
use ralph_core::task::RunMode;
use ralph_core::verdict::TestCount;
use ralph_engine::journal::Journal;
use ralph_engine::store::RunDir;
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::watch;

use crate::index::maintenance::{Maintenance, MaintenanceCounts};
use crate::index::{IndexState, RunFilter, RunIndex, RunPage};

/// How long a test waits for a state.
const WAIT: Duration = Duration::from_mins(2);

/// A state directory with runs.
pub(super) struct IndexedRuns {
    directory: TempDir,
    app: Arc<App>,
}

/// An index that a task keeps up to date until it is dropped.
pub(super) struct MaintainedIndex {
    pub(super) index: RunIndex,
    stop: watch::Sender<bool>,
    task: tokio::task::JoinHandle<()>,
}

impl MaintainedIndex {
    /// Stops the maintenance and closes the database.
    pub(super) async fn stop(self) {
        self.stop.send_replace(true);
        self.task.await.unwrap();
    }
}

impl IndexedRuns {
    pub(super) fn new() -> Self {
        Self::with_database(None)
    }

    /// Sets `RALPH_DB_URL`.
    pub(super) fn with_database(url: Option<&str>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().join("state");
        let mut variables: Vec<(OsString, OsString)> = vec![("RALPH_HOME".into(), home.into())];
        variables.extend(url.map(|url| ("RALPH_DB_URL".into(), url.into())));
        let environment = Environment::new(variables, directory.path().to_owned());
        Self {
            app: Arc::new(App::new(environment)),
            directory,
        }
    }

    pub(super) fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub(super) fn database(&self) -> PathBuf {
        self.directory.path().join("state/index.db")
    }

    pub(super) fn dir(&self, run: &RunId) -> RunDir {
        self.app.state_dir().unwrap().run(run)
    }

    /// Creates a run and leaves its journal open.
    pub(super) fn create(&self, number: u32, title: &str) -> (RunId, Journal) {
        let run = run_id(number);
        let dir = self.dir(&run);
        let journal = Journal::create(
            &dir,
            plan(&run, title),
            self.app.clock(),
            Redactor::default(),
        );
        (run, journal.unwrap())
    }

    /// Opens the journal of a run again.
    pub(super) fn reopen(&self, run: &RunId) -> Journal {
        Journal::open(&self.dir(run), self.app.clock(), Redactor::default()).unwrap()
    }

    /// Creates a run with two iterations that has ended.
    pub(super) fn finished(&self, number: u32, title: &str) -> RunId {
        let (run, mut journal) = self.create(number, title);
        journal.append(status(RunStatus::Running)).unwrap();
        for iteration in 1..=2 {
            iterate(&mut journal, iteration);
        }
        journal.append(status(RunStatus::Succeeded)).unwrap();
        run
    }

    /// Creates a run that waits for the user.
    pub(super) fn paused(&self, number: u32, title: &str) -> RunId {
        let (run, mut journal) = self.create(number, title);
        let paused = RunStatus::Paused(PauseReason::Person);
        journal.append(status(paused)).unwrap();
        run
    }

    /// Creates an index that is not maintained.
    pub(super) fn index(&self) -> RunIndex {
        RunIndex::new(self.app.clone()).unwrap()
    }

    /// Brings the index up to date once, as `ralph reindex` does.
    pub(super) async fn update(&self) -> MaintenanceCounts {
        let updated = Maintenance::new(self.index()).run_once().await;
        updated.unwrap().0
    }

    /// Starts an index like a server.
    pub(super) fn maintain(&self) -> MaintainedIndex {
        let index = self.index();
        let (stop, stopped) = watch::channel(false);
        let maintained = index.clone();
        let task = tokio::spawn(async move { maintained.maintain(stopped).await });
        MaintainedIndex { index, stop, task }
    }

    /// Returns all rows of the index that are derived from files.
    pub(super) async fn dump(&self) -> String {
        let url = format!("sqlite://{}?mode=ro", self.database().display());
        sqlx::any::install_default_drivers();
        let pool = sqlx::AnyPool::connect(&url).await.unwrap();
        let mut text = String::new();
        for query in [
            "SELECT id || '|' || sort_key || '|' || status || '|' || repo || '|' || search_text || '|' || \
             details || '|' || needs_process || held || ended || '|' || device || '|' || inode || '|' || \
             length || '|' || modified_ns || '|' || seq || '|' || digest FROM runs ORDER BY id",
            "SELECT run || '|' || seq || '|' || byte_offset FROM marks ORDER BY run, seq",
            "SELECT run || '|' || iteration || '|' || finished_ms || '|' || duration_ms || '|' || \
             cost_nano_usd || '|' || input_tokens || '|' || output_tokens || '|' || loop_score || '|' || \
             tests_passed || '|' || tests_failed || '|' || tests_skipped || '|' || boxes_ticked || '|' || \
             boxes_total FROM iterations ORDER BY run, iteration",
        ] {
            let rows: Vec<String> = sqlx::query_scalar(query).fetch_all(&pool).await.unwrap();
            text += &rows.join("\n");
            text += "\n--\n";
        }
        pool.close().await;
        text
    }

    /// Removes the database with its other files.
    pub(super) fn remove_database(&self) {
        for suffix in ["", "-wal", "-shm"] {
            let path = format!("{}{suffix}", self.database().display());
            if let Err(error) = fs::remove_file(path) {
                assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
            }
        }
    }
}

/// Waits until the index is up to date.
pub(super) async fn ready(index: &RunIndex) {
    until("the index is up to date", async || {
        index.refresh().await;
        index.state() == IndexState::Ready
    })
    .await;
}

/// Waits for a state.
pub(super) async fn until(state: &str, is_reached: impl AsyncFn() -> bool) {
    let started = Instant::now();
    while !is_reached().await {
        assert!(started.elapsed() < WAIT, "not reached: {state}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Returns the whole list.
pub(super) async fn list(index: &RunIndex) -> RunPage {
    index.list(&RunFilter::default(), None, 1000).await.unwrap()
}

/// Returns the values of a key in a list.
pub(super) fn values(page: &RunPage, key: &str) -> Vec<String> {
    let value = |run: &String| -> String {
        let run: Value = serde_json::from_str(run).unwrap();
        run[key].as_str().unwrap_or_default().to_owned()
    };
    page.runs.iter().map(value).collect()
}

pub(super) fn run_id(number: u32) -> RunId {
    RunId::parse(&format!("260301-{:06}-{number:04x}", 100_000 + number)).unwrap()
}

pub(super) fn status(status: RunStatus) -> Event {
    Event::Run(RunEvent::StatusChanged { status })
}

pub(super) fn notice(message: &str) -> Event {
    Event::Run(RunEvent::Notice {
        message: message.to_owned(),
    })
}

fn commit() -> CommitId {
    CommitId::parse(&"a".repeat(40)).unwrap()
}

/// Appends an iteration.
pub(super) fn iterate(journal: &mut Journal, iteration: u32) {
    let started = IterationEvent::IterationStarted {
        iteration,
        head: commit(),
    };
    let finished = IterationEvent::IterationFinished {
        iteration,
        summary: "done".to_owned(),
        outcome: IterationOutcome::Completed,
        metrics: Box::new(metrics(iteration)),
        files: std::collections::BTreeMap::default(),
        logs: std::collections::BTreeMap::default(),
        then: None,
    };
    journal
        .append_all([Event::Iteration(started), Event::Iteration(finished)])
        .unwrap();
}

fn metrics(iteration: u32) -> IterationMetrics {
    IterationMetrics {
        iteration,
        duration_ms: 1500,
        model_ms: 1000,
        command_ms: 300,
        model_calls: 1,
        usage: TokenUsage {
            input_tokens: 100,
            output_tokens: 10,
            ..TokenUsage::default()
        },
        cost_usd: Usd::from_nanos(250_000_000),
        repaired: false,
        actions: 1,
        actions_ok: 1,
        prompt_bytes: 1000,
        diff: DiffSize::default(),
        test_exit_code: Some(0),
        tests: Some(TestCount {
            passed: u64::from(iteration),
            failed: 1,
            skipped: 0,
            xfailed: 0,
        }),
        boxes_ticked: 1,
        boxes_total: 2,
        loop_score: Some(0.5),
        gutter: None,
        head: commit(),
    }
}

fn plan(run: &RunId, title: &str) -> RunPlan {
    RunPlan {
        submodules: Vec::new(),
        run: run.clone(),
        task_id: TaskId::parse("task").unwrap(),
        title: title.to_owned(),
        task_file: "/work/ralph_task.md".to_owned(),
        contract: Digest::compute(b"contract"),
        repo: format!("/work/{title}"),
        base_branch: "main".to_owned(),
        base: commit(),
        branch: "ralph/task".to_owned(),
        engine: EngineKind::Actions,
        sandbox: "local".to_owned(),
        isolation: Isolation::None,
        local: None,
        container: None,
        network: None,
        agent: None,
        model: "scripted:x".to_owned(),
        model_key: None,
        scm: "local".to_owned(),
        scm_credential: None,
        delivery: Delivery::PullRequest,
        issue: None,
        limits: BudgetLimits::default(),
        setup: None,
        test_command: "true".to_owned(),
        checkboxes: 2,
        mode: RunMode::Autonomous,
        settings: None,
    }
}
