//! A new user's first task: `ralph init` and `ralph run -p` look at the repository and the machine.

mod boxes;
mod init;
mod sentence;

use std::fs;

use crate::project::Project;

/// An address without a Docker Engine.
const NO_ENGINE: &str = "unix:///nowhere/docker.sock";

/// A project whose tests need `a.txt`, without a task file and without Docker.
fn project() -> Project {
    let project = Project::new().env("DOCKER_HOST", NO_ENGINE);
    project.commit("test.sh", "test -s a.txt\n");
    fs::remove_file(project.task()).unwrap();
    project
}

/// Returns the front matter and the body that `ralph init` wrote, without comments.
fn settings(project: &Project) -> Vec<String> {
    let text = fs::read_to_string(project.task()).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let lines = lines.filter(|line| !line.is_empty());
    lines.map(str::to_owned).collect()
}

fn has_line(project: &Project, line: &str) -> bool {
    settings(project).iter().any(|found| found == line)
}
