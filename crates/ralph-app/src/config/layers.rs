//! The layers of a project's configuration: built-in, the user's, the repository's.
//!
//! The files of a repository are untrusted. [`ralph_core::trust`] defines which of their values
//! apply immediately, which need the user's approval, and which are never used.

use std::path::{Path, PathBuf};

use ralph_core::trust::{TrustFile, TrustProposal, UserOnlyValue};
use ralph_guest::available;

use super::approvals::Approvals;
use super::error::ConfigFileError;
use super::prices::StoredPrices;
use super::project_file::ProjectFile;
use super::regular_file::project_root;
use super::{Environment, find_project_file};

/// The locations of a project's configuration layers, and the user's approvals.
#[derive(Debug, Clone)]
pub struct ConfigLayers {
    directory: PathBuf,
    user: Option<PathBuf>,
    stored_prices: Option<PathBuf>,
    approvals: Approvals,
}

/// The requests of a repository's files that go beyond its authority.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustFindings {
    /// Values that need the user's approval, with or without an approval.
    pub proposals: Vec<TrustProposal>,
    /// Values that only the user's configuration may set. They are not used.
    pub overreach: Vec<UserOnlyValue>,
    /// Values that are not used because the user chose a stronger one.
    pub notes: Vec<String>,
}

impl TrustFindings {
    /// Adds the findings of another file.
    pub fn extend(&mut self, other: Self) {
        self.proposals.extend(other.proposals);
        self.overreach.extend(other.overreach);
        self.notes.extend(other.notes);
    }
}

/// A part of the configuration with all permitted layers applied.
#[derive(Debug, Clone)]
pub struct Layered<T> {
    /// The effective configuration.
    pub value: T,
    /// The requests of the repository's file.
    pub findings: TrustFindings,
}

impl ConfigLayers {
    /// Finds the layers for the working directory.
    pub fn for_working_dir(environment: &Environment) -> Self {
        Self::for_directory(environment, environment.working_dir())
    }

    /// Finds the layers for another directory.
    pub fn for_directory(environment: &Environment, directory: &Path) -> Self {
        // Commands that need the state directory report that there is none.
        let state = available(environment.state_dir());
        Self {
            directory: directory.to_owned(),
            user: environment.config_dir(),
            stored_prices: state.as_deref().map(StoredPrices::path),
            approvals: Approvals::load(state.as_deref(), project_root(directory)),
        }
    }

    /// Returns the directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the user's approvals for this repository.
    pub fn approvals(&self) -> &Approvals {
        &self.approvals
    }

    /// Returns the path of the user's stored prices, whether or not it exists.
    pub(super) fn stored_prices(&self) -> Option<PathBuf> {
        self.stored_prices.clone()
    }

    /// Returns the path of a file in the user's configuration, for messages.
    pub fn user_path(&self, file: &str) -> String {
        let names = user_names(TrustFile::Settings);
        if names.contains(&file)
            && let Some(existing) = self.user_files(TrustFile::Settings).first()
        {
            return existing.display().to_string();
        }
        let directory = self.user.as_deref();
        let directory = directory.unwrap_or(Path::new("~/.config/ralph"));
        directory.join(file).display().to_string()
    }

    /// Returns the user's file of a kind, if it exists. Rejects two settings files: neither could
    /// take precedence without surprise.
    pub(super) fn user_file(&self, kind: TrustFile) -> Result<Option<PathBuf>, ConfigFileError> {
        let mut files = self.user_files(kind).into_iter();
        match (files.next(), files.next()) {
            (Some(first), Some(second)) => Err(ConfigFileError::TwoUserFiles { first, second }),
            (file, _) => Ok(file),
        }
    }

    /// Returns the existing files of the user's configuration of a kind.
    fn user_files(&self, kind: TrustFile) -> Vec<PathBuf> {
        let names = user_names(kind).into_iter();
        let paths = names.filter_map(|name| Some(self.user.as_ref()?.join(name)));
        paths
            .filter(|path| path.symlink_metadata().is_ok())
            .collect()
    }

    /// Returns the repository's file of a kind, if it exists and is not the user's file.
    pub(super) fn repository_file(&self, kind: TrustFile) -> Option<ProjectFile> {
        let found = find_project_file(&self.directory, kind.name())?;
        // Reading a file reports why its path cannot be resolved.
        let real = |path: &Path| available(path.canonicalize());
        let own = self.user_files(kind).into_iter();
        let own: Vec<PathBuf> = own.filter_map(|own| real(&own)).collect();
        let is_own = real(&found.path).is_some_and(|found| own.contains(&found));
        (!is_own).then_some(found)
    }
}

/// Returns the names that the user's file of a kind can have.
fn user_names(kind: TrustFile) -> Vec<&'static str> {
    let other_name = (kind == TrustFile::Settings).then_some("config.toml");
    other_name.into_iter().chain(kind.user_file()).collect()
}
