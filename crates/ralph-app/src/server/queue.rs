//! The queue of a running server, for commands that show runs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ralph_core::id::RunId;
use ralph_engine::store::RunDir;
use serde::Deserialize;

use super::client::ServerClient;
use crate::app::App;
use crate::error::AppError;

/// How long a command waits for the server. The files have everything else that it shows.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(1);

/// The runs that a server works on or will work on. There are none without a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerQueue {
    working: BTreeSet<RunId>,
    /// The runs that wait for a worker.
    positions: BTreeMap<RunId, usize>,
}

/// The part of the server's response that is used.
#[derive(Deserialize)]
struct QueuedRuns {
    working: Vec<String>,
    queued: Vec<String>,
}

impl ServerQueue {
    /// Reads the queue of the running server. A server that does not answer in time has none.
    pub async fn read(app: &App) -> Self {
        match tokio::time::timeout(QUEUE_TIMEOUT, Self::request(app)).await {
            Ok(Ok(queue)) => queue,
            Ok(Err(error)) => {
                tracing::debug!(%error, "the queue of the server is not shown");
                Self::default()
            }
            Err(_) => {
                tracing::debug!("the server did not answer in time; its queue is not shown");
                Self::default()
            }
        }
    }

    async fn request(app: &App) -> Result<Self, AppError> {
        let Some(client) = ServerClient::find(app).await? else {
            return Ok(Self::default());
        };
        let body = client.get("/api/v1/queue").await?.into_result()?;
        let runs = QueuedRuns::deserialize(body).map_err(|error| {
            AppError::runtime("cannot read the queue of the server", error.to_string(), "")
        })?;
        let positions = runs.queued.iter().zip(1..);
        let positions =
            positions.filter_map(|(run, position)| Some((RunId::parse(run)?, position)));
        let working = runs.working.iter().filter_map(|run| RunId::parse(run));
        Ok(Self {
            working: working.collect(),
            positions: positions.collect(),
        })
    }

    /// Returns whether the server works on a run, or will do so without the user.
    pub fn contains(&self, dir: &RunDir) -> bool {
        let name = dir.root().file_name().unwrap_or_default();
        RunId::parse(&name.to_string_lossy())
            .is_some_and(|run| self.working.contains(&run) || self.positions.contains_key(&run))
    }

    /// Returns the position of a run; the next one to work has 1.
    pub fn position(&self, run: &RunId) -> Option<usize> {
        self.positions.get(run).copied()
    }
}
