//! The projection of the run's files in the sandbox: bringing it up to date, and looking whether
//! somebody else did.

use std::collections::BTreeMap;

use ralph_core::ports::{Entry, EntryKind, Sandbox, SandboxError, WriteMode};

use super::directories;
use super::files::{Files, MAX_AGENT_FILE, OWNED, Owner};
use super::guard::{GitGuard, in_repo};
use crate::error::RunError;
use crate::store::RunDir;
use crate::transfer;

/// Something in the sandbox that was not as the runner left it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Where.
    pub path: String,
    /// What was found and done.
    pub finding: String,
}

impl Finding {
    pub(crate) fn new(path: &str, finding: &str) -> Self {
        Self {
            path: path.to_owned(),
            finding: finding.to_owned(),
        }
    }
}

/// What a file or a directory looked like after the runner wrote it. One that still looks so was not
/// touched; a directory looks otherwise when an entry comes, goes or is put in the place of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    kind: EntryKind,
    size: u64,
    modified: jiff::Timestamp,
}

impl Stamp {
    fn of(entry: &Entry) -> Self {
        Self {
            kind: entry.kind,
            size: entry.size,
            modified: entry.modified,
        }
    }
}

/// Keeps the sandbox's copies what the host says they are.
pub struct Workspace {
    stamps: BTreeMap<String, Stamp>,
    sent: BTreeMap<&'static str, u64>,
    /// The task file as the sandbox should show it after the next projection.
    task: String,
    /// The task file as the runner wrote it there last.
    shown: String,
    guard: GitGuard,
}

impl Workspace {
    fn new(task: String, guard: GitGuard) -> Self {
        Self {
            stamps: BTreeMap::new(),
            sent: BTreeMap::new(),
            shown: task.clone(),
            task,
            guard,
        }
    }
}

impl Workspace {
    /// Puts all files into a fresh sandbox.
    pub async fn install(
        sandbox: &dyn Sandbox,
        files: &Files,
        task: String,
    ) -> Result<Self, RunError> {
        let guard = GitGuard::remember(sandbox, files.dir()).await?;
        let mut workspace = Self::new(task, guard);
        workspace.restore(sandbox, files).await?;
        // A sandbox that replaces a lost one gets the earlier iterations too.
        workspace
            .compare_old_iterations(sandbox, files.dir())
            .await?;
        Ok(workspace)
    }

    /// Takes over a sandbox that an earlier process left. What it finds changed is put back.
    pub async fn attach(
        sandbox: &dyn Sandbox,
        files: &Files,
        task: String,
    ) -> Result<(Self, Vec<Finding>), RunError> {
        let guard = GitGuard::recall(files.dir())?;
        let mut workspace = Self::new(task, guard);
        // The last process may have died between the host's copy and the sandbox's: only files that
        // are no beginning of the host's are told as changed.
        let mut findings = Vec::new();
        directories::is_there(sandbox, directories::STATE).await?;
        for (name, owner) in OWNED {
            findings.extend(
                workspace
                    .compare(sandbox, files, name, owner, Doubt::AfterCrash)
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

    /// Writes everything that differs or is missing, without looking for reasons.
    async fn restore(&mut self, sandbox: &dyn Sandbox, files: &Files) -> Result<(), RunError> {
        sandbox
            .write(
                &in_repo("ralph_task.md")?,
                self.task.as_bytes(),
                WriteMode::Replace,
            )
            .await?;
        self.shown.clone_from(&self.task);
        for (name, _) in OWNED {
            transfer::upload(sandbox, &files.dir().file(name), &own(name)?).await?;
            self.sent
                .insert(name, files.length(name).unwrap_or_default());
        }
        self.stamp(sandbox).await
    }

    /// Brings the sandbox's copies up to date with the host's. The cost does not depend on the logs' size.
    pub async fn project(&mut self, sandbox: &dyn Sandbox, files: &Files) -> Result<(), RunError> {
        for (name, owner) in OWNED {
            let path = files.dir().file(name);
            match owner {
                Owner::Runner => {
                    let sent = self.sent.get(name).copied().unwrap_or_default();
                    transfer::upload_rest(sandbox, &path, sent, &own(name)?).await?;
                    self.sent
                        .insert(name, files.length(name).unwrap_or_default());
                }
                // What people write on the host reaches the sandbox here.
                Owner::People | Owner::AgentAppends => {
                    let text = files.text(name)?;
                    let same = sandbox
                        .read(&own(name)?, MAX_AGENT_FILE)
                        .await
                        .is_ok_and(|old| old == text.as_bytes());
                    if !same {
                        sandbox
                            .write(&own(name)?, text.as_bytes(), WriteMode::Replace)
                            .await?;
                    }
                }
                Owner::Agent => {}
            }
        }
        if self.shown != self.task {
            let path = in_repo("ralph_task.md")?;
            sandbox
                .write(&path, self.task.as_bytes(), WriteMode::Replace)
                .await?;
            self.shown.clone_from(&self.task);
        }
        self.stamp(sandbox).await
    }

    async fn stamp(&mut self, sandbox: &dyn Sandbox) -> Result<(), RunError> {
        let entries = sandbox.list(&in_repo(directories::STATE)?).await?;
        self.stamps = entries
            .iter()
            .map(|entry| (entry.name.clone(), Stamp::of(entry)))
            .collect();
        Ok(())
    }

    /// Puts back what could make git lie or run something.
    pub async fn guard_git(&self, sandbox: &dyn Sandbox) -> Result<Vec<Finding>, RunError> {
        self.guard.inspect(sandbox).await
    }

    /// Looks at everything the agent could have touched; takes over what it may write, puts the rest back.
    pub async fn inspect(
        &mut self,
        sandbox: &dyn Sandbox,
        files: &Files,
    ) -> Result<Vec<Finding>, RunError> {
        match self.look(sandbox, files).await {
            Err(RunError::Sandbox(SandboxError::Io { source, .. }))
                if source.kind() == std::io::ErrorKind::PermissionDenied =>
            {
                directories::open_up(sandbox).await?;
                let mut findings = self.look(sandbox, files).await?;
                findings.push(Finding::new(".", "the permissions were taken; given back"));
                Ok(findings)
            }
            looked => looked,
        }
    }

    async fn look(
        &mut self,
        sandbox: &dyn Sandbox,
        files: &Files,
    ) -> Result<Vec<Finding>, RunError> {
        let mut findings = self.guard.inspect(sandbox).await?;
        findings.extend(self.inspect_task(sandbox).await?);
        if !directories::is_there(sandbox, directories::STATE).await? {
            self.restore(sandbox, files).await?;
            self.compare_old_iterations(sandbox, files.dir()).await?;
            findings.push(Finding::new(
                ".ralph",
                "the directory was removed; put back",
            ));
            return Ok(findings);
        }
        let entries = sandbox.list(&in_repo(directories::STATE)?).await?;
        let now = |name: &str| {
            let entry = entries.iter().find(|entry| entry.name == name);
            entry.map(Stamp::of)
        };
        // Looked through only after a change, because every iteration makes it longer.
        if now("iterations") != self.stamps.get("iterations").copied() {
            let cleared = directories::clear_iterations(sandbox, files.dir()).await?;
            if !cleared.is_empty() {
                self.compare_old_iterations(sandbox, files.dir()).await?;
            }
            findings.extend(cleared);
        }
        for (name, owner) in OWNED {
            let stamp = now(name);
            let is_file = stamp.is_some_and(|stamp| stamp.kind == EntryKind::File);
            if !is_file || stamp != self.stamps.get(name).copied() {
                findings.extend(
                    self.compare(sandbox, files, name, owner, Doubt::None)
                        .await?,
                );
            }
        }
        Ok(findings)
    }

    async fn inspect_task(&self, sandbox: &dyn Sandbox) -> Result<Option<Finding>, RunError> {
        let path = in_repo("ralph_task.md")?;
        let found = sandbox.read(&path, MAX_AGENT_FILE).await;
        if found
            .as_ref()
            .is_ok_and(|text| *text == self.shown.as_bytes())
        {
            return Ok(None);
        }
        sandbox.delete(&path).await?;
        sandbox
            .write(&path, self.shown.as_bytes(), WriteMode::Replace)
            .await?;
        Ok(Some(Finding::new(
            "ralph_task.md",
            "the contract was changed in the sandbox; put back, it has no effect",
        )))
    }

    /// Compares one file with the host's copy; takes it over or puts it back.
    async fn compare(
        &mut self,
        sandbox: &dyn Sandbox,
        files: &Files,
        name: &'static str,
        owner: Owner,
        doubt: Doubt,
    ) -> Result<Option<Finding>, RunError> {
        let host = files.dir().file(name);
        let host_length = std::fs::metadata(&host)
            .map(|meta| meta.len())
            .unwrap_or_default();
        let limit = MAX_AGENT_FILE.max(host_length.saturating_add(MAX_AGENT_FILE));
        let why = match sandbox.read(&own(name)?, limit).await {
            Ok(found) => {
                let expected = std::fs::read(&host)
                    .map_err(crate::durable::StoreError::when("read", &host))?;
                match judge(&found, &expected, owner, doubt) {
                    Judgement::Same => return Ok(None),
                    Judgement::TakeOver => {
                        // The next change is compared with what was kept.
                        if !files.adopt(name, &found)? {
                            transfer::upload(sandbox, &host, &own(name)?).await?;
                        }
                        return Ok(None);
                    }
                    Judgement::PutBack(why) => why,
                }
            }
            Err(SandboxError::NotFound(_)) if doubt == Doubt::AfterCrash => return Ok(None),
            Err(SandboxError::NotFound(_)) => "removed",
            Err(SandboxError::NotRegular(_) | SandboxError::Escapes(_)) => {
                "replaced by something that is no file"
            }
            Err(SandboxError::TooLarge { .. }) => "made too large",
            Err(SandboxError::Io { .. }) => "made unreadable",
            Err(
                error @ (SandboxError::Gone(_)
                | SandboxError::Spawn { .. }
                | SandboxError::Interrupted { .. }
                | SandboxError::Provider(_)),
            ) => {
                return Err(error.into());
            }
        };
        sandbox.delete(&own(name)?).await?;
        transfer::upload(sandbox, &host, &own(name)?).await?;
        self.sent
            .insert(name, files.length(name).unwrap_or_default());
        Ok(Some(Finding::new(
            &format!(".ralph/{name}"),
            &format!("{why}; put back"),
        )))
    }

    /// Compares the artifacts of all finished iterations with the host's, and puts them back.
    pub async fn compare_old_iterations(
        &self,
        sandbox: &dyn Sandbox,
        dir: &RunDir,
    ) -> Result<Vec<Finding>, RunError> {
        let mut findings = directories::clear_iterations(sandbox, dir).await?;
        for number in 1.. {
            let host = dir.iteration(number);
            if !host.exists() {
                break;
            }
            for name in RunDir::ARTIFACTS {
                let path = format!(".ralph/iterations/{number}/{name}");
                let file = host.join(name);
                let expected = std::fs::read(&file)
                    .map_err(crate::durable::StoreError::when("read", &file))?;
                let found = sandbox
                    .read(&in_repo(&path)?, expected.len() as u64 + 1)
                    .await;
                if found.is_ok_and(|found| found == expected) {
                    continue;
                }
                sandbox.delete(&in_repo(&path)?).await?;
                transfer::upload(sandbox, &file, &in_repo(&path)?).await?;
                findings.push(Finding::new(&path, "not what the host has; put back"));
            }
        }
        Ok(findings)
    }
}

/// How much trust a difference deserves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doubt {
    /// The runner knows what it wrote.
    None,
    /// The last process died somewhere between host and sandbox.
    AfterCrash,
}

enum Judgement {
    Same,
    TakeOver,
    PutBack(&'static str),
}

fn judge(found: &[u8], expected: &[u8], owner: Owner, doubt: Doubt) -> Judgement {
    if found == expected {
        return Judgement::Same;
    }
    let fits = found.len() as u64 <= MAX_AGENT_FILE;
    match owner {
        Owner::Agent if fits => Judgement::TakeOver,
        Owner::AgentAppends if fits && found.starts_with(expected) => Judgement::TakeOver,
        // The host's copy is written first, so a beginning of it is what a crash leaves. People may
        // have written there while nobody worked on the run.
        Owner::Runner | Owner::AgentAppends
            if doubt == Doubt::AfterCrash && expected.starts_with(found) =>
        {
            Judgement::Same
        }
        Owner::People if doubt == Doubt::AfterCrash => Judgement::Same,
        Owner::AgentAppends => Judgement::PutBack("changed, though it may only grow"),
        Owner::Agent => Judgement::PutBack("made too large"),
        Owner::Runner | Owner::People => Judgement::PutBack("changed"),
    }
}

fn own(name: &str) -> Result<ralph_core::path::SandboxPath, RunError> {
    in_repo(&format!(".ralph/{name}"))
}
