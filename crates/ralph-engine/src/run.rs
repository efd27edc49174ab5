//! One run: opens it, prepares it, iterates until a verdict, and handles commands on the way.

use std::path::PathBuf;
use std::sync::Arc;

use ralph_core::event::{Event, RunEvent, SandboxEvent};
use ralph_core::run::RunStatus;
use tokio::sync::watch;

use crate::agent::apply_wanted_agent;
pub(crate) use crate::attend::{attend, attend_until_rotated, heartbeat};
use crate::baseline::run_baseline_if_due;
use crate::contract::PinnedTask;
use crate::contract_change::{apply_contract_change, apply_wanted_mode};
use crate::controls::{Controls, GateHandle};
use crate::delivery::approved_by_resuming;
use crate::delivery::{Surroundings, finish_approved};
use crate::durable::warn_if_failed;
pub use crate::ending::pause_idle_run;
use crate::ending::{finish_with, record_failure_status};
use crate::error::RunError;
use crate::git::HostRepo;
use crate::immediate_commands;
use crate::immediate_commands::drain_gate_events;
use crate::iteration;
use crate::journal::{Journal, RALPH_VERSION};
use crate::mailbox::Mailbox;
use crate::pause::handle_pending_input;
use crate::preflight::check_sandbox;
use crate::prepare;
use crate::rebuild;
use crate::recorder::Recorder;
pub use crate::services::{ChooseModel, ChosenModel, ProfileSelector, Services};
use crate::setup::{set_up_workspace_if_due, setup_in_force};
use crate::steps::IterationScratch;
use crate::steps::{apply_wanted_profile, charge_abandoned_call, load_workspace_view};
use crate::store::RunDir;
use crate::user_commands::consult_doctor_if_due;
use crate::workbench::Workbench;
use crate::workbench::WorkspaceView;
use crate::worker_wait::{WorkerWait, enter_status, wait_for_first_worker};
use crate::workspace::HostFiles;

/// A run that a process is working on.
pub struct Run {
    pub(crate) recorder: Recorder,
    pub(crate) bench: Workbench,
    pub(crate) controls: Controls,
    pub(crate) services: Services,
    pub(crate) pinned: PinnedTask,
    pub(crate) scratch: IterationScratch,
    /// The last profile that the activity log announced while the run's own model replaces all
    /// profiles.
    pub(crate) announced_profile: Option<String>,
    /// The last look at the other pull requests of the source host.
    pub(crate) surroundings: Surroundings,
    /// The last iteration after which this process consulted the doctor automatically.
    pub(crate) last_doctor_iteration: u32,
}

/// Works on a run until it ends, waits for the user, or is interrupted.
///
/// The returned status is already in the journal. An error means that it could not be written.
pub async fn drive(
    dir: RunDir,
    mut journal: Journal,
    services: Services,
    interrupt: watch::Receiver<bool>,
) -> Result<RunStatus, RunError> {
    let gate = services
        .gate
        .clone()
        .map_or(GateHandle::Missing, GateHandle::Open);
    let mut controls = Controls::new(Mailbox::new(dir.commands()), interrupt, gate)
        .with_worker(services.worker.clone());
    if let Err(error) = open_run(&mut journal, &mut controls).await {
        return record_failure_status(&dir, &mut journal, &error);
    }
    match PreparedRun::prepare(dir.clone(), &mut journal, services, controls).await {
        Ok(prepared) => Box::pin(prepared.into_run(journal).finish()).await,
        Err(error) => record_failure_status(&dir, &mut journal, &error),
    }
}

/// Records that this process works on the run, as soon as it has a worker for it.
async fn open_run(journal: &mut Journal, controls: &mut Controls) -> Result<(), RunError> {
    let epoch = journal.state().epoch + 1;
    let opened = Event::Run(RunEvent::RunOpened {
        epoch,
        pid: std::process::id(),
        ralph: Some(RALPH_VERSION.to_owned()),
    });
    let mut events = vec![opened];
    events.extend(approved_by_resuming(&journal.state().status));
    if controls.worker.is_some() {
        // Commands that arrive during the wait belong to this process.
        journal.append_all(std::mem::take(&mut events))?;
        if wait_for_first_worker(journal, controls).await? == WorkerWait::Paused {
            return Err(RunError::Paused);
        }
    }
    events.push(Event::Run(RunEvent::StatusChanged {
        status: RunStatus::Preparing,
    }));
    journal.append_all(events)?;
    if let Some(crashed) = journal.state().crash_loop() {
        return Err(RunError::CrashLoop(crashed.clone()));
    }
    immediate_commands::restore_allowed_hosts(journal, &controls.gate)
}

/// All parts of a run except its journal, which the preparation still writes to.
pub(crate) struct PreparedRun {
    dir: RunDir,
    services: Services,
    pinned: PinnedTask,
    files: HostFiles,
    workspace: prepare::PreparedWorkspace,
    repo: HostRepo,
    controls: Controls,
}

impl PreparedRun {
    pub(crate) async fn prepare(
        dir: RunDir,
        journal: &mut Journal,
        services: Services,
        controls: Controls,
    ) -> Result<Self, RunError> {
        let repo = services.git.repo(dir.repo());
        rebuild::restore_repository(journal, &services, &dir, &repo).await?;
        let files = HostFiles::open(&dir, services.redactor.clone())?;
        let state = journal.state();
        let source = PathBuf::from(&state.plan.task_file);
        let mut pinned = PinnedTask::open(&dir, source, &state.contract, &state.contracts)?;
        let workspace =
            prepare::prepare_workspace(journal, &services, &dir, &repo, &files, &mut pinned)
                .await?;
        for finding in &workspace.findings {
            journal.append(SandboxEvent::Tamper {
                iteration: journal.state().iteration,
                path: finding.path.clone(),
                finding: finding.finding.clone(),
            })?;
        }
        Ok(Self {
            dir,
            services,
            pinned,
            files,
            workspace,
            repo,
            controls,
        })
    }

    pub(crate) fn into_run(self, journal: Journal) -> Run {
        let setup = setup_in_force(&journal.state().plan, self.pinned.contract());
        let is_replacement = self.workspace.is_new && journal.state().open.is_some();
        let (clock, redactor) = (self.services.clock.clone(), self.services.redactor.clone());
        Run {
            recorder: Recorder::new(self.dir, journal, self.files, clock, redactor),
            bench: Workbench {
                sandbox: Arc::from(self.workspace.sandbox),
                workspace: self.workspace.workspace,
                repo: self.repo,
                view: WorkspaceView::default(),
                is_checked: false,
                is_replacement,
                setup,
                settled_setup: None,
                failed_setup: None,
            },
            controls: self.controls,
            services: self.services,
            pinned: self.pinned,
            scratch: IterationScratch::default(),
            announced_profile: None,
            surroundings: Surroundings::default(),
            last_doctor_iteration: 0,
        }
    }
}

impl Run {
    async fn finish(mut self) -> Result<RunStatus, RunError> {
        let ended = self.run_until_verdict().await;
        match ended {
            Ok(status) => Ok(status),
            Err(error) => {
                // A process that lost the run must not write anything, whatever other error
                // occurred.
                self.recorder.journal.check_owner()?;
                let drained = drain_gate_events(&mut self.recorder, &mut self.controls);
                warn_if_failed("record the events of the gate", drained);
                let logged = self.recorder.log_activity(&error.to_string());
                warn_if_failed("log the end of the run", logged);
                if matches!(error, RunError::Stopped) {
                    // There is no later step that could charge it.
                    let charged = charge_abandoned_call(&mut self.recorder, &self.services);
                    warn_if_failed("charge an abandoned call", charged);
                }
                if !matches!(error, RunError::Stopped | RunError::Interrupted) {
                    let logged = self.recorder.log_error(&error.to_string());
                    warn_if_failed("log the error that ended the run", logged);
                }
                warn_if_failed("sync the logs", self.recorder.files.sync());
                record_failure_status(&self.recorder.dir, &mut self.recorder.journal, &error)
            }
        }
    }

    async fn run_until_verdict(&mut self) -> Result<RunStatus, RunError> {
        load_workspace_view(&mut self.recorder, &mut self.bench, &self.pinned).await?;
        let running = RunStatus::Running;
        enter_status(&mut self.recorder.journal, &mut self.controls, running).await?;
        if let Some(status) = finish_approved(self).await? {
            return self.finish_with(status).await;
        }
        loop {
            handle_pending_input(self).await?;
            // Between iterations there is nothing to rotate.
            self.controls.pending = None;
            if let Some(status) = self.recorder.state().next_status.clone() {
                return self.finish_with(status).await;
            }
            apply_wanted_profile(self)?;
            apply_wanted_agent(self)?;
            apply_wanted_mode(&mut self.recorder)?;
            consult_doctor_if_due(self).await?;
            if apply_contract_change(&mut self.recorder, &mut self.bench, &mut self.pinned)? {
                // An agent reads and ticks its copy of the task file.
                self.bench.project(&self.recorder.files).await?;
            }
            apply_wanted_profile(self)?;
            if let Some(status) = self.recorder.status_without_budget() {
                return self.finish_with(status).await;
            }
            if !self.bench.is_checked {
                check_sandbox(&mut self.recorder, &mut self.bench, &mut self.controls).await?;
            }
            set_up_workspace_if_due(self).await?;
            if let Some(status) = run_baseline_if_due(self).await? {
                return self.finish_with(status).await;
            }
            self.controls
                .forget_rotation_between_iterations(self.recorder.state());
            iteration::iterate(self).await?;
        }
    }

    async fn finish_with(&mut self, status: RunStatus) -> Result<RunStatus, RunError> {
        finish_with(self, status).await
    }
}
