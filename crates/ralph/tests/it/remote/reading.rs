//! Commands read the run's repository and its submodules through the gate.

use std::fs;

use ralph_test::{FakeGitHubToken, git};

use super::{BRANCH, RemoteProject, assert_no_token_in, token};
use crate::project::{Project, claiming, commit, run, write};

/// The submodules of `octo/app`: one of the same owner and one of another.
const MODULES: &str = "[submodule \"libs/one\"]
\tpath = one
\turl = ../one.git
[submodule \"secret\"]
\tpath = secret
\turl = ../../other/secret.git
";

/// Creates a repository with one file, and returns its path and its commit.
fn library(remote: &Project, name: &str) -> (std::path::PathBuf, String) {
    let path = remote.path(name);
    fs::create_dir(&path).unwrap();
    git(&path, &["init", "--quiet", "--initial-branch=main"]);
    fs::write(path.join("library.txt"), format!("{name}\n")).unwrap();
    git(&path, &["add", "."]);
    git(&path, &["commit", "--quiet", "--message=Create"]);
    let head = git(&path, &["rev-parse", "HEAD"]);
    (path, head)
}

/// Returns a repository on GitHub with two submodules, all private.
fn with_submodules() -> RemoteProject {
    let project = Project::new();
    let libraries = ["one", "secret"].map(|name| library(&project, name));
    for ((_, head), path) in libraries.iter().zip(["one", "secret"]) {
        let entry = format!("160000,{head},{path}");
        project.git(&["update-index", "--add", "--cacheinfo", &entry]);
    }
    project.commit(".gitmodules", MODULES);
    let remote = RemoteProject::with(project);
    let [(one, _), (secret, _)] = &libraries;
    remote.github.host_repository("octo/one", one);
    remote.github.host_repository("other/secret", secret);
    remote
}

#[test]
fn commands_read_the_repository_and_its_submodules_without_a_credential() {
    let remote = with_submodules();
    remote.commit_as("Ada", "main", "later.txt");
    let commands = [
        "git fetch --quiet origin && git cat-file -e origin/main:later.txt",
        "git submodule --quiet update --init one && grep one one/library.txt",
        "! git push --quiet origin HEAD:refs/heads/stolen",
        "! git ls-remote \"$(git remote get-url origin | sed s,octo/app,other/secret,)\"",
        "env; git config --list --show-origin",
    ];
    let mut work: Vec<_> = commands.iter().map(|command| run(command)).collect();
    work.extend([
        write("a.txt", "one\n"),
        write("b.txt", "two\n"),
        commit("Make two files"),
    ]);
    let remote = remote.change(|project| project.script(&[claiming(&["M1.1", "M1.2"], &work)]));
    remote.run().expect(0);
    let project = &remote.project;
    let plan = remote.plan();
    assert_eq!(plan["submodules"].as_array().unwrap().len(), 1, "{plan}");
    let results = project.results(1);
    assert_eq!(results[..5], ["ran 0"; 5]);
    let egress = fs::read_to_string(project.run_dir().join("egress.jsonl")).unwrap();
    for refused in ["octo/app.git/info/refs", "other/secret.git/info/refs"] {
        let mut lines = egress.lines().filter(|line| line.contains(refused));
        assert!(
            lines.any(|line| line.contains("path-not-allowed")),
            "{egress}"
        );
    }
    // The configuration is guarded, and these commands did not change it.
    assert_eq!(project.events("tamper").len(), 0);
    assert_eq!(remote.branch("stolen"), None);
    assert!(remote.branch(BRANCH).is_some());
    for directory in [&project.home(), &project.repo(), remote.hosted.path()] {
        assert_no_token_in(directory, &token());
    }
    project.audit();
}

/// The token that commands use belongs to one process, and the credential is read for each request.
#[test]
fn a_resumed_run_reads_with_a_new_credential() {
    let fetch = run("git fetch --quiet origin && git cat-file -e origin/main");
    let pause = crate::project::control("pause", "which way?");
    let first = claiming(&[], &[fetch.clone(), pause]);
    let mut work = vec![fetch];
    work.extend(crate::project::work());
    let second = claiming(&["M1.1", "M1.2"], &work);
    let remote = RemoteProject::new().change(|project| project.script(&[first, second]));
    remote.run().expect(11);
    remote.github.revoke_token(&token());
    let other = format!("ghp_{}", "0ther1".repeat(6));
    let accepted = FakeGitHubToken::Classic("repo, workflow");
    remote.github.add_token(&other, accepted);
    let remote = remote.change(|project| project.env("GITHUB_PAT", &other));
    remote.project.ralph(&["resume", "last"]).expect(0);
    assert_eq!(remote.project.results(1)[0], "ran 0");
    assert_eq!(remote.project.results(2)[0], "ran 0");
}
