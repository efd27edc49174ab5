//! The copies of the run's files in the sandbox: updates them, and detects changes that the runner
//! did not make.

use std::collections::BTreeMap;

use ralph_core::ports::{Sandbox, SandboxEntry, SandboxEntryKind, SandboxError, WriteMode};
use ralph_core::spec::{AcceptedEdits, SpecDocument};

use super::directories;
use super::files::{HostFiles, MAX_AGENT_FILE, RunFileOwner, run_files};
use super::guard::{GitGuard, repo_path};
use crate::error::RunError;
use crate::store::RunDir;
use crate::transfer;

/// A difference in the sandbox from the runner's last write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TamperFinding {
    pub path: String,
    /// A description of the difference and of the repair.
    pub finding: String,
}

impl TamperFinding {
    pub(crate) fn new(path: &str, finding: &str) -> Self {
        Self {
            path: path.to_owned(),
            finding: finding.to_owned(),
        }
    }
}

/// The metadata of a file or a directory after the runner wrote it. Unchanged metadata means an
/// untouched entry; a directory's metadata changes when an entry is added, removed or replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct EntryStamp {
    kind: SandboxEntryKind,
    size: u64,
    modified: jiff::Timestamp,
}

impl EntryStamp {
    fn from_entry(entry: &SandboxEntry) -> Self {
        Self {
            kind: entry.kind,
            size: entry.size,
            modified: entry.modified,
        }
    }
}

/// Synchronises the sandbox's copies with the host's.
pub struct Workspace {
    stamps: BTreeMap<String, EntryStamp>,
    sent_lengths: BTreeMap<&'static str, u64>,
    /// The text of the task file for the next projection.
    task: String,
    /// The last text of the task file that the runner wrote into the sandbox.
    written_task: String,
    guard: GitGuard,
}

impl Workspace {
    fn new(task: String, guard: GitGuard) -> Self {
        Self {
            stamps: BTreeMap::new(),
            sent_lengths: BTreeMap::new(),
            written_task: task.clone(),
            task,
            guard,
        }
    }
}

impl Workspace {
    /// Writes all files into a fresh sandbox.
    pub async fn install(
        sandbox: &dyn Sandbox,
        files: &HostFiles,
        task: String,
    ) -> Result<Self, RunError> {
        let guard = GitGuard::capture(sandbox, files.dir()).await?;
        let mut workspace = Self::new(task, guard);
        workspace.restore(sandbox, files).await?;
        // A sandbox that replaces a lost one also gets the earlier iterations.
        workspace
            .compare_old_iterations(sandbox, files.dir())
            .await?;
        Ok(workspace)
    }

    /// Attaches to the sandbox of an earlier process and restores changed files.
    pub async fn attach(
        sandbox: &dyn Sandbox,
        files: &HostFiles,
        task: String,
    ) -> Result<(Self, Vec<TamperFinding>), RunError> {
        let guard = GitGuard::load(files.dir())?;
        let mut workspace = Self::new(task, guard);
        // The last process may have crashed between the host's copy and the sandbox's: only files
        // that are not a prefix of the host's are reported as changed.
        let mut findings = Vec::new();
        directories::remove_unless_directory(sandbox, directories::STATE_DIR).await?;
        for (name, owner) in run_files(files.dir()) {
            findings.extend(
                workspace
                    .compare_file(sandbox, files, name, owner, CrashState::AfterCrash)
                    .await?,
            );
        }
        findings.extend(
            workspace
                .compare_old_iterations(sandbox, files.dir())
                .await?,
        );
        findings.extend(workspace.guard.inspect(sandbox).await?);
        workspace.restore(sandbox, files).await?;
        Ok((workspace, findings))
    }

    /// Sets the task file's text, to be written with the next projection.
    pub fn set_task(&mut self, task: String) {
        self.task = task;
    }

    /// Writes all files, whether they differ or not, without reporting differences.
    async fn restore(&mut self, sandbox: &dyn Sandbox, files: &HostFiles) -> Result<(), RunError> {
        sandbox
            .write(
                &repo_path("ralph_task.md")?,
                self.task.as_bytes(),
                WriteMode::Replace,
            )
            .await?;
        self.written_task.clone_from(&self.task);
        for (name, _) in run_files(files.dir()) {
            transfer::upload(sandbox, &files.dir().file(name), &state_file_path(name)?).await?;
            self.sent_lengths
                .insert(name, files.length(name).unwrap_or_default());
        }
        self.record_stamps(sandbox).await
    }

    /// Updates the sandbox's copies from the host's. The cost does not depend on the logs' size.
    pub async fn project(
        &mut self,
        sandbox: &dyn Sandbox,
        files: &HostFiles,
    ) -> Result<(), RunError> {
        for (name, owner) in run_files(files.dir()) {
            let path = files.dir().file(name);
            match owner {
                RunFileOwner::Runner => {
                    let sent = self.sent_lengths.get(name).copied().unwrap_or_default();
                    transfer::upload_tail(sandbox, &path, sent, &state_file_path(name)?).await?;
                    self.sent_lengths
                        .insert(name, files.length(name).unwrap_or_default());
                }
                // The user's changes on the host reach the sandbox here.
                RunFileOwner::Host | RunFileOwner::AgentAppendOnly | RunFileOwner::AgentMarks => {
                    let text = files.text(name)?;
                    let same = sandbox
                        .read(&state_file_path(name)?, MAX_AGENT_FILE)
                        .await
                        .is_ok_and(|old| old == text.as_bytes());
                    if !same {
                        sandbox
                            .write(&state_file_path(name)?, text.as_bytes(), WriteMode::Replace)
                            .await?;
                    }
                }
                RunFileOwner::Agent => {}
            }
        }
        if self.written_task != self.task {
            let path = repo_path("ralph_task.md")?;
            sandbox
                .write(&path, self.task.as_bytes(), WriteMode::Replace)
                .await?;
            self.written_task.clone_from(&self.task);
        }
        self.record_stamps(sandbox).await
    }

    async fn record_stamps(&mut self, sandbox: &dyn Sandbox) -> Result<(), RunError> {
        let entries = sandbox.list(&repo_path(directories::STATE_DIR)?).await?;
        self.stamps = entries
            .iter()
            .map(|entry| (entry.name.clone(), EntryStamp::from_entry(entry)))
            .collect();
        Ok(())
    }

    /// Restores the parts of `.git` that could falsify git's results or run programs.
    pub async fn guard_git(&self, sandbox: &dyn Sandbox) -> Result<Vec<TamperFinding>, RunError> {
        self.guard.inspect(sandbox).await
    }

    /// Inspects all files that the agent could have changed; accepts those that it may write,
    /// restores the rest.
    pub async fn inspect(
        &mut self,
        sandbox: &dyn Sandbox,
        files: &HostFiles,
    ) -> Result<Vec<TamperFinding>, RunError> {
        match self.inspect_once(sandbox, files).await {
            Err(RunError::Sandbox(SandboxError::Io { source, .. }))
                if source.kind() == std::io::ErrorKind::PermissionDenied =>
            {
                directories::restore_permissions(sandbox).await?;
                let mut findings = self.inspect_once(sandbox, files).await?;
                findings.push(TamperFinding::new(
                    ".",
                    "the permissions were removed; restored",
                ));
                Ok(findings)
            }
            inspected => inspected,
        }
    }

    async fn inspect_once(
        &mut self,
        sandbox: &dyn Sandbox,
        files: &HostFiles,
    ) -> Result<Vec<TamperFinding>, RunError> {
        let mut findings = self.guard.inspect(sandbox).await?;
        findings.extend(self.inspect_task(sandbox).await?);
        if !directories::remove_unless_directory(sandbox, directories::STATE_DIR).await? {
            self.restore(sandbox, files).await?;
            self.compare_old_iterations(sandbox, files.dir()).await?;
            findings.push(TamperFinding::new(
                ".ralph",
                "the directory was removed; restored",
            ));
            return Ok(findings);
        }
        let entries = sandbox.list(&repo_path(directories::STATE_DIR)?).await?;
        let now = |name: &str| {
            let entry = entries.iter().find(|entry| entry.name == name);
            entry.map(EntryStamp::from_entry)
        };
        // Compared only after a change, because the directory grows with every iteration.
        if now("iterations") != self.stamps.get("iterations").copied() {
            let removed = directories::remove_foreign_iterations(sandbox, files.dir()).await?;
            if !removed.is_empty() {
                self.compare_old_iterations(sandbox, files.dir()).await?;
            }
            findings.extend(removed);
        }
        for (name, owner) in run_files(files.dir()) {
            let stamp = now(name);
            let is_file = stamp.is_some_and(|stamp| stamp.kind == SandboxEntryKind::File);
            if !is_file || stamp != self.stamps.get(name).copied() {
                findings.extend(
                    self.compare_file(sandbox, files, name, owner, CrashState::Clean)
                        .await?,
                );
            }
        }
        Ok(findings)
    }

    async fn inspect_task(&self, sandbox: &dyn Sandbox) -> Result<Option<TamperFinding>, RunError> {
        let path = repo_path("ralph_task.md")?;
        let found = sandbox.read(&path, MAX_AGENT_FILE).await;
        if found
            .as_ref()
            .is_ok_and(|text| *text == self.written_task.as_bytes())
        {
            return Ok(None);
        }
        sandbox.delete(&path).await?;
        sandbox
            .write(&path, self.written_task.as_bytes(), WriteMode::Replace)
            .await?;
        Ok(Some(TamperFinding::new(
            "ralph_task.md",
            "the contract was changed in the sandbox, which has no effect; restored",
        )))
    }

    /// Compares one file with the host's copy; accepts or restores it.
    async fn compare_file(
        &mut self,
        sandbox: &dyn Sandbox,
        files: &HostFiles,
        name: &'static str,
        owner: RunFileOwner,
        crash_state: CrashState,
    ) -> Result<Option<TamperFinding>, RunError> {
        let host = files.dir().file(name);
        let host_length = std::fs::metadata(&host).map_or(0, |metadata| metadata.len());
        let limit = MAX_AGENT_FILE.max(host_length.saturating_add(MAX_AGENT_FILE));
        let why = match sandbox.read(&state_file_path(name)?, limit).await {
            Ok(found) => {
                let expected = std::fs::read(&host)
                    .map_err(crate::durable::StoreError::when("read", &host))?;
                match compare_contents(&found, &expected, owner, crash_state) {
                    FileComparison::Same => return Ok(None),
                    FileComparison::Accept => {
                        // The next change is compared with the stored version.
                        if !files.replace(name, &found)? {
                            transfer::upload(sandbox, &host, &state_file_path(name)?).await?;
                        }
                        return Ok(None);
                    }
                    FileComparison::Merge(accepted) => {
                        files.replace(name, accepted.text.as_bytes())?;
                        sandbox.delete(&state_file_path(name)?).await?;
                        transfer::upload(sandbox, &host, &state_file_path(name)?).await?;
                        let is_tampering = accepted.differs && crash_state == CrashState::Clean;
                        return Ok(is_tampering.then(|| {
                            let why = "changed in more than marks and notes; the rest was restored";
                            TamperFinding::new(&format!(".ralph/{name}"), why)
                        }));
                    }
                    FileComparison::Restore(why) => why,
                }
            }
            Err(SandboxError::NotFound(_)) if crash_state == CrashState::AfterCrash => {
                return Ok(None);
            }
            Err(SandboxError::NotFound(_)) => "removed",
            Err(SandboxError::NotRegular(_) | SandboxError::Escapes(_)) => {
                "replaced by an entry that is not a file"
            }
            Err(SandboxError::TooLarge { .. }) => "grew too large",
            Err(SandboxError::Io { .. }) => "became unreadable",
            Err(
                error @ (SandboxError::Gone(_)
                | SandboxError::Spawn { .. }
                | SandboxError::Interrupted { .. }
                | SandboxError::Provider(_)),
            ) => {
                return Err(error.into());
            }
        };
        sandbox.delete(&state_file_path(name)?).await?;
        transfer::upload(sandbox, &host, &state_file_path(name)?).await?;
        self.sent_lengths
            .insert(name, files.length(name).unwrap_or_default());
        Ok(Some(TamperFinding::new(
            &format!(".ralph/{name}"),
            &format!("{why}; restored"),
        )))
    }

    /// Compares the artifacts of all finished iterations with the host's, and restores them.
    pub async fn compare_old_iterations(
        &self,
        sandbox: &dyn Sandbox,
        dir: &RunDir,
    ) -> Result<Vec<TamperFinding>, RunError> {
        let mut findings = directories::remove_foreign_iterations(sandbox, dir).await?;
        for number in dir.finished_iterations()? {
            let host = dir.iteration(number);
            for name in RunDir::ARTIFACTS {
                let path = format!(".ralph/iterations/{number}/{name}");
                let file = host.join(name);
                // The snapshot of an adopted run may omit large files.
                let Some(expected) = crate::durable::read_if_present(&file)? else {
                    continue;
                };
                let found = sandbox
                    .read(&repo_path(&path)?, expected.len() as u64 + 1)
                    .await;
                if found.is_ok_and(|found| found == expected) {
                    continue;
                }
                sandbox.delete(&repo_path(&path)?).await?;
                transfer::upload(sandbox, &file, &repo_path(&path)?).await?;
                findings.push(TamperFinding::new(
                    &path,
                    "differs from the host's copy; restored",
                ));
            }
        }
        Ok(findings)
    }
}

/// The possible causes of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CrashState {
    /// The runner's last write is known.
    Clean,
    /// The last process crashed at an unknown point between host and sandbox.
    AfterCrash,
}

enum FileComparison {
    Same,
    Accept,
    /// Only a part of the changes is accepted.
    Merge(AcceptedEdits),
    Restore(&'static str),
}

fn compare_contents(
    found: &[u8],
    expected: &[u8],
    owner: RunFileOwner,
    crash_state: CrashState,
) -> FileComparison {
    if found == expected {
        return FileComparison::Same;
    }
    let fits = found.len() as u64 <= MAX_AGENT_FILE;
    match owner {
        RunFileOwner::Agent if fits => FileComparison::Accept,
        RunFileOwner::AgentMarks if fits => {
            let known = SpecDocument::parse(&String::from_utf8_lossy(expected));
            FileComparison::Merge(known.accept_edits(&String::from_utf8_lossy(found)))
        }
        RunFileOwner::AgentAppendOnly if fits && found.starts_with(expected) => {
            FileComparison::Accept
        }
        // The host's copy is written first, so a crash leaves a prefix of it. The user may have
        // written to it while no process worked on the run.
        RunFileOwner::Runner | RunFileOwner::AgentAppendOnly
            if crash_state == CrashState::AfterCrash && expected.starts_with(found) =>
        {
            FileComparison::Same
        }
        RunFileOwner::Host if crash_state == CrashState::AfterCrash => FileComparison::Same,
        RunFileOwner::AgentAppendOnly => {
            FileComparison::Restore("changed, but may only be appended to")
        }
        RunFileOwner::Agent | RunFileOwner::AgentMarks => FileComparison::Restore("grew too large"),
        RunFileOwner::Runner | RunFileOwner::Host => FileComparison::Restore("changed"),
    }
}

fn state_file_path(name: &str) -> Result<ralph_core::path::SandboxPath, RunError> {
    repo_path(&format!(".ralph/{name}"))
}
