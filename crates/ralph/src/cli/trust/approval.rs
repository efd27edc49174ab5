//! Keeps a run from being started with proposals that the user did not approve.

use std::io::{IsTerminal as _, Write as _};
use std::path::Path;

use ralph_core::plan::EngineKind;
use ralph_core::task::TaskFile;

use super::lines::{proposal_text, review_lines};
use super::review::{ReviewScope, TrustReview};
use crate::cli::args::RunArgs;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::planning::SourceRepository;
use crate::cli::{agent, args, sandbox_choice};
use crate::config::ConfigLayers;
use crate::providers::Providers;
use crate::terminal::styled_line::StyledLine;

/// Reviews what a run would use of its repository's proposals. On a terminal the user is asked about
/// those without an approval; a dry run only reports them.
pub(in crate::cli) async fn require_approval(
    args: &RunArgs,
    (file, task): (&Path, &TaskFile),
    (context, wiring): (&Context, &Providers),
) -> Result<TrustReview, CliError> {
    let git = wiring.git()?;
    let mut review = review_run(args, Some((file, task)), &git, context).await?;
    if args.dry_run || review.is_clear() {
        return Ok(review);
    }
    if review.overreach.is_empty() && confirm(&review, "Approve and start?") {
        context.state_dir()?;
        review.approve()?;
        return Ok(review);
    }
    Err(refusal_error(&review, &args.file, &context.layers()))
}

/// Reviews what a run would use of its repository's proposals.
pub(in crate::cli) async fn review_run(
    args: &RunArgs,
    task: Option<(&Path, &TaskFile)>,
    git: &ralph_engine::git::HostGit,
    context: &Context,
) -> Result<TrustReview, CliError> {
    if let Some(problem) = context.environment().dotenv_problem() {
        return Err(CliError::usage(
            "cannot use `.env`",
            problem,
            "put a regular file in its place, or remove it",
        ));
    }
    let contract = task.map(|(_, task)| &task.contract);
    let engine = agent::engine(args, contract)?;
    let sandbox = sandbox_choice::provider_name(args, task.map(|(_, task)| task), context)?;
    let effect = ReviewScope {
        containers: sandbox != "local",
        profiles: engine == EngineKind::Actions && args.model.is_none(),
        agents: engine == EngineKind::Agent,
    };
    let layers = context.layers();
    let mut review = TrustReview::from_files(&layers, effect)?;
    let Some((file, task)) = task else {
        return Ok(review);
    };
    // A repository that cannot be used is reported by the plan.
    let source = SourceRepository::find(args, task, file, git, context)
        .await
        .ok();
    let repository = source.as_ref().filter(|_| args.repo.is_none());
    let repository = repository.map(|source| source.path.as_path());
    review.add_task(file, &task.contract, repository, (&layers, effect))?;
    if let Some(source) = &source {
        review
            .add_image(&source.path, &source.base, (git, effect))
            .await;
    }
    Ok(review)
}

/// Shows the proposals and asks a question, if there is a terminal to ask on.
pub(super) fn confirm(review: &TrustReview, question: &str) -> bool {
    let mut stderr = std::io::stderr();
    if !(std::io::stdin().is_terminal() && stderr.is_terminal()) {
        return false;
    }
    writeln!(stderr, "{} proposes:", review.repository()).ok();
    for line in review_lines(review) {
        writeln!(stderr, "{}", render(&line)).ok();
    }
    write!(stderr, "{question} [y/N] ").ok();
    stderr.flush().ok();
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).ok();
    matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}

fn render(line: &StyledLine) -> String {
    line.render(crate::terminal::styled_line::Colour::Unused, None)
}

/// Returns the error of a run that may not be started.
pub(in crate::cli) fn refusal_error(
    review: &TrustReview,
    task: &Path,
    layers: &ConfigLayers,
) -> CliError {
    let more = |count: usize| match count {
        0 | 1 => String::new(),
        count => format!(" (and {} more)", count - 1),
    };
    if let Some(first) = review.overreach.first() {
        let fix = match first.user_file {
            Some(file) => {
                let own = layers.user_path(file);
                format!("remove it, or put it into {own}")
            }
            None => "remove it".to_owned(),
        };
        return CliError::usage(
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
    let command = if task == Path::new(args::TASK_FILE) {
        "ralph trust".to_owned()
    } else {
        format!("ralph trust {}", task.display())
    };
    CliError::usage(
        "this repository needs your approval",
        why.unwrap_or_default() + &more(review.pending.len()),
        format!("see and approve it with `{command}`"),
    )
}
