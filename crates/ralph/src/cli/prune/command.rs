//! `ralph prune-sandboxes`: removes sandboxes that nobody uses any more, and says which.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use ralph_core::ports::ProviderProblem;
use ralph_providers::sandbox::{DockerProvider, UnusedVolume};
use serde::Serialize;

use super::inventory::SandboxInventory;
use super::retention::RetentionPolicy;
use super::sweep::{SweepMode, SweepOutcome, SweptSandbox, sweep};
use crate::cli::container;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitCode;
use crate::cli::maintenance_args::{ProviderName, PruneArgs};
use crate::providers::Providers;
use crate::terminal::styled_line::{StyledLine, Tone};

/// What is younger is not looked at as left over: somebody may be making it.
const CREATION_GRACE: SignedDuration = SignedDuration::from_mins(10);

/// What was found and done.
#[derive(Debug, Default, Serialize)]
struct PruneReport {
    dry_run: bool,
    removed: Vec<PruneEntry>,
    kept: Vec<PruneEntry>,
    failed: Vec<PruneEntry>,
}

/// One sandbox, or something else of ralph's.
#[derive(Debug, Serialize)]
struct PruneEntry {
    provider: &'static str,
    id: String,
    run: Option<String>,
    why: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

/// Removes what is stale. What could not be removed makes the exit code 1.
pub(in crate::cli) async fn run(args: PruneArgs, context: &Context) -> Result<ExitCode, CliError> {
    let wiring = context.providers()?;
    let mut report = PruneReport {
        dry_run: args.dry_run,
        ..PruneReport::default()
    };
    if args.provider != Some(ProviderName::Docker) {
        let keeper = SandboxInventory::local(&wiring);
        report
            .sweep_provider(&keeper, args.max_age, &wiring)
            .await?;
    }
    if args.provider != Some(ProviderName::Local) {
        let looked = prune_docker(&mut report, args.max_age, context, &wiring).await;
        match (looked, args.provider) {
            (Ok(()), _) => {}
            (Err(error), Some(_)) => return Err(error),
            // Nobody asked for this provider: without an engine there is nothing to look at.
            (Err(error), None) => {
                let note = format!("note: docker is left out — {} — {}", error.why, error.fix);
                context
                    .output()
                    .print_stderr_lines(&[StyledLine::from_text(&note)]);
            }
        }
    }
    let code = if report.failed.is_empty() {
        ExitCode::Success
    } else {
        ExitCode::Runtime
    };
    if args.json {
        context.output().print_json(&report)?;
    } else {
        context.output().print_lines(&report.lines())?;
    }
    Ok(code)
}

async fn prune_docker(
    report: &mut PruneReport,
    max_age: Option<Duration>,
    context: &Context,
    wiring: &Providers,
) -> Result<(), CliError> {
    let engine = container::find_docker_engine(&context.settings()?, context).await?;
    let keeper = SandboxInventory::docker(engine.clone(), wiring);
    report.sweep_provider(&keeper, max_age, wiring).await?;
    let provider = wiring.docker_provider_at(engine);
    report
        .remove_unused_volumes(&provider, wiring.clock.now())
        .await
}

fn provider_error(problem: ProviderProblem) -> CliError {
    CliError::runtime("cannot look for stale sandboxes", problem.what, problem.fix)
}

impl PruneReport {
    fn mode(&self) -> SweepMode {
        if self.dry_run {
            SweepMode::DryRun
        } else {
            SweepMode::Remove
        }
    }

    /// Goes through the sandboxes of a provider.
    async fn sweep_provider(
        &mut self,
        keeper: &SandboxInventory,
        max_age: Option<Duration>,
        wiring: &Providers,
    ) -> Result<(), CliError> {
        let patience = RetentionPolicy::for_command(max_age);
        let swept = sweep(keeper, &patience, self.mode(), wiring).await;
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
                &mut self.kept
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

    /// Removes what is left on an engine besides sandboxes.
    async fn remove_unused_volumes(
        &mut self,
        provider: &DockerProvider,
        now: Timestamp,
    ) -> Result<(), CliError> {
        let remnants = provider.unused_volumes(now - CREATION_GRACE).await;
        for remnant in remnants.map_err(|error| provider_error(error.problem()))? {
            let removed = match self.mode() {
                SweepMode::Remove => provider.remove_unused(&remnant).await,
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
                id: remnant.name().to_owned(),
                run: None,
                why: match remnant {
                    UnusedVolume::GuestVolume(_) => {
                        "it is the guest program of another build of ralph"
                    }
                    UnusedVolume::FillContainer(_) => "it was left when a ralph was killed",
                }
                .to_owned(),
                problem,
                fix,
            });
        }
        Ok(())
    }

    fn lines(&self) -> Vec<StyledLine> {
        let verb = match self.mode() {
            SweepMode::Remove => "removed",
            SweepMode::DryRun => "would remove",
        };
        let removed = self
            .removed
            .iter()
            .map(|entry| entry.line(Tone::Good, verb));
        let failed = self.failed.iter();
        let failed = failed.map(|entry| entry.line(Tone::Bad, "could not remove"));
        let mut lines: Vec<StyledLine> = removed.chain(failed).collect();
        if lines.is_empty() {
            lines.push(StyledLine::from_text("ralph: no stale sandboxes found"));
        }
        lines
    }
}

impl PruneEntry {
    fn line(&self, tone: Tone, verb: &str) -> StyledLine {
        let run = self.run.as_ref();
        let run = run.map_or_else(String::new, |run| format!(" of run {run}"));
        let rest = match (&self.problem, &self.fix) {
            (Some(problem), Some(fix)) => format!("{}: {problem} — {fix}", self.why),
            (_, _) => self.why.clone(),
        };
        StyledLine::new()
            .span(tone, verb)
            .strong(&format!(" {}", self.id))
            .plain(&run)
            .plain(" — ")
            .wrapped(Tone::Plain, &rest)
    }
}
