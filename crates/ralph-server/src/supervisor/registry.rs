//! The runs of a server, in memory and in `server-runs.json` of the state directory.
//!
//! The file lets the next server continue them in the same order. A run is in it from its creation until
//! it ends, waits for the user, or fails.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ralph_core::id::RunId;
use ralph_engine::durable::{self, StoreError};
use ralph_engine::worker_pool::{PoolRuns, WorkerPool, WorkerStage};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use utoipa::ToSchema;

/// The name of the file.
const FILE: &str = "server-runs.json";
/// The version of its format.
const VERSION: u32 = 1;

/// The runs of a server; clones share them.
#[derive(Debug, Clone)]
pub(super) struct Registry {
    shared: Arc<SharedRegistry>,
}

#[derive(Debug)]
struct SharedRegistry {
    path: PathBuf,
    pool: WorkerPool,
    runs: Mutex<BTreeMap<RunId, RegisteredRun>>,
    /// Orders the writes of the file.
    writing: Mutex<()>,
    /// The number of runs that a thread works on.
    live: watch::Sender<usize>,
}

/// A run of the server.
#[derive(Debug)]
struct RegisteredRun {
    /// The number of servers in a row that ended without warning while they opened the run.
    crashes: u32,
    /// Its position among the runs that are not in the queue.
    order: usize,
    is_opening: bool,
    /// Whether the user paused it.
    is_paused: bool,
    /// Parks the run when it becomes true; none until its thread drives it.
    interrupt: Option<watch::Sender<bool>>,
}

impl RegisteredRun {
    fn new(crashes: u32, order: usize) -> Self {
        Self {
            crashes,
            order,
            is_opening: false,
            is_paused: false,
            interrupt: None,
        }
    }
}

/// A run in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredRun {
    pub(super) run: RunId,
    #[serde(default)]
    crashes: u32,
    /// Whether the server was opening the run at the time of the last write.
    #[serde(default)]
    opening: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredRuns {
    version: u32,
    /// In the order of the queue.
    runs: Vec<StoredRun>,
}

/// The runs of this process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct QueueReport {
    /// The number of runs that work at the same time.
    pub(crate) workers: usize,
    /// The runs that have a worker.
    #[schema(value_type = Vec<String>)]
    pub(crate) working: Vec<RunId>,
    /// The runs that wait for a worker, the next one first.
    #[schema(value_type = Vec<String>)]
    pub(crate) queued: Vec<RunId>,
    /// The runs that wait for a provider, for checks, for the source host or for the user, without a
    /// worker.
    #[schema(value_type = Vec<String>)]
    pub(crate) waiting: Vec<RunId>,
}

impl StoredRun {
    /// Returns the number of servers in a row that ended without warning while they opened the run.
    pub(super) fn crashes(&self) -> u32 {
        self.crashes + u32::from(self.opening)
    }
}

impl Registry {
    pub(super) fn new(root: &Path, pool: WorkerPool) -> Self {
        Self {
            shared: Arc::new(SharedRegistry {
                path: root.join(FILE),
                pool,
                runs: Mutex::default(),
                writing: Mutex::default(),
                live: watch::Sender::new(0),
            }),
        }
    }

    /// Reads the runs of the last server, in the order of its queue. A damaged file names none.
    pub(super) fn load(&self) -> Vec<StoredRun> {
        let path = &self.shared.path;
        let bytes = match durable::read_if_present(path) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Vec::new(),
            Err(error) => {
                tracing::error!(%error, "the runs of the last server are unknown");
                return Vec::new();
            }
        };
        match serde_json::from_slice::<StoredRuns>(&bytes) {
            Ok(stored) if stored.version == VERSION => stored.runs,
            Ok(stored) => {
                let version = stored.version;
                tracing::error!(version, "a newer ralph wrote `{}`", path.display());
                Vec::new()
            }
            Err(error) => {
                tracing::error!(%error, "`{}` is damaged", path.display());
                Vec::new()
            }
        }
    }

    /// Adds a run of the last server without writing the file, and returns false if it is already there.
    pub(super) fn adopt(&self, stored: &StoredRun) -> bool {
        let is_new = !self.contains(&stored.run);
        if is_new {
            let mut runs = self.lock();
            let entry = RegisteredRun::new(stored.crashes(), runs.len());
            runs.insert(stored.run.clone(), entry);
        }
        is_new
    }

    /// Adds a run, and returns false if it is already there.
    pub(super) fn add(&self, run: &RunId) -> Result<bool, StoreError> {
        let mut runs = self.lock();
        if runs.contains_key(run) {
            return Ok(false);
        }
        let order = runs
            .values()
            .map(|entry| entry.order + 1)
            .max()
            .unwrap_or(0);
        runs.insert(run.clone(), RegisteredRun::new(0, order));
        drop(runs);
        self.store().map(|()| true)
    }

    /// Records that a thread drives the run from now on.
    pub(super) fn set_live(&self, run: &RunId, interrupt: watch::Sender<bool>) {
        if let Some(entry) = self.lock().get_mut(run) {
            entry.interrupt = Some(interrupt);
            self.shared.live.send_modify(|live| *live += 1);
        }
    }

    /// Records that no thread drives the run any more. A kept run continues with the next server.
    pub(super) fn finish(&self, run: &RunId, is_kept: bool) {
        let mut runs = self.lock();
        let was_live = runs
            .get_mut(run)
            .and_then(|entry| entry.interrupt.take())
            .is_some();
        if !is_kept {
            runs.remove(run);
        }
        drop(runs);
        self.store_or_warn();
        if was_live {
            self.shared.live.send_modify(|live| *live -= 1);
        }
    }

    /// Records a new stage of a run.
    pub(super) fn set_stage(&self, run: &RunId, stage: WorkerStage) {
        if let Some(entry) = self.lock().get_mut(run) {
            entry.is_opening = stage == WorkerStage::Opening;
            entry.is_paused = stage == WorkerStage::Paused;
            if matches!(
                stage,
                WorkerStage::Working | WorkerStage::Waiting | WorkerStage::Paused
            ) {
                entry.crashes = 0;
            }
        }
        self.store_or_warn();
    }

    /// Returns whether a run is one of this server.
    pub(super) fn contains(&self, run: &RunId) -> bool {
        self.lock().contains_key(run)
    }

    /// Returns the number of runs of this server.
    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Returns whether a run has left the phase in which it can crash the server repeatedly.
    pub(super) fn is_opened(&self, run: &RunId) -> bool {
        self.lock().get(run).is_none_or(|entry| entry.crashes == 0)
    }

    /// Returns whether the user paused a run.
    pub(super) fn is_paused(&self, run: &RunId) -> bool {
        self.lock().get(run).is_some_and(|entry| entry.is_paused)
    }

    /// Asks all runs to park.
    pub(super) fn interrupt_all(&self) {
        for entry in self.lock().values() {
            if let Some(interrupt) = &entry.interrupt {
                interrupt.send_replace(true);
            }
        }
    }

    /// Returns the number of runs that a thread drives, as it changes.
    pub(super) fn live(&self) -> watch::Receiver<usize> {
        self.shared.live.subscribe()
    }

    /// Returns the runs for the list of the queue.
    pub(super) fn report(&self) -> QueueReport {
        let pool = self.shared.pool.runs();
        let others = self.lock();
        let is_other = |run: &&RunId| !pool.working.contains(*run) && !pool.queued.contains(*run);
        QueueReport {
            workers: self.shared.pool.workers(),
            waiting: others.keys().filter(is_other).cloned().collect(),
            working: pool.working.into_iter().collect(),
            queued: pool.queued.into_iter().collect(),
        }
    }

    fn store_or_warn(&self) {
        if let Err(error) = self.store() {
            tracing::error!(%error, "the next server may not continue all runs");
        }
    }

    fn store(&self) -> Result<(), StoreError> {
        let _writing = self
            .shared
            .writing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let pool = self.shared.pool.runs();
        let mut ranked: Vec<((usize, usize), StoredRun)> = self
            .lock()
            .iter()
            .map(|(run, entry)| {
                let stored = StoredRun {
                    run: run.clone(),
                    crashes: entry.crashes,
                    opening: entry.is_opening,
                };
                ((rank(&pool, run), entry.order), stored)
            })
            .collect();
        ranked.sort_by_key(|(rank, _)| *rank);
        let path = &self.shared.path;
        let runs = StoredRuns {
            version: VERSION,
            runs: ranked.into_iter().map(|(_, stored)| stored).collect(),
        };
        let text = serde_json::to_vec(&runs)
            .map_err(std::io::Error::from)
            .map_err(StoreError::when("write", path))?;
        durable::write(path, &text)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<RunId, RegisteredRun>> {
        self.shared
            .runs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the position of a run for the next server: those with a worker come first, then the queue.
fn rank(pool: &PoolRuns, run: &RunId) -> usize {
    if pool.working.contains(run) {
        return 0;
    }
    pool.position(run).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(number: u32) -> RunId {
        RunId::parse(&format!("260301-100000-{number:04}")).unwrap()
    }

    #[test]
    fn the_next_server_gets_the_runs_in_the_order_of_the_queue() {
        let root = tempfile::tempdir().unwrap();
        let pool = WorkerPool::new(1);
        let registry = Registry::new(root.path(), pool.clone());
        let slots: Vec<_> = [3, 1, 2]
            .map(|number| {
                assert!(registry.add(&run(number)).unwrap());
                pool.enqueue(run(number), Box::new(|_| {}))
            })
            .into_iter()
            .collect();
        assert!(!registry.add(&run(1)).unwrap());
        registry.set_stage(&run(3), WorkerStage::Opening);
        let stored = Registry::new(root.path(), pool.clone()).load();
        let order: Vec<RunId> = stored.iter().map(|stored| stored.run.clone()).collect();
        assert_eq!(order, [run(3), run(1), run(2)]);
        let crashes: Vec<u32> = stored.iter().map(StoredRun::crashes).collect();
        assert_eq!(crashes, [1, 0, 0]);
        registry.set_stage(&run(3), WorkerStage::Working);
        registry.finish(&run(1), false);
        registry.finish(&run(2), true);
        let stored = registry.load();
        assert_eq!(stored.len(), 2);
        assert_eq!(stored[0].crashes(), 0);
        assert_eq!(registry.report().queued, [run(1), run(2)]);
        drop(slots);
        std::fs::write(root.path().join(FILE), "{").unwrap();
        assert!(registry.load().is_empty());
    }
}
