//! Lists and removes the sandboxes of one provider, whoever made them.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ralph_core::ports::{Labels, Problem, SandboxError, SandboxId, SandboxInfo, SandboxProvider};
use ralph_providers::sandbox::{DockerProvider, Found};

use super::rule::{Home, Maker};
use crate::wire::{LocalLimits, Wiring};

/// The provider whose sandboxes are looked after.
pub(super) enum Keeper {
    Docker(Box<DockerProvider>),
    Local(Arc<dyn SandboxProvider>),
}

/// A sandbox as its provider knows it.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) id: SandboxId,
    pub(super) labels: Labels,
    pub(super) home: Home,
    pub(super) maker: Maker,
    pub(super) age: Option<Duration>,
}

impl Keeper {
    /// Keeps the Docker sandboxes of an engine, written as in `DOCKER_HOST`.
    pub(super) fn docker(engine: Option<String>, wiring: &Wiring) -> Self {
        Self::Docker(Box::new(wiring.docker_at(engine)))
    }

    /// Keeps the local sandboxes of the state directory.
    pub(super) fn local(wiring: &Wiring) -> Self {
        Self::Local(wiring.local(LocalLimits::default()))
    }

    /// Returns the name that `--type` takes.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Docker(_) => "docker",
            Self::Local(_) => "local",
        }
    }

    /// Returns all sandboxes there are.
    pub(super) async fn survey(&self, wiring: &Wiring) -> Result<Vec<Seen>, Problem> {
        match self {
            Self::Docker(provider) => {
                let found = provider.survey().await.map_err(|error| error.problem())?;
                let ours = wiring.state.root();
                Ok(found
                    .into_iter()
                    .map(|found| of_engine(found, ours))
                    .collect())
            }
            Self::Local(provider) => {
                let infos = provider.list().await.map_err(problem)?;
                let directory = wiring.state.sandboxes();
                let seen = infos.into_iter();
                Ok(seen.map(|info| of_directory(info, &directory)).collect())
            }
        }
    }

    /// Removes a sandbox with everything that runs in it.
    pub(super) async fn remove(&self, id: &SandboxId) -> Result<(), Problem> {
        match self {
            Self::Docker(provider) => provider.discard(id).await.map_err(problem),
            Self::Local(provider) => match provider.attach(id).await.map_err(problem)? {
                Some(sandbox) => sandbox.remove().await.map_err(problem),
                None => Ok(()),
            },
        }
    }
}

/// A local sandbox has a record beside its directory; one without it was never finished.
fn of_directory(info: SandboxInfo, sandboxes: &Path) -> Seen {
    let id = &info.id;
    let recorded = age(&sandboxes.join(format!("{id}.json")));
    let unfinished = || {
        let names = [format!(".{id}.json"), id.to_string()];
        names.iter().find_map(|name| age(&sandboxes.join(name)))
    };
    Seen {
        maker: if recorded.is_some() {
            Maker::Untold
        } else {
            Maker::Unfinished
        },
        age: recorded.or_else(unfinished),
        id: info.id,
        labels: info.labels,
        home: Home::Ours,
    }
}

fn of_engine(found: Found, ours: &Path) -> Seen {
    Seen {
        id: found.id,
        labels: found.labels,
        home: home(&found.state, ours),
        maker: if found.owner_is_dead {
            Maker::Ended
        } else {
            Maker::MayLive
        },
        age: None,
    }
}

/// Tells whose directory it is. A label holds text; a path that is none was changed when it was written.
fn home(state: &Path, ours: &Path) -> Home {
    let is_whole = state
        .to_str()
        .is_some_and(|text| !text.contains(char::REPLACEMENT_CHARACTER));
    if !is_whole || !state.is_absolute() {
        Home::Untold
    } else if state == ours {
        Home::Ours
    } else {
        match state.try_exists() {
            Ok(false) => Home::Missing,
            // What cannot be looked at may be there.
            Ok(true) | Err(_) => Home::Another,
        }
    }
}

fn age(file: &Path) -> Option<Duration> {
    let written = std::fs::metadata(file).ok()?.modified().ok()?;
    SystemTime::now().duration_since(written).ok()
}

/// Says what is wrong with a provider, and what to do about it.
pub(super) fn problem(error: SandboxError) -> Problem {
    match error {
        SandboxError::Provider(problem) => problem,
        SandboxError::Gone(_)
        | SandboxError::Escapes(_)
        | SandboxError::NotRegular(_)
        | SandboxError::NotFound(_)
        | SandboxError::TooLarge { .. }
        | SandboxError::Spawn { .. }
        | SandboxError::Interrupted { .. }
        | SandboxError::Io { .. } => Problem {
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

    #[test]
    fn a_directory_is_ours_anothers_or_gone() {
        let there = tempfile::tempdir().unwrap();
        let ours = Path::new("/somewhere/ralph");
        let lossy = OsStr::from_bytes(b"/tmp/\xff")
            .to_string_lossy()
            .into_owned();
        for (state, expected) in [
            (ours, Home::Ours),
            (there.path(), Home::Another),
            (Path::new("/somewhere/else"), Home::Missing),
            // It cannot be looked at, so it may be there.
            (Path::new("/etc/passwd/ralph"), Home::Another),
            (Path::new(""), Home::Untold),
            (Path::new("ralph"), Home::Untold),
            (Path::new(&lossy), Home::Untold),
        ] {
            assert_eq!(home(state, ours), expected, "{}", state.display());
        }
    }
}
