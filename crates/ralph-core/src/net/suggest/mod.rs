//! Suggests hosts for the allowlist from a project's own files.
//!
//! A lockfile records the origin of every package, and the configuration of a package manager its
//! registries; private registries appear only there. Suggestions are displayed but never applied
//! automatically, because anyone with write access to the repository can add one.
//!
//! - `file` recognises the files; `parse` finds hosts in them.

mod file;
mod parse;

use serde::Serialize;

use super::Host;

/// A host found in a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct HostSuggestion {
    pub host: Host,
    /// `None` if the file names no port or the default one of the scheme.
    pub port: Option<u16>,
    pub path: String,
    /// The kind of file.
    pub reason: &'static str,
}

/// The size of the part of a file that is searched, in bytes.
pub const MAX_BYTES: usize = 8 * 1024 * 1024;
/// The most suggestions from one file.
pub const MAX_HOSTS: usize = 64;

/// Returns whether a file with this path can contain suggestions.
pub fn is_host_file(path: &str) -> bool {
    file::host_file(path).is_some()
}

/// Returns the hosts in a file, sorted and without duplicates. Unknown files have none.
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

/// Returns the hosts of all URLs in a settings file, in allowlist syntax, sorted and without
/// duplicates.
pub fn setting_hosts(text: &str) -> Vec<String> {
    let found = parse::hosts(file::HostFileFormat::Settings, text).take(MAX_HOSTS);
    let hosts = found.map(|(host, port)| match port {
        Some(port) => format!("{host}:{port}"),
        None => host.to_string(),
    });
    let mut hosts: Vec<String> = hosts.collect();
    hosts.sort();
    hosts.dedup();
    hosts
}

#[cfg(test)]
mod tests;
