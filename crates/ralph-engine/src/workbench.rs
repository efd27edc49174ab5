//! The workbench of a run: the sandbox, the runner's files in it, and the run's own repository.

use std::sync::Arc;

use ralph_core::id::Digest;
use ralph_core::plan::SetupPlan;
use ralph_core::ports::{Exec, ExecOutcome, OutputSink, Sandbox};

use crate::attend::attend;
use crate::controls::Controls;
use crate::error::RunError;
use crate::git::{HostRepo, SandboxGit, WorkTree};
use crate::recorder::Recorder;
use crate::setup::FailedSetup;
use crate::workspace::{HostFiles, TamperFinding, Workspace};

/// The sandbox of a run and its repositories.
pub(crate) struct Workbench {
    /// Shared, so that another task can read files while the run works.
    pub(crate) sandbox: Arc<dyn Sandbox>,
    pub(crate) workspace: Workspace,
    pub(crate) repo: HostRepo,
    pub(crate) view: WorkspaceView,
    /// Whether this process has checked the sandbox from inside.
    pub(crate) is_checked: bool,
    /// Whether the sandbox was created during an open iteration to replace a lost one.
    pub(crate) is_replacement: bool,
    /// The set-up in force.
    pub(crate) setup: Option<SetupPlan>,
    /// The digest of dependencies that this process need not install: those after a set-up.
    pub(crate) settled_setup: Option<Digest>,
    /// The last dependencies that this process could not install.
    pub(crate) failed_setup: Option<FailedSetup>,
}

/// The workspace at its last inspection; the next prompt is built from it.
#[derive(Debug, Clone, Default)]
pub(crate) struct WorkspaceView {
    pub(crate) tree: WorkTree,
    pub(crate) diff_stat: String,
    /// The titles of the last commits, newest first.
    pub(crate) subjects: Vec<String>,
    /// Digest of the uncommitted changes at the end of the last iteration.
    pub(crate) uncommitted: Option<Digest>,
}

impl Workbench {
    /// Returns git in the sandbox.
    pub(crate) fn git(&self) -> SandboxGit<'_> {
        SandboxGit::new(&*self.sandbox)
    }

    /// Copies the host's `.ralph/` files into the sandbox.
    pub(crate) async fn project(&mut self, files: &HostFiles) -> Result<(), RunError> {
        self.workspace.project(&*self.sandbox, files).await
    }

    /// Compares the `.ralph/` files in the sandbox with the host's and restores those that differ.
    pub(crate) async fn inspect(
        &mut self,
        files: &HostFiles,
    ) -> Result<Vec<TamperFinding>, RunError> {
        self.workspace.inspect(&*self.sandbox, files).await
    }

    /// Runs a command within the remaining wall time; a stop by the user ends its whole process
    /// tree.
    pub(crate) async fn exec(
        &self,
        recorder: &mut Recorder,
        controls: &mut Controls,
        mut exec: Exec,
        sink: &mut dyn OutputSink,
    ) -> Result<ExecOutcome, RunError> {
        exec.timeout = exec.timeout.min(recorder.time_left());
        if let Some(gate) = controls.open_gate() {
            gate.set_running_command(Some(exec.label()));
        }
        let running = self.sandbox.exec(exec, None, sink);
        let ended = attend(&mut recorder.journal, controls, running).await;
        if let Some(gate) = controls.open_gate() {
            gate.set_running_command(None);
        }
        Ok(ended??)
    }
}
