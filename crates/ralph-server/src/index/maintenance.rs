//! Keeps the index up to date: compares it with the files, stores the differences, and replaces a
//! database that is damaged or gone.

use std::mem;
use std::time::{Duration, Instant, SystemTime};

use ralph_app::planning::random_number;
use ralph_engine::store::StateDir;
use tokio::sync::{mpsc, watch};
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};

use super::changed_runs::{
    ChangedRuns, ScanScope, TrackedRuns, describe_changes, find_changes, listing_time,
};
use super::database::{Database, MaintenanceLock, check_structure, move_aside};
use super::feed::{FeedPosition, NO_RECORDS, append_feed, start_instance, stored_head};
use super::index_error::{IndexError, IndexFault};
use super::run_index::{IndexState, RefreshRequest, RunIndex};
use super::stored_runs;
use super::tracked_run::{RunUpdate, UpdateKind};

/// How often unfinished runs are inspected.
const UNFINISHED_INTERVAL: Duration = Duration::from_millis(200);
/// How often all runs are inspected.
const ALL_INTERVAL: Duration = Duration::from_secs(2);
/// How often the structure of the database is checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(30);
/// The number of runs that are stored at once.
const BATCH: usize = 64;

/// The work on the index; it alone writes.
#[derive(Debug)]
pub(super) struct Maintenance {
    index: RunIndex,
    lock: Option<MaintenanceLock>,
    runs: TrackedRuns,
    /// Read, but not stored yet.
    unstored: Vec<RunUpdate>,
    head: FeedPosition,
    /// False until a new index has all runs: its feed starts with later records.
    publishes: bool,
    /// When all runs were last inspected, and when the database was last checked.
    inspected: Option<Instant>,
    checked: Instant,
    /// The time of the last change of the directory with all runs, before they were inspected.
    listed: Option<SystemTime>,
    counts: MaintenanceCounts,
}

/// What the maintenance has done since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct MaintenanceCounts {
    /// Descriptions of runs that were stored.
    pub(crate) updated: u64,
    /// Runs that were removed, because their directory is gone.
    pub(crate) removed: u64,
    /// Databases that were created.
    pub(crate) created: u64,
}

impl Maintenance {
    pub(super) fn new(index: RunIndex) -> Self {
        Self {
            index,
            lock: None,
            runs: TrackedRuns::new(),
            unstored: Vec::new(),
            head: FeedPosition::default(),
            publishes: false,
            inspected: None,
            checked: Instant::now(),
            listed: None,
            counts: MaintenanceCounts::default(),
        }
    }

    /// Works until `stop` becomes true.
    pub(super) async fn run(
        mut self,
        mut requests: mpsc::Receiver<RefreshRequest>,
        mut stop: watch::Receiver<bool>,
    ) {
        let mut ticks = interval(UNFINISHED_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let mut answered = Vec::new();
            let scope = tokio::select! {
                // A dropped sender stops the work, too.
                _ = stop.wait_for(|stop| *stop) => break,
                Some(request) = requests.recv() => {
                    answered.push(request);
                    ScanScope::All
                }
                _ = ticks.tick() => self.due_scope(),
            };
            while let Ok(request) = requests.try_recv() {
                answered.push(request);
            }
            let scope = if answered.is_empty() {
                scope
            } else {
                ScanScope::All
            };
            if self.update(scope).await.is_ok() {
                for request in answered {
                    // The request may have been cancelled.
                    let _received = request.send(());
                }
            }
        }
        self.close().await;
    }

    /// Brings the index up to date. Returns what was done, and the number of runs.
    pub(super) async fn run_once(mut self) -> Result<(MaintenanceCounts, u64), IndexError> {
        let updated = self.update(ScanScope::All).await;
        let (counts, runs) = (self.counts, self.runs.len() as u64);
        self.close().await;
        updated.map(|()| (counts, runs))
    }

    /// Returns the scope of a periodic update.
    fn due_scope(&self) -> ScanScope {
        let is_due = self
            .inspected
            .is_none_or(|inspected| inspected.elapsed() >= ALL_INTERVAL);
        if is_due {
            ScanScope::All
        } else {
            ScanScope::Unfinished
        }
    }

    /// Compares the index with the files once, and publishes the result.
    async fn update(&mut self, scope: ScanScope) -> Result<(), IndexError> {
        let mut updated = self.try_update(scope).await;
        if let Err(error) = &updated
            && error.fault() == IndexFault::Broken
        {
            // Before the database changes: a list must not come from one that is incomplete.
            self.index.set_state(IndexState::CatchingUp {
                why: format!("{error}; it is built again"),
            });
            updated = match self.replace_database().await {
                Ok(()) => self.try_update(ScanScope::All).await,
                Err(error) => Err(error),
            };
        }
        match &updated {
            Ok(()) if self.inspected.is_some() => self.index.set_state(IndexState::Ready),
            Ok(()) => {}
            Err(error) => {
                if error.fault() != IndexFault::Busy {
                    self.close_database().await;
                }
                self.index.set_state(IndexState::CatchingUp {
                    why: error.to_string(),
                });
            }
        }
        updated
    }

    async fn try_update(&mut self, scope: ScanScope) -> Result<(), IndexError> {
        let (database, scope) = self.open(scope).await?;
        if !self.unstored.is_empty() {
            self.store(&database).await?;
        }
        let state = self.index.state_dir()?;
        let listed = listing_time(&state);
        // A run was created or removed.
        let scope = if listed == self.listed {
            scope
        } else {
            ScanScope::All
        };
        let changes = self.scan(&state, scope).await?;
        self.remove(&database, &changes).await?;
        let mut pending = changes.changed;
        while !pending.is_empty() {
            let later = pending.split_off(BATCH.min(pending.len()));
            let batch = mem::replace(&mut pending, later);
            let (state, mut runs) = (state.clone(), mem::take(&mut self.runs));
            let described = spawn_blocking(move || {
                let updates = describe_changes(&state, &mut runs, &batch);
                (runs, updates)
            });
            (self.runs, self.unstored) = self.joined(described.await)?;
            self.store(&database).await?;
        }
        if scope == ScanScope::All {
            self.inspected = Some(Instant::now());
            self.listed = listed;
            self.publishes = true;
            self.publish_head();
        }
        Ok(())
    }

    /// Returns the open database with the scope that is necessary: a database that was just opened is
    /// compared with all runs.
    async fn open(&mut self, scope: ScanScope) -> Result<(Database, ScanScope), IndexError> {
        if self.lock.is_none() {
            self.lock = Some(MaintenanceLock::acquire(self.index.location())?);
        }
        if let Ok(database) = self.index.database() {
            database.check_files()?;
            if self.checked.elapsed() >= CHECK_INTERVAL {
                self.checked = Instant::now();
                check_structure(self.index.location()).await?;
            }
            return Ok((database, scope));
        }
        let database = Database::open(self.index.location()).await?;
        self.load(&database).await?;
        self.index.set_database(Some(database.clone()));
        self.checked = Instant::now();
        Ok((database, ScanScope::All))
    }

    /// Reads what the database knows.
    async fn load(&mut self, database: &Database) -> Result<(), IndexError> {
        let mut connection = database
            .pool
            .acquire()
            .await
            .map_err(IndexError::when("open"))?;
        let stored = stored_head(&mut connection).await;
        self.runs = stored_runs::load(&mut connection)
            .await
            .map_err(IndexError::when("read"))?;
        self.unstored.clear();
        self.inspected = None;
        if let Some(head) = stored.map_err(IndexError::when("read"))? {
            self.publishes = true;
            self.head = head;
        } else {
            self.publishes = false;
            self.counts.created += 1;
            self.head = FeedPosition {
                instance: new_instance(),
                position: 0,
            };
            start_instance(&mut connection, &self.head.instance)
                .await
                .map_err(IndexError::when("write"))?;
        }
        self.publish_head();
        Ok(())
    }

    /// Moves a damaged database aside.
    async fn replace_database(&mut self) -> Result<(), IndexError> {
        self.close_database().await;
        Ok(move_aside(self.index.location())?)
    }

    async fn close_database(&mut self) {
        let database = self.index.database();
        self.index.set_database(None);
        self.runs.clear();
        self.unstored.clear();
        self.inspected = None;
        if let Ok(database) = database {
            database.pool.close().await;
        }
    }

    async fn close(&mut self) {
        self.close_database().await;
        self.lock = None;
    }

    async fn scan(
        &mut self,
        state: &StateDir,
        scope: ScanScope,
    ) -> Result<ChangedRuns, IndexError> {
        let (state, runs) = (state.clone(), mem::take(&mut self.runs));
        let scanned = spawn_blocking(move || {
            let changes = find_changes(&state, &runs, scope);
            (runs, changes)
        });
        let (runs, changes) = self.joined(scanned.await)?;
        self.runs = runs;
        Ok(changes?)
    }

    /// Returns the result of a blocking task. If it panicked, the runs are read from the database again.
    fn joined<T>(&self, result: Result<T, tokio::task::JoinError>) -> Result<T, IndexError> {
        result.map_err(|error| {
            self.index.set_database(None);
            IndexError::Interrupted(error.to_string())
        })
    }

    /// Removes runs whose directory is gone.
    async fn remove(
        &mut self,
        database: &Database,
        changes: &ChangedRuns,
    ) -> Result<(), IndexError> {
        if changes.removed.is_empty() {
            return Ok(());
        }
        let mut position = self.head.position;
        let removed = async {
            let mut transaction = database.pool.begin().await?;
            for run in &changes.removed {
                stored_runs::remove(&mut transaction, run).await?;
                if self.publishes {
                    position = append_feed(&mut transaction, position, run, NO_RECORDS).await?;
                }
            }
            transaction.commit().await
        };
        removed.await.map_err(IndexError::when("write"))?;
        self.head.position = position;
        self.publish_head();
        for run in &changes.removed {
            self.runs.remove(run);
            self.counts.removed += 1;
        }
        Ok(())
    }

    /// Stores the updates and publishes their records. They stay pending if the database is busy.
    async fn store(&mut self, database: &Database) -> Result<(), IndexError> {
        let stored = self.try_store(database).await;
        let head = stored.map_err(IndexError::when("write"))?;
        self.counts.updated += self.unstored.len() as u64;
        self.unstored.clear();
        self.head = head;
        self.publish_head();
        Ok(())
    }

    /// Publishes the head of the feed, unless runs of a new index are still missing: a client that reads
    /// everything after that misses no later record.
    fn publish_head(&self) {
        if self.publishes {
            self.index.set_head(self.head.clone());
        }
    }

    async fn try_store(&self, database: &Database) -> Result<FeedPosition, sqlx::Error> {
        let mut transaction = database.pool.begin().await?;
        let mut head = self.head.clone();
        let is_replaced = |update: &RunUpdate| update.kind == UpdateKind::Replaced;
        if self.unstored.iter().any(is_replaced) {
            // Positions of the feed may name records of the replaced journal.
            head = FeedPosition {
                instance: new_instance(),
                position: 0,
            };
            start_instance(&mut transaction, &head.instance).await?;
        }
        for update in &self.unstored {
            stored_runs::store(&mut transaction, update).await?;
            if self.publishes {
                let (run, records) = (&update.row.id, update.unpublished);
                head.position = append_feed(&mut transaction, head.position, run, records).await?;
            }
        }
        transaction.commit().await?;
        Ok(head)
    }
}

/// Returns a name that no other instance has.
fn new_instance() -> String {
    format!("{:016x}", random_number())
}
