//! A task whose last run has not come to its end: continue it, or start over?

use std::io::{IsTerminal as _, Write as _};

use ralph_core::plan::{Engine, RunPlan};
use ralph_engine::journal::{JournalError, Outline};

use super::args::RunArgs;
use super::context::Context;
use super::error::CliError;
use crate::wire::Wiring;
use crate::wire::models::absolute_script;

/// A run of the same task file that has not come to its end.
pub(super) struct Unfinished {
    pub(super) plan: RunPlan,
    /// Whether a process works on it.
    held: bool,
    status: &'static str,
}

/// What to do with it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Choice {
    Resume,
    New,
}

/// Returns the last run of a task file, if it has not come to its end.
pub(super) fn find(file: &str, wiring: &Wiring) -> Result<Option<Unfinished>, CliError> {
    for id in wiring.state.runs()?.iter().rev() {
        let dir = wiring.state.run(id);
        // The whole journal is read only if it is of this task.
        if Outline::read(&dir.journal()).task_file.as_deref() != Some(file) {
            continue;
        }
        let state = match dir.state() {
            Ok(state) => state,
            Err(error @ (JournalError::Newer { .. } | JournalError::Unknown { .. })) => {
                return Err(newer(error));
            }
            Err(_) => continue,
        };
        let status = if state.status.needs_process() {
            "interrupted"
        } else {
            state.status.word()
        };
        return Ok((!state.status.is_final()).then(|| Unfinished {
            held: dir.is_held(),
            plan: state.plan,
            status,
        }));
    }
    Ok(None)
}

/// The last run of the task cannot be continued here, and may not be at its end.
fn newer(error: JournalError) -> CliError {
    let error = CliError::from(error);
    CliError {
        fix: "upgrade ralph, or start over with `ralph run --new`".to_owned(),
        ..error
    }
}

impl Unfinished {
    /// Asks what to do, unless a flag or the lack of a terminal answers.
    pub(super) fn choose(&self, args: &RunArgs) -> Result<Choice, CliError> {
        let Self { plan, status, .. } = self;
        let id = &plan.run;
        if args.again.new {
            return Ok(Choice::New);
        }
        if self.held {
            return Err(self.refusal());
        }
        if args.again.resume {
            return Ok(Choice::Resume);
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
            "" | "y" | "yes" => Ok(Choice::Resume),
            _ => Err(self.refusal()),
        }
    }

    /// Returns the error of a new run that this one prevents.
    pub(super) fn refusal(&self) -> CliError {
        let id = &self.plan.run;
        if self.held {
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
        let directory = context.environment().directory();
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
        let engine = args.engine.map(Engine::from);
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
