//! A relative directory in `PATH` refers to the repository: nothing in it is executed.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::project::{Project, finish};

/// Programs that ralph or git could search for.
const TRAPS: [&str; 10] = [
    "git",
    "sh",
    "nix",
    "claude",
    "secret-tool",
    "setsid",
    "env",
    "find",
    "git-upload-pack",
    "cat",
];

#[test]
fn programs_of_the_repository_are_never_executed_on_the_host() {
    let project = Project::new().script(&[finish()]);
    let sprung = project.path("sprung");
    for directory in ["", "bin"] {
        let directory = project.repo().join(directory);
        fs::create_dir_all(&directory).unwrap();
        for name in TRAPS {
            let file = directory.join(name);
            let text = format!("#!/bin/sh\necho {name} >> {}\nexit 1\n", sprung.display());
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
    let path = std::env::var_os("PATH").unwrap().into_string().unwrap();
    let project = project.env("PATH", format!(".:bin::{path}:"));
    project.ralph(&["preflight"]);
    project.ralph(&["tokens"]);
    project
        .ralph(&["run", "--dry-run", "--model", &project.model()])
        .expect(0);
    project.run().expect(0);
    project.audit();
    project.ralph(&["export", "last", &project.path("out").display().to_string()]);
    assert!(!sprung.exists());
    // Relative entries alone are no search path.
    let project = project.env("PATH", ".:bin");
    project.run_with(&["--new"]).expect(0);
    assert!(!sprung.exists());
}
