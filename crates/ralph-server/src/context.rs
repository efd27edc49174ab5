//! The parts of the server that all requests share.

use std::sync::Arc;

use axum::extract::FromRef;
use ralph_app::App;
use tokio::sync::watch;

use crate::auth::{AccessControl, SessionCookie};
use crate::fleet::Fleet;
use crate::index::RunIndex;
use crate::live::LiveStreams;
use crate::operations::Operations;
use crate::poller::Poller;
use crate::server_file::PublishedServer;
use crate::supervisor::Supervisor;
use crate::telemetry::MetricSources;

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
    /// Becomes true when the server stops; streams then end.
    pub(crate) stopping: watch::Receiver<bool>,
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
