//! Limits the number of runs of one process that work at the same time.
//!
//! A run that is paused or waits for a provider, for checks or for the source host has no worker. It
//! gets one again, after the runs that asked before it, before it continues: see `worker_wait`.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ralph_core::id::RunId;
use tokio::sync::watch;

/// A fixed number of workers and the queue of the runs that wait for one; clones share it.
#[derive(Debug, Clone)]
pub struct WorkerPool {
    shared: Arc<SharedPool>,
}

#[derive(Debug)]
struct SharedPool {
    workers: usize,
    runs: Mutex<PoolRuns>,
    /// Changes with the lists of runs.
    changed: watch::Sender<u64>,
}

/// The runs of a pool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PoolRuns {
    /// The runs that have a worker.
    pub working: BTreeSet<RunId>,
    /// The runs that wait for a worker, the next one first.
    pub queued: VecDeque<RunId>,
    /// The runs that the user paused.
    pub paused: BTreeSet<RunId>,
    /// The runs that wait for a provider, for checks or for the source host.
    pub waiting: BTreeSet<RunId>,
}

/// What a run of a pool does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerStage {
    /// It waits for a worker.
    Queued,
    /// It has a worker and prepares its workspace.
    Opening,
    /// It has a worker and iterates.
    Working,
    /// The user paused it.
    Paused,
    /// It waits for a provider, for checks or for the source host.
    Waiting,
}

/// The place of a run in a pool. It is free for other runs when this value is dropped.
pub struct WorkerSlot {
    pool: WorkerPool,
    run: RunId,
    on_stage: Box<StageObserver>,
}

/// Is called with each new stage of a run, on the thread of the run and before the stage begins.
pub type StageObserver = dyn Fn(WorkerStage) + Send + Sync;

impl WorkerPool {
    /// Creates a pool with this number of workers, at least one.
    pub fn new(workers: usize) -> Self {
        Self {
            shared: Arc::new(SharedPool {
                workers: workers.max(1),
                runs: Mutex::default(),
                changed: watch::Sender::new(0),
            }),
        }
    }

    /// Returns the number of workers.
    pub fn workers(&self) -> usize {
        self.shared.workers
    }

    /// Adds a run to the end of the queue.
    pub fn enqueue(&self, run: RunId, on_stage: Box<StageObserver>) -> WorkerSlot {
        let slot = WorkerSlot {
            pool: self.clone(),
            run,
            on_stage,
        };
        slot.join_queue();
        slot
    }

    /// Returns the runs of the pool.
    pub fn runs(&self) -> PoolRuns {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, PoolRuns> {
        self.shared
            .runs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut PoolRuns)) {
        let mut runs = self.lock();
        change(&mut runs);
        while runs.working.len() < self.shared.workers
            && let Some(next) = runs.queued.pop_front()
        {
            runs.working.insert(next);
        }
        drop(runs);
        self.shared.changed.send_modify(|version| *version += 1);
    }
}

impl PoolRuns {
    /// Returns the position of a run in the queue, from 1.
    pub fn position(&self, run: &RunId) -> Option<usize> {
        let index = self.queued.iter().position(|queued| queued == run)?;
        Some(index + 1)
    }

    fn remove(&mut self, run: &RunId) {
        self.working.remove(run);
        self.paused.remove(run);
        self.waiting.remove(run);
        self.queued.retain(|queued| queued != run);
    }
}

impl WorkerSlot {
    /// Waits for a worker. The run keeps its place in the queue if this is cancelled.
    pub(crate) async fn acquire(&self) {
        let mut changed = self.pool.shared.changed.subscribe();
        self.join_queue();
        while !self.has_worker() {
            if changed.changed().await.is_err() {
                // The sender is part of the pool that this slot refers to.
                return;
            }
        }
    }

    /// Gives the worker back and leaves the queue, for a run that waits.
    pub(crate) fn release(&self, stage: WorkerStage) {
        self.pool.change(|runs| {
            runs.remove(&self.run);
            match stage {
                WorkerStage::Paused => drop(runs.paused.insert(self.run.clone())),
                WorkerStage::Waiting => drop(runs.waiting.insert(self.run.clone())),
                WorkerStage::Queued | WorkerStage::Opening | WorkerStage::Working => {}
            }
        });
        self.report(stage);
    }

    /// Reports a new stage of the run.
    pub(crate) fn report(&self, stage: WorkerStage) {
        (self.on_stage)(stage);
    }

    fn has_worker(&self) -> bool {
        self.pool.lock().working.contains(&self.run)
    }

    fn join_queue(&self) {
        let is_known = {
            let runs = self.pool.lock();
            runs.working.contains(&self.run) || runs.queued.contains(&self.run)
        };
        if !is_known {
            self.pool.change(|runs| {
                runs.remove(&self.run);
                runs.queued.push_back(self.run.clone());
            });
        }
    }
}

impl Drop for WorkerSlot {
    fn drop(&mut self) {
        self.pool.change(|runs| runs.remove(&self.run));
    }
}

impl fmt::Debug for WorkerSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerSlot")
            .field("run", &self.run)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn run(number: u32) -> RunId {
        RunId::parse(&format!("260301-100000-{number:04}")).unwrap()
    }

    fn slot(pool: &WorkerPool, number: u32) -> WorkerSlot {
        pool.enqueue(run(number), Box::new(|_| {}))
    }

    async fn is_granted(slot: &WorkerSlot) -> bool {
        let acquired = tokio::time::timeout(Duration::from_millis(20), slot.acquire());
        acquired.await.is_ok()
    }

    #[tokio::test]
    async fn workers_are_given_in_the_order_of_the_queue() {
        let pool = WorkerPool::new(2);
        let [first, second, third, fourth] = [1, 2, 3, 4].map(|number| slot(&pool, number));
        assert!(is_granted(&first).await && is_granted(&second).await);
        // The order of the queue decides, not the order of the waits.
        assert!(!is_granted(&fourth).await && !is_granted(&third).await);
        assert_eq!(pool.runs().position(&run(3)), Some(1));
        assert_eq!(pool.runs().position(&run(4)), Some(2));
        drop(first);
        assert!(!is_granted(&fourth).await);
        assert!(is_granted(&third).await);
        assert_eq!(pool.runs().position(&run(4)), Some(1));
        drop((second, third));
        assert!(is_granted(&fourth).await);
        drop(fourth);
        assert_eq!(pool.runs(), PoolRuns::default());
    }

    #[tokio::test]
    async fn a_waiting_run_has_no_worker_and_joins_the_end_of_the_queue() {
        let pool = WorkerPool::new(1);
        let [first, second, third] = [1, 2, 3].map(|number| slot(&pool, number));
        assert!(is_granted(&first).await);
        first.release(WorkerStage::Waiting);
        assert!(pool.runs().waiting.contains(&run(1)));
        assert!(is_granted(&second).await);
        assert!(!is_granted(&first).await);
        second.release(WorkerStage::Paused);
        assert_eq!(Vec::from_iter(pool.runs().paused), [run(2)]);
        assert!(!is_granted(&first).await && is_granted(&third).await);
        drop(third);
        assert!(is_granted(&first).await);
    }
}
