//! Removes stale sandboxes and reports them.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use ralph_core::ports::ProviderProblem;
use ralph_providers::sandbox::{DockerProvider, UnusedVolume};
use serde::Serialize;
use utoipa::ToSchema;

use super::inventory::SandboxInventory;
use super::retention::{OrphanPolicy, RetentionPolicy};
use super::sweep::{SweepMode, SweepOutcome, SweptSandbox, sweep};
use crate::app::App;
use crate::error::AppError;
use crate::planning::container;
use crate::providers::{LocalOrDocker, Providers};

/// Younger items do not count as leftovers: their creation may be in progress.
const CREATION_GRACE: SignedDuration = SignedDuration::from_mins(10);

/// The result of pruning.
#[derive(Debug, Default, Serialize, ToSchema)]
pub struct PruneReport {
    pub dry_run: bool,
    /// Removed items; in a dry run, stale items.
    pub removed: Vec<PruneEntry>,
    /// Items that are not stale.
    pub kept: Vec<PruneEntry>,
    /// Sandboxes with work whose run has no directory; removed only on request.
    pub orphaned: Vec<PruneEntry>,
    /// Stale items that could not be removed.
    pub failed: Vec<PruneEntry>,
    /// Notes about skipped providers.
    #[serde(skip)]
    pub notes: Vec<String>,
}

/// A sandbox or another item of ralph.
#[derive(Debug, Serialize, ToSchema)]
pub struct PruneEntry {
    #[schema(value_type = String)]
    pub provider: &'static str,
    /// The sandbox or volume.
    pub id: String,
    /// The run that it was created for.
    pub run: Option<String>,
    /// The reason for the decision.
    pub why: String,
    /// The reason why it could not be removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

/// A request to remove stale sandboxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PruneRequest {
    /// The provider; `None` means all.
    pub provider: Option<LocalOrDocker>,
    /// Also removes sandboxes of runs that were not resumed for this long.
    pub max_age: Option<Duration>,
    pub orphans: OrphanPolicy,
    /// Whether nothing is removed.
    pub dry_run: bool,
}

/// Removes stale sandboxes. A provider that was not named and does not answer results in a note.
pub async fn prune_sandboxes(request: PruneRequest, app: &App) -> Result<PruneReport, AppError> {
    let providers = app.providers()?;
    let mut report = PruneReport {
        dry_run: request.dry_run,
        ..PruneReport::default()
    };
    if request.provider != Some(LocalOrDocker::Docker) {
        let inventory = SandboxInventory::local(&providers);
        report
            .sweep_provider(&inventory, request, &providers)
            .await?;
    }
    if request.provider != Some(LocalOrDocker::Local) {
        let pruned = prune_docker(&mut report, request, app, &providers).await;
        match (pruned, request.provider) {
            (Ok(()), _) => {}
            (Err(error), Some(_)) => return Err(error),
            // Without an engine there is nothing to prune.
            (Err(error), None) => {
                let note = format!("docker is skipped — {} — {}", error.why, error.fix);
                report.notes.push(note);
            }
        }
    }
    Ok(report)
}

async fn prune_docker(
    report: &mut PruneReport,
    request: PruneRequest,
    app: &App,
    providers: &Providers,
) -> Result<(), AppError> {
    let engine = container::find_docker_engine(&app.settings()?, app).await?;
    let inventory = SandboxInventory::docker(engine.clone(), providers);
    report
        .sweep_provider(&inventory, request, providers)
        .await?;
    let provider = providers.docker_provider_at(engine);
    report
        .remove_unused_volumes(&provider, providers.clock.now())
        .await
}

fn provider_error(problem: ProviderProblem) -> AppError {
    AppError::runtime(
        "cannot search for stale sandboxes",
        problem.what,
        problem.fix,
    )
}

impl PruneReport {
    fn mode(&self) -> SweepMode {
        if self.dry_run {
            SweepMode::DryRun
        } else {
            SweepMode::Remove
        }
    }

    /// Prunes the sandboxes of a provider.
    async fn sweep_provider(
        &mut self,
        inventory: &SandboxInventory,
        request: PruneRequest,
        providers: &Providers,
    ) -> Result<(), AppError> {
        let policy = RetentionPolicy::for_command(request.max_age, request.orphans);
        let swept = sweep(inventory, &policy, self.mode(), providers).await;
        for swept in swept.map_err(provider_error)? {
            self.add(swept);
        }
        Ok(())
    }

    fn add(&mut self, swept: SweptSandbox) {
        let mut entry = PruneEntry {
            provider: swept.provider,
            id: swept.id.0,
            run: swept.run,
            why: String::new(),
            problem: None,
            fix: None,
        };
        let list = match swept.outcome {
            SweepOutcome::Kept(why) => {
                entry.why = why.to_string();
                if why.is_orphaned() {
                    &mut self.orphaned
                } else {
                    &mut self.kept
                }
            }
            SweepOutcome::Removed(why) => {
                entry.why = why.to_string();
                &mut self.removed
            }
            SweepOutcome::Failed(why, problem) => {
                entry.why = why.to_string();
                entry.problem = Some(problem.what);
                entry.fix = Some(problem.fix);
                &mut self.failed
            }
        };
        list.push(entry);
    }

    /// Removes the volumes and containers that interrupted or other builds of ralph left on an engine.
    async fn remove_unused_volumes(
        &mut self,
        provider: &DockerProvider,
        now: Timestamp,
    ) -> Result<(), AppError> {
        let volumes = provider.unused_volumes(now - CREATION_GRACE).await;
        for volume in volumes.map_err(|error| provider_error(error.problem()))? {
            let removed = match self.mode() {
                SweepMode::Remove => provider.remove_unused(&volume).await,
                SweepMode::DryRun => Ok(()),
            };
            let problem = removed.err().map(|error| error.problem());
            let list = match problem {
                None => &mut self.removed,
                Some(_) => &mut self.failed,
            };
            let (problem, fix) = problem.map(|problem| (problem.what, problem.fix)).unzip();
            list.push(PruneEntry {
                provider: "docker",
                id: volume.name().to_owned(),
                run: None,
                why: match volume {
                    UnusedVolume::GuestVolume(_) => {
                        "it contains the guest program of another build of ralph"
                    }
                    UnusedVolume::FillContainer(_) => {
                        "it was left behind by a killed ralph process"
                    }
                }
                .to_owned(),
                problem,
                fix,
            });
        }
        Ok(())
    }
}
