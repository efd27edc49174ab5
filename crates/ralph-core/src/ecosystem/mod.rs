//! Finds the languages and the test commands of a project from the names and contents of its files.
//!
//! `ralph init` and `ralph run -p` list a directory, read [`READ_FILES`] and pass the result as
//! [`ProjectFiles`] to [`detect_project`]. A check runs in a fresh checkout, so a command also
//! installs the dependencies if the project's files say how.

mod build_tools;
mod detect;
mod javascript;
mod languages;
mod project_files;
mod python;
#[cfg(test)]
mod tests;

pub use detect::{DetectedProject, TestCommand, detect_project};
pub use project_files::{LISTED_DIRECTORIES, ProjectFiles, READ_FILES};
