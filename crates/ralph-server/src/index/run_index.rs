//! The index as the other parts of the server use it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ralph_app::{App, AppError};
use ralph_core::id::RunId;
use ralph_engine::store::StateDir;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

use super::database::Database;
use super::feed::FeedPosition;
use super::index_error::IndexError;
use super::location::IndexLocation;
use super::maintenance::Maintenance;

/// How long a request waits until its changes are in the index.
const REFRESH_TIMEOUT: Duration = Duration::from_secs(5);
/// The number of requests that may wait for a refresh.
const MAX_REFRESHES: usize = 64;

/// The index of all runs of a state directory; clones share it.
#[derive(Debug, Clone)]
pub(crate) struct RunIndex {
    shared: Arc<SharedIndex>,
}

#[derive(Debug)]
struct SharedIndex {
    app: Arc<App>,
    location: IndexLocation,
    /// None while the database is not open.
    database: Mutex<Option<Database>>,
    state: watch::Sender<IndexState>,
    head: watch::Sender<FeedPosition>,
    refreshes: mpsc::Sender<RefreshRequest>,
    /// Taken by the maintenance.
    requests: Mutex<Option<mpsc::Receiver<RefreshRequest>>>,
}

/// A request to compare all runs with the index now. It is answered when the index is up to date.
pub(super) type RefreshRequest = oneshot::Sender<()>;

/// Whether the index has the current state of all runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IndexState {
    /// It is at most seconds behind the files.
    Ready,
    /// It is being built, or its database cannot be used. Lists are read from the files.
    CatchingUp {
        /// The cause.
        why: String,
    },
}

impl RunIndex {
    /// Creates the index without opening it; see [`Self::maintain`].
    pub(crate) fn new(app: Arc<App>) -> Result<Self, AppError> {
        let (refreshes, requests) = mpsc::channel(MAX_REFRESHES);
        Ok(Self {
            shared: Arc::new(SharedIndex {
                location: IndexLocation::of(&app)?,
                app,
                database: Mutex::default(),
                state: watch::Sender::new(IndexState::CatchingUp {
                    why: "the server is starting".to_owned(),
                }),
                head: watch::Sender::default(),
                refreshes,
                requests: Mutex::new(Some(requests)),
            }),
        })
    }

    /// Keeps the index up to date until `stop` becomes true, whatever happens to its database.
    pub(crate) async fn maintain(&self, stop: watch::Receiver<bool>) {
        let requests = lock(&self.shared.requests).take();
        if let Some(requests) = requests {
            Maintenance::new(self.clone()).run(requests, stop).await;
        }
    }

    /// Waits until the index has the current state of all runs, but not for a database that cannot be
    /// used.
    pub(crate) async fn refresh(&self) {
        let (done, is_done) = oneshot::channel();
        let refresh = async {
            if self.shared.refreshes.send(done).await.is_ok() {
                // A dropped sender means that the index could not be updated.
                let _updated = is_done.await;
            }
        };
        if timeout(REFRESH_TIMEOUT, refresh).await.is_err() {
            tracing::debug!("the index was not refreshed in time");
        }
    }

    /// Returns whether the index is up to date.
    pub(crate) fn state(&self) -> IndexState {
        self.shared.state.borrow().clone()
    }

    /// Returns the newest position of the feed, and notifies of newer ones.
    pub(crate) fn feed_head(&self) -> watch::Receiver<FeedPosition> {
        self.shared.head.subscribe()
    }

    /// Returns the open database.
    pub(super) fn database(&self) -> Result<Database, IndexError> {
        lock(&self.shared.database)
            .clone()
            .ok_or(IndexError::NotOpen)
    }

    pub(super) fn app(&self) -> &Arc<App> {
        &self.shared.app
    }

    pub(super) fn state_dir(&self) -> Result<StateDir, IndexError> {
        let opened = self.shared.app.state_dir();
        opened.map_err(|error| IndexError::StateDirectory(Box::new(error)))
    }

    /// Returns the file of a run's journal.
    pub(crate) fn journal(&self, run: &RunId) -> Result<PathBuf, IndexError> {
        Ok(self.state_dir()?.run(run).journal())
    }

    pub(super) fn location(&self) -> &IndexLocation {
        &self.shared.location
    }

    pub(super) fn set_database(&self, database: Option<Database>) {
        *lock(&self.shared.database) = database;
    }

    pub(super) fn set_head(&self, head: FeedPosition) {
        self.shared.head.send_if_modified(|known| {
            let is_new = *known != head;
            *known = head;
            is_new
        });
    }

    /// Publishes a new state, and logs it if it differs from the last.
    pub(super) fn set_state(&self, state: IndexState) {
        let is_new = self
            .shared
            .state
            .send_if_modified(|known| std::mem::replace(known, state.clone()) != state);
        match state {
            IndexState::Ready if is_new => tracing::info!("the index is up to date"),
            IndexState::CatchingUp { why } if is_new => {
                tracing::warn!("the index is catching up: {why}");
            }
            IndexState::Ready | IndexState::CatchingUp { .. } => {}
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
