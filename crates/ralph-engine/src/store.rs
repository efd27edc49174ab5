//! The state directory: the files of all runs on the host, and the search for a run.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use ralph_core::id::{Digest, RunId};
use ralph_core::run::RunStatus;
use ralph_core::state::RunState;

use crate::durable::{self, StoreError};
use crate::journal::{self, JournalError, RunOutline, WorkingRepository};
use crate::linked_worktrees::LinkedWorktrees;
pub use crate::run_lock::RunLock;

/// The directory of results of set-up.
const SETUP_RESULTS: &str = "setup";
/// The directory of the objects that runs of one repository share.
const MIRRORS: &str = "repos";

/// The directory with ralph's state, accessible only to the user.
#[derive(Debug, Clone)]
pub struct StateDir {
    root: PathBuf,
}

/// Why a run was not found.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// No run matches.
    #[error("there is no run `{0}`")]
    Unknown(String),
    /// There are no runs.
    #[error("there are no runs yet")]
    None,
    /// Several runs start with these characters.
    #[error("`{query}` matches several runs: {}", matches.join(", "))]
    Ambiguous { query: String, matches: Vec<String> },
    /// The directory cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl StateDir {
    /// Opens the state directory, creates it if necessary and removes the permissions of other
    /// users.
    pub fn open(root: PathBuf) -> Result<Self, StoreError> {
        durable::create_dir(&root)?;
        let root = root.canonicalize().unwrap_or(root);
        let mode = fs::metadata(&root)
            .map_err(StoreError::when("inspect", &root))?
            .permissions()
            .mode();
        if mode & 0o077 != 0 {
            fs::set_permissions(&root, fs::Permissions::from_mode(0o700))
                .map_err(StoreError::when("restrict access to", &root))?;
        }
        Ok(Self { root })
    }

    /// Uses the state directory without creating or changing it, for readers.
    pub fn read_only(root: PathBuf) -> Self {
        Self {
            root: root.canonicalize().unwrap_or(root),
        }
    }

    /// Returns the path of the state directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the directory of results of set-up.
    pub fn setup_results(&self) -> PathBuf {
        self.root.join(SETUP_RESULTS)
    }

    /// Returns the directory of local sandboxes.
    pub fn sandboxes(&self) -> PathBuf {
        self.root.join("sandboxes")
    }

    /// Returns the directory of the local source host's pull requests.
    pub fn pulls(&self) -> PathBuf {
        self.root.join("pulls")
    }

    /// Returns the directory of the objects that runs of one repository share.
    pub fn mirrors(&self) -> PathBuf {
        self.root.join(MIRRORS)
    }

    /// Returns the directory of all runs.
    pub fn all_runs(&self) -> PathBuf {
        self.root.join("runs")
    }

    /// Returns the directory of the records of issues.
    pub fn issues(&self) -> PathBuf {
        self.root.join("issues")
    }

    /// Returns the directory of tasks that were made from a sentence.
    pub fn tasks(&self) -> PathBuf {
        self.root.join("tasks")
    }

    /// Returns the directory of credentials that are not in a keyring.
    pub fn tokens(&self) -> PathBuf {
        self.root.join("tokens")
    }

    /// Returns the directory in which running credential proxies are registered.
    pub fn proxies(&self) -> PathBuf {
        self.root.join("proxies")
    }

    /// Returns the directory of one run.
    pub fn run(&self, id: &RunId) -> RunDir {
        RunDir {
            root: self.root.join("runs").join(id.as_str()),
        }
    }

    /// Returns all runs in the order of their creation, oldest first.
    pub fn runs(&self) -> Result<Vec<RunId>, StoreError> {
        let keyed = self.runs_by_creation()?;
        Ok(keyed.into_iter().map(|(_, id)| id).collect())
    }

    /// Returns all runs in the order of their creation, each with a text
    /// that sorts them so and that later runs do not change.
    pub fn runs_by_creation(&self) -> Result<Vec<(String, RunId)>, StoreError> {
        let runs = self.root.join("runs");
        let entries = match fs::read_dir(&runs) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => {
                return Err(StoreError {
                    doing: "list",
                    path: runs,
                    source,
                });
            }
        };
        let entries: io::Result<Vec<fs::DirEntry>> = entries.collect();
        let ids: Vec<RunId> = entries
            .map_err(StoreError::when("list", &runs))?
            .iter()
            .filter_map(|entry| RunId::parse(&entry.file_name().to_string_lossy()))
            .filter(|id| self.run(id).journal().exists())
            .collect();
        let mut keyed = self.creation_keys(ids);
        keyed.sort();
        Ok(keyed)
    }

    /// Finds a run like [`Self::find`], but `last` and a task id mean a run of this repository if it has
    /// one: first of this work tree, then of its other ones.
    pub fn find_near(
        &self,
        query: &str,
        repository: &WorkingRepository,
    ) -> Result<RunId, FindError> {
        let is_id = RunId::parse(query).is_some_and(|id| self.run(&id).journal().exists());
        let runs = if is_id { Vec::new() } else { self.runs()? };
        let worktrees = LinkedWorktrees::find(&repository.path);
        let mut linked = None;
        for id in runs.into_iter().rev() {
            let outline = RunOutline::read(&self.run(&id).journal());
            if query != "last" && outline.task_id.as_deref() != Some(query) {
                continue;
            }
            if outline.is_of(repository) {
                return Ok(id);
            }
            if linked.is_none() && outline.is_of_any(&worktrees) {
                linked = Some(id);
            }
        }
        linked.map_or_else(|| self.find(query), Ok)
    }

    /// Finds a run by id, unique prefix, task id (its newest run) or `last`.
    pub fn find(&self, query: &str) -> Result<RunId, FindError> {
        let runs = self.runs()?;
        let newest = runs.last().ok_or(FindError::None)?;
        if query == "last" {
            return Ok(newest.clone());
        }
        if let Some(exact) = runs.iter().find(|id| id.as_str() == query) {
            return Ok(exact.clone());
        }
        let newest_of_task = runs.iter().rev().find(|id| {
            let outline = RunOutline::read(&self.run(id).journal());
            outline.task_id.as_deref() == Some(query)
        });
        if let Some(run) = newest_of_task {
            return Ok(run.clone());
        }
        let matches: Vec<&RunId> = runs
            .iter()
            .filter(|id| id.as_str().starts_with(query))
            .collect();
        match matches.as_slice() {
            [] => Err(FindError::Unknown(query.to_owned())),
            [only] => Ok((*only).clone()),
            several => Err(FindError::Ambiguous {
                query: query.to_owned(),
                matches: several.iter().map(ToString::to_string).collect(),
            }),
        }
    }
}

/// The standard error of the process that works on a detached run.
pub(crate) const DETACHED_LOG: &str = "detached.log";

/// One run's directory.
#[derive(Debug, Clone)]
pub struct RunDir {
    root: PathBuf,
}

impl RunDir {
    /// The names of the files of every iteration.
    pub const ARTIFACTS: [&'static str; 7] = [
        "prompt.md",
        "response.json",
        "actions.jsonl",
        "git_diff.patch",
        "test_output.txt",
        "metrics.json",
        "pr_state.json",
    ];

    /// Returns the path of the run's directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the directory of results of set-up, which all runs share.
    pub fn setup_results(&self) -> PathBuf {
        self.state_directory().join(SETUP_RESULTS)
    }

    /// Returns the directory of cached baseline results, which all runs share.
    pub fn baselines(&self) -> PathBuf {
        self.state_directory().join("baselines")
    }

    /// Returns the directory of the objects that runs of one repository share.
    pub fn mirrors(&self) -> PathBuf {
        self.state_directory().join(MIRRORS)
    }

    fn state_directory(&self) -> &Path {
        self.root.ancestors().nth(2).unwrap_or(&self.root)
    }

    /// Returns the path of the journal.
    pub fn journal(&self) -> PathBuf {
        self.root.join("journal.jsonl")
    }

    /// Returns the path of the run's copy of the task file with its ticks. Edits have no effect.
    pub fn contract(&self) -> PathBuf {
        self.root.join("ralph_task.md")
    }

    /// Returns the path of an unchanged contract that is or was in force.
    pub fn stored_contract(&self, digest: &Digest) -> PathBuf {
        self.root.join("contracts").join(format!("{digest}.md"))
    }

    /// Returns the path of a content that the user wants a file of the workspace to have.
    pub fn edit(&self, digest: &Digest) -> PathBuf {
        self.root.join("edits").join(digest.as_str())
    }

    /// Returns the path of the last edit of the run's copy of the task file.
    pub fn rejected_contract(&self) -> PathBuf {
        self.root.join("ralph_task.rejected.md")
    }

    /// Returns the path of the host's copy of a `.ralph/` file.
    pub fn file(&self, name: &str) -> PathBuf {
        self.root.join("files").join(name)
    }

    /// Returns the directory of a finished iteration.
    pub fn iteration(&self, number: u32) -> PathBuf {
        self.root.join("iterations").join(number.to_string())
    }

    /// Returns the numbers of the finished iterations, in order. Those of an adopted run may start
    /// later than at 1.
    pub(crate) fn finished_iterations(&self) -> Result<Vec<u32>, StoreError> {
        let directory = self.root.join("iterations");
        let failed = StoreError::when("list", &directory);
        let entries: io::Result<Vec<fs::DirEntry>> = match fs::read_dir(&directory) {
            Ok(entries) => entries.collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        };
        let entries = entries.map_err(failed)?;
        let names = entries.iter().map(fs::DirEntry::file_name);
        let mut numbers: Vec<u32> = names
            .flat_map(|name| name.to_string_lossy().parse::<u32>())
            .collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Returns the directory of an open iteration.
    pub fn open_iteration(&self, number: u32) -> PathBuf {
        self.root.join("iterations").join(format!("{number}.open"))
    }

    /// Returns the number of the newest open iteration.
    pub fn newest_open_iteration(&self) -> io::Result<Option<u32>> {
        let entries = match fs::read_dir(self.root.join("iterations")) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut newest: Option<u32> = None;
        for entry in entries {
            let name = entry?.file_name().to_string_lossy().into_owned();
            let number = name.strip_suffix(".open").map(str::parse);
            if let Some(Ok(number)) = number {
                newest = newest.max(Some(number));
            }
        }
        Ok(newest)
    }

    /// Returns the path of the live output of an open iteration.
    pub fn live_output(&self, number: u32) -> PathBuf {
        self.open_iteration(number).join("output.log")
    }

    /// Creates the directory of an open iteration. A directory that got its final name just before
    /// a crash, without a record, is renamed back.
    pub fn reopen_iteration(&self, number: u32) -> Result<(), StoreError> {
        let (open, finished) = (self.open_iteration(number), self.iteration(number));
        if finished.exists() && !open.exists() {
            durable::rename(&finished, &open)?;
        }
        durable::create_dir(&open)
    }

    /// Returns the directory of a doctor consultation.
    pub fn doctor(&self, number: u32) -> PathBuf {
        self.root.join("doctor").join(number.to_string())
    }

    /// Returns the path of the run's own bare repository.
    pub fn repo(&self) -> PathBuf {
        self.root.join("repo.git")
    }

    /// Returns the directory of queued user commands.
    pub fn commands(&self) -> PathBuf {
        self.root.join("commands")
    }

    /// Returns the path of the standard error of the process that works on the detached run.
    pub fn detached_log(&self) -> PathBuf {
        self.root.join(DETACHED_LOG)
    }

    /// Returns the directory of incomplete lines and damaged repositories that were moved aside.
    pub fn recovered(&self) -> PathBuf {
        self.root.join("recovered")
    }

    /// Creates the directories of a new run.
    pub fn create(&self) -> Result<(), StoreError> {
        for dir in ["files", "iterations", "commands"] {
            durable::create_dir(&self.root.join(dir))?;
        }
        durable::sync_dir(&self.root)?;
        self.root.parent().map_or(Ok(()), durable::sync_dir)
    }

    /// Returns the state of the run, read from its journal.
    pub fn state(&self) -> Result<RunState, JournalError> {
        let records = journal::read(&self.journal())?;
        RunState::from_records(&records).ok_or_else(|| JournalError::Empty {
            path: self.journal(),
        })
    }

    /// Returns whether a process left the run in the middle of its work.
    pub fn is_interrupted(&self, status: &RunStatus) -> bool {
        status.needs_process() && !self.is_held()
    }
}
