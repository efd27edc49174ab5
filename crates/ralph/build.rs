//! Sets `RALPH_VERSION_TEXT`, the text of `ralph --version`: the version, and the commit if it is known.
//!
//! The commit is `RALPH_COMMIT`, or that of the git repository of these sources. A source archive has
//! neither.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=RALPH_COMMIT");
    let version = variable("CARGO_PKG_VERSION").unwrap_or_default();
    let commit = variable("RALPH_COMMIT").or_else(commit_of_sources);
    let text = commit.map_or_else(|| version.clone(), |commit| format!("{version} ({commit})"));
    println!("cargo::rustc-env=RALPH_VERSION_TEXT={text}");
}

/// Returns a variable that is one word.
fn variable(name: &str) -> Option<String> {
    let value = env::var_os(name)?.to_string_lossy().trim().to_owned();
    let is_word = !value.is_empty() && !value.contains(char::is_whitespace);
    is_word.then_some(value)
}

/// Returns the commit, if the root of the sources is the root of a repository: an archive may have been
/// unpacked inside another one.
fn commit_of_sources() -> Option<String> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR")?).join("../..");
    let top_level = git(&root, &["rev-parse", "--show-toplevel"])?;
    if !is_same(&root, Path::new(&top_level)) {
        return None;
    }
    for file in ["HEAD", "logs/HEAD"] {
        let path = root.join(git(&root, &["rev-parse", "--git-path", file])?);
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    git(&root, &["rev-parse", "--short=12", "HEAD"])
}

fn is_same(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// Returns the output of a git command, or `None` if it fails or git is missing.
fn git(directory: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .current_dir(directory)
        .args(arguments)
        .output();
    let Ok(output) = output else {
        return None;
    };
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}
