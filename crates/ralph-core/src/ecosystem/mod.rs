//! Finds the languages and the test commands of a project from the names and contents of its files.
//!
//! `ralph init` and `ralph run -p` list a directory, read [`READ_FILES`] and pass the result as
//! [`ProjectFiles`] to [`detect_project`]. A check runs in a fresh checkout, so a command also
//! installs the dependencies if the project's files say how.
//!
//! [`dependency_files`] selects the lockfiles and manifests that the set-up of a run depends on.

mod build_tools;
mod dependencies;
mod detect;
mod javascript;
mod languages;
mod project_files;
mod python;
mod registries;
#[cfg(test)]
mod tests;

pub use dependencies::{
    DependencyFileKind, MAX_DEPENDENCY_FILES, MAX_PLANNED_DEPENDENCY_FILES, PackageEcosystem,
    dependency_file, dependency_files, parent_directory, propose_setup_command, used_ecosystems,
};
pub use detect::{DetectedProject, TestCommand, detect_project};
pub use project_files::{LISTED_DIRECTORIES, ProjectFiles, READ_FILES};
