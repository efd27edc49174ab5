//! A task whose last run has not come to its end: continue it, or start over?

use std::io::{IsTerminal as _, Write as _};

use ralph_core::plan::{EngineKind, RunPlan};
use ralph_engine::journal::{JournalError, RunOutline};

use super::args::RunArgs;
use super::context::Context;
use super::error::CliError;
use crate::providers::Providers;
use crate::providers::models::absolute_script;

/// A run of the same task file that has not come to its end.
pub(super) struct UnfinishedRun {
    pub(super) plan: RunPlan,
    /// Whether a process works on it.
    is_held: bool,
    status: &'static str,
}

/// What to do with it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum UnfinishedRunChoice {
    Resume,
    New,
}

/// Returns the last run of a task file, if it has not come to its end.
pub(super) fn find_unfinished(
    file: &str,
    wiring: &Providers,
) -> Result<Option<UnfinishedRun>, CliError> {
    for id in wiring.state.runs()?.iter().rev() {
        let dir = wiring.state.run(id);
        // The whole journal is read only if it is of this task.
        if RunOutline::read(&dir.journal()).task_file.as_deref() != Some(file) {
            continue;
        }
        let state = match dir.state() {
            Ok(state) => state,
            Err(error @ (JournalError::Newer { .. } | JournalError::Unknown { .. })) => {
                return Err(newer_version_error(error));
            }
            Err(_) => continue,
        };
        let status = if state.status.needs_process() {
            "interrupted"
        } else {
            state.status.as_str()
        };
        return Ok((!state.status.is_final()).then(|| UnfinishedRun {
            is_held: dir.is_held(),
            plan: state.plan,
            status,
        }));
    }
    Ok(None)
}

/// The last run of the task cannot be continued here, and may not be at its end.
fn newer_version_error(error: JournalError) -> CliError {
    let error = CliError::from(error);
    CliError {
        fix: "upgrade ralph, or start over with `ralph run --new`".to_owned(),
        ..error
    }
}

impl UnfinishedRun {
    /// Asks what to do, unless a flag or the lack of a terminal answers.
    pub(super) fn choose(&self, args: &RunArgs) -> Result<UnfinishedRunChoice, CliError> {
        let Self { plan, status, .. } = self;
        let id = &plan.run;
        if args.again.new {
            return Ok(UnfinishedRunChoice::New);
        }
        if self.is_held {
            return Err(self.refusal());
        }
        if args.again.resume {
            return Ok(UnfinishedRunChoice::Resume);
        }
        if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
            return Err(self.refusal());
        }
        let mut stderr = std::io::stderr();
        write!(
            stderr,
            "ralph: run {id} of this task is {status}. Continue it? [Y/n] "
        )
        .ok();
        stderr.flush().ok();
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer).ok();
        match answer.trim().to_lowercase().as_str() {
            "" | "y" | "yes" => Ok(UnfinishedRunChoice::Resume),
            _ => Err(self.refusal()),
        }
    }

    /// Returns the error of a new run that this one prevents.
    pub(super) fn refusal(&self) -> CliError {
        let id = &self.plan.run;
        if self.is_held {
            return CliError::runtime(
                format!("run `{id}` of this task is under way"),
                "another process works on it",
                format!(
                    "follow it with `ralph logs -f {id}`, or start another with `ralph run --new`"
                ),
            );
        }
        CliError::runtime(
            format!("run `{id}` of this task is {}", self.status),
            "it has not come to its end",
            format!("continue it with `ralph resume {id}`, or start over with `ralph run --new`"),
        )
    }

    /// A run goes on as it was planned; flags that plan another one are not silently ignored.
    pub(super) fn refuse_other_plan(
        &self,
        args: &RunArgs,
        context: &Context,
    ) -> Result<(), CliError> {
        let directory = context.environment().working_dir();
        let model = args
            .model
            .as_ref()
            .map(|model| absolute_script(model, directory));
        let repo = args.repo.as_ref().map(|repo| {
            let path = directory.join(repo.trim_start_matches("file://"));
            path.canonicalize().unwrap_or(path).display().to_string()
        });
        let differs =
            |given: Option<&String>, planned: &str| given.is_some_and(|given| given != planned);
        let agent = self.plan.agent.as_ref();
        let planned = match agent {
            Some(agent) => agent.model.as_deref().unwrap_or_default(),
            None => &self.plan.model,
        };
        let engine = args.engine.map(EngineKind::from);
        let name = agent.map_or("", |agent| &agent.name);
        let flags = [
            ("--model", differs(model.as_ref(), planned)),
            (
                "--engine",
                engine.is_some_and(|engine| engine != self.plan.engine),
            ),
            ("--agent", differs(args.agent.as_ref(), name)),
            ("--repo", differs(repo.as_ref(), &self.plan.repo)),
            (
                "--sandbox",
                differs(args.sandbox.as_ref(), &self.plan.sandbox),
            ),
            ("--profile", args.profile.is_some()),
            ("--rebuild", args.rebuild),
        ];
        let Some((flag, _)) = flags.into_iter().find(|(_, differs)| *differs) else {
            return Ok(());
        };
        Err(CliError::usage(
            format!("`{flag}` cannot change a run that goes on"),
            "it goes on with what it was planned with",
            "leave it out, or start over with `ralph run --new`",
        ))
    }
}
