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
    Entry, Exec, ExecOutcome, InputSource, OutputSink, Sandbox, SandboxError, SandboxId, WriteMode,
};
use ralph_guest::cgroup::Counters;
use ralph_guest::command::{
    self, Bounds, Ended, Input, Invocation, Mark, Marking, Name, Owner, Start, Tree,
};
use ralph_guest::files::{Place, Refusal, erase};
use tokio::time::Instant;

use super::cgroup::SandboxCgroup;
use super::confinement::{Launch, Launcher};
use super::host::Host;
use super::name;
use super::record::Record;
use crate::sandbox::convert::{self, Fed, Forward};

/// One directory, seen through a handle that nothing leads out of.
#[derive(Debug)]
pub(super) struct LocalSandbox {
    id: SandboxId,
    name: Name,
    root: PathBuf,
    place: Arc<Place>,
    env: BTreeMap<String, String>,
    host: Host,
    confined: Confined,
}

/// What keeps the commands of a sandbox from the rest, and limits them.
#[derive(Debug)]
pub(super) struct Confined {
    pub(super) launcher: Option<Arc<Launcher>>,
    pub(super) cgroup: Option<SandboxCgroup>,
    pub(super) hidden: Vec<PathBuf>,
    pub(super) kept: Vec<PathBuf>,
}

impl LocalSandbox {
    pub(super) fn new(
        name: Name,
        root: &Path,
        place: Place,
        env: BTreeMap<String, String>,
        (host, confined): (Host, Confined),
    ) -> Self {
        Self {
            id: name::id(name),
            name,
            root: root.to_owned(),
            place: Arc::new(place),
            env,
            host,
            confined,
        }
    }

    /// Returns what a command is launched with, where it is.
    fn launch<'a>(&'a self, mark: Mark, directory: &'a Path) -> Option<(&'a Launcher, Launch<'a>)> {
        let launcher = self.confined.launcher.as_deref()?;
        let launch = Launch {
            name: self.name,
            mark,
            sandbox: directory,
            hidden: &self.confined.hidden,
            kept: &self.confined.kept,
            cgroup: self.confined.cgroup.as_ref(),
        };
        Some((launcher, launch))
    }

    /// Returns how commands get their mark.
    fn marking(&self) -> Marking {
        match self.confined.launcher {
            Some(_) => Marking::ByLauncher,
            None => Marking::Afterwards,
        }
    }

    fn directory(&self) -> PathBuf {
        self.root.join(&self.id.0)
    }

    /// Returns what the kernel has refused to the commands of this sandbox so far.
    fn counters(&self) -> Counters {
        let cgroup = self.confined.cgroup.as_ref();
        cgroup.map_or_else(Counters::default, |cgroup| cgroup.counters.counters())
    }

    /// Says why something was not done: also, that the whole sandbox has been removed.
    fn refused(&self, verb: &str, path: &SandboxPath, refusal: Refusal) -> SandboxError {
        match refusal {
            Refusal::NotFound if self.is_gone() => SandboxError::Gone(self.id.clone()),
            Refusal::NotFound | Refusal::Escapes | Refusal::NotRegular | Refusal::Io(_) => {
                convert::refused(verb, path.as_str(), refusal)
            }
        }
    }

    /// The handle outlives the directory; a directory without a name has been removed.
    fn is_gone(&self) -> bool {
        let metadata = self.place.dir().dir_metadata();
        !metadata.is_ok_and(|metadata| metadata.nlink() > 0)
    }

    /// Returns the sandbox's directory after putting back what the last command did to the
    /// directories in it.
    fn furnished(&self, verb: &str, path: &SandboxPath) -> Result<&Arc<Place>, SandboxError> {
        self.place
            .furnish()
            .map_err(|refusal| self.refused(verb, path, refusal))?;
        Ok(&self.place)
    }

    /// Starts a command, with its output at pipes.
    fn start(
        &self,
        invocation: &Invocation,
        mark: Mark,
        cwd: &SandboxPath,
        env: &BTreeMap<String, String>,
    ) -> Result<Tree, SandboxError> {
        let entering = |refusal| self.refused("enter", cwd, refusal);
        let place = self.furnished("enter", cwd)?;
        let directory = place.enter(cwd.as_str().as_ref()).map_err(entering)?;
        let spawn = |source| SandboxError::Spawn {
            program: invocation.argv.first().cloned().unwrap_or_default(),
            source,
        };
        let root = self.directory();
        let variables = command::of_command(
            &self.host.search_path,
            &root,
            (self.name, mark),
            [&self.host.toolchains, &self.env, env],
        );
        let launched = match self.launch(mark, &root) {
            Some((launcher, launch)) => {
                let argv = launcher
                    .invocation(&launch, &invocation.argv)
                    .map_err(spawn)?;
                Some(invocation.with_argv(argv))
            }
            None => None,
        };
        let start = Start {
            invocation: launched.as_ref().unwrap_or(invocation),
            directory: (&directory, &root.join(cwd.as_str())),
            variables: &variables,
            user: None,
            // The launcher starts a session itself, and the handle of its program does not outlive `setsid`.
            setsid: self.host.setsid.as_deref().filter(|_| launched.is_none()),
            marking: self.marking(),
        };
        start
            .tree(mark)
            .map_err(|source| match directory.symlink_metadata(".") {
                Ok(_) => spawn(source),
                Err(sealed) => entering(sealed.into()),
            })
    }
}

impl LocalSandbox {
    async fn run(
        &self,
        exec: Exec,
        later: Option<&mut dyn InputSource>,
        output: &mut dyn OutputSink,
    ) -> Result<ExecOutcome, SandboxError> {
        let started = Instant::now();
        let reads = if exec.stdin.is_empty() && later.is_none() {
            Input::Nothing
        } else {
            Input::Piped
        };
        let invocation = Invocation::new(convert::program(exec.program), reads, self.marking());
        let (mark, before) = (Mark::next(self.name), self.counters());
        let tree = self.start(&invocation, mark, &exec.cwd, &exec.env)?;
        let bounds = Bounds {
            started,
            input: Fed::new([invocation.opening, &exec.stdin].concat(), later),
            timeout: exec.timeout,
            output_limit: exec.output_limit,
            warden: command::never(),
        };
        let attended = command::attend(tree, bounds, &mut Forward(output)).await;
        let outcome = attended.map_err(|source| SandboxError::Io {
            doing: format!("wait for a command in sandbox `{}`", self.id),
            source,
        })?;
        if let (Ended::Exited(code), directory) = (outcome.ended, self.directory())
            && let Some((_, launch)) = self.launch(mark, &directory)
            && let Some(source) = launch.failure(code)
        {
            return Err(SandboxError::Spawn {
                program: invocation.argv.into_iter().next().unwrap_or_default(),
                source,
            });
        }
        Ok(convert::outcome(self.counters().judge(outcome, before)))
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
        output: &mut dyn OutputSink,
    ) -> Result<ExecOutcome, SandboxError> {
        self.run(exec, None, output).await
    }

    async fn converse(
        &self,
        exec: Exec,
        input: &mut dyn InputSource,
        output: &mut dyn OutputSink,
    ) -> Result<ExecOutcome, SandboxError> {
        self.run(exec, Some(input), output).await
    }

    async fn read(&self, path: &SandboxPath, limit: u64) -> Result<Vec<u8>, SandboxError> {
        let refused = |refusal| self.refused("read", path, refusal);
        let place = self.furnished("read", path)?;
        let reading = place.read(path.as_str().as_ref()).map_err(refused)?;
        let too_large = |size| SandboxError::TooLarge {
            path: path.to_string(),
            size,
            limit,
        };
        if reading.size() > limit {
            return Err(too_large(reading.size()));
        }
        let bytes = reading.whole(limit);
        let bytes = bytes.map_err(|source| convert::failed("read", path.as_str(), source))?;
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
        let refused = |refusal| self.refused("write", path, refusal);
        let target = Path::new(path.as_str());
        let place = self.furnished("write", path)?;
        let mut writing = match mode {
            WriteMode::Replace => place.replace(target),
            WriteMode::Append => place.append(target),
        }
        .map_err(refused)?;
        writing
            .piece(bytes)
            .map_err(|source| refused(source.into()))?;
        writing.finish().map_err(refused)
    }

    async fn list(&self, path: &SandboxPath) -> Result<Vec<Entry>, SandboxError> {
        let refused = |refusal| self.refused("list", path, refusal);
        let place = self.furnished("list", path)?;
        let entries = place.list(path.as_str().as_ref()).map_err(refused)?;
        Ok(entries.into_iter().map(convert::entry).collect())
    }

    async fn delete(&self, path: &SandboxPath) -> Result<(), SandboxError> {
        let place = self.furnished("delete", path)?.clone();
        let whole = PathBuf::from(path.as_str());
        in_background(move || place.delete(&whole))
            .await
            .map_err(|refusal| self.refused("delete", path, refusal))
    }

    async fn sync(&self) -> Result<(), SandboxError> {
        let place = self.place.clone();
        in_background(move || Ok(place.sync()?))
            .await
            .map_err(|refusal| self.refused("sync", &SandboxPath::repo(), refusal))
    }

    async fn remove(&self) -> Result<(), SandboxError> {
        command::kill(Owner::Sandbox(self.name)).await;
        let (root, name) = (self.root.clone(), self.name);
        in_background(move || {
            let parent = Dir::open_ambient_dir(&root, ambient_authority())?;
            erase(&parent, name::id(name).0.as_ref())?;
            Ok(Record::remove(&root, name)?)
        })
        .await
        .map_err(|refusal| convert::refused("remove sandbox", &self.id.0, refusal))
    }
}

/// Does something long on a thread of its own: a directory can hold any number of files.
async fn in_background(
    work: impl FnOnce() -> Result<(), Refusal> + Send + 'static,
) -> Result<(), Refusal> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|stopped| Err(Refusal::Io(io::Error::other(stopped))))
}
