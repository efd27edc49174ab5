//! The sandboxes of the runs of this process, shared so that other tasks can read them.
//!
//! A second attachment to a sandbox would end the processes in it, so readers use the handle of the
//! run itself while it works.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use async_trait::async_trait;
use ralph_core::path::SandboxPath;
use ralph_core::ports::{
    Confinement, Exec, ExecOutcome, Freezer, InputSource, Isolation, OutputSink, Preview,
    ProviderProblem, Sandbox, SandboxEntry, SandboxError, SandboxId, SandboxInfo, SandboxProvider,
    SandboxSpec, WriteMode,
};

/// The sandboxes that runs of this process have open.
#[derive(Debug, Default)]
pub struct OpenSandboxes {
    handles: Mutex<BTreeMap<String, Weak<dyn Sandbox>>>,
}

impl OpenSandboxes {
    /// Returns a sandbox if a run of this process has it open.
    pub fn get(&self, id: &SandboxId) -> Option<Arc<dyn Sandbox>> {
        let handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        handles.get(&id.0).and_then(Weak::upgrade)
    }

    fn add(&self, sandbox: Box<dyn Sandbox>) -> Box<dyn Sandbox> {
        let sandbox: Arc<dyn Sandbox> = Arc::from(sandbox);
        let mut handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        handles.retain(|_, handle| handle.strong_count() > 0);
        handles.insert(sandbox.id().0.clone(), Arc::downgrade(&sandbox));
        Box::new(SharedSandbox(sandbox))
    }
}

/// A sandbox provider whose sandboxes are listed in [`OpenSandboxes`] while a run uses them.
pub(super) struct SharingProvider {
    pub(super) provider: Arc<dyn SandboxProvider>,
    pub(super) open: Arc<OpenSandboxes>,
}

#[async_trait]
impl SandboxProvider for SharingProvider {
    fn name(&self) -> &'static str {
        self.provider.name()
    }

    fn isolation(&self) -> Isolation {
        self.provider.isolation()
    }

    fn confinement(&self) -> Option<Confinement> {
        self.provider.confinement()
    }

    async fn preflight(&self) -> Vec<ProviderProblem> {
        self.provider.preflight().await
    }

    async fn create(&self, spec: &SandboxSpec) -> Result<Box<dyn Sandbox>, SandboxError> {
        let sandbox = self.provider.create(spec).await?;
        Ok(self.open.add(sandbox))
    }

    async fn attach(&self, id: &SandboxId) -> Result<Option<Box<dyn Sandbox>>, SandboxError> {
        let sandbox = self.provider.attach(id).await?;
        Ok(sandbox.map(|sandbox| self.open.add(sandbox)))
    }

    async fn list(&self) -> Result<Vec<SandboxInfo>, SandboxError> {
        self.provider.list().await
    }
}

/// The run's own handle of a shared sandbox.
struct SharedSandbox(Arc<dyn Sandbox>);

#[async_trait]
impl Sandbox for SharedSandbox {
    fn id(&self) -> &SandboxId {
        self.0.id()
    }

    async fn exec(
        &self,
        exec: Exec,
        input: Option<&mut dyn InputSource>,
        output: &mut dyn OutputSink,
    ) -> Result<ExecOutcome, SandboxError> {
        self.0.exec(exec, input, output).await
    }

    async fn read(&self, path: &SandboxPath, limit: u64) -> Result<Vec<u8>, SandboxError> {
        self.0.read(path, limit).await
    }

    async fn write(
        &self,
        path: &SandboxPath,
        bytes: &[u8],
        mode: WriteMode,
    ) -> Result<(), SandboxError> {
        self.0.write(path, bytes, mode).await
    }

    async fn list(&self, path: &SandboxPath) -> Result<Vec<SandboxEntry>, SandboxError> {
        self.0.list(path).await
    }

    async fn delete(&self, path: &SandboxPath) -> Result<(), SandboxError> {
        self.0.delete(path).await
    }

    async fn sync(&self) -> Result<(), SandboxError> {
        self.0.sync().await
    }

    async fn remove(&self) -> Result<(), SandboxError> {
        self.0.remove().await
    }

    fn probe_program(&self) -> Option<&str> {
        self.0.probe_program()
    }

    fn has_fixed_paths(&self) -> bool {
        self.0.has_fixed_paths()
    }

    fn freezer(&self) -> Option<&dyn Freezer> {
        self.0.freezer()
    }

    fn preview(&self) -> Option<&dyn Preview> {
        self.0.preview()
    }
}
