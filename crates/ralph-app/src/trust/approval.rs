//! Reviews the proposals that a run would use.

use std::path::{Path, PathBuf};

use ralph_core::net::AllowlistEntry;
use ralph_core::plan::EngineKind;
use ralph_core::task::TaskFile;
use ralph_core::trust::TrustProposal;
use ralph_engine::git::HostGit;

use super::review::{ReviewScope, TrustReview};
use crate::app::App;
use crate::config::{ConfigLayers, load_settings};
use crate::error::AppError;
use crate::planning::{RunRequest, SourceRepository, TASK_FILE, sandbox_choice, worker};

/// Reviews the proposals of the repository that a run would use.
pub async fn review_run(
    request: &RunRequest,
    task: Option<(&Path, &TaskFile)>,
    git: &HostGit,
    app: &App,
) -> Result<TrustReview, AppError> {
    if let Some(problem) = app.environment().dotenv_problem() {
        return Err(AppError::usage(
            "cannot use `.env`",
            problem,
            "replace it with a regular file, or remove it",
        ));
    }
    let contract = task.map(|(_, task)| &task.contract);
    let engine = worker::engine(request, contract)?;
    let sandbox = sandbox_choice::provider_name(request, task.map(|(_, task)| task), app)?;
    let scope = ReviewScope {
        containers: sandbox != "local",
        profiles: engine == EngineKind::Actions && request.model.is_none(),
        agents: engine == EngineKind::Agent,
    };
    let layers = app.layers();
    let mut review = TrustReview::from_files(&layers, scope)?;
    let Some((file, task)) = task else {
        return Ok(review);
    };
    let source = match SourceRepository::find(request, task, file, git, app).await {
        Ok(source) => Some(source),
        Err(error) => {
            // Planning reports a repository that cannot be used.
            tracing::debug!(%error, "the review leaves out the repository");
            None
        }
    };
    let repository = source.as_ref().filter(|_| request.repo.is_none());
    let repository = repository.map(|source| PathBuf::from(source.location()));
    let is_origin = repository
        .as_deref()
        .is_some_and(|repository| is_origin(repository, app));
    let repository = repository.as_deref().filter(|_| !is_origin);
    review.add_task(file, &task.contract, repository, (&layers, scope))?;
    if let Some(source) = &source {
        review
            .add_image(&source.path, &source.base, (git, scope))
            .await;
    }
    Ok(review)
}

/// Returns whether a repository is the one on a source host that the working directory is a clone of.
pub fn is_origin(repository: &Path, app: &App) -> bool {
    let working = app.working_repository();
    let origin = working.and_then(|repository| repository.origin);
    origin.is_some_and(|origin| Path::new(&origin) == repository)
}

/// Returns the error of a run that may not start.
pub fn refusal_error(review: &TrustReview, task: &Path, layers: &ConfigLayers) -> AppError {
    let more = |count: usize| match count {
        0 | 1 => String::new(),
        count => format!(" (and {} more)", count - 1),
    };
    if let Some(first) = review.overreach.first() {
        let fix = match first.user_file {
            Some(file) => {
                let own = layers.user_path(file);
                format!("remove it, or set it in {own}")
            }
            None => "remove it".to_owned(),
        };
        return AppError::usage(
            format!(
                "{} may not set `{}` to `{}`",
                first.file, first.key, first.value
            ),
            format!(
                "only your own configuration decides this: {}{}",
                first.allows,
                more(review.overreach.len())
            ),
            fix,
        );
    }
    let first = review.pending.first();
    let why = first.map(|first| format!("{}: {}", proposal_text(first), first.allows));
    let command = if task == Path::new(TASK_FILE) {
        "ralph trust".to_owned()
    } else {
        format!("ralph trust {}", task.display())
    };
    AppError::usage(
        "this repository needs your approval",
        why.unwrap_or_default() + &more(review.pending.len()),
        format!("review and approve it with `{command}`"),
    )
}

/// Formats a proposal like its file.
pub fn proposal_text(proposal: &TrustProposal) -> String {
    let TrustProposal {
        file, key, value, ..
    } = proposal;
    format!("{file}: {key} = {value}")
}

/// Approves the host that `ralph allow --project` listed, and the policy that activates the list.
pub fn approve_host(host: &AllowlistEntry, app: &App) -> Result<(), AppError> {
    let layers = app.layers();
    let findings = load_settings(&layers)?.findings;
    let is_for_host = |proposal: &TrustProposal| match proposal.key.as_str() {
        "sandbox.network.policy" => true,
        "sandbox.network.allowed" => AllowlistEntry::parse(&proposal.value).as_ref() == Ok(host),
        _ => false,
    };
    let matching: Vec<_> = findings.proposals.into_iter().filter(is_for_host).collect();
    if matching.is_empty() {
        return Ok(());
    }
    app.state_dir()?;
    let mut approvals = layers.approvals().clone();
    Ok(approvals.add(&matching)?)
}
