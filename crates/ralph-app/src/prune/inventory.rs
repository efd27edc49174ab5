//! Lists and removes the sandboxes of one provider, including those of other processes.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ralph_core::ports::{
    Labels, ProviderProblem, SandboxError, SandboxId, SandboxInfo, SandboxProvider,
};
use ralph_providers::sandbox::{DockerProvider, ExistingSandbox};

use super::retention::{SandboxContent, SandboxCreator, StateDirOwner};
use crate::providers::{LocalLimits, Providers};

/// A provider with sandboxes to prune.
pub(super) enum SandboxInventory {
    Docker(Box<DockerProvider>),
    Local(Arc<dyn SandboxProvider>),
}

/// A sandbox as its provider lists it.
#[derive(Debug)]
pub(super) struct ListedSandbox {
    pub(super) id: SandboxId,
    pub(super) labels: Labels,
    pub(super) state_dir_owner: StateDirOwner,
    pub(super) creator: SandboxCreator,
    pub(super) age: Option<Duration>,
}

impl ListedSandbox {
    /// Returns whether the sandbox may contain work: it has a run and is not a clean room.
    pub(super) fn content(&self) -> SandboxContent {
        let is_clean_room = self
            .labels
            .get("purpose")
            .is_some_and(|p| p == "clean_room");
        if self.labels.contains_key("run") && !is_clean_room {
            SandboxContent::Work
        } else {
            SandboxContent::NoWork
        }
    }
}

impl SandboxInventory {
    /// Returns the Docker sandboxes of an engine in the format of `DOCKER_HOST`.
    pub(super) fn docker(engine: Option<String>, providers: &Providers) -> Self {
        Self::Docker(Box::new(providers.docker_provider_at(engine)))
    }

    /// Returns the local sandboxes of the state directory.
    pub(super) fn local(providers: &Providers) -> Self {
        Self::Local(providers.local_provider(LocalLimits::default()))
    }

    /// Returns the name for `--type`.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Docker(_) => "docker",
            Self::Local(_) => "local",
        }
    }

    /// Returns all sandboxes of the provider.
    pub(super) async fn list(
        &self,
        providers: &Providers,
    ) -> Result<Vec<ListedSandbox>, ProviderProblem> {
        match self {
            Self::Docker(provider) => {
                let found = provider.list_all().await.map_err(|error| error.problem())?;
                let own_state_dir = providers.state.root();
                Ok(found
                    .into_iter()
                    .map(|found| from_container(found, own_state_dir))
                    .collect())
            }
            Self::Local(provider) => {
                let infos = provider.list().await.map_err(provider_problem)?;
                let directory = providers.state.sandboxes();
                let listed = infos.into_iter();
                Ok(listed
                    .map(|info| from_directory(info, &directory))
                    .collect())
            }
        }
    }

    /// Removes a sandbox and everything that runs in it.
    pub(super) async fn remove(&self, id: &SandboxId) -> Result<(), ProviderProblem> {
        match self {
            Self::Docker(provider) => provider.discard(id).await.map_err(provider_problem),
            Self::Local(provider) => match provider.attach(id).await.map_err(provider_problem)? {
                Some(sandbox) => sandbox.remove().await.map_err(provider_problem),
                None => Ok(()),
            },
        }
    }
}

/// A local sandbox has a record next to its directory; one without a record was never finished.
fn from_directory(info: SandboxInfo, sandboxes: &Path) -> ListedSandbox {
    let id = &info.id;
    let record = sandboxes.join(format!("{id}.json"));
    let unfinished = || {
        let names = [format!(".{id}.json"), id.to_string()];
        names
            .iter()
            .find_map(|name| file_age(&sandboxes.join(name)))
    };
    ListedSandbox {
        creator: match record.try_exists() {
            Ok(false) => SandboxCreator::Unfinished,
            // An inaccessible record may exist, and its sandbox may hold work.
            Ok(true) | Err(_) => SandboxCreator::Unknown,
        },
        age: file_age(&record).or_else(unfinished),
        id: info.id,
        labels: info.labels,
        state_dir_owner: StateDirOwner::Own,
    }
}

fn from_container(found: ExistingSandbox, own_state_dir: &Path) -> ListedSandbox {
    ListedSandbox {
        id: found.id,
        labels: found.labels,
        state_dir_owner: state_dir_owner(&found.state_directory, own_state_dir),
        creator: if found.is_orphaned {
            SandboxCreator::Ended
        } else {
            SandboxCreator::MaybeAlive
        },
        age: None,
    }
}

/// Returns the owner of a state directory. A label contains text, so a path that is not UTF-8 was
/// changed when it was written.
fn state_dir_owner(state: &Path, own_state_dir: &Path) -> StateDirOwner {
    let is_whole = state
        .to_str()
        .is_some_and(|text| !text.contains(char::REPLACEMENT_CHARACTER));
    if !is_whole || !state.is_absolute() {
        StateDirOwner::Unknown
    } else if state == own_state_dir {
        StateDirOwner::Own
    } else {
        match state.try_exists() {
            Ok(false) => StateDirOwner::Missing,
            // An inaccessible directory may exist.
            Ok(true) | Err(_) => StateDirOwner::Foreign,
        }
    }
}

fn file_age(file: &Path) -> Option<Duration> {
    let written = match std::fs::metadata(file).and_then(|metadata| metadata.modified()) {
        Ok(written) => written,
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        Err(error) => {
            tracing::warn!(%error, "cannot read the age of `{}`", file.display());
            return None;
        }
    };
    // A time in the future says nothing about the age. Zero keeps the sandbox.
    let age = SystemTime::now().duration_since(written);
    Some(age.unwrap_or(Duration::ZERO))
}

/// Converts a sandbox error to a problem with its fix.
pub(super) fn provider_problem(error: SandboxError) -> ProviderProblem {
    match error {
        SandboxError::Provider(problem) => problem,
        SandboxError::Gone(_)
        | SandboxError::Escapes(_)
        | SandboxError::NotRegular(_)
        | SandboxError::NotFound(_)
        | SandboxError::TooLarge { .. }
        | SandboxError::Spawn { .. }
        | SandboxError::Interrupted { .. }
        | SandboxError::Io { .. } => ProviderProblem {
            what: error.to_string(),
            fix: "try again".into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    /// The clock may have been set back since the record was written.
    #[test]
    fn a_time_in_the_future_keeps_a_local_sandbox() {
        let sandboxes = tempfile::tempdir().unwrap();
        let future = SystemTime::now() + Duration::from_hours(24);
        for name in ["finished.json", "unfinished"] {
            let file = std::fs::File::create(sandboxes.path().join(name)).unwrap();
            file.set_modified(future).unwrap();
        }
        for (name, creator, age) in [
            ("finished", SandboxCreator::Unknown, Some(Duration::ZERO)),
            (
                "unfinished",
                SandboxCreator::Unfinished,
                Some(Duration::ZERO),
            ),
            ("missing", SandboxCreator::Unfinished, None),
        ] {
            let info = SandboxInfo {
                id: SandboxId(name.to_owned()),
                labels: Labels::new(),
            };
            let listed = from_directory(info, sandboxes.path());
            assert_eq!((listed.creator, listed.age), (creator, age), "{name}");
        }
    }

    #[test]
    fn a_state_dir_is_own_foreign_or_missing() {
        let there = tempfile::tempdir().unwrap();
        let own_state_dir = Path::new("/somewhere/ralph");
        let lossy = OsStr::from_bytes(b"/tmp/\xff")
            .to_string_lossy()
            .into_owned();
        for (state, expected) in [
            (own_state_dir, StateDirOwner::Own),
            (there.path(), StateDirOwner::Foreign),
            (Path::new("/somewhere/else"), StateDirOwner::Missing),
            // The path is inaccessible, so it may exist.
            (Path::new("/etc/passwd/ralph"), StateDirOwner::Foreign),
            (Path::new(""), StateDirOwner::Unknown),
            (Path::new("ralph"), StateDirOwner::Unknown),
            (Path::new(&lossy), StateDirOwner::Unknown),
        ] {
            assert_eq!(
                state_dir_owner(state, own_state_dir),
                expected,
                "{}",
                state.display()
            );
        }
    }
}
