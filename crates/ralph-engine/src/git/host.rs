//! Git on the host, only ever in a bare repository whose configuration ralph wrote.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use ralph_core::id::CommitId;
use ralph_core::path::absolute_search_path;
use ralph_core::surface::{Change, ChangedPath};
use tokio::process::Command;

use super::GitError;
use super::bounded;
use super::history;
use super::telling::telling_line;
use crate::durable::{self, StoreError};

/// How many packs the repository may have: each makes every git command a little slower.
const MAX_PACKS: usize = 16;

/// Stands for git if no directory of the search path has it; starting it fails with "not found". A bare
/// name would be searched again, in the current directory if the search path is empty.
const MISSING_PROGRAM: &str = "/nonexistent/git";

/// The host's git program with an environment of its own.
#[derive(Debug, Clone)]
pub struct HostGit {
    program: PathBuf,
    path: String,
    config: PathBuf,
    home: Option<PathBuf>,
}

/// Objects and refs are synced, so that a ref never names an object that a power cut emptied. Git before
/// 2.36 knows only `fsyncObjectFiles`; later versions prefer `fsync`. New objects stay in one pack, here and
/// in the repository that is pushed to: two files to sync, and a damaged loose object does not hide them.
const CONFIG: &str = "\
[safe]\n\tdirectory = *\n\tbareRepository = all\n\
[core]\n\thooksPath = /dev/null\n\tbigFileThreshold = 16m\n\
\tfsync = all\n\tfsyncMethod = fsync\n\tfsyncObjectFiles = true\n\
[transfer]\n\tunpackLimit = 1\n\
[init]\n\tdefaultBranch = main\n\
[protocol]\n\tallow = never\n\
[protocol \"file\"]\n\tallow = always\n\
[protocol \"https\"]\n\tallow = always\n\
[gc]\n\tauto = 0\n\
[pack]\n\twriteReverseIndex = false\n\twindowMemory = 64m\n\tthreads = 2\n\
[repack]\n\twriteBitmaps = false\n\tupdateServerInfo = false\n\
[maintenance]\n\tauto = false\n";

impl HostGit {
    /// Uses the git on `path` (a `PATH` value) with a configuration file that it writes to `config`. The
    /// file is named `.gitconfig`, so that git before 2.32 finds it, too: as the one of its `HOME`.
    /// `home` is the user's, for looking at the user's own repositories.
    pub fn new(path: &str, config: PathBuf, home: Option<PathBuf>) -> Result<Self, StoreError> {
        let current = std::fs::read(&config).is_ok_and(|text| text == CONFIG.as_bytes());
        if !current {
            if let Some(directory) = config.parent() {
                durable::make_dir(directory)?;
            }
            durable::write_shared(&config, CONFIG.as_bytes())?;
        }
        Ok(Self::found(path, config, home))
    }

    /// Uses the git on `path` for looking at the user's own repositories only: nothing is written.
    pub fn looking(path: &str, home: Option<PathBuf>) -> Self {
        Self::found(path, PathBuf::from("/dev/null"), home)
    }

    fn found(path: &str, config: PathBuf, home: Option<PathBuf>) -> Self {
        // A relative entry would name a directory of the repository that git is started in.
        let path = absolute_search_path(path);
        // By its path, git can be started without copying this process first.
        let program = std::env::split_paths(&path)
            .map(|directory| directory.join("git"))
            .find(|file| file.is_absolute() && is_executable(file))
            .unwrap_or_else(|| PathBuf::from(MISSING_PROGRAM));
        Self {
            program,
            path,
            config,
            home,
        }
    }

    /// Returns the program and the configuration file.
    pub fn program(&self) -> (&Path, &Path) {
        (&self.program, &self.config)
    }

    /// Returns a git command in `dir` that knows nothing of the user's environment.
    pub(super) fn command(&self, dir: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command
            .current_dir(dir)
            .env_clear()
            .env("PATH", &self.path)
            .env("HOME", self.config.parent().unwrap_or(dir))
            .env("LC_ALL", "C.UTF-8")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", &self.config)
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_AUTHOR_NAME", "ralph")
            .env("GIT_AUTHOR_EMAIL", "ralph@localhost")
            .env("GIT_COMMITTER_NAME", "ralph")
            .env("GIT_COMMITTER_EMAIL", "ralph@localhost")
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    /// Runs git in a directory of the user's, as the user would: whom a repository belongs to is looked
    /// at, and what the user has called safe is safe. Nothing of it is started on the side.
    pub async fn run_in(&self, dir: &Path, args: &[&str]) -> Result<String, GitError> {
        let name = args.first().copied().unwrap_or_default();
        let output = bounded::output(self.command_in(dir).args(args), name, b"").await?;
        text_of(name, &output)
    }

    /// Returns a git command in a directory of the user's, as the user would give it.
    pub(super) fn command_in(&self, dir: &Path) -> Command {
        let mut command = self.command(dir);
        command
            .env_remove("GIT_CONFIG_GLOBAL")
            .env_remove("GIT_CONFIG_NOSYSTEM");
        // A partial clone would fetch missing objects from its remote in silence.
        command.env("GIT_NO_LAZY_FETCH", "1");
        if let Some(home) = &self.home {
            command.env("HOME", home);
        }
        command
            .args([
                "-c",
                "core.fsmonitor=false",
                "-c",
                "core.hooksPath=/dev/null",
            ])
            // Git before 2.45 does not know the variable above.
            .args(["-c", "protocol.allow=never"])
            .args(["-c", "commit.gpgSign=false"]);
        command
    }

    /// Returns the bare repository at `path`.
    pub fn repo(&self, path: PathBuf) -> HostRepo {
        HostRepo {
            git: self.clone(),
            path,
            apart: None,
        }
    }
}

fn is_executable(file: &Path) -> bool {
    let found = file.metadata();
    found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

pub(super) fn text_of(command: &str, output: &Output) -> Result<String, GitError> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let command = command.to_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    let is_full = ["No space left on device", "Out of diskspace"]
        .iter()
        .any(|words| stderr.contains(words));
    Err(if is_full {
        GitError::Full { command }
    } else {
        let message = telling_line(&stderr).unwrap_or("no message").to_owned();
        GitError::Failed { command, message }
    })
}

fn commit_of(command: &str, text: &str) -> Result<CommitId, GitError> {
    CommitId::parse(text.trim()).ok_or_else(|| GitError::Unexpected {
        command: command.to_owned(),
        answer: text.trim().to_owned(),
    })
}

/// A run's own bare repository.
#[derive(Debug, Clone)]
pub struct HostRepo {
    git: HostGit,
    path: PathBuf,
    /// Where new objects go, if not into the repository.
    apart: Option<PathBuf>,
}

impl HostRepo {
    pub(super) fn git(&self) -> &HostGit {
        &self.git
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn command(&self) -> Command {
        let mut command = self.git.command(&self.path);
        // Named, because git would look for another repository above if this one is damaged.
        command.env("GIT_DIR", &self.path);
        if let Some(apart) = &self.apart {
            command.env("GIT_OBJECT_DIRECTORY", apart).env(
                "GIT_ALTERNATE_OBJECT_DIRECTORIES",
                self.path.join("objects"),
            );
        }
        command
    }

    /// Returns the same repository with new objects in a directory of their own, so that what is
    /// looked at through it is not taken in.
    pub(super) fn apart(&self, objects: PathBuf) -> Self {
        Self {
            apart: Some(objects),
            ..self.clone()
        }
    }

    pub(super) async fn run<S: AsRef<OsStr>>(&self, args: &[S]) -> Result<String, GitError> {
        self.with_input(args, b"").await
    }

    /// Waits until the repository would survive a power cut, its directories included.
    pub(super) fn sync(&self) -> Result<(), StoreError> {
        durable::sync_filesystem(&self.path)
    }

    /// Makes the repository, fetches the base commit and sets the run's branch to it. May be repeated. The
    /// result survives a power cut.
    pub async fn prepare(
        &self,
        source: &str,
        base_branch: &str,
        base: &CommitId,
        branch: &str,
    ) -> Result<(), GitError> {
        durable::make_dir(&self.path)?;
        let format = format!("--object-format={}", base.object_format());
        self.run(&["init", "--quiet", "--bare", "--template=", &format, "."])
            .await?;
        let refspec = format!("+refs/heads/{base_branch}:refs/start");
        self.run(&["fetch", "--quiet", "--no-tags", source, &refspec])
            .await?;
        self.run(&["update-ref", "refs/start", base.as_str()])
            .await?;
        self.run(&["update-ref", &format!("refs/heads/{branch}"), base.as_str()])
            .await?;
        Ok(self.sync()?)
    }

    /// Returns the commit a branch stands at.
    pub async fn head(&self, branch: &str) -> Result<CommitId, GitError> {
        let text = self
            .run(&[
                "rev-parse",
                "--verify",
                "--quiet",
                &format!("refs/heads/{branch}"),
            ])
            .await?;
        commit_of("rev-parse", &text)
    }

    /// Writes a bundle of a branch to a file.
    pub async fn bundle(&self, branch: &str, file: &Path) -> Result<(), GitError> {
        let branch = format!("refs/heads/{branch}");
        let args: [&OsStr; 5] = [
            "bundle".as_ref(),
            "create".as_ref(),
            "--quiet".as_ref(),
            file.as_os_str(),
            branch.as_ref(),
        ];
        self.run(&args).await.map(drop)
    }

    /// Joins the small packs once there are many: every import leaves one, and every git command
    /// looks into all of them.
    pub(super) async fn join_packs(&self) {
        let entries = std::fs::read_dir(self.path.join("objects/pack"));
        let packs = entries.map_or(0, |entries| {
            entries
                .filter_map(Result::ok)
                .filter(|entry| entry.path().extension() == Some(OsStr::new("pack")))
                .count()
        });
        if packs >= MAX_PACKS {
            // Without this it only takes longer; whatever is wrong shows at the next import.
            let joined = self
                .run(&["repack", "-d", "--quiet", "--geometric=2"])
                .await;
            if joined.is_err() {
                // Git before 2.32 can only join all of them.
                self.run(&["repack", "-a", "-d", "--keep-unreachable", "--quiet"])
                    .await
                    .ok();
            }
        }
    }

    /// Returns the titles of the last commits in a range, newest first, at most `count`.
    pub async fn titles(
        &self,
        from: &CommitId,
        to: &CommitId,
        count: usize,
    ) -> Result<Vec<String>, GitError> {
        let range = format!("{from}..{to}");
        let count = format!("--max-count={count}");
        let text = self
            .run(&["log", "--no-decorate", "--format=%H %s", &count, &range])
            .await?;
        let title = |line: &str| {
            let (id, subject) = line.split_once(' ').unwrap_or((line, ""));
            Some(history::title(&CommitId::parse(id)?, subject))
        };
        Ok(text.lines().filter_map(title).collect())
    }

    /// Returns the files that differ between two commits.
    pub async fn changed(
        &self,
        from: &CommitId,
        to: &CommitId,
    ) -> Result<Vec<ChangedPath>, GitError> {
        let text = self
            .run(&[
                "diff-tree",
                "-r",
                "--no-renames",
                "--name-status",
                "-z",
                from.as_str(),
                to.as_str(),
            ])
            .await?;
        let mut parts = text.split('\0');
        let mut files = Vec::new();
        while let (Some(letter), Some(path)) = (parts.next(), parts.next()) {
            let change = match letter {
                "A" => Change::Added,
                "D" => Change::Deleted,
                _ => Change::Modified,
            };
            files.push(ChangedPath {
                path: path.to_owned(),
                change,
            });
        }
        Ok(files)
    }

    /// Returns where a ref stands at a remote, if it exists there.
    pub async fn remote_ref(
        &self,
        remote: &str,
        reference: &str,
    ) -> Result<Option<CommitId>, GitError> {
        let text = self
            .run(&["ls-remote", "--quiet", remote, reference])
            .await?;
        text.split_whitespace()
            .next()
            .map(|id| commit_of("ls-remote", id))
            .transpose()
    }

    /// Pushes a commit to a branch of a remote, forward only.
    pub async fn push(
        &self,
        remote: &str,
        commit: &CommitId,
        reference: &str,
    ) -> Result<(), GitError> {
        let refspec = format!("{commit}:{reference}");
        match self
            .run(&["push", "--quiet", "--no-verify", remote, &refspec])
            .await
        {
            Err(GitError::Failed { message, .. }) => {
                let there = self.remote_ref(remote, reference).await?;
                match there {
                    Some(there) if there == *commit => Ok(()),
                    Some(_) if !self.is_known(there.as_ref()).await => Err(GitError::Moved {
                        branch: reference.trim_start_matches("refs/heads/").to_owned(),
                    }),
                    _ => Err(GitError::Failed {
                        command: "push".into(),
                        message,
                    }),
                }
            }
            other => other.map(drop),
        }
    }

    async fn is_known(&self, commit: Option<&CommitId>) -> bool {
        match commit {
            Some(commit) => self.has(commit).await,
            None => true,
        }
    }

    /// Returns whether a commit is in the repository.
    pub(crate) async fn has(&self, commit: &CommitId) -> bool {
        self.run(&["cat-file", "-e", &format!("{commit}^{{commit}}")])
            .await
            .is_ok()
    }

    /// Commits files of a host directory under a ref, on top of what the ref holds. The commit survives a
    /// power cut.
    pub async fn snapshot(
        &self,
        dir: &Path,
        paths: &[&str],
        reference: &str,
        message: &str,
    ) -> Result<CommitId, GitError> {
        let index = self.path.join("snapshot.index");
        std::fs::remove_file(&index).ok();
        let with_tree = |args: &[&str]| {
            let mut command = self.git.command(dir);
            command
                .env("GIT_DIR", &self.path)
                .env("GIT_WORK_TREE", dir)
                .env("GIT_INDEX_FILE", &index)
                .args(args);
            command
        };
        let mut add = vec!["add", "--force", "--"];
        add.extend(paths);
        let added = bounded::output(&mut with_tree(&add), "add", b"").await?;
        text_of("add", &added)?;
        let tree = bounded::output(&mut with_tree(&["write-tree"]), "write-tree", b"").await?;
        let tree = text_of("write-tree", &tree)?;
        let parent = self
            .run(&["rev-parse", "--verify", "--quiet", reference])
            .await
            .ok();
        let mut args = vec!["commit-tree".to_owned(), tree.trim().to_owned()];
        if let Some(parent) = &parent {
            args.extend(["-p".to_owned(), parent.trim().to_owned()]);
        }
        let commit = commit_of(
            "commit-tree",
            &self.with_input(&args, message.as_bytes()).await?,
        )?;
        self.run(&["update-ref", reference, commit.as_str()])
            .await?;
        std::fs::remove_file(&index).ok();
        self.sync()?;
        Ok(commit)
    }

    /// Brings a ref of a remote here, if it is there and not here yet.
    pub async fn adopt(&self, remote: &str, reference: &str) -> Result<(), GitError> {
        let known = self
            .run(&["rev-parse", "--verify", "--quiet", reference])
            .await
            .is_ok();
        if known {
            return Ok(());
        }
        self.adopt_newest(remote, reference).await
    }

    /// Brings a ref of a remote here, if it is there. It replaces the one that is here.
    pub async fn adopt_newest(&self, remote: &str, reference: &str) -> Result<(), GitError> {
        if self.remote_ref(remote, reference).await?.is_none() {
            return Ok(());
        }
        let refspec = format!("+{reference}:{reference}");
        self.run(&["fetch", "--quiet", "--no-tags", remote, &refspec])
            .await
            .map(drop)
    }

    /// Runs a command that reads `input`.
    pub(super) async fn with_input<S: AsRef<OsStr>>(
        &self,
        args: &[S],
        input: &[u8],
    ) -> Result<String, GitError> {
        let name = name_of(args);
        let output = bounded::output(self.command().args(args), &name, input).await?;
        text_of(&name, &output)
    }
}

pub(super) fn name_of<S: AsRef<OsStr>>(args: &[S]) -> String {
    let name = args.first().map(AsRef::as_ref).unwrap_or_default();
    name.to_string_lossy().into_owned()
}
