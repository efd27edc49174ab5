//! The parts of the server that all requests share.

use std::sync::Arc;

use axum::extract::FromRef;
use ralph_app::{App, AppError};

use crate::auth::{AccessControl, SessionCookie};
use crate::fleet::Fleet;
use crate::index::RunIndex;
use crate::live::{LiveStreams, StreamLimits};
use crate::operations::Operations;
use crate::poller::Poller;
use crate::server_file::PublishedServer;
use crate::supervisor::Supervisor;
use crate::telemetry::{MetricSources, ServerMetrics};

/// The parts of the server that all requests share; clones refer to the same server.
#[derive(Debug, Clone)]
pub(crate) struct ServerContext {
    pub(crate) app: Arc<App>,
    pub(crate) supervisor: Supervisor,
    pub(crate) index: RunIndex,
    pub(crate) operations: Operations,
    pub(crate) poller: Poller,
    pub(crate) fleet: Fleet,
    pub(crate) live: LiveStreams,
    pub(crate) metrics: MetricSources,
    pub(crate) access: Arc<AccessControl>,
    pub(crate) web: Arc<WebAddress>,
    /// The entry of the server in the state directory.
    pub(crate) published: Arc<PublishedServer>,
}

impl ServerContext {
    pub(crate) fn new(
        app: Arc<App>,
        workers: usize,
        (access, web, published): (Arc<AccessControl>, Arc<WebAddress>, Arc<PublishedServer>),
    ) -> Result<Self, AppError> {
        let supervisor = Supervisor::new(app.clone(), workers)?;
        let fleet = Fleet::default();
        let index = RunIndex::new(app.clone())?;
        let live = LiveStreams::new(app.clone(), index.clone(), StreamLimits::default());
        let metrics = MetricSources {
            app: app.clone(),
            supervisor: supervisor.clone(),
            fleet: fleet.clone(),
            live: live.clone(),
            requests: ServerMetrics::default(),
        };
        let exported = metrics.clone();
        app.start_export(Some(Box::new(move || exported.families())))?;
        Ok(Self {
            supervisor,
            index,
            operations: Operations::new(app.clone()),
            poller: Poller::new(app.clone()),
            fleet,
            metrics,
            live,
            app,
            access,
            web,
            published,
        })
    }
}

impl FromRef<ServerContext> for Arc<App> {
    fn from_ref(context: &ServerContext) -> Self {
        context.app.clone()
    }
}

impl FromRef<ServerContext> for LiveStreams {
    fn from_ref(context: &ServerContext) -> Self {
        context.live.clone()
    }
}

/// The address of the server for browsers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WebAddress {
    /// The origin and the base path, without a slash at the end.
    pub(crate) url: String,
    /// Empty, or a path without a slash at the end.
    pub(crate) base_path: String,
    pub(crate) cookie: SessionCookie,
    pub(crate) is_behind_proxy: bool,
}

impl WebAddress {
    /// Returns the link that signs a browser in.
    pub(crate) fn login_link(&self, code: &str) -> String {
        format!("{}/login?code={code}", self.url)
    }
}
