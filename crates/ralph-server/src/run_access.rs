//! A run that a request names.

use std::sync::Arc;

use axum::http::StatusCode;
use ralph_app::{App, AppError, steering};
use ralph_core::id::RunId;
use ralph_core::state::RunState;
use ralph_engine::store::RunDir;

use crate::app_thread::call_app;
use crate::context::ServerContext;
use crate::problem::Problem;

/// A run that a request names, with its state at that moment.
pub(crate) struct RunAccess {
    pub(crate) app: Arc<App>,
    pub(crate) dir: RunDir,
    pub(crate) state: RunState,
}

impl ServerContext {
    /// Returns the directory of a run, named by its whole id.
    pub(crate) fn run_dir(&self, id: &str) -> Result<RunDir, Problem> {
        let unknown = || {
            let detail = "there is no run with this id";
            Problem::new(StatusCode::NOT_FOUND, "unknown-run", detail)
                .with_hint("list them with `GET /api/v1/runs`")
        };
        let id = RunId::parse(id).ok_or_else(unknown)?;
        let dir = self.app.state_dir()?.run(&id);
        if !dir.journal().exists() {
            return Err(unknown());
        }
        Ok(dir)
    }

    /// Calls a function about a run on a thread for blocking work. The work continues if the request
    /// is cancelled.
    pub(crate) async fn with_run<T, F>(
        &self,
        id: String,
        work: impl FnOnce(RunAccess) -> F + Send + 'static,
    ) -> Result<T, Problem>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Problem>>,
    {
        let context = self.clone();
        let called = call_app(move || async move {
            Ok(match context.open_run(&id) {
                Ok(run) => work(run).await,
                Err(problem) => Err(problem),
            })
        });
        called.await?
    }

    /// Calls a function of the application layer on a thread for blocking work.
    pub(crate) async fn call_app<T, F>(
        &self,
        work: impl FnOnce(Arc<App>) -> F + Send + 'static,
    ) -> Result<T, Problem>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, AppError>>,
    {
        let app = self.app.clone();
        Ok(call_app(move || work(app)).await?)
    }

    fn open_run(&self, id: &str) -> Result<RunAccess, Problem> {
        let dir = self.run_dir(id)?;
        let state = dir.state().map_err(AppError::from)?;
        Ok(RunAccess {
            app: self.app.clone(),
            dir,
            state,
        })
    }
}

impl RunAccess {
    /// Returns the id of the run.
    pub(crate) fn id(&self) -> &RunId {
        &self.state.plan.run
    }

    /// Returns a text without secrets.
    pub(crate) fn redacted(&self, bytes: &[u8]) -> String {
        let redactor = self.app.redactor();
        String::from_utf8_lossy(&redactor.redact_bytes(bytes)).into_owned()
    }

    /// Adds the commands that the run accepts now to a problem.
    pub(crate) fn with_allowed(&self, problem: Problem) -> Problem {
        Problem {
            allowed: steering::allowed_commands(&self.dir, &self.state),
            ..problem
        }
    }
}
