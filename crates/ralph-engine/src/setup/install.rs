//! Runs the set-up command in a sandbox, or copies the result of an earlier set-up.

use std::time::Instant;

use ralph_core::event::SandboxEvent;
use ralph_core::plan::SetupPlan;
use ralph_core::ports::{Exec, ExecOutcome, ExecStatus, GateControl, ProviderProblem, Sandbox};

use super::archive;
use super::cache::SetupCache;
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
    Commit {
        /// Identifies the files of the checkout.
        tree: String,
        /// Whether it is the user's own revision, at which the run started.
        is_base: bool,
    },
    /// The work in progress. Its result is not stored, because the agent's processes can change it.
    Workspace,
}

/// The result of set-up.
pub(crate) struct InstallOutcome {
    pub(crate) ended: ExecStatus,
    /// Committed files that the command changed.
    pub(crate) changed: Vec<String>,
    /// What the command printed; empty if an earlier result was copied.
    pub(crate) output: Captured,
    pub(crate) outcome: ExecOutcome,
}

impl InstallOutcome {
    /// Describes a failure with the end of the output.
    pub(crate) fn describe_failure(&self, command: &str) -> String {
        let tail = self.output.tail(TAIL_LINES);
        format!("set-up `{command}`: {}; output ends:\n{tail}", self.ended)
    }

    /// Returns the error of a set-up that fails at the user's own revision.
    pub(crate) fn into_error(self, command: &str) -> RunError {
        let lines = self.output.tail(ERROR_LINES).replace('\n', " / ");
        RunError::UnusableSandbox(ProviderProblem {
            what: format!("set-up `{command}` failed: {}: {lines}", self.ended),
            fix: "correct `setup_command`, or add missing hosts to `[sandbox.registries]`".into(),
        })
    }
}

/// Installs the dependencies in a sandbox, and records it. A failed command is a result, not an
/// error.
pub(crate) async fn install(
    recorder: &mut Recorder,
    controls: &mut Controls,
    sandbox: &dyn Sandbox,
    setup: &SetupPlan,
    (inputs, origin): (&SetupInputs, &SetupOrigin),
) -> Result<InstallOutcome, RunError> {
    let started = Instant::now();
    recorder.append(SandboxEvent::SetupStarted {
        sandbox: sandbox.id().clone(),
        command: setup.command.clone(),
    })?;
    let digest = inputs.digest();
    let cache = SetupCache::for_run(&recorder.dir, &recorder.state().plan.repo);
    let stored = match origin {
        SetupOrigin::Commit { tree, .. } => cache.find(&digest, tree),
        SetupOrigin::Workspace => None,
    };
    let is_restored = match &stored {
        Some(entry) => {
            let restoring = archive::restore(sandbox, entry);
            attend(&mut recorder.journal, controls, restoring).await??
        }
        None => false,
    };
    let outcome = if is_restored {
        restored_outcome()
    } else {
        run_command(recorder, controls, sandbox, setup).await?
    };
    let outcome = InstallOutcome {
        changed: changed_files(sandbox, origin).await?,
        ..outcome
    };
    // Changed committed files are not part of a stored result, so it would be incomplete.
    let is_storable = !is_restored && outcome.ended.is_success() && outcome.changed.is_empty();
    if let (true, SetupOrigin::Commit { tree, is_base }) = (is_storable, origin) {
        let storing = cache.store(sandbox, &digest, (tree, *is_base));
        let stored = attend(&mut recorder.journal, controls, storing).await?;
        // Only an optimisation: the next sandbox runs the command again.
        if let Err(why) = stored {
            tracing::warn!("the result of set-up is not cached: {why}");
        }
    }
    recorder.append(SandboxEvent::SetupFinished {
        sandbox: sandbox.id().clone(),
        command: setup.command.clone(),
        ended: outcome.ended,
        duration_ms: millis(started.elapsed()),
        cached: is_restored,
        digest,
        changed: outcome.changed.clone(),
        output: if outcome.ended.is_success() {
            String::new()
        } else {
            outcome.output.tail(TAIL_LINES)
        },
    })?;
    Ok(outcome)
}

fn restored_outcome() -> InstallOutcome {
    let ended = ExecStatus::Exited(0);
    InstallOutcome {
        ended,
        changed: Vec::new(),
        output: Captured::default(),
        outcome: ExecOutcome {
            ended,
            duration: std::time::Duration::ZERO,
            stdout_bytes: 0,
            stderr_bytes: 0,
            process_limit: false,
        },
    }
}

/// Runs the command with the registries reachable, and only then.
async fn run_command(
    recorder: &mut Recorder,
    controls: &mut Controls,
    sandbox: &dyn Sandbox,
    setup: &SetupPlan,
) -> Result<InstallOutcome, RunError> {
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
    let outcome = ended??;
    Ok(InstallOutcome {
        ended: outcome.ended,
        changed: Vec::new(),
        output: capture.finish(),
        outcome,
    })
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

/// Returns the committed files that differ from an untouched checkout.
async fn changed_files(
    sandbox: &dyn Sandbox,
    origin: &SetupOrigin,
) -> Result<Vec<String>, RunError> {
    if matches!(origin, SetupOrigin::Workspace) {
        return Ok(Vec::new());
    }
    let tree = SandboxGit::new(sandbox).status().await?;
    // The second letter is the state of the file compared to the index, in which a clean room has
    // the files of the base commit.
    let is_changed = |code: &str| code != "??" && !code.ends_with(' ') && !code.ends_with('.');
    let changed = tree
        .entries
        .into_iter()
        .filter(|(code, _)| is_changed(code));
    Ok(changed
        .map(|(_, path)| path)
        .take(MAX_LISTED_PATHS)
        .collect())
}
