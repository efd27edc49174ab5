//! The set-up command in force, and the digest of everything that its result depends on.

use std::collections::BTreeSet;

use ralph_core::ecosystem::{
    MAX_DEPENDENCY_FILES, MAX_PLANNED_DEPENDENCY_FILES, dependency_file, parent_directory,
};
use ralph_core::id::Digest;
use ralph_core::path::{SandboxPath, WorkspacePath};
use ralph_core::plan::{RunPlan, SetupPlan, SetupSource};
use ralph_core::ports::{Sandbox, SandboxEntryKind, SandboxError};
use ralph_core::task::Contract;

use crate::error::RunError;
use crate::git::SandboxGit;

/// The largest lockfile that is read, in bytes.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// Returns the set-up of the plan with the command of the contract in force, which the user may have
/// changed since.
pub(crate) fn setup_in_force(plan: &RunPlan, contract: &Contract) -> Option<SetupPlan> {
    let planned = plan.setup.clone();
    let is_from_task = |setup: &SetupPlan| setup.source == SetupSource::Task;
    match (&contract.setup_command, planned) {
        (Some(command), Some(planned)) => Some(SetupPlan {
            command: command.clone(),
            ..planned
        }),
        (Some(command), None) => Some(SetupPlan {
            command: command.clone(),
            source: SetupSource::Task,
            files: contract.lockfiles.clone(),
            registries: Vec::new(),
        }),
        (None, planned) => planned.filter(|setup| !is_from_task(setup)),
    }
}

/// Everything that the result of set-up depends on.
pub(crate) struct SetupInputs {
    command: String,
    /// The sandbox provider and its image.
    environment: String,
    /// Digests of the lockfiles and manifests, by path; a missing file has none.
    files: Vec<(String, Option<Digest>)>,
}

impl SetupInputs {
    /// Reads the lockfiles and manifests of a sandbox: those of the plan, and others that appeared
    /// beside them.
    pub(crate) async fn read(
        sandbox: &dyn Sandbox,
        setup: &SetupPlan,
        plan: &RunPlan,
    ) -> Result<Self, RunError> {
        let mut paths: BTreeSet<String> = setup.files.iter().cloned().collect();
        let directories: BTreeSet<String> = setup
            .files
            .iter()
            .map(|path| parent_directory(path).to_owned())
            .chain([String::new()])
            .collect();
        for directory in directories {
            paths.extend(dependency_files_in(sandbox, &directory).await?);
        }
        let mut files = Vec::new();
        let mut paths = paths.into_iter();
        for path in paths.by_ref().take(MAX_DEPENDENCY_FILES) {
            let digest = file_digest(sandbox, &path).await?;
            files.push((path, digest));
        }
        let rest: Vec<String> = paths.take(MAX_PLANNED_DEPENDENCY_FILES).collect();
        if !rest.is_empty() {
            let digest = SandboxGit::new(sandbox).digest_of_files(&rest).await?;
            files.push((rest.join("\n"), Some(digest)));
        }
        let image = plan.container.as_ref().map(|container| &container.image);
        Ok(Self {
            command: setup.command.clone(),
            environment: format!("{} {}", plan.sandbox, image.map_or("", String::as_str)),
            files,
        })
    }

    /// Returns the digest of the command and the environment, whatever it installs.
    pub(crate) fn program_digest(&self) -> Digest {
        let key = serde_json::json!([self.command, self.environment]);
        Digest::compute(key.to_string().as_bytes())
    }

    /// Returns the digest of the inputs.
    pub(crate) fn digest(&self) -> Digest {
        let key = serde_json::json!([self.command, self.environment, self.files]);
        Digest::compute(key.to_string().as_bytes())
    }
}

/// Returns the paths of the lockfiles and manifests in a directory of the repository.
async fn dependency_files_in(
    sandbox: &dyn Sandbox,
    directory: &str,
) -> Result<Vec<String>, RunError> {
    let path = if directory.is_empty() {
        SandboxPath::repo()
    } else {
        match WorkspacePath::parse(directory) {
            Ok(path) => SandboxPath::in_repo(&path),
            Err(_) => return Ok(Vec::new()),
        }
    };
    let entries = match sandbox.list(&path).await {
        Ok(entries) => entries,
        Err(error) if is_missing(&error) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let files = entries
        .into_iter()
        .filter(|entry| entry.kind == SandboxEntryKind::File)
        .map(|entry| match directory {
            "" => entry.name,
            directory => format!("{directory}/{}", entry.name),
        });
    Ok(files
        .filter(|path| dependency_file(path).is_some())
        .collect())
}

async fn file_digest(sandbox: &dyn Sandbox, path: &str) -> Result<Option<Digest>, RunError> {
    let Ok(path) = WorkspacePath::parse(path) else {
        return Ok(None);
    };
    match sandbox
        .read(&SandboxPath::in_repo(&path), MAX_FILE_BYTES)
        .await
    {
        Ok(bytes) => Ok(Some(Digest::compute(&bytes))),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns whether the work, rather than the sandbox, is the reason that a file cannot be read.
fn is_missing(error: &SandboxError) -> bool {
    matches!(
        error,
        SandboxError::NotFound(_)
            | SandboxError::NotRegular(_)
            | SandboxError::Escapes(_)
            | SandboxError::TooLarge { .. }
    )
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::run_fixture::RunFixture;

    #[tokio::test]
    async fn files_beyond_those_that_are_read_one_by_one_are_part_of_the_digest() {
        let fixture = RunFixture::new("").await;
        let files: Vec<String> = (100..100 + MAX_DEPENDENCY_FILES + 5)
            .map(|number| format!("{number}/go.sum"))
            .collect();
        let write = |path: &str, text: &str| {
            let path = fixture.workspace().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for path in &files {
            write(path, "one\n");
        }
        let setup = SetupPlan {
            command: "true".into(),
            source: SetupSource::Task,
            files: files.clone(),
            registries: Vec::new(),
        };
        let digest = async || {
            let (sandbox, state) = (&fixture.run.bench.sandbox, fixture.run.recorder.state());
            let inputs = SetupInputs::read(&**sandbox, &setup, &state.plan).await;
            inputs.unwrap().digest()
        };
        let before = digest().await;
        assert_eq!(digest().await, before);
        let last = files.last().unwrap();
        write(last, "two\n");
        let changed = digest().await;
        assert_ne!(changed, before);
        fs::remove_file(fixture.workspace().join(last)).unwrap();
        assert_ne!(digest().await, changed);
    }
}
