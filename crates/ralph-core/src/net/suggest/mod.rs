//! Which hosts a project's own files name, each with the place that names it.
//!
//! A lockfile says where every package came from, and the configuration of a client where it looks.
//! Private registries are named there and nowhere else. A suggestion is shown to a human, or printed
//! by a command: nothing applies it by itself, because whoever can write to the repository can write
//! one.
//!
//! - `file` knows the files; `read` finds hosts in them.

mod file;
mod parse;

use serde::Serialize;

use super::Host;

/// A host that a file names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct HostSuggestion {
    /// The host, as an entry of an allowlist.
    pub host: Host,
    /// The port, where the file names one.
    pub port: Option<u16>,
    /// The file that names it.
    pub path: String,
    /// What the file is.
    pub reason: &'static str,
}

/// The most of a file that is read, in bytes.
pub const MAX_BYTES: usize = 8 * 1024 * 1024;
/// The most hosts that one file suggests.
pub const MAX_HOSTS: usize = 64;

/// Returns whether a file could suggest something, by its path.
pub fn is_host_file(path: &str) -> bool {
    file::host_file(path).is_some()
}

/// Returns the hosts that a file names, sorted, each once. A file that is not known names none.
pub fn suggest(path: &str, bytes: &[u8]) -> Vec<HostSuggestion> {
    let Some(file) = file::host_file(path) else {
        return Vec::new();
    };
    let bytes = &bytes[..bytes.len().min(MAX_BYTES)];
    let text = String::from_utf8_lossy(bytes);
    let found = parse::hosts(file.format, &text).take(MAX_HOSTS);
    let mut suggestions: Vec<_> = found
        .map(|(host, port)| HostSuggestion {
            host,
            port,
            path: path.to_owned(),
            reason: file.reason,
        })
        .collect();
    suggestions.sort();
    suggestions
}

#[cfg(test)]
mod tests;
