//! Runs the set-up command in a sandbox, or copies the result of an earlier set-up.

use std::time::Instant;

use ralph_core::event::{RunEvent, SandboxEvent};
use ralph_core::plan::SetupPlan;
use ralph_core::ports::{Exec, ExecOutcome, ExecStatus, GateControl, ProviderProblem, Sandbox};

use super::archive::{self, MAX_ARCHIVE_BYTES};
use super::cache::{CheckoutIdentity, SetupCache, StoreOutcome};
use super::inputs::SetupInputs;
use crate::attend::attend;
use crate::capture::{Capture, Captured};
use crate::check_results::CHECK_TIMEOUT;
use crate::controls::Controls;
use crate::error::RunError;
use crate::git::SandboxGit;
use crate::journal::millis;
use crate::live_output::LiveSource;
use crate::recorder::Recorder;

/// The most lines of output that the journal and the model's log repeat.
const TAIL_LINES: usize = 20;
/// The most lines of output in the reason of a pause.
const ERROR_LINES: usize = 3;
/// How many changed files are recorded.
const MAX_LISTED_PATHS: usize = 20;

/// The files that set-up works on, which decide about the use of its result.
pub(crate) enum SetupOrigin {
    /// An untouched checkout.
    Checkout(CheckoutIdentity),
    /// The work in progress. Its result is not stored, because the agent's processes can change it.
    Workspace,
}

/// A set-up of one sandbox.
pub(crate) struct SetupJob<'a> {
    pub(crate) sandbox: &'a dyn Sandbox,
    pub(crate) setup: &'a SetupPlan,
    pub(crate) inputs: &'a SetupInputs,
    pub(crate) origin: &'a SetupOrigin,
}

/// A set-up whose changes are not known yet.
pub(crate) struct PerformedSetup {
    started: Instant,
    /// Whether the result of an earlier set-up was copied.
    pub(crate) is_copied: bool,
    outcome: ExecOutcome,
    output: Captured,
}

/// The result of set-up.
pub(crate) struct InstallOutcome {
    pub(crate) ended: ExecStatus,
    /// Committed files that the command changed.
    pub(crate) changed: Vec<String>,
    /// What the command printed; empty if an earlier result was copied.
    pub(crate) output: Captured,
    pub(crate) outcome: ExecOutcome,
    /// Whether the gate limits the reachable registries.
    has_gate: bool,
}

impl InstallOutcome {
    /// Describes a failure with the end of the output.
    pub(crate) fn describe_failure(&self, command: &str) -> String {
        let tail = self.output.tail(TAIL_LINES);
        format!("set-up `{command}`: {}; output ends:\n{tail}", self.ended)
    }

    /// Returns the error of a set-up that fails although no work caused it. `location` names the
    /// sandbox.
    pub(crate) fn into_error(self, command: &str, location: &str) -> RunError {
        let lines = self.output.tail(ERROR_LINES).replace('\n', " / ");
        let fix = if self.has_gate {
            "correct `setup_command`, or add missing hosts to `[sandbox.registries]`"
        } else {
            "correct `setup_command`, or the network of this machine"
        };
        RunError::UnusableSandbox(ProviderProblem {
            what: format!(
                "set-up `{command}` failed{location}: {}: {lines}",
                self.ended
            ),
            fix: fix.into(),
        })
    }
}

impl SetupJob<'_> {
    /// Installs the dependencies, and records it. A failed command is a result, not an error.
    pub(crate) async fn install(
        &self,
        recorder: &mut Recorder,
        controls: &mut Controls,
    ) -> Result<InstallOutcome, RunError> {
        let performed = self.perform(recorder, controls).await?;
        let changed = match self.origin {
            SetupOrigin::Checkout(_) => changed_files(self.sandbox).await?,
            SetupOrigin::Workspace => Vec::new(),
        };
        self.conclude(recorder, controls, (performed, changed))
            .await
    }

    /// Runs the command, or copies the result of an earlier set-up of the same checkout.
    pub(crate) async fn perform(
        &self,
        recorder: &mut Recorder,
        controls: &mut Controls,
    ) -> Result<PerformedSetup, RunError> {
        let started = Instant::now();
        recorder.append(SandboxEvent::SetupStarted {
            sandbox: self.sandbox.id().clone(),
            command: self.setup.command.clone(),
        })?;
        let stored = self.shared_checkout().and_then(|checkout| {
            let cache = SetupCache::for_run(&recorder.dir, &recorder.state().plan.repo);
            cache.find(&self.inputs.digest(), checkout)
        });
        let is_copied = match &stored {
            Some(entry) => {
                let restoring = archive::restore(self.sandbox, entry);
                attend(&mut recorder.journal, controls, restoring).await??
            }
            None => false,
        };
        let (outcome, output) = if is_copied {
            (copied_outcome(), Captured::default())
        } else {
            run_command(recorder, controls, self.sandbox, self.setup).await?
        };
        Ok(PerformedSetup {
            started,
            is_copied,
            outcome,
            output,
        })
    }

    /// Stores the result for other sandboxes, and records it. The repository in the sandbox must be one
    /// that the command could not write.
    pub(crate) async fn conclude(
        &self,
        recorder: &mut Recorder,
        controls: &mut Controls,
        (performed, changed): (PerformedSetup, Vec<String>),
    ) -> Result<InstallOutcome, RunError> {
        let ended = performed.outcome.ended;
        // Changed committed files are not part of a stored result, so it would be incomplete.
        if !performed.is_copied && ended.is_success() && changed.is_empty() {
            self.store(recorder, controls).await?;
        }
        recorder.append(SandboxEvent::SetupFinished {
            sandbox: self.sandbox.id().clone(),
            command: self.setup.command.clone(),
            ended,
            duration_ms: millis(performed.started.elapsed()),
            cached: performed.is_copied,
            digest: self.inputs.digest(),
            changed: changed.clone(),
            output: if ended.is_success() {
                String::new()
            } else {
                performed.output.tail(TAIL_LINES)
            },
        })?;
        Ok(InstallOutcome {
            ended,
            changed,
            output: performed.output,
            outcome: performed.outcome,
            has_gate: controls.open_gate().is_some(),
        })
    }

    /// Returns the checkout if its result can be copied to other sandboxes.
    fn shared_checkout(&self) -> Option<&CheckoutIdentity> {
        match self.origin {
            // Installed programs contain the path of the sandbox.
            SetupOrigin::Checkout(checkout) => self.sandbox.has_fixed_paths().then_some(checkout),
            SetupOrigin::Workspace => None,
        }
    }

    async fn store(
        &self,
        recorder: &mut Recorder,
        controls: &mut Controls,
    ) -> Result<(), RunError> {
        let Some(checkout) = self.shared_checkout() else {
            return Ok(());
        };
        let cache = SetupCache::for_run(&recorder.dir, &recorder.state().plan.repo);
        let storing = cache.store(self.sandbox, self.inputs, checkout);
        match attend(&mut recorder.journal, controls, storing).await? {
            Ok(StoreOutcome::Stored | StoreOutcome::Skipped) => Ok(()),
            Ok(StoreOutcome::TooLarge) => recorder.append(RunEvent::Notice {
                message: format!(
                    "set-up installs more than {} GiB, so every sandbox runs it",
                    MAX_ARCHIVE_BYTES >> 30
                ),
            }),
            // Only an optimisation: the next sandbox runs the command again.
            Err(why) => {
                tracing::warn!("the result of set-up is not stored: {why}");
                Ok(())
            }
        }
    }
}

fn copied_outcome() -> ExecOutcome {
    ExecOutcome {
        ended: ExecStatus::Exited(0),
        duration: std::time::Duration::ZERO,
        stdout_bytes: 0,
        stderr_bytes: 0,
        process_limit: false,
    }
}

/// Runs the command with the registries reachable, and only then.
async fn run_command(
    recorder: &mut Recorder,
    controls: &mut Controls,
    sandbox: &dyn Sandbox,
    setup: &SetupPlan,
) -> Result<(ExecOutcome, Captured), RunError> {
    let title = format!("{}   # set-up", setup.command);
    let live = recorder.live_output(LiveSource::Command(&title));
    let mut capture = Capture::new(&recorder.redactor).with_live(live);
    let timeout = recorder.command_timeout(CHECK_TIMEOUT);
    let gate = controls.open_gate().cloned();
    let window = gate
        .as_deref()
        .map(|gate| RegistryWindow::open(gate, setup));
    let running = sandbox.exec(Exec::shell(&setup.command, timeout), None, &mut capture);
    let ended = attend(&mut recorder.journal, controls, running).await;
    drop(window);
    Ok((ended??, capture.finish()))
}

/// Keeps the registries reachable until it is dropped, however set-up ends.
struct RegistryWindow<'a> {
    gate: &'a dyn GateControl,
}

impl<'a> RegistryWindow<'a> {
    fn open(gate: &'a dyn GateControl, setup: &SetupPlan) -> Self {
        let hosts: Vec<String> = setup.hosts().map(str::to_owned).collect();
        gate.set_running_command(Some(&format!("set-up: {}", setup.command)));
        gate.set_setup_hosts(&hosts);
        Self { gate }
    }
}

impl Drop for RegistryWindow<'_> {
    fn drop(&mut self) {
        self.gate.set_setup_hosts(&[]);
        self.gate.set_running_command(None);
    }
}

/// Returns the committed files that differ from the index.
pub(crate) async fn changed_files(sandbox: &dyn Sandbox) -> Result<Vec<String>, RunError> {
    let tree = SandboxGit::new(sandbox).status().await?;
    // The second letter is the state of the file compared to the index, in which a clean room has
    // the files of the base commit.
    let is_changed = |code: &str| code != "??" && !code.ends_with(' ') && !code.ends_with('.');
    let entries = tree.entries.into_iter();
    let changed = entries.filter(|(code, _)| is_changed(code));
    let paths = changed.map(|(_, path)| path);
    Ok(paths.take(MAX_LISTED_PATHS).collect())
}
