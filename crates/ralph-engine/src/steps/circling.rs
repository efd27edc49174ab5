//! Measures at the end of an iteration whether the run is circling, and applies the next step of
//! the ladder.

use ralph_core::event::{Event, IterationEvent, IterationOutcome};
use ralph_core::gutter::{self, GutterReport, IterationFacts, LoopScore, TestFacts};
use ralph_core::id::CommitId;
use ralph_core::mitigation::{self, MitigationDecision, MitigationOptions, MitigationStep};
use ralph_core::ports::AgentEnd;
use ralph_core::run::{FailReason, PauseReason, RunStatus};
use ralph_core::task::Contract;
use ralph_core::verdict::{self, Verdict};

use crate::contract::PinnedTask;
use crate::error::RunError;
use crate::git::{GitError, IterationChange, WorkTree};
use crate::recorder::Recorder;
use crate::services::Services;
use crate::steps::IterationScratch;
use crate::workbench::Workbench;

/// The measurement of an iteration, and the resulting status of the run.
pub(super) struct Circling {
    pub(super) score: Option<LoopScore>,
    pub(super) report: Option<GutterReport>,
    pub(super) next_status: Option<RunStatus>,
}

impl Circling {
    /// Returns the event that records a gutter, if there is one.
    pub(super) fn event(&self, iteration: u32) -> Option<Event> {
        let (score, report) = (self.score?, self.report.as_ref()?);
        let mitigation = report.step.clone()?;
        Some(Event::Iteration(IterationEvent::Gutter {
            iteration,
            score: score.value(),
            consecutive: report.ladder.consecutive,
            evidence: report.signals.iter().map(ToString::to_string).collect(),
            mitigation,
            skipped: report.skipped.clone(),
        }))
    }
}

/// Stores the changes of the iteration for the measurement at its end.
pub(super) async fn record_iteration_change(
    recorder: &Recorder,
    bench: &Workbench,
    scratch: &mut IterationScratch,
    start: &CommitId,
    seen: &WorkTree,
) -> Result<(), RunError> {
    let previous_tree = recorder.state().window.last();
    let previous_tree = previous_tree
        .map(|facts| facts.tree.clone())
        .unwrap_or_default();
    if !scratch.changed {
        let tree = if previous_tree.is_empty() {
            start.to_string()
        } else {
            previous_tree
        };
        scratch.change = IterationChange {
            tree,
            ..IterationChange::default()
        };
        return Ok(());
    }
    let git = bench.git();
    scratch.change = match git.change_since(&previous_tree, start.as_str(), seen).await {
        Ok(change) => change,
        // Git in the sandbox is untrusted; if it fails, the size of the diff is used.
        Err(RunError::Git(GitError::InSandbox { .. })) => IterationChange {
            lines: scratch.lines_since_commit,
            ..IterationChange::default()
        },
        Err(error) => return Err(error),
    };
    Ok(())
}

/// Measures the iteration that ends. Any other reason for a status takes precedence.
pub(super) fn measure_progress(
    recorder: &mut Recorder,
    services: &Services,
    pinned: &PinnedTask,
    scratch: &IterationScratch,
    outcome: &IterationOutcome,
    then: Option<RunStatus>,
) -> Result<Circling, RunError> {
    if *outcome == IterationOutcome::SandboxLost
        || was_interrupted_without_changes(recorder, scratch)
    {
        // The model caused none of this.
        return Ok(Circling {
            score: None,
            report: None,
            next_status: then,
        });
    }
    let facts = iteration_facts(recorder, scratch);
    let mut window = recorder.state().window.clone();
    window.push(facts.clone());
    let settings = pinned.contract().gutter_settings();
    let measured = gutter::measure(&window, settings);
    let decision = if then.is_none() {
        mitigation::decide(
            recorder.state().ladder,
            &measured,
            &available_mitigations(recorder, services, pinned),
        )
    } else {
        MitigationDecision {
            ladder: recorder.state().ladder,
            step: None,
            skipped: Vec::new(),
        }
    };
    let report = GutterReport {
        signals: measured.signals,
        ladder: decision.ladder,
        step: decision.step,
        skipped: decision.skipped,
        facts,
    };
    log_circling(recorder, measured.score, &report)?;
    let then = then.or_else(|| status_after_mitigation(pinned, &report));
    Ok(Circling {
        score: Some(measured.score),
        report: Some(report),
        next_status: then,
    })
}

/// Returns whether the agent's provider or the user ended the iteration before anything changed.
fn was_interrupted_without_changes(recorder: &Recorder, scratch: &IterationScratch) -> bool {
    let open = recorder.state().open.as_ref();
    let is_interrupted = match open.and_then(|open| open.agent_end.as_ref()) {
        Some(
            AgentEnd::Unauthorized { .. }
            | AgentEnd::Quota { .. }
            | AgentEnd::Overloaded { .. }
            | AgentEnd::OutOfBudget
            | AgentEnd::Halted,
        ) => true,
        Some(
            AgentEnd::Finished
            | AgentEnd::GaveUp { .. }
            | AgentEnd::Stalled
            | AgentEnd::TimedOut
            | AgentEnd::Crashed { .. },
        )
        | None => false,
    };
    is_interrupted && !scratch.changed && scratch.newly_ticked == 0
}

fn iteration_facts(recorder: &Recorder, scratch: &IterationScratch) -> IterationFacts {
    let state = recorder.state();
    let open = state.open.as_ref();
    let change = &scratch.change;
    let tests = scratch.tests.as_ref().map(|check| TestFacts {
        green: verdict::judge(std::slice::from_ref(check)) == Verdict::Green,
        count: check.tests,
    });
    IterationFacts {
        iteration: state.iteration,
        commands: open.map_or(0, |open| open.commands),
        changed_lines: change.lines,
        binary_files: change.binary_files,
        files: change.files.clone(),
        failures: open.map(|open| open.failures.clone()).unwrap_or_default(),
        tests,
        boxes_ticked: state.ticked.len(),
        tree: change.tree.clone(),
        committed: open.map(|open| open.head != state.head),
        diff_lines: scratch.lines_since_commit,
        code: scratch.code.clone(),
    }
}

fn available_mitigations(
    recorder: &Recorder,
    services: &Services,
    pinned: &PinnedTask,
) -> MitigationOptions {
    let contract = pinned.contract();
    let fallback =
        match &recorder.state().plan.agent {
            Some(_) => recorder.state().available_fallback_agent().map(|agent| {
                MitigationStep::FallbackAgent {
                    agent: agent.label(),
                }
            }),
            None => available_profile(recorder, services, contract)
                .map(|profile| MitigationStep::Fallback { profile }),
        };
    MitigationOptions {
        fallback,
        doctor: services.check_doctor(contract, recorder.state()),
        max_consecutive: contract.gutter_limit(),
    }
}

/// Returns the fallback profile, or the reason why it cannot be used.
fn available_profile(
    recorder: &Recorder,
    services: &Services,
    contract: &Contract,
) -> Result<String, String> {
    let in_use = recorder.state().profile.as_deref();
    let in_use = in_use.or(contract.model_profile_default.as_deref());
    let wanted = services.fallback_profile(contract);
    let profile = mitigation::fallback_profile(wanted, in_use)?;
    services.model_for_profile(&profile, recorder.state())?;
    Ok(profile)
}

fn log_circling(
    recorder: &mut Recorder,
    score: LoopScore,
    report: &GutterReport,
) -> Result<(), RunError> {
    for signal in &report.signals {
        let weight = f64::from(signal.tenths()) / 10.0;
        recorder.log_activity(&format!("signal {} {weight:+.1}: {signal}", signal.name()))?;
    }
    recorder.log_activity(&format!("loop score {score}"))?;
    if !score.is_gutter() {
        return Ok(());
    }
    let times = report.ladder.consecutive;
    for skipped in &report.skipped {
        recorder.log_activity(&format!(
            "mitigation: skipped {}: {}",
            skipped.rung, skipped.why
        ))?;
    }
    let done = match &report.step {
        Some(step) => format!("GUTTER {score}, {times} in a row; mitigation: {step}"),
        None => "no gutter: there is progress, or the run ends or pauses for another reason".into(),
    };
    recorder.log_activity(&done)
}

/// Returns the status that the ladder leads to, if the run does not continue.
fn status_after_mitigation(pinned: &PinnedTask, report: &GutterReport) -> Option<RunStatus> {
    let consecutive = report.ladder.consecutive;
    match report.step.as_ref()? {
        MitigationStep::Rotate
        | MitigationStep::Fallback { .. }
        | MitigationStep::FallbackAgent { .. }
        | MitigationStep::Doctor => None,
        MitigationStep::Pause => {
            let evidence: Vec<String> = report.signals.iter().map(ToString::to_string).collect();
            Some(RunStatus::Paused(PauseReason::Gutter {
                consecutive,
                evidence: evidence.join("; "),
            }))
        }
        MitigationStep::Fail => Some(RunStatus::Failed(FailReason::Gutter {
            consecutive,
            limit: pinned.contract().gutter_limit(),
        })),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::available_mitigations;
    use crate::run_fixture::RunFixture;

    async fn doctor(front_matter: &str, plan: Value) -> Result<(), String> {
        let fixture = Box::pin(RunFixture::with_plan(front_matter, &[], plan)).await;
        let run = &fixture.run;
        available_mitigations(&run.recorder, &run.services, &run.pinned).doctor
    }

    #[tokio::test]
    async fn the_doctor_is_skipped_if_no_model_can_answer() {
        let agent = || json!({"engine": "agent", "agent": {"name": "claude"}});
        assert_eq!(doctor("", json!({})).await, Ok(()));
        assert_eq!(
            doctor("", agent()).await,
            Err("no model can answer: the model of `claude` works only for the agent, and no profile is \
                 configured for the doctor"
                .to_owned())
        );
        let unusable = doctor("doctor_profile: strong", agent()).await.unwrap_err();
        let start = "no model can answer: profile `strong` cannot be used: ";
        assert!(unusable.starts_with(start), "{unusable}");
    }
}
