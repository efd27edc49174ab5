//! The live handle of a local sandbox.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, MetadataExt as _};
use ralph_core::path::SandboxPath;
use ralph_core::ports::{
    Exec, ExecOutcome, InputSource, OutputSink, Sandbox, SandboxEntry, SandboxError, SandboxId,
    WriteMode,
};
use ralph_guest::cgroup::CgroupCounters;
use ralph_guest::command::{
    self, CommandBounds, CommandEnd, CommandMark, InputMode, Invocation, Marking, ProcessOwner,
    ProcessTree, SandboxName, SpawnOptions,
};
use ralph_guest::files::{ConfinedDir, ConfinedFileError, remove_entry};
use tokio::time::Instant;

use super::cgroup::SandboxCgroup;
use super::confinement::{Launch, Launcher};
use super::host::HostEnvironment;
use super::name;
use super::record::SandboxRecord;
use crate::sandbox::convert::{self, CommandInput, SinkAdapter};

/// A directory, accessed through a confined handle.
#[derive(Debug)]
pub(super) struct LocalSandbox {
    id: SandboxId,
    name: SandboxName,
    root: PathBuf,
    workspace: Arc<ConfinedDir>,
    env: BTreeMap<String, String>,
    host: HostEnvironment,
    confinement: LocalConfinement,
}

/// Confines and limits the commands of a sandbox.
#[derive(Debug)]
pub(super) struct LocalConfinement {
    pub(super) launcher: Option<Arc<Launcher>>,
    pub(super) cgroup: Option<SandboxCgroup>,
    pub(super) hidden: Vec<PathBuf>,
    pub(super) visible: Vec<PathBuf>,
}

impl LocalSandbox {
    pub(super) fn new(
        name: SandboxName,
        root: &Path,
        workspace: ConfinedDir,
        env: BTreeMap<String, String>,
        (host, confinement): (HostEnvironment, LocalConfinement),
    ) -> Self {
        Self {
            id: name::sandbox_id(name),
            name,
            root: root.to_owned(),
            workspace: Arc::new(workspace),
            env,
            host,
            confinement,
        }
    }

    /// Returns the launch parameters of a command, if there is a launcher.
    fn launch<'a>(
        &'a self,
        mark: CommandMark,
        directory: &'a Path,
    ) -> Option<(&'a Launcher, Launch<'a>)> {
        let launcher = self.confinement.launcher.as_deref()?;
        let launch = Launch {
            name: self.name,
            mark,
            sandbox: directory,
            hidden: &self.confinement.hidden,
            visible: &self.confinement.visible,
            cgroup: self.confinement.cgroup.as_ref(),
        };
        Some((launcher, launch))
    }

    /// Returns how commands are marked.
    fn marking(&self) -> Marking {
        match self.confinement.launcher {
            Some(_) => Marking::ByLauncher,
            None => Marking::AfterSpawn,
        }
    }

    fn directory(&self) -> PathBuf {
        self.root.join(&self.id.0)
    }

    /// Returns the kernel's counters of rejected allocations for this sandbox.
    fn counters(&self) -> CgroupCounters {
        let cgroup = self.confinement.cgroup.as_ref();
        cgroup.map_or_else(CgroupCounters::default, |cgroup| cgroup.counters.counters())
    }

    /// Returns the error of a failed operation; reports a removed sandbox as such.
    fn file_error(&self, verb: &str, path: &SandboxPath, error: ConfinedFileError) -> SandboxError {
        match error {
            ConfinedFileError::NotFound if self.is_removed() => SandboxError::Gone(self.id.clone()),
            ConfinedFileError::NotFound
            | ConfinedFileError::Escapes
            | ConfinedFileError::NotRegular
            | ConfinedFileError::Io(_) => convert::file_error(verb, path.as_str(), error),
        }
    }

    /// The handle outlives the directory; a directory without a link has been removed.
    fn is_removed(&self) -> bool {
        let metadata = self.workspace.dir().dir_metadata();
        !metadata.is_ok_and(|metadata| metadata.nlink() > 0)
    }

    /// Returns the sandbox's directory after restoring any subdirectories that the last command
    /// changed.
    fn existing_directory(
        &self,
        verb: &str,
        path: &SandboxPath,
    ) -> Result<&Arc<ConfinedDir>, SandboxError> {
        self.workspace
            .ensure_layout()
            .map_err(|error| self.file_error(verb, path, error))?;
        Ok(&self.workspace)
    }

    /// Starts a command with piped output.
    fn start(
        &self,
        invocation: &Invocation,
        mark: CommandMark,
        cwd: &SandboxPath,
        env: &BTreeMap<String, String>,
    ) -> Result<ProcessTree, SandboxError> {
        let enter_error = |error| self.file_error("enter", cwd, error);
        let workspace = self.existing_directory("enter", cwd)?;
        let directory = workspace
            .open_directory(cwd.as_str().as_ref())
            .map_err(enter_error)?;
        let spawn_error = |source| SandboxError::Spawn {
            program: invocation.argv.first().cloned().unwrap_or_default(),
            source,
        };
        let root = self.directory();
        let variables = command::command_environment(
            &self.host.search_path,
            &root,
            (self.name, mark),
            [&self.host.toolchains, &self.env, env],
        );
        let launched = match self.launch(mark, &root) {
            Some((launcher, launch)) => {
                let argv = launcher
                    .invocation(&launch, &invocation.argv)
                    .map_err(spawn_error)?;
                Some(invocation.with_argv(argv))
            }
            None => None,
        };
        let start = SpawnOptions {
            invocation: launched.as_ref().unwrap_or(invocation),
            directory: (&directory, &root.join(cwd.as_str())),
            variables: &variables,
            user: None,
            // The launcher starts a session itself, and its program's handle does not survive
            // `setsid`.
            setsid: self.host.setsid.as_deref().filter(|_| launched.is_none()),
            marking: self.marking(),
        };
        start
            .spawn(mark)
            .map_err(|source| match directory.symlink_metadata(".") {
                Ok(_) => spawn_error(source),
                Err(error) => enter_error(error.into()),
            })
    }
}

#[async_trait]
impl Sandbox for LocalSandbox {
    fn id(&self) -> &SandboxId {
        &self.id
    }

    async fn exec(
        &self,
        exec: Exec,
        input: Option<&mut dyn InputSource>,
        output: &mut dyn OutputSink,
    ) -> Result<ExecOutcome, SandboxError> {
        let started = Instant::now();
        let input_mode = if exec.stdin.is_empty() && input.is_none() {
            InputMode::Null
        } else {
            InputMode::Piped
        };
        let invocation =
            Invocation::new(convert::program(exec.program), input_mode, self.marking());
        let (mark, before) = (CommandMark::next(self.name), self.counters());
        let tree = self.start(&invocation, mark, &exec.cwd, &exec.env)?;
        let bounds = CommandBounds {
            started,
            input: CommandInput::new([invocation.preamble, &exec.stdin].concat(), input),
            timeout: exec.timeout,
            output_limit: exec.output_limit,
            watchdog: command::no_watchdog(),
        };
        let supervised = command::supervise(tree, bounds, &mut SinkAdapter(output)).await;
        let outcome = supervised.map_err(|source| SandboxError::Io {
            doing: format!("wait for a command in sandbox `{}`", self.id),
            source,
        })?;
        if let (CommandEnd::Exited(code), directory) = (outcome.ended, self.directory())
            && let Some((_, launch)) = self.launch(mark, &directory)
            && let Some(source) = launch.take_failure(code)
        {
            return Err(SandboxError::Spawn {
                program: invocation.argv.into_iter().next().unwrap_or_default(),
                source,
            });
        }
        Ok(convert::outcome(self.counters().apply_to(outcome, before)))
    }

    async fn read(&self, path: &SandboxPath, limit: u64) -> Result<Vec<u8>, SandboxError> {
        let failed = |error| self.file_error("read", path, error);
        let workspace = self.existing_directory("read", path)?;
        let reading = workspace
            .open_file(path.as_str().as_ref())
            .map_err(failed)?;
        let too_large = |size| SandboxError::TooLarge {
            path: path.to_string(),
            size,
            limit,
        };
        if reading.size() > limit {
            return Err(too_large(reading.size()));
        }
        let bytes = reading.read_bounded(limit);
        let bytes = bytes.map_err(|source| convert::io_failure("read", path.as_str(), source))?;
        if bytes.len() as u64 > limit {
            return Err(too_large(bytes.len() as u64));
        }
        Ok(bytes)
    }

    async fn write(
        &self,
        path: &SandboxPath,
        bytes: &[u8],
        mode: WriteMode,
    ) -> Result<(), SandboxError> {
        let failed = |error| self.file_error("write", path, error);
        let target = Path::new(path.as_str());
        let workspace = self.existing_directory("write", path)?;
        let mut writing = match mode {
            WriteMode::Replace => workspace.replace(target),
            WriteMode::Append => workspace.append(target),
        }
        .map_err(failed)?;
        writing
            .write_chunk(bytes)
            .map_err(|source| failed(source.into()))?;
        writing.finish().map_err(failed)
    }

    async fn list(&self, path: &SandboxPath) -> Result<Vec<SandboxEntry>, SandboxError> {
        let failed = |error| self.file_error("list", path, error);
        let workspace = self.existing_directory("list", path)?;
        let entries = workspace.list(path.as_str().as_ref()).map_err(failed)?;
        Ok(entries.into_iter().map(convert::entry).collect())
    }

    async fn delete(&self, path: &SandboxPath) -> Result<(), SandboxError> {
        let workspace = self.existing_directory("delete", path)?.clone();
        let target = PathBuf::from(path.as_str());
        run_blocking(move || workspace.delete(&target))
            .await
            .map_err(|error| self.file_error("delete", path, error))
    }

    async fn sync(&self) -> Result<(), SandboxError> {
        let workspace = self.workspace.clone();
        run_blocking(move || Ok(workspace.sync()?))
            .await
            .map_err(|error| self.file_error("sync", &SandboxPath::repo(), error))
    }

    async fn remove(&self) -> Result<(), SandboxError> {
        command::kill_processes(ProcessOwner::Sandbox(self.name)).await;
        let (root, name) = (self.root.clone(), self.name);
        run_blocking(move || {
            let parent = Dir::open_ambient_dir(&root, ambient_authority())?;
            remove_entry(&parent, name::sandbox_id(name).0.as_ref())?;
            Ok(SandboxRecord::remove(&root, name)?)
        })
        .await
        .map_err(|error| convert::file_error("remove sandbox", &self.id.0, error))
    }
}

/// Runs a long operation on a blocking thread: a directory can contain any number of files.
async fn run_blocking(
    work: impl FnOnce() -> Result<(), ConfinedFileError> + Send + 'static,
) -> Result<(), ConfinedFileError> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|stopped| Err(ConfinedFileError::Io(io::Error::other(stopped))))
}
