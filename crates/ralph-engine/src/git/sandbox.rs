//! Git inside the sandbox, over `Sandbox::exec`. Its output is untrusted, so the host relies only
//! on objects that it has fetched and checked itself.

use std::path::Path;
use std::time::Duration;

use ralph_core::id::CommitId;
use ralph_core::path::{SandboxPath, WorkspacePath};
use ralph_core::plan::GitIdentity;
use ralph_core::ports::{
    Exec, ExecProgram, ExecStatus, OutputSink, OutputStream, Sandbox, SandboxError,
};

use super::GitError;
use super::call_log::GitCall;
use super::change::IterationChange;
use super::commit::OwnFiles;
use super::error_line::most_relevant_line;
use super::origin::RemoteOrigin;
use super::survey::exclude_pathspecs;
use super::version::GitVersion;
use super::work_tree::WorkTree;
use crate::error::RunError;
use crate::transfer;
use crate::workspace::repo_path;

pub(super) const TIMEOUT: Duration = Duration::from_mins(10);
/// The timeout for reading the work tree, which a command can fill with anything.
pub(super) const STATUS_TIMEOUT: Duration = Duration::from_mins(2);
const MAX_GIT_OUTPUT: usize = 64 << 20;
/// The pathspecs of a diff: everything but the run's own files.
pub(super) const WITHOUT_OWN_FILES: [&str; 3] =
    [".", ":(exclude).ralph", ":(exclude)ralph_task.md"];

/// The configuration of every command, which overrides that of the repository.
const CONFIG: [(&str, &str); 5] = [
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    // Larger files are not loaded into memory, nor compared line by line.
    ("core.bigFileThreshold", "16m"),
    // A diff would read every file with a changed time, excluded or not; `status` has already done
    // so.
    ("diff.autoRefreshIndex", "false"),
    // A power cut must not leave an empty index or object: the repository would be damaged, and
    // commits that were not imported yet would be lost with it. Versions before 2.36 ignore the
    // key.
    ("core.fsync", "all"),
];

/// Runs git in a sandbox.
pub struct SandboxGit<'a> {
    pub(super) sandbox: &'a dyn Sandbox,
}

/// The source of a fresh workspace.
#[derive(Debug, Clone, Copy)]
pub struct BundleSource<'a> {
    pub bundle: &'a Path,
    pub branch: &'a str,
    /// The author of commits in the sandbox.
    pub author: &'a GitIdentity,
    /// The repository on a source host, which git in the sandbox may read through the gate.
    pub remote: Option<&'a RemoteOrigin>,
}

pub(super) struct GitOutput {
    pub(super) ended: ExecStatus,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: String,
}

impl GitOutput {
    /// Returns the standard output of the command, or its failure.
    fn into_stdout(self, command: &str) -> Result<Vec<u8>, GitError> {
        if self.ended.is_success() {
            return Ok(self.stdout);
        }
        Err(GitError::InSandbox {
            command: command.to_owned(),
            message: failure_reason(&self.stderr, self.ended),
        })
    }
}

fn command_line(exec: &Exec) -> String {
    match &exec.program {
        ExecProgram::Shell(script) => script.clone(),
        ExecProgram::Argv(argv) => argv.join(" "),
    }
}

#[derive(Default)]
struct GitOutputCollector {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl OutputSink for GitOutputCollector {
    fn chunk(&mut self, stream: OutputStream, bytes: &[u8]) {
        let (buffer, limit) = match stream {
            OutputStream::Stdout => (&mut self.stdout, MAX_GIT_OUTPUT),
            OutputStream::Stderr => (&mut self.stderr, 64 << 10),
        };
        let room = limit.saturating_sub(buffer.len()).min(bytes.len());
        buffer.extend_from_slice(&bytes[..room]);
    }
}

impl<'a> SandboxGit<'a> {
    /// Uses the git of a sandbox.
    pub fn new(sandbox: &'a dyn Sandbox) -> Self {
        Self { sandbox }
    }

    /// Runs git in the workspace, and never in a parent repository when the workspace's own is
    /// missing.
    pub(super) async fn exec(&self, exec: Exec) -> Result<GitOutput, SandboxError> {
        let exec = exec
            .with_env("GIT_DIR", ".git")
            .with_env("GIT_WORK_TREE", ".");
        self.exec_outside_repo(exec).await
    }

    async fn exec_outside_repo(&self, exec: Exec) -> Result<GitOutput, SandboxError> {
        let exec = exec
            // Git before 2.32 does not know `GIT_CONFIG_GLOBAL`.
            .with_env("HOME", "/dev/null")
            .with_env("XDG_CONFIG_HOME", "/dev/null")
            .with_env("GIT_CONFIG_GLOBAL", "/dev/null")
            .with_env("GIT_CONFIG_NOSYSTEM", "1")
            .with_env("GIT_CONFIG_PARAMETERS", config_parameters())
            // Replaced objects and grafts would show a different history from the one that is
            // pushed.
            .with_env("GIT_NO_REPLACE_OBJECTS", "1")
            .with_env("GIT_GRAFT_FILE", "/dev/null/none")
            .with_env("LC_ALL", "C.UTF-8");
        let call = GitCall::new("sandbox", command_line(&exec));
        let mut collect = GitOutputCollector::default();
        let outcome = self.sandbox.exec(exec, None, &mut collect).await;
        let outcome = outcome.inspect_err(|error| call.log_error(error))?;
        call.log_exit(Some(outcome.ended.exit_code()), &collect.stderr);
        Ok(GitOutput {
            ended: outcome.ended,
            stdout: collect.stdout,
            stderr: String::from_utf8_lossy(&collect.stderr).into_owned(),
        })
    }

    pub(super) async fn git(&self, args: &[&str]) -> Result<Vec<u8>, RunError> {
        let exec = Exec::argv(std::iter::once("git").chain(args.iter().copied()), TIMEOUT);
        self.exec_checked(args[0], exec).await
    }

    pub(super) async fn exec_checked(
        &self,
        command: &str,
        exec: Exec,
    ) -> Result<Vec<u8>, RunError> {
        Ok(self.exec(exec).await?.into_stdout(command)?)
    }

    /// Returns why the sandbox's git cannot be used, if it cannot.
    pub async fn unusable_reason(&self) -> Result<Option<String>, RunError> {
        let output = self.exec_outside_repo(Exec::shell("git --version", TIMEOUT));
        let output = output.await?;
        if !output.ended.is_success() {
            return Ok(Some("has no working git".to_owned()));
        }
        let version = GitVersion::parse(&String::from_utf8_lossy(&output.stdout));
        Ok(version.filter(GitVersion::is_too_old).map(|version| {
            let requirement = GitVersion::requirement();
            format!("has git {version}, and {requirement}")
        }))
    }

    /// Puts a repository with one branch into the workspace, replacing its `.git`. Files stay as
    /// they are.
    pub async fn install(&self, origin: BundleSource<'_>) -> Result<(), RunError> {
        // Nothing in these directories is needed. Unlike a command, the provider can also remove
        // files without permissions.
        self.sandbox.delete(&SandboxPath::scratch()).await?;
        self.sandbox.delete(&repo_path(".git")?).await?;
        transfer::upload(self.sandbox, origin.bundle, &scratch_path("in.bundle")?).await?;
        // The active submodules are configured here, because `git submodule init` would change the guarded
        // configuration.
        let script = "set -e; rm -rf clone; \
            git clone --quiet --no-checkout --template= --branch \"$BRANCH\" in.bundle clone; \
            cd clone; git remote remove origin; \
            git config user.name \"$AUTHOR_NAME\"; git config user.email \"$AUTHOR_EMAIL\"; git config gc.auto 0; \
            if [ $# -gt 0 ]; then git config remote.origin.url \"$1\"; \
            git config remote.origin.fetch '+refs/heads/*:refs/remotes/origin/*'; shift; fi; \
            while [ $# -gt 0 ]; do git config \"submodule.$1.active\" true; \
            git config \"submodule.$1.url\" \"$2\"; shift 2; done; \
            mkdir -p .git/info; printf '/.ralph\\n/ralph_task.md\\n' > .git/info/exclude; \
            cd ..; rm -rf ../repo/.git; mv clone/.git ../repo/.git; rm -rf clone in.bundle";
        let argv = ["sh", "-c", script, "sh"].map(String::from).into_iter();
        let remote = origin.remote.map(RemoteOrigin::arguments);
        let exec = Exec::argv(argv.chain(remote.into_iter().flatten()), TIMEOUT)
            .in_dir(SandboxPath::scratch())
            .with_env("BRANCH", origin.branch)
            .with_env("AUTHOR_NAME", &origin.author.name)
            .with_env("AUTHOR_EMAIL", &origin.author.email);
        self.exec_outside_repo(exec).await?.into_stdout("clone")?;
        Ok(())
    }

    /// Removes the locks of git processes that were killed. Nothing may be running in the sandbox.
    pub async fn remove_locks(&self) -> Result<(), RunError> {
        let script = "find .git -name '*.lock' ! -type d -exec rm -f {} +";
        // Without a repository there are no locks.
        self.exec(Exec::shell(script, TIMEOUT)).await?;
        Ok(())
    }

    /// Checks out the files of the commit in a fresh workspace.
    pub async fn check_out(&self) -> Result<(), RunError> {
        self.git(&["reset", "--quiet", "--hard"]).await.map(drop)
    }

    /// Hides the run's own files from git if the repository tracks them, unless they are committed.
    pub async fn hide_own_files(&self, own: OwnFiles) -> Result<(), RunError> {
        if own == OwnFiles::Committed {
            return Ok(());
        }
        let tracked = self
            .git(&["ls-files", "-z", "--", "ralph_task.md", ".ralph"])
            .await?;
        if tracked.is_empty() {
            return Ok(());
        }
        let exec = Exec::argv(
            ["git", "update-index", "--skip-worktree", "-z", "--stdin"],
            TIMEOUT,
        )
        .with_stdin(tracked);
        self.exec_checked("update-index", exec).await.map(drop)
    }

    /// Inspects the workspace. The run's own files are left out; files that are too large for git
    /// are only named.
    pub async fn status(&self) -> Result<WorkTree, RunError> {
        let survey = self.survey().await?;
        let mut args = ["git", "status", "--porcelain=v2", "--branch", "-z"]
            .map(String::from)
            .to_vec();
        if !survey.large.is_empty() {
            args.extend(["--".to_owned(), ".".to_owned()]);
            args.extend(exclude_pathspecs(&survey.large));
        }
        let text = self
            .exec_checked("status", Exec::argv(args, STATUS_TIMEOUT))
            .await?;
        let mut tree = WorkTree::parse(&String::from_utf8_lossy(&text));
        let large = survey.large.iter();
        tree.entries
            .extend(large.map(|path| ("??".to_owned(), path.clone())));
        tree.survey = survey;
        Ok(tree)
    }

    /// Returns the full diff of the workspace against a commit, including new files, without the
    /// run's own files. A diff that is too long or too slow is truncated.
    pub async fn diff(&self, from: &CommitId, tree: &WorkTree) -> Result<Vec<u8>, RunError> {
        let flags = format!("--no-color --no-ext-diff --no-textconv {from}");
        if !tree.entries.is_empty() {
            return self.diff_with(tree, &flags).await;
        }
        match tree.head.as_ref().filter(|head| *head != from) {
            Some(head) => self.diff_with(tree, &format!("{flags} {head}")).await,
            None => Ok(Vec::new()),
        }
    }

    /// Returns the diff between the recorded files of two moments; `tree` names the files that git
    /// must not read.
    pub async fn diff_of_change(
        &self,
        change: &IterationChange,
        tree: &WorkTree,
    ) -> Result<Vec<u8>, RunError> {
        let (from, to) = (&change.since, &change.tree);
        let flags = format!("--no-color --no-ext-diff --no-textconv {from} {to}");
        // New files are part of the recorded trees.
        let tree = WorkTree {
            survey: tree.survey.clone(),
            ..WorkTree::default()
        };
        self.diff_with(&tree, &flags).await
    }

    /// Returns a summary of uncommitted changes, including new files, without the run's own files.
    pub async fn diff_stat(&self, tree: &WorkTree) -> Result<String, RunError> {
        if tree.entries.is_empty() {
            return Ok(String::new());
        }
        let flags = "--stat=100 --no-color --no-ext-diff HEAD";
        let text = self.diff_with(tree, flags).await?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Runs a diff that includes untracked files: they are added to a copy of the index, so that
    /// the index stays unchanged.
    async fn diff_with(&self, tree: &WorkTree, flags: &str) -> Result<Vec<u8>, RunError> {
        let script = "set -e; if [ -n \"$NEW\" ]; then \
            export GIT_INDEX_FILE=\"$PWD/.git/ralph.index\"; \
            if [ -e .git/index ]; then cp .git/index \"$GIT_INDEX_FILE\"; fi; \
            git add --intent-to-add --all --ignore-errors -- \"$@\" || true; fi; \
            git diff $FLAGS -- \"$@\"; [ -z \"$NEW\" ] || rm -f \"$GIT_INDEX_FILE\"";
        let argv = ["sh", "-c", script, "sh"].map(String::from).into_iter();
        let mut exec = Exec::argv(argv.chain(pathspecs(tree)), STATUS_TIMEOUT)
            .with_env("FLAGS", flags)
            .with_env("NEW", if tree.has_untracked() { "yes" } else { "" });
        exec.output_limit = MAX_GIT_OUTPUT as u64;
        let output = self.exec(exec).await?;
        match output.ended {
            ExecStatus::OutputLimit | ExecStatus::TimedOut => Ok(output.stdout),
            ExecStatus::Exited(_)
            | ExecStatus::Signalled(_)
            | ExecStatus::DiskLimit
            | ExecStatus::OutOfMemory => Ok(output.into_stdout("diff")?),
        }
    }

    /// Returns the checked-out commit if it has a trailer.
    pub async fn head_with_trailer(&self, trailer: &str) -> Result<Option<CommitId>, RunError> {
        let text = self.git(&["log", "-1", "--format=%H%n%B"]).await?;
        let text = String::from_utf8_lossy(&text);
        let found = text.lines().skip(1).any(|line| line.trim() == trailer);
        Ok(text
            .lines()
            .next()
            .filter(|_| found)
            .and_then(CommitId::parse))
    }

    /// Resets the workspace to its branch at a commit, without changing files. Unlike `git reset`,
    /// this reads no file of the work tree.
    pub async fn reset_to_branch(
        &self,
        branch: &str,
        commit: &CommitId,
        own: OwnFiles,
    ) -> Result<(), RunError> {
        let script = "set -e; git symbolic-ref HEAD \"refs/heads/$BRANCH\"; \
            git update-ref -m ralph HEAD \"$COMMIT\"; rm -rf .git/index; git read-tree \"$COMMIT\"; \
            cd .git; rm -rf MERGE_HEAD MERGE_MSG MERGE_MODE SQUASH_MSG CHERRY_PICK_HEAD REVERT_HEAD AUTO_MERGE";
        let exec = Exec::shell(script, TIMEOUT)
            .with_env("BRANCH", branch)
            .with_env("COMMIT", commit.as_str());
        self.exec_checked("read-tree", exec).await?;
        self.hide_own_files(own).await
    }

    /// Restores the files of the index if all of them are missing. Returns whether it did.
    pub async fn restore_if_empty(&self) -> Result<bool, RunError> {
        let script = "all=$(git ls-files | wc -l); gone=$(git ls-files --deleted | wc -l); \
            if [ \"$all\" -gt 0 ] && [ \"$all\" = \"$gone\" ]; then git checkout-index --all --quiet; echo restored; fi";
        let output = self.exec_checked("checkout-index", Exec::shell(script, TIMEOUT));
        Ok(!output.await?.is_empty())
    }

    /// Returns whether a revision is a descendant of a commit.
    pub async fn is_descendant(&self, revision: &str, commit: &CommitId) -> Result<bool, RunError> {
        let exec = Exec::argv(
            [
                "git",
                "merge-base",
                "--is-ancestor",
                commit.as_str(),
                revision,
            ],
            TIMEOUT,
        );
        Ok(self.exec(exec).await?.ended.is_success())
    }

    /// Returns the branch's commits after `known` as a bundle.
    pub async fn bundle(&self, branch: &str, known: &CommitId) -> Result<Vec<u8>, RunError> {
        let branch = format!("refs/heads/{branch}");
        let bytes = self
            .git(&[
                "bundle",
                "create",
                "--quiet",
                "-",
                &format!("^{known}"),
                &branch,
            ])
            .await?;
        if bytes.len() >= MAX_GIT_OUTPUT {
            let message = format!(
                "the new commits have more than {} MiB",
                MAX_GIT_OUTPUT >> 20
            );
            return Err(GitError::InSandbox {
                command: "bundle".into(),
                message,
            }
            .into());
        }
        Ok(bytes)
    }
}

/// Returns the configuration in the form that git passes to its child processes: every version
/// reads this, while `GIT_CONFIG_COUNT` is unknown to git before 2.31. No value needs quoting.
fn config_parameters() -> String {
    CONFIG
        .map(|(key, value)| format!("'{key}={value}'"))
        .join(" ")
}

/// Returns the pathspecs of everything but the run's own files and those that git must not read.
pub(super) fn pathspecs(tree: &WorkTree) -> impl Iterator<Item = String> {
    let without_own = WITHOUT_OWN_FILES.iter().map(|&path| path.to_owned());
    without_own.chain(exclude_pathspecs(&tree.survey.large))
}

/// Returns why a command failed, in a line.
pub(super) fn failure_reason(stderr: &str, ended: ExecStatus) -> String {
    most_relevant_line(stderr).map_or_else(|| ended.to_string(), str::to_owned)
}

pub(super) fn scratch_path(name: &str) -> Result<SandboxPath, RunError> {
    let path =
        WorkspacePath::parse(name).map_err(|error| SandboxError::Escapes(error.to_string()))?;
    Ok(SandboxPath::in_scratch(&path))
}
