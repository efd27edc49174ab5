//! The live handle of a local sandbox.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use async_trait::async_trait;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use ralph_core::path::SandboxPath;
use ralph_core::ports::{
    Entry, Exec, ExecOutcome, OutputSink, Sandbox, SandboxError, SandboxId, WriteMode,
};
use tokio::process::Command;
use tokio::time::Instant;

use super::environment::{self, HOME, TMP};
use super::erase::erase;
use super::exec::{Bounds, attend};
use super::files;
use super::host::Host;
use super::invocation::Invocation;
use super::mark::{Mark, Name};
use super::programs;
use super::record::Record;
use super::refusal::Attempt;
use super::sweep::Owner;
use super::tree::{self, Tree};

/// One directory, seen through a handle that nothing leads out of.
#[derive(Debug)]
pub(super) struct LocalSandbox {
    id: SandboxId,
    name: Name,
    root: PathBuf,
    dir: Dir,
    env: BTreeMap<String, String>,
    host: Host,
}

impl LocalSandbox {
    pub(super) fn new(
        name: Name,
        root: &Path,
        dir: Dir,
        env: BTreeMap<String, String>,
        host: Host,
    ) -> Self {
        Self {
            id: name.id(),
            name,
            root: root.to_owned(),
            dir,
            env,
            host,
        }
    }

    fn attempt<'a>(&'a self, verb: &'static str, path: &'a SandboxPath) -> Attempt<'a> {
        Attempt {
            id: &self.id,
            dir: &self.dir,
            path,
            verb,
        }
    }

    /// Starts a command, with its output at pipes.
    fn start(
        &self,
        invocation: &Invocation,
        cwd: &SandboxPath,
        env: &BTreeMap<String, String>,
    ) -> Result<Tree, SandboxError> {
        let entering = self.attempt("enter", cwd);
        let directory = self
            .dir
            .open_dir(cwd.as_str())
            .map_err(|source| entering.refused(source))?;
        // A command may remove them like anything else; the next one has them again.
        for name in [HOME, TMP] {
            self.dir.create_dir(name).ok();
        }
        let spawn = |source| SandboxError::Spawn {
            program: invocation.argv.first().cloned().unwrap_or_default(),
            source,
        };
        let [program, arguments @ ..] = invocation.argv.as_slice() else {
            let nothing = io::Error::new(ErrorKind::InvalidInput, "no program is named");
            return Err(spawn(nothing));
        };
        let mark = Mark::next(self.name);
        let root = self.root.join(&self.id.0);
        let variables = environment::of_command(
            &self.host.search_path,
            &root,
            (self.name, mark),
            [&self.host.toolchains, &self.env, env],
        );
        // A program by its path, in an environment that is set up before, can be started without
        // copying this process first, which costs as much as a small command takes.
        let search_path = variables.get(OsStr::new("PATH"));
        let file = search_path.and_then(|path| programs::find(path, program));
        let file = file.as_deref().unwrap_or(program.as_ref());
        let mut command = match &self.host.setsid {
            Some(setsid) => Command::new(setsid),
            None => Command::new(file),
        };
        if self.host.setsid.is_some() {
            command.arg(program);
        } else {
            command.arg0(program).process_group(0);
        }
        command
            .args(arguments)
            .env_clear()
            .envs(&variables)
            .current_dir(path_of(&directory, &root.join(cwd.as_str())))
            .stdin(invocation.stdin())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Tree::spawn(command, mark).map_err(|source| match directory.symlink_metadata(".") {
            Ok(_) => spawn(source),
            Err(sealed) => entering.refused(sealed),
        })
    }
}

/// Returns a path that leads to a directory that is open. On Linux it names the open handle itself,
/// so that nothing can be put in its place before the command starts there.
fn path_of(dir: &Dir, path: &Path) -> PathBuf {
    use std::os::fd::AsRawFd as _;
    if cfg!(target_os = "linux") {
        PathBuf::from(format!("/proc/self/fd/{}", dir.as_raw_fd()))
    } else {
        path.to_owned()
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
        let started = Instant::now();
        let invocation = Invocation::new(exec.program, exec.stdin);
        let tree = self.start(&invocation, &exec.cwd, &exec.env)?;
        let bounds = Bounds {
            started,
            input: invocation.input,
            timeout: exec.timeout,
            output_limit: exec.output_limit,
        };
        attend(tree, bounds, output)
            .await
            .map_err(|source| SandboxError::Io {
                doing: format!("wait for a command in sandbox `{}`", self.id),
                source,
            })
    }

    async fn read(&self, path: &SandboxPath, limit: u64) -> Result<Vec<u8>, SandboxError> {
        files::read(&self.attempt("read", path), limit)
    }

    async fn write(
        &self,
        path: &SandboxPath,
        bytes: &[u8],
        mode: WriteMode,
    ) -> Result<(), SandboxError> {
        let attempt = self.attempt("write", path);
        match mode {
            WriteMode::Replace => files::replace(&attempt, bytes),
            WriteMode::Append => files::append(&attempt, bytes),
        }
    }

    async fn list(&self, path: &SandboxPath) -> Result<Vec<Entry>, SandboxError> {
        files::list(&self.attempt("list", path))
    }

    async fn delete(&self, path: &SandboxPath) -> Result<(), SandboxError> {
        let attempt = self.attempt("delete", path);
        let whole = Path::new(path.as_str());
        let parent = whole
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        let name = whole.file_name().unwrap_or(OsStr::new(".")).to_owned();
        match self.dir.open_dir(parent) {
            Ok(parent) => in_background(move || erase(&parent, &name))
                .await
                .map_err(|source| attempt.refused(source)),
            // Below something that is missing, or no directory, there is nothing to remove.
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                Ok(())
            }
            Err(error) => Err(attempt.refused(error)),
        }
    }

    async fn remove(&self) -> Result<(), SandboxError> {
        tree::kill(Owner::Sandbox(self.name)).await;
        let (root, name) = (self.root.clone(), self.name);
        in_background(move || {
            let parent = Dir::open_ambient_dir(&root, ambient_authority())?;
            erase(&parent, name.id().0.as_ref())?;
            Record::remove(&root, name)
        })
        .await
        .map_err(|source| SandboxError::Io {
            doing: format!("remove sandbox `{}`", self.id),
            source,
        })
    }
}

/// Does something long on a thread of its own: a directory can hold any number of files.
async fn in_background(work: impl FnOnce() -> io::Result<()> + Send + 'static) -> io::Result<()> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|stopped| Err(io::Error::other(stopped)))
}
