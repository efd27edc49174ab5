//! Creates, finds and lists local sandboxes.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use ralph_core::ports::{
    Confinement, Isolation, ProviderProblem, Sandbox, SandboxError, SandboxId, SandboxInfo,
    SandboxProvider, SandboxSpec,
};
use ralph_guest::command::{self, ProcessOwner, SandboxName};
use ralph_guest::files::{ConfinedDir, ConfinedFileError, remove_entry};
use rustix::fs::{Access, access};
use rustix::io::Errno;

use super::confinement::{Launcher, required_directories};
use super::host::HostEnvironment;
use super::name;
use super::record::SandboxRecord;
use super::sandbox::{LocalConfinement, LocalSandbox};
use crate::logged::logged;

/// Runs sandboxes as directories, with commands as processes of the user.
///
/// The process that creates one becomes the subreaper of its descendants, which is how it finds
/// orphaned children of a command.
#[derive(Debug)]
pub struct LocalProvider {
    root: PathBuf,
    host: HostEnvironment,
    adoption: Result<(), Errno>,
    /// Directories hidden from commands, except for their own sandbox inside.
    hidden: Vec<PathBuf>,
    limits: LocalLimits,
    launcher: OnceLock<Option<Arc<Launcher>>>,
}

/// The limits for all commands of a sandbox together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalLimits {
    /// In bytes.
    pub memory: u64,
    /// Maximum number of processes and threads.
    pub processes: u32,
}

impl Default for LocalLimits {
    fn default() -> Self {
        Self {
            memory: 8 << 30,
            processes: 512,
        }
    }
}

impl LocalProvider {
    /// Creates a provider with its sandboxes in the directory `root`, which need not exist yet.
    /// Commands find programs through `search_path`, the caller's `PATH`.
    pub fn new(root: impl Into<PathBuf>, search_path: impl Into<OsString>) -> Self {
        let root = root.into();
        let root = std::path::absolute(&root).unwrap_or(root);
        Self {
            hidden: vec![root.clone()],
            root,
            host: HostEnvironment::new(search_path.into()),
            adoption: command::adopt_orphans(),
            limits: LocalLimits::default(),
            launcher: OnceLock::new(),
        }
    }

    /// Hides a directory from commands, such as ralph's state directory. Sandboxes are always
    /// hidden from each other.
    #[must_use]
    pub fn hiding(mut self, directory: impl Into<PathBuf>) -> Self {
        self.hidden.push(directory.into());
        self
    }

    /// Sets the limits for all commands of a sandbox together.
    #[must_use]
    pub fn with_limits(mut self, limits: LocalLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Returns the launcher, if this machine supports confinement.
    fn launcher(&self) -> Option<Arc<Launcher>> {
        let found = || logged("confine commands", Launcher::prepare(self.limits)).map(Arc::new);
        self.launcher.get_or_init(found).clone()
    }

    /// Passes toolchain locations to commands, in variables such as `RUSTUP_HOME`.
    #[must_use]
    pub fn with_toolchains(mut self, variables: BTreeMap<String, String>) -> Self {
        self.host.toolchains = variables;
        self
    }

    /// Sets further variables of all commands. In contrast to those of a sandbox, they are not stored.
    #[must_use]
    pub fn with_variables(mut self, variables: BTreeMap<String, String>) -> Self {
        self.host.toolchains.extend(variables);
        self
    }

    /// Creates a sandbox; leaves nothing behind on failure.
    fn create_directory(&self, spec: &SandboxSpec) -> io::Result<(SandboxName, ConfinedDir)> {
        private_directory().recursive(true).create(&self.root)?;
        let name = self.free_name()?;
        // The record first: a process killed in between then leaves no directory without labels,
        // and the labels identify the run.
        let created = SandboxRecord::from_spec(spec)
            .store(&self.root, name)
            .and_then(|()| self.create_workspace(name));
        match created {
            Ok(workspace) => Ok((name, workspace)),
            Err(error) => {
                let root = self.open_root()?;
                remove_entry(&root, name::sandbox_id(name).0.as_ref())?;
                SandboxRecord::remove(&self.root, name)?;
                Err(error)
            }
        }
    }

    /// Returns an unused name.
    fn free_name(&self) -> io::Result<SandboxName> {
        let name = SandboxName::random();
        match self.root.join(&name::sandbox_id(name).0).symlink_metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(name),
            Err(error) => Err(error),
            Ok(_) => Err(ErrorKind::AlreadyExists.into()),
        }
    }

    fn create_workspace(&self, name: SandboxName) -> io::Result<ConfinedDir> {
        private_directory().create(self.root.join(&name::sandbox_id(name).0))?;
        let dir = self.open_root()?.open_dir(&name::sandbox_id(name).0)?;
        with_subdirectories(dir)
    }

    /// Opens a sandbox's directory; if only its record is left, removes that.
    fn open(&self, name: SandboxName) -> io::Result<Option<(ConfinedDir, SandboxRecord)>> {
        let opened = self
            .open_root()
            .and_then(|root| root.open_dir(&name::sandbox_id(name).0));
        let dir = match opened {
            Ok(dir) => dir,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                SandboxRecord::remove(&self.root, name)?;
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let workspace = with_subdirectories(dir)?;
        let record = SandboxRecord::load(&self.root, name)?;
        Ok(Some((workspace, record)))
    }

    fn open_root(&self) -> io::Result<Dir> {
        Dir::open_ambient_dir(&self.root, ambient_authority())
    }

    fn handle(
        &self,
        name: SandboxName,
        workspace: ConfinedDir,
        record: SandboxRecord,
    ) -> io::Result<LocalSandbox> {
        let launcher = self.launcher();
        let cgroup = launcher
            .as_ref()
            .map(|launcher| launcher.cgroup(&name::sandbox_id(name).0));
        let confinement = LocalConfinement {
            cgroup: cgroup.transpose()?.flatten(),
            launcher,
            hidden: self.hidden.clone(),
            visible: required_directories(&self.host.search_path, self.host.toolchains.values()),
        };
        let host = self.host.clone();
        Ok(LocalSandbox::new(
            name,
            &self.root,
            workspace,
            record.env,
            (host, confinement),
        ))
    }

    fn io_failure(&self, doing: &str, source: io::Error) -> SandboxError {
        SandboxError::Io {
            doing: format!("{doing} in `{}`", self.root.display()),
            source,
        }
    }
}

#[async_trait]
impl SandboxProvider for LocalProvider {
    fn name(&self) -> &'static str {
        "local"
    }

    fn isolation(&self) -> Isolation {
        Isolation::None
    }

    fn confinement(&self) -> Option<Confinement> {
        let launcher = self.launcher();
        Some(launcher.map_or_else(Confinement::default, |launcher| launcher.confinement()))
    }

    async fn preflight(&self) -> Vec<ProviderProblem> {
        let mut problems = Vec::new();
        if let Some(directory) = unwritable_parent(&self.root) {
            problems.push(ProviderProblem {
                what: format!("cannot write to `{}`", directory.display()),
                fix: format!("make it writable for the user that runs ralph, or choose another state directory: sandboxes are stored in `{}`", self.root.display()),
            });
        }
        if !self.host.has_program("sh") {
            problems.push(ProviderProblem {
                what: "no directory in `PATH` contains `sh`".into(),
                fix: "add the directory of `sh`, usually `/bin`, to `PATH`".into(),
            });
        }
        if let Err(error) = self.adoption {
            problems.push(ProviderProblem {
                what: format!("the system does not let ralph adopt orphaned processes: {error}"),
                fix: "run ralph where `prctl(PR_SET_CHILD_SUBREAPER)` is allowed".into(),
            });
        }
        problems
    }

    async fn create(&self, spec: &SandboxSpec) -> Result<Box<dyn Sandbox>, SandboxError> {
        let failed = |source| self.io_failure("create a sandbox", source);
        let (name, workspace) = self.create_directory(spec).map_err(failed)?;
        let sandbox = self
            .handle(name, workspace, SandboxRecord::from_spec(spec))
            .map_err(failed)?;
        Ok(Box::new(sandbox))
    }

    async fn attach(&self, id: &SandboxId) -> Result<Option<Box<dyn Sandbox>>, SandboxError> {
        let Some(name) = name::parse_id(&id.0) else {
            return Ok(None);
        };
        command::kill_processes(ProcessOwner::Sandbox(name)).await;
        let failed = |source| self.io_failure(&format!("open sandbox `{id}`"), source);
        let Some((workspace, record)) = self.open(name).map_err(failed)? else {
            return Ok(None);
        };
        let sandbox = self.handle(name, workspace, record).map_err(failed)?;
        Ok(Some(Box::new(sandbox)))
    }

    async fn list(&self) -> Result<Vec<SandboxInfo>, SandboxError> {
        let failed = |source| self.io_failure("list the sandboxes", source);
        let mut infos = Vec::new();
        for name in SandboxRecord::names(&self.root).map_err(failed)? {
            let record = SandboxRecord::load(&self.root, name).map_err(failed)?;
            infos.push(SandboxInfo {
                id: name::sandbox_id(name),
                labels: record.labels,
            });
        }
        Ok(infos)
    }
}

fn private_directory() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

/// Ensures that a sandbox has its subdirectories.
fn with_subdirectories(dir: Dir) -> io::Result<ConfinedDir> {
    let workspace = ConfinedDir::new(dir);
    workspace.ensure_layout().map_err(|error| match error {
        ConfinedFileError::Io(error) => error,
        error @ (ConfinedFileError::Escapes
        | ConfinedFileError::NotRegular
        | ConfinedFileError::NotFound) => io::Error::other(error),
    })?;
    Ok(workspace)
}

/// Returns the directory that prevents creating or writing `root`.
fn unwritable_parent(root: &Path) -> Option<&Path> {
    let directory = root.ancestors().find(|directory| directory.exists())?;
    let usable =
        directory.is_dir() && access(directory, Access::WRITE_OK | Access::EXEC_OK).is_ok();
    (!usable).then_some(directory)
}
