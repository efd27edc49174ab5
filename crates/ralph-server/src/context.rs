//! The parts of the server that all requests share.

use std::sync::Arc;

use ralph_app::App;

use crate::index::RunIndex;
use crate::options::ServeOptions;
use crate::supervisor::Supervisor;

/// The parts of the server that all requests share; clones refer to the same server.
#[derive(Debug, Clone)]
pub(crate) struct ServerContext {
    pub(crate) app: Arc<App>,
    pub(crate) supervisor: Supervisor,
    pub(crate) index: RunIndex,
}

impl ServerContext {
    pub(crate) fn new(app: App, options: &ServeOptions) -> Self {
        let app = Arc::new(app);
        Self {
            supervisor: Supervisor::new(app.clone(), options.workers),
            index: RunIndex::new(app.clone()),
            app,
        }
    }
}
