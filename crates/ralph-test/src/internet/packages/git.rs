//! A git repository served as static files.

use std::path::Path;

use super::HELLO;
use crate::internet::{SitePage, SitePages};

/// Returns a repository with one commit that contains the file `hello.txt`: `/NAME.git`.
///
/// # Panics
/// If `git` is not installed.
pub fn git(name: &str) -> SitePages {
    let directory = tempfile::tempdir().expect("a directory");
    let (work, bare) = (directory.path().join("work"), directory.path().join("bare"));
    std::fs::create_dir(&work).expect("a directory");
    std::fs::write(work.join("hello.txt"), format!("{HELLO}\n")).expect("a file");
    crate::create_repository(&work);
    crate::git(&work, &["clone", "--quiet", "--bare", ".", "../bare"]);
    crate::git(&bare, &["update-server-info"]);
    let mut pages = SitePages::new();
    collect_pages(&bare, &format!("/{name}.git"), &mut pages);
    pages
}

fn collect_pages(directory: &Path, path: &str, pages: &mut SitePages) {
    for entry in std::fs::read_dir(directory).expect("a directory").flatten() {
        let path = format!("{path}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            collect_pages(&entry.path(), &path, pages);
        } else {
            let bytes = std::fs::read(entry.path()).expect("a file");
            pages.insert(path, SitePage::file("application/octet-stream", bytes));
        }
    }
}
