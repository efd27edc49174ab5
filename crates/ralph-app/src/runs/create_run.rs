//! Creates a planned run with a unique id and branch, even if other processes start runs at the
//! same time.

use ralph_core::event::{Event, RunEvent};
use ralph_core::id::RunId;
use ralph_core::plan::RunPlan;
use ralph_core::profile::ModelChoice;
use ralph_engine::contract::PinnedTask;
use ralph_engine::durable;
use ralph_engine::journal::Journal;
use ralph_engine::store::RunDir;
use ralph_engine::workspace::SPEC_FILE;

use super::unfinished_run;
use crate::error::AppError;
use crate::planning::{self, PlannedRun, random_number};
use crate::providers::Providers;

/// The number of ids to try before giving up.
const MAX_ID_ATTEMPTS: usize = 1_000;

/// Whether a run may be created while another run of the same task is unfinished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnfinishedRunPolicy {
    /// The user asked for another run.
    Allow,
    /// The new run is rejected.
    Refuse,
}

/// Reserves the directory of a run. Chooses another id if another run already has it.
pub(super) fn reserve(plan: &mut RunPlan, providers: &Providers) -> Result<(), AppError> {
    for _ in 0..MAX_ID_ATTEMPTS {
        if providers.state.run(&plan.run).reserve()? {
            return Ok(());
        }
        let last = u16::try_from(random_number() & 0xffff).unwrap_or(u16::MAX);
        plan.run = RunId::new(providers.clock.now(), last);
    }
    Err(AppError::runtime(
        "cannot find an id for the run",
        format!("{MAX_ID_ATTEMPTS} generated ids are in use"),
        "try again",
    ))
}

/// Creates the journal of a planned run. Other processes may have created runs since the planning:
/// an unfinished run of the same task is an error, and the run gets an unused branch.
pub(super) async fn create(
    dir: &RunDir,
    planned: PlannedRun,
    unfinished_runs: UnfinishedRunPolicy,
    providers: &Providers,
) -> Result<Journal, AppError> {
    let PlannedRun {
        mut plan,
        task,
        choice,
        notices,
        remote,
        spec,
        ..
    } = planned;
    let git = providers.git()?;
    let wanted = task.contract.branch(task.title.as_deref());
    let creating = providers.state.lock_creation()?;
    if unfinished_runs == UnfinishedRunPolicy::Refuse
        && let Some(other) = unfinished_run::find_unfinished(&plan.task_file, &providers.state)?
    {
        return Err(other.refusal());
    }
    let taken = remote.as_ref().map(|remote| remote.taken.as_slice());
    let repo = (plan.repo.as_str(), taken);
    plan.branch = planning::free_branch(&wanted, repo, &git, providers).await?;
    dir.create()?;
    if let Some(spec) = spec {
        durable::write(&dir.file(SPEC_FILE), spec.as_bytes())?;
    }
    PinnedTask::pin(dir, plan.task_file.clone().into(), task)?;
    let mut journal = Journal::create(
        dir,
        plan,
        providers.clock.clone(),
        providers.redactor.clone(),
    )?;
    drop(creating);
    let chosen = model_event(choice);
    let notices = notices
        .into_iter()
        .map(|message| Event::Run(RunEvent::Notice { message }));
    journal.append_all(chosen.into_iter().chain(notices))?;
    Ok(journal)
}

/// Returns the record of the chosen model, if the plan does not suffice.
///
/// The plan names only the model. Without this record, a resumed run would treat a profile's script as
/// one that is named directly, which replaces all profiles, and would not know a price that is not
/// built in.
pub(super) fn model_event(choice: ModelChoice) -> Option<Event> {
    let is_recorded = choice.profile.is_some() || (choice.price.is_some() && !choice.is_local());
    is_recorded.then(|| {
        Event::Run(RunEvent::ModelChosen {
            choice: Box::new(choice),
        })
    })
}
