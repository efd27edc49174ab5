//! `ralph prune-sandboxes`: removes sandboxes that nobody uses any more, and says which.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use ralph_core::ports::Problem;
use ralph_providers::sandbox::{DockerProvider, Remnant};
use serde::Serialize;

use super::keeper::Keeper;
use super::rule::Patience;
use super::sweep::{Fate, Mode, Swept, sweep};
use crate::cli::care_args::{ProviderName, PruneArgs};
use crate::cli::container;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitCode;
use crate::terminal::line::{Line, Tone};
use crate::wire::Wiring;

/// What is younger is not looked at as left over: somebody may be making it.
const BEING_MADE: SignedDuration = SignedDuration::from_mins(10);

/// What was found and done.
#[derive(Debug, Default, Serialize)]
struct Report {
    dry_run: bool,
    removed: Vec<Entry>,
    kept: Vec<Entry>,
    failed: Vec<Entry>,
}

/// One sandbox, or something else of ralph's.
#[derive(Debug, Serialize)]
struct Entry {
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
    let wiring = context.wiring()?;
    let mut report = Report {
        dry_run: args.dry_run,
        ..Report::default()
    };
    if args.provider != Some(ProviderName::Docker) {
        let keeper = Keeper::local(&wiring);
        report.take(&keeper, args.max_age, &wiring).await?;
    }
    if args.provider != Some(ProviderName::Local) {
        let looked = docker(&mut report, args.max_age, context, &wiring).await;
        match (looked, args.provider) {
            (Ok(()), _) => {}
            (Err(error), Some(_)) => return Err(error),
            // Nobody asked for this provider: without an engine there is nothing to look at.
            (Err(error), None) => {
                let note = format!("note: docker is left out — {} — {}", error.why, error.fix);
                context.output().complain(&[Line::of(&note)]);
            }
        }
    }
    let code = if report.failed.is_empty() {
        ExitCode::Success
    } else {
        ExitCode::Runtime
    };
    if args.json {
        context.output().json(&report)?;
    } else {
        context.output().lines(&report.lines())?;
    }
    Ok(code)
}

async fn docker(
    report: &mut Report,
    max_age: Option<Duration>,
    context: &Context,
    wiring: &Wiring,
) -> Result<(), CliError> {
    let engine = container::engine(&context.settings()?, context).await?;
    let keeper = Keeper::docker(engine.clone(), wiring);
    report.take(&keeper, max_age, wiring).await?;
    let provider = wiring.docker_at(engine);
    report.take_remnants(&provider, wiring.clock.now()).await
}

fn refused(problem: Problem) -> CliError {
    CliError::runtime("cannot look for stale sandboxes", problem.what, problem.fix)
}

impl Report {
    fn mode(&self) -> Mode {
        if self.dry_run {
            Mode::Tell
        } else {
            Mode::Remove
        }
    }

    /// Goes through the sandboxes of a provider.
    async fn take(
        &mut self,
        keeper: &Keeper,
        max_age: Option<Duration>,
        wiring: &Wiring,
    ) -> Result<(), CliError> {
        let patience = Patience::of_a_person(max_age);
        let swept = sweep(keeper, &patience, self.mode(), wiring).await;
        for swept in swept.map_err(refused)? {
            self.add(swept);
        }
        Ok(())
    }

    fn add(&mut self, swept: Swept) {
        let mut entry = Entry {
            provider: swept.provider,
            id: swept.id.0,
            run: swept.run,
            why: String::new(),
            problem: None,
            fix: None,
        };
        let list = match swept.fate {
            Fate::Kept(why) => {
                entry.why = why.to_string();
                &mut self.kept
            }
            Fate::Removed(why) => {
                entry.why = why.to_string();
                &mut self.removed
            }
            Fate::Stuck(why, problem) => {
                entry.why = why.to_string();
                entry.problem = Some(problem.what);
                entry.fix = Some(problem.fix);
                &mut self.failed
            }
        };
        list.push(entry);
    }

    /// Removes what is left on an engine besides sandboxes.
    async fn take_remnants(
        &mut self,
        provider: &DockerProvider,
        now: Timestamp,
    ) -> Result<(), CliError> {
        let remnants = provider.remnants(now - BEING_MADE).await;
        for remnant in remnants.map_err(|error| refused(error.problem()))? {
            let removed = match self.mode() {
                Mode::Remove => provider.remove_remnant(&remnant).await,
                Mode::Tell => Ok(()),
            };
            let problem = removed.err().map(|error| error.problem());
            let list = match problem {
                None => &mut self.removed,
                Some(_) => &mut self.failed,
            };
            let (problem, fix) = problem.map(|problem| (problem.what, problem.fix)).unzip();
            list.push(Entry {
                provider: "docker",
                id: remnant.name().to_owned(),
                run: None,
                why: match remnant {
                    Remnant::Program(_) => "it is the guest program of another build of ralph",
                    Remnant::Filling(_) => "it was left when a ralph was killed",
                }
                .to_owned(),
                problem,
                fix,
            });
        }
        Ok(())
    }

    fn lines(&self) -> Vec<Line> {
        let verb = match self.mode() {
            Mode::Remove => "removed",
            Mode::Tell => "would remove",
        };
        let removed = self
            .removed
            .iter()
            .map(|entry| entry.line(Tone::Good, verb));
        let failed = self.failed.iter();
        let failed = failed.map(|entry| entry.line(Tone::Bad, "could not remove"));
        let mut lines: Vec<Line> = removed.chain(failed).collect();
        if lines.is_empty() {
            lines.push(Line::of("ralph: no stale sandboxes found"));
        }
        lines
    }
}

impl Entry {
    fn line(&self, tone: Tone, verb: &str) -> Line {
        let run = self.run.as_ref();
        let run = run.map_or_else(String::new, |run| format!(" of run {run}"));
        let rest = match (&self.problem, &self.fix) {
            (Some(problem), Some(fix)) => format!("{}: {problem} — {fix}", self.why),
            (_, _) => self.why.clone(),
        };
        Line::new()
            .with(tone, verb)
            .strong(&format!(" {}", self.id))
            .plain(&run)
            .plain(" — ")
            .folded(Tone::Plain, &rest)
    }
}
