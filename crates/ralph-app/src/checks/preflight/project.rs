//! Checks of the project: settings, task, repository and model.

use ralph_core::lint::LintSeverity;
use ralph_core::ports::ProviderProblem;

use super::machine;
use super::preflight_context::{PreflightContext, PreflightTask, PreflightWorker};
use crate::checks::CheckOutcome;
use crate::error::AppError;
use crate::format;
use crate::planning::{self, SourceRepository, secrets};
use crate::{agent, trust};

/// Checks that `ralph.toml` and `config/models.yaml` are valid.
pub(super) fn check_settings(context: &PreflightContext<'_>) -> CheckOutcome {
    let settings = context.settings.as_ref().err();
    let profiles = context.profiles.as_ref().err();
    let errors = settings.into_iter().chain(profiles).cloned();
    CheckOutcome::from_errors(errors.collect(), || {
        let warning = secrets::unredacted_warning(&context.app.redactor());
        warning.map_or_else(|| "valid".into(), |warning| format!("valid; {warning}"))
    })
}

/// Checks the task file with the linter.
pub(super) fn check_task(context: &PreflightContext<'_>) -> Option<CheckOutcome> {
    let PreflightTask {
        display_path,
        report,
        ..
    } = context.task.as_ref()?;
    let report = match report {
        Ok(report) => report,
        Err(error) if error.is_missing() => {
            return Some(CheckOutcome::failed(
                format!("there is no task file `{display_path}`"),
                "name another file, or create one with `ralph init`",
            ));
        }
        Err(error) => {
            return Some(CheckOutcome::failed(
                format!("cannot read `{display_path}`: {error}"),
                error.hint(),
            ));
        }
    };
    let errors = report.findings.iter();
    let errors = errors.filter(|finding| finding.severity == LintSeverity::Error);
    let problems = errors.map(|finding| {
        let (what, fix) = planning::describe_finding(finding);
        let what = format!("`{display_path}`, {what}");
        ProviderProblem { what, fix }
    });
    Some(CheckOutcome::from_problems(problems.collect(), || {
        display_path.clone()
    }))
}

/// Checks that the repository exists and has the base branch.
pub(super) async fn check_repository(context: &PreflightContext<'_>) -> Option<CheckOutcome> {
    let file = context.task.as_ref()?;
    let Some(task) = context.usable_task() else {
        return Some(CheckOutcome::NotRun("the task file cannot be used".into()));
    };
    if context.git.is_err() {
        return Some(CheckOutcome::NotRun("git cannot be used".into()));
    }
    let git = context.app.git_read_only();
    let found = SourceRepository::find(&context.request, task, &file.path, &git, context.app).await;
    Some(match found {
        Ok(source) => {
            let problems = source.remote.iter().flat_map(|remote| &remote.problems);
            match AppError::combine(problems.cloned()) {
                Some(error) => error.into(),
                None => CheckOutcome::Passed(format!(
                    "{}, branch {} at {}",
                    source.location(),
                    source.base_branch,
                    source.base.short()
                )),
            }
        }
        Err(error) => error.into(),
    })
}

/// Checks that the task, the repository and the settings result in a plan. A missing key, credential or
/// engine does not matter here. Returns `None` without a usable task, and for a repository on a source
/// host, whose plan needs requests.
pub(super) async fn check_plan(context: &PreflightContext<'_>) -> Option<CheckOutcome> {
    let file = context.task.as_ref()?;
    let task = context.usable_task()?;
    if SourceRepository::is_remote(&context.request, task) {
        return None;
    }
    if machine::check_state_dir(context).is_failure() {
        return Some(CheckOutcome::NotRun(
            "the state directory cannot be used".into(),
        ));
    }
    let task = (file.path.clone(), task.clone());
    let planned = planning::preview_read_only(&context.request, task, context.app).await;
    Some(match planned {
        Ok(planned) => CheckOutcome::Passed(format!("branch `{}`", planned.plan.branch)),
        Err(error) => error.into(),
    })
}

/// Checks that the proposals of the repository's files are approved, and that these files set
/// nothing that only the user may set. Returns `None` if they propose nothing.
pub(super) async fn check_trust(context: &PreflightContext<'_>) -> Option<CheckOutcome> {
    let file = context.task.as_ref().map(|task| task.path.as_path());
    let task = file.zip(context.usable_task());
    let git = context.app.git_read_only();
    let review = match trust::review_run(&context.request, task, &git, context.app).await {
        Ok(review) => review,
        // Another check reports unreadable files.
        Err(_) if context.app.environment().dotenv_problem().is_none() => return None,
        Err(error) => return Some(error.into()),
    };
    let refused = review.overreach.iter().map(|overreach| ProviderProblem {
        what: format!(
            "{} may not set `{}`: {}",
            overreach.file, overreach.key, overreach.allows
        ),
        fix: "remove it, or move it to your own configuration".to_owned(),
    });
    let pending = review.pending.iter().map(|proposal| ProviderProblem {
        what: format!(
            "{}: {} = {} is not approved: {}",
            proposal.file, proposal.key, proposal.value, proposal.allows
        ),
        fix: "review and approve it with `ralph trust`".to_owned(),
    });
    let problems: Vec<ProviderProblem> = refused.chain(pending).collect();
    let approved = review.approved.len();
    (approved > 0 || !problems.is_empty()).then(|| {
        CheckOutcome::from_problems(problems, || {
            let count = format::plural(approved as u64, "proposal", "proposals");
            format!("{count} of this repository approved")
        })
    })
}

/// Checks that a model is chosen and can be used. For an agent, checks only that one is named if the
/// agent needs a name.
pub(super) fn check_model(context: &PreflightContext<'_>) -> CheckOutcome {
    match &context.worker {
        PreflightWorker::Model | PreflightWorker::Unknown => check_resolved_model(context),
        PreflightWorker::Contradiction(_) | PreflightWorker::Agent(Err(_)) => {
            CheckOutcome::NotRun("no agent is chosen".into())
        }
        PreflightWorker::Agent(Ok(preset)) => {
            let model = context.request.model.as_deref();
            match agent::require_model(preset, model) {
                Ok(()) => CheckOutcome::Passed(match model {
                    Some(model) => format!("`{}` uses `{model}`", preset.name),
                    None => format!("`{}` chooses one itself", preset.name),
                }),
                Err(error) => error.into(),
            }
        }
    }
}

fn check_resolved_model(context: &PreflightContext<'_>) -> CheckOutcome {
    if context.task.is_some() && context.usable_task().is_none() && context.request.model.is_none()
    {
        return CheckOutcome::NotRun("the task file may choose a model, but cannot be used".into());
    }
    let (Ok(providers), Ok(_)) = (&context.providers, &context.profiles) else {
        return CheckOutcome::NotRun("the settings cannot be used".into());
    };
    let (request, task) = (&context.request, context.usable_task());
    match planning::resolve_model(request, task, context.app, &providers.models) {
        Ok(choice) => CheckOutcome::Passed(choice.model),
        Err(error) => error.into(),
    }
}
