//! A provider with a state directory of its own, which leaves nothing behind.

use ralph_providers::sandbox::{DockerProvider, DockerSettings, Reach};
use ralph_test::BASE_IMAGE;
use tempfile::TempDir;

/// A provider and the directory that its sandboxes belong to.
pub(super) struct Place {
    pub(super) provider: DockerProvider,
    _state: TempDir,
}

impl Place {
    pub(super) fn new() -> Self {
        Self::with(|_| {})
    }

    /// Makes a provider from the usual settings, changed.
    pub(super) fn with(change: impl FnOnce(&mut DockerSettings)) -> Self {
        let state = tempfile::tempdir().unwrap();
        let mut settings = DockerSettings::new(BASE_IMAGE, state.path());
        change(&mut settings);
        Self {
            provider: DockerProvider::new(settings),
            _state: state,
        }
    }

    pub(super) fn attached() -> Self {
        Self::with(|settings| settings.reach = Reach::Attached)
    }
}
