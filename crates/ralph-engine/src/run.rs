//! One run: opens it, prepares it, iterates until a verdict, obeys commands on the way.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ralph_core::budget;
use ralph_core::event::{Event, IterationEvent, RunEvent, SandboxEvent};
use ralph_core::id::Digest;
use ralph_core::outage::OutagePolicy;
use ralph_core::ports::{
    Agent, Clock, Exec, ExecOutcome, GateControl, Model, OutputSink, Sandbox, SandboxProvider, Scm,
};
use ralph_core::price::Price;
use ralph_core::profile::ModelChoice;
use ralph_core::run::{FailReason, RunStatus};
use ralph_core::secret::Redactor;
use ralph_core::state::RunState;
use tokio::sync::watch;

pub(crate) use crate::attend::{attend, heartbeat};
use crate::contract::{ContractUpdate, PinnedTask};
use crate::control::{Control, GateHandle};
use crate::delivery::approved_by_resuming;
use crate::ending::record_failure_status;
use crate::error::RunError;
use crate::git::{HostGit, HostRepo, WorkTree};
use crate::immediate_commands;
use crate::iteration;
use crate::journal::{Journal, RALPH_VERSION};
use crate::mailbox::Mailbox;
use crate::prepare;
use crate::rebuild;
use crate::steps::IterationScratch;
use crate::store::RunDir;
use crate::workspace::{HostFiles, Workspace};

/// The outside of a run, chosen by the program.
#[derive(Clone)]
pub struct Services {
    /// Where commands run.
    pub sandboxes: Arc<dyn SandboxProvider>,
    /// Who answers.
    pub model: Arc<dyn Model>,
    /// The program that does the work instead, where one does.
    pub agent: Option<Arc<dyn Agent>>,
    /// Who keeps the door out of the sandbox, where there is one.
    pub gate: Option<Arc<dyn GateControl>>,
    /// What an answer costs.
    pub price: Price,
    /// How long a run waits for a provider that is not available.
    pub outage: OutagePolicy,
    /// Who else could answer.
    pub profiles: ProfileSelector,
    /// Where branches and pull requests go.
    pub scm: Arc<dyn Scm>,
    /// Git on the host.
    pub git: HostGit,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// What must never be written down.
    pub redactor: Redactor,
}

/// Makes the model of a profile; the error says why it cannot be used.
pub type ChooseModel = dyn Fn(&str) -> Result<ChosenModel, String> + Send + Sync;

/// The model profiles that a run can switch to.
#[derive(Clone)]
pub struct ProfileSelector {
    /// The profile that is marked for the doctor.
    pub doctor: Option<String>,
    /// Makes the model of a profile.
    pub choose: Arc<ChooseModel>,
}

impl Services {
    /// Says why no other profile can do the work, if that is so.
    pub(crate) fn check_profile_switch(state: &RunState) -> Result<(), String> {
        match &state.plan.agent {
            Some(_) => Err("an agent does the work, and it asks a model of its own".into()),
            None => Ok(()),
        }
    }

    /// Returns the model of a profile that the ladder or the doctor wants; the error says why it
    /// cannot be used.
    pub(crate) fn model_for_profile(
        &self,
        profile: &str,
        state: &RunState,
    ) -> Result<ChosenModel, String> {
        let choice = state.model_choice();
        if choice.overrides_all_profiles() {
            return Ok(ChosenModel {
                choice,
                model: self.model.clone(),
                price: self.price,
            });
        }
        (self.profiles.choose)(profile)
    }
}

/// A model that is ready to be asked.
#[derive(Clone)]
pub struct ChosenModel {
    /// How it was chosen; this is recorded.
    pub choice: ModelChoice,
    /// The model.
    pub model: Arc<dyn Model>,
    /// What an answer costs.
    pub price: Price,
}

/// A run that is being worked on.
pub struct Run {
    pub(crate) dir: RunDir,
    pub(crate) journal: Journal,
    pub(crate) services: Services,
    pub(crate) pinned: PinnedTask,
    pub(crate) files: HostFiles,
    pub(crate) workspace: Workspace,
    pub(crate) sandbox: Box<dyn Sandbox>,
    pub(crate) repo: HostRepo,
    pub(crate) control: Control,
    pub(crate) workspace_view: WorkspaceView,
    pub(crate) scratch: IterationScratch,
    /// What was spent when warnings were last looked for.
    pub(crate) spent_at_last_warning: budget::Spent,
    /// The profile that the run's own model stands in for, as far as it was told.
    pub(crate) announced_profile: Option<String>,
    /// The iteration after which this process last asked the doctor by itself.
    pub(crate) last_doctor_iteration: u32,
    /// Whether somebody has looked from inside of the sandbox since work last stood still.
    pub(crate) sandbox_checked: bool,
    /// The budget that did not pay for a model call, and the limits at that time.
    pub(crate) unaffordable: Option<(budget::Budget, budget::BudgetLimits)>,
    /// Whether the sandbox was made anew though an iteration was open in the last one.
    sandbox_lost: bool,
}

/// What the last look at the workspace showed; the next prompt is built from it.
#[derive(Debug, Clone, Default)]
pub(crate) struct WorkspaceView {
    pub(crate) tree: WorkTree,
    pub(crate) diff_stat: String,
    pub(crate) subjects: Vec<String>,
    /// Digest of what was not committed at the end of the last iteration.
    pub(crate) uncommitted: Option<Digest>,
}

/// Works on a run until it ends, waits for a person, or the program is told to end.
///
/// The status that is returned is in the journal already. An error means that not even that could
/// be written.
pub async fn drive(
    dir: RunDir,
    mut journal: Journal,
    outside: Services,
    interrupt: watch::Receiver<bool>,
) -> Result<RunStatus, RunError> {
    let epoch = journal.state().epoch + 1;
    let opened = Event::Run(RunEvent::RunOpened {
        epoch,
        pid: std::process::id(),
        ralph: Some(RALPH_VERSION.to_owned()),
    });
    let approved = approved_by_resuming(&journal.state().status);
    let preparing = Event::Run(RunEvent::StatusChanged {
        status: RunStatus::Preparing,
    });
    let events: Vec<Event> = [opened, preparing].into_iter().chain(approved).collect();
    journal.append_all(events)?;
    if let Some(deadly) = journal.state().crash_loop() {
        let error = RunError::CrashLoop(deadly.clone());
        return record_failure_status(&dir, &mut journal, &error);
    }
    let door = outside
        .gate
        .clone()
        .map_or(GateHandle::Missing, GateHandle::Open);
    immediate_commands::restore_allowed_hosts(&mut journal, &door)?;
    let control = Control::new(Mailbox::new(dir.commands()), interrupt, door);
    match Run::prepare(dir.clone(), &mut journal, outside, control).await {
        Ok(prepared) => prepared.into_run(journal).finish().await,
        Err(error) => record_failure_status(&dir, &mut journal, &error),
    }
}

/// Everything of a run but its journal, which the preparation still writes to.
struct PreparedRun {
    dir: RunDir,
    services: Services,
    pinned: PinnedTask,
    files: HostFiles,
    workspace: prepare::PreparedWorkspace,
    repo: HostRepo,
    control: Control,
}

impl PreparedRun {
    fn into_run(self, journal: Journal) -> Run {
        let warned = journal.state().spent();
        let open = journal.state().open.is_some();
        Run {
            dir: self.dir,
            journal,
            services: self.services,
            pinned: self.pinned,
            files: self.files,
            workspace: self.workspace.workspace,
            sandbox: self.workspace.sandbox,
            repo: self.repo,
            control: self.control,
            workspace_view: WorkspaceView::default(),
            scratch: IterationScratch::default(),
            spent_at_last_warning: warned,
            announced_profile: None,
            last_doctor_iteration: 0,
            sandbox_checked: false,
            unaffordable: None,
            sandbox_lost: self.workspace.is_new && open,
        }
    }
}

impl Run {
    async fn prepare(
        dir: RunDir,
        journal: &mut Journal,
        outside: Services,
        control: Control,
    ) -> Result<PreparedRun, RunError> {
        let repo = outside.git.repo(dir.repo());
        rebuild::restore_repository(journal, &outside, &dir, &repo).await?;
        let files = HostFiles::open(&dir, outside.redactor.clone())?;
        let state = journal.state();
        let source = PathBuf::from(&state.plan.task_file);
        let mut pinned = PinnedTask::open(&dir, source, &state.contract, &state.contracts)?;
        let ready =
            prepare::prepare_workspace(journal, &outside, &dir, &repo, &files, &mut pinned).await?;
        for finding in &ready.findings {
            journal.append(SandboxEvent::Tamper {
                iteration: journal.state().iteration,
                path: finding.path.clone(),
                finding: finding.finding.clone(),
            })?;
        }
        Ok(PreparedRun {
            dir,
            services: outside,
            pinned,
            files,
            workspace: ready,
            repo,
            control,
        })
    }

    async fn finish(mut self) -> Result<RunStatus, RunError> {
        let ended = self.run_until_verdict().await;
        match ended {
            Ok(status) => Ok(status),
            Err(error) => {
                // A process that lost the run writes nothing more, whatever else went wrong.
                self.journal.check_owner()?;
                self.drain_gate_events().ok();
                self.log_activity(&error.to_string()).ok();
                if matches!(error, RunError::Stopped) {
                    // Nothing follows in which it could be charged.
                    self.charge_abandoned_call().ok();
                }
                if !matches!(error, RunError::Stopped | RunError::Interrupted) {
                    self.log_error(&error.to_string()).ok();
                }
                self.files.sync().ok();
                record_failure_status(&self.dir, &mut self.journal, &error)
            }
        }
    }

    async fn run_until_verdict(&mut self) -> Result<RunStatus, RunError> {
        self.load_workspace_view().await?;
        self.set_status(RunStatus::Running)?;
        if let Some(status) = self.finish_approved().await? {
            return self.finish_with(status).await;
        }
        loop {
            self.handle_pending_input().await?;
            // Rotating between iterations is what happens anyway.
            self.control.pending = None;
            if let Some(status) = self.state().next_status.clone() {
                return self.finish_with(status).await;
            }
            self.apply_wanted_profile()?;
            self.consult_doctor_if_due().await?;
            if self.apply_contract_change()? {
                // An agent reads and ticks its copy of the task file.
                self.workspace.project(&*self.sandbox, &self.files).await?;
            }
            self.apply_wanted_profile()?;
            if let Some(status) = self.exhausted_budget() {
                return self.finish_with(status).await;
            }
            if !self.sandbox_checked {
                self.check_sandbox().await?;
            }
            if let Some(status) = self.run_baseline_if_due().await? {
                return self.finish_with(status).await;
            }
            iteration::iterate(self).await?;
        }
    }

    /// Tells, once, whether the sandbox of the open iteration is gone.
    pub(crate) fn take_sandbox_lost(&mut self) -> bool {
        std::mem::take(&mut self.sandbox_lost)
    }

    /// An iteration that a crash left open was paid for already; a new one needs a budget.
    fn exhausted_budget(&self) -> Option<RunStatus> {
        if self.state().open.is_some() {
            return None;
        }
        let limits = self.pinned.contract().limits();
        if let Some((budget, then)) = &self.unaffordable
            && *then == limits
        {
            let budget = *budget;
            return Some(RunStatus::Failed(FailReason::Budget { budget }));
        }
        let over = budget::may_start_iteration(&limits, &self.spent());
        over.err()
            .map(|budget| RunStatus::Failed(FailReason::Budget { budget }))
    }

    pub(crate) fn state(&self) -> &RunState {
        self.journal.state()
    }

    /// Returns what the run has spent until this moment.
    pub(crate) fn spent(&self) -> budget::Spent {
        budget::Spent {
            wall_time: self.journal.active(),
            ..self.state().spent()
        }
    }

    pub(crate) fn set_status(&mut self, status: RunStatus) -> Result<(), RunError> {
        if self.state().status != status {
            self.journal.append(RunEvent::StatusChanged { status })?;
        }
        Ok(())
    }

    pub(crate) fn log_activity(&mut self, text: &str) -> Result<(), RunError> {
        Ok(self.files.log_activity(
            self.services.clock.now(),
            self.journal.state().iteration,
            text,
        )?)
    }

    pub(crate) fn log_error(&mut self, text: &str) -> Result<(), RunError> {
        Ok(self.files.log_error(
            self.services.clock.now(),
            self.journal.state().iteration,
            text,
        )?)
    }

    fn apply_contract_change(&mut self) -> Result<bool, RunError> {
        let run = self.state().plan.run.clone();
        for message in self.pinned.report_edits(&run, &self.services.redactor)? {
            self.log_activity(&message)?;
            self.journal.append(RunEvent::Notice { message })?;
        }
        let Some(wanted) = self.state().wanted_contract.clone() else {
            return Ok(false);
        };
        match self.pinned.apply(&wanted, &self.services.redactor)? {
            ContractUpdate::Applied {
                digest,
                changes,
                reopened,
            } => {
                self.log_activity(&format!(
                    "the contract was changed by a person: {}",
                    changes.join("; ")
                ))?;
                let mut ticked = self.state().ticked.clone();
                ticked.retain(|id| {
                    !reopened.contains(id)
                        && self.pinned.task().checkboxes.iter().any(|b| b.id == *id)
                });
                let limits = self.pinned.contract().limits();
                self.journal.append(RunEvent::ContractChanged {
                    contract: digest,
                    changes,
                    limits,
                    mode: Some(self.pinned.contract().mode),
                    checkboxes: Some(self.pinned.task().checkboxes.len()),
                })?;
                self.set_ticks(&ticked)?;
                Ok(true)
            }
            ContractUpdate::Rejected(why) => {
                self.log_activity(&format!("a change of the task file cannot be used: {why}"))?;
                self.journal.append(RunEvent::ContractRejected { why })?;
                Ok(false)
            }
        }
    }

    /// Sets the ticked boxes: in the journal, on the host, and for the next projection.
    pub(crate) fn set_ticks(&mut self, ticked: &BTreeSet<String>) -> Result<(), RunError> {
        if *ticked != self.state().ticked {
            self.journal.append(IterationEvent::BoxesTicked {
                ticked: ticked.iter().cloned().collect(),
            })?;
        }
        let text = self.pinned.write_ticks(ticked)?;
        self.workspace.set_task(text);
        Ok(())
    }

    /// Runs a command while listening to people; a stop ends the whole tree.
    pub(crate) async fn exec(
        &mut self,
        mut exec: Exec,
        sink: &mut dyn OutputSink,
    ) -> Result<ExecOutcome, RunError> {
        exec.timeout = exec.timeout.min(self.time_left());
        if let Some(gate) = &self.services.gate {
            gate.set_running_command(Some(exec.label()));
        }
        let running = self.sandbox.exec(exec, None, sink);
        let ended = attend(&mut self.journal, &mut self.control, running).await;
        if let Some(gate) = &self.services.gate {
            gate.set_running_command(None);
        }
        Ok(ended??)
    }

    /// Returns how long a command may still take.
    pub(crate) fn time_left(&self) -> Duration {
        let limit = self
            .pinned
            .contract()
            .limits()
            .max_wall_time
            .unwrap_or(Duration::MAX);
        limit
            .saturating_sub(self.journal.active())
            .max(Duration::from_secs(1))
    }
}
