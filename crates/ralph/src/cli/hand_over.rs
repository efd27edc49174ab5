//! Hands a run over to the running server, and shows it like a run of this process.

use std::path::Path;

use ralph_app::planning::RunRequest;
use ralph_app::server::environment::CallerEnvironment;
use ralph_app::server::{ServerClient, ServerReply};
use ralph_app::{App, AppError};
use ralph_core::id::RunId;
use ralph_core::image::ImageEffort;
use ralph_core::plan::EngineKind;
use ralph_engine::store::RunDir;
use serde_json::{Value, json};

use super::attach::{self, ShownPart};
use super::context::Context;
use super::detach::{self, ProcessPlace};
use super::exit::ExitCode;
use crate::terminal::styled_line::StyledLine;

/// Whether a running server may work on a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerUse {
    /// The server works on it if there is one.
    IfRunning,
    /// A process of this command works on it.
    Never,
}

impl ServerUse {
    /// Returns the use for the flag `--local`.
    pub(super) fn from_flag(is_local: bool) -> Self {
        if is_local {
            Self::Never
        } else {
            Self::IfRunning
        }
    }

    /// Returns the server that works on the run.
    pub(super) async fn find(self, app: &App) -> Result<Option<ServerClient>, AppError> {
        match self {
            Self::IfRunning => ServerClient::find(app).await,
            Self::Never => Ok(None),
        }
    }
}

/// A run to start, with the answers that the user gave to this command.
pub(super) struct NewRun<'a> {
    pub(super) request: &'a RunRequest,
    /// The absolute path of the task file.
    pub(super) file: &'a Path,
    pub(super) effort: ImageEffort,
    /// Starts the run even if the task has an unfinished one.
    pub(super) is_new: bool,
}

/// Where and how a run of the server is shown.
#[derive(Clone, Copy)]
pub(super) struct Display<'a> {
    pub(super) place: ProcessPlace,
    pub(super) is_json: bool,
    pub(super) context: &'a Context,
}

/// Lets the server start a run, and shows it until it ends.
pub(super) async fn start(
    server: &ServerClient,
    new: NewRun<'_>,
    display: Display<'_>,
) -> Result<ExitCode, AppError> {
    let body = new.body(&display.context.app);
    let reply = server.post("/api/v1/runs", &body, None).await?;
    let reply = reply.into_result()?;
    follow(server, &reply, ("id", 0), display).await
}

/// Lets the server continue a run that no process works on, and shows it until it ends.
pub(super) async fn resume(
    server: &ServerClient,
    dir: &RunDir,
    display: Display<'_>,
) -> Result<ExitCode, AppError> {
    let state = dir.state()?;
    let path = format!("/api/v1/runs/{}/resume", state.plan.run);
    let reply = server.post(&path, &Value::Null, None).await;
    let reply = reply.and_then(ServerReply::into_result)?;
    follow(server, &reply, ("run", state.seq), display).await
}

/// Shows the run of a reply until it ends, or only its id if the user does not wait.
async fn follow(
    server: &ServerClient,
    reply: &Value,
    (field, last_seq): (&str, u64),
    display: Display<'_>,
) -> Result<ExitCode, AppError> {
    let run = reply[field].as_str().and_then(RunId::parse);
    let run = run.ok_or_else(|| {
        AppError::runtime(
            "cannot follow the run of the server",
            "its response names no run",
            "list the runs with `ralph runs`",
        )
    })?;
    let context = display.context;
    if display.place == ProcessPlace::NewBackground {
        let pid = server.pid().unsigned_abs();
        return detach::print_started(run.as_str(), Some(pid), display.is_json, context);
    }
    if !display.is_json {
        let line = place_line(&run, server.pid(), &reply["queue_position"]);
        context.output().print_lines([&line])?;
    }
    let dir = context.app.find_run(run.as_str())?;
    let mode = context.existing_run_view_mode(display.is_json);
    let part = ShownPart::Since(last_seq);
    attach::follow(&dir, part, mode, context).await
}

fn place_line(run: &RunId, pid: i32, position: &Value) -> StyledLine {
    let text = match position.as_u64() {
        Some(position) => format!(
            "the server (pid {pid}) has run `{run}` in its queue, at position {position}; Ctrl-C detaches"
        ),
        None => format!("the server (pid {pid}) works on run `{run}`; Ctrl-C detaches"),
    };
    StyledLine::from_text(&text)
}

impl NewRun<'_> {
    /// Returns the body of the request to the server.
    fn body(&self, app: &App) -> Value {
        let request = self.request;
        let limits = &request.limits;
        json!({
            "directory": app.environment().working_dir(),
            "file": self.file,
            "repo": request.repo,
            "sandbox": request.sandbox,
            "engine": request.engine.map(|engine| match engine {
                EngineKind::Actions => "actions",
                EngineKind::Agent => "agent",
            }),
            "agent": request.agent,
            "profile": request.profile,
            "model": request.model,
            "budgets": {
                "max_iterations": limits.max_iterations,
                "max_cost_usd": limits.max_cost.map(ralph_core::money::Usd::dollars),
                "max_time_seconds": limits.max_wall_time.map(|time| time.as_secs()),
                "max_tokens": limits.max_tokens,
            },
            "image": match self.effort {
                ImageEffort::Reuse | ImageEffort::Build => "reuse",
                ImageEffort::Rebuild => "rebuild",
            },
            "unfinished_run": self.is_new.then_some("new"),
            "environment": CallerEnvironment::of(app),
        })
    }
}
