//! The plan of a run on GitHub, and everything that prevents its start.

use ralph_test::{FakeGitHubToken, git};
use serde_json::json;

use super::{BRANCH, RemoteProject, token};
use crate::project::{Project, actions, control, finish};

#[test]
fn the_plan_names_the_repository_and_the_credential() {
    let remote = RemoteProject::new().change(|project| project.script(&[finish()]));
    let shown = remote.run_with(&["--dry-run"]).expect(0).stdout;
    let line = format!("{} · main at ", remote.url());
    assert!(shown.contains(&line), "{shown}");
    let credential = "github · personal access token (classic) from GITHUB_PAT";
    assert!(shown.contains(credential), "{shown}");
    assert!(!shown.contains("missing: "), "{shown}");
    assert_eq!(remote.branch(BRANCH), None);
}

#[test]
fn a_public_repository_without_a_credential_has_a_plan() {
    let remote = RemoteProject::new()
        .change(|project| project.script(&[finish()]).without_env("GITHUB_PAT"));
    let settings = json!({"private": false, "default_branch": "main"});
    let key = "octo/app".to_owned();
    remote.github.state().repositories.insert(key, settings);
    let shown = remote.run_with(&["--dry-run"]).expect(0).stdout;
    assert!(shown.contains("github · no credential"), "{shown}");
    let missing = "missing: no GitHub credential was found for `127.0.0.1`";
    assert!(shown.contains(missing), "{shown}");
    let refused = remote.run().expect(1).stderr;
    assert!(
        refused.contains("no GitHub credential was found"),
        "{refused}"
    );
}

#[test]
fn a_rejected_credential_prevents_the_start() {
    let remote = RemoteProject::new().change(|project| project.script(&[finish()]));
    remote.github.revoke_token(&token());
    let shown = remote.run_with(&["--dry-run"]).expect(0).stdout;
    assert!(shown.contains("missing: "), "{shown}");
    assert!(shown.contains("the plan is not complete"), "{shown}");
    let shown = remote.run_with(&["--dry-run", "--json"]).expect(0).stdout;
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert!(
        shown["missing"][0].as_str().unwrap().contains("rejected"),
        "{shown}"
    );
    let refused = remote.run().expect(1).stderr;
    assert!(refused.contains("rejected"), "{refused}");
    assert!(refused.contains("ralph scm check"), "{refused}");
    assert!(!remote.project.home().join("runs").join("last").exists());
}

#[test]
fn a_taken_branch_is_not_used() {
    let remote = RemoteProject::new().change(|project| project.script(&[finish()]));
    git(&remote.bare(), &["branch", BRANCH, "main"]);
    remote.run().expect(0);
    assert_eq!(remote.plan()["branch"], "ralph/task/make-two-files-v2");
    assert!(remote.branch("ralph/task/make-two-files-v2").is_some());
}

#[test]
fn two_runs_of_a_repository_have_different_branches() {
    let pause = actions(&[control("pause", "which way?")]);
    let remote = RemoteProject::new().change(|project| project.script(&[pause]));
    // Nothing is pushed yet.
    remote.run().expect(11);
    assert_eq!(remote.plan()["branch"], BRANCH);
    remote.project.write_script(&[finish()]);
    remote.run_with(&["--new"]).expect(0);
    assert_eq!(remote.plan()["branch"], "ralph/task/make-two-files-v2");
}

#[test]
fn a_repository_without_commits_and_a_missing_branch_are_reported() {
    let remote = RemoteProject::new().change(|project| project.script(&[finish()]));
    let bare = remote.bare();
    git(&bare, &["branch", "--move", "main", "trunk"]);
    git(&bare, &["symbolic-ref", "HEAD", "refs/heads/trunk"]);
    let refused = remote.run().expect(1).stderr;
    let error = format!("there is no branch `main` in `{}`", remote.url());
    assert!(refused.contains(&error), "{refused}");
    assert!(
        refused.contains("the default branch is `trunk`"),
        "{refused}"
    );
    std::fs::remove_dir_all(&bare).unwrap();
    let root = remote.hosted.path();
    git(root, &["init", "--quiet", "--bare", "octo/app.git"]);
    let refused = remote.run().expect(1).stderr;
    assert!(
        refused.contains("has no commits on its default branch"),
        "{refused}"
    );
}

#[test]
fn the_default_branch_is_the_base() {
    let remote =
        RemoteProject::new().change(|project| project.without("base_branch").script(&[finish()]));
    git(&remote.bare(), &["branch", "--move", "main", "trunk"]);
    git(
        &remote.bare(),
        &["symbolic-ref", "HEAD", "refs/heads/trunk"],
    );
    remote.run().expect(0);
    assert_eq!(remote.plan()["base_branch"], "trunk");
}

#[test]
fn other_addresses_are_rejected_and_never_repeat_a_password() {
    let project = Project::new().script(&[finish()]);
    for (address, why) in [
        ("ext::sh -c touch% /tmp/x", "neither an `https://` or `ssh`"),
        ("ssh://-oProxyCommand=x/o/r", "no valid host name"),
        ("git@-oProxyCommand=x:o/r", "no valid host name"),
        ("http://github.com/o/r", "neither an `https://` or `ssh`"),
        ("git://github.com/o/r", "neither an `https://` or `ssh`"),
        (
            "https://u:canary@github.com/o/r",
            "contains a user name or password",
        ),
        (
            "https://canary@github.com/o/r",
            "contains a user name or password",
        ),
        (
            "ssh://u:canary@github.com/o/r",
            "contains a user name or password",
        ),
        ("https://169.254.169.254/o/r", "no valid host name"),
        ("https://[::1]/o/r", "no valid host name"),
        ("https://github.com/o/r/../../x", "not `owner/name`"),
        ("--upload-pack=x", ""),
    ] {
        let flag = format!("--repo={address}");
        let refused = project.run_with(&[&flag]).expect(2).stderr;
        assert!(refused.contains(why), "{address}: {refused}");
        assert!(!refused.contains("canary"), "{refused}");
    }
    for path in ["file:///nowhere/app", "./o/r", "/nowhere/app"] {
        let refused = project.run_with(&["--repo", path]).expect(2).stderr;
        assert!(
            refused.contains("there is no git repository at"),
            "{refused}"
        );
    }
}

#[test]
fn the_repository_of_a_task_file_needs_an_approval() {
    let remote = RemoteProject::new();
    let url = remote.url();
    let remote = remote.change(|project| project.set("repo_url", &url).script(&[finish()]));
    let project = &remote.project;
    let refused = project.run().expect(2).stderr;
    assert!(refused.contains("repo_url"), "{refused}");
    project.ralph(&["trust", "--yes"]).expect(0);
    project.run().expect(0);
    assert_eq!(remote.plan()["repo"], url);
}

#[test]
fn the_origin_of_the_clone_needs_no_approval() {
    let remote = RemoteProject::new();
    let url = remote.url();
    let remote = remote.change(|project| project.set("repo_url", &url).script(&[finish()]));
    remote.project.git(&["remote", "add", "origin", &url]);
    remote.project.run().expect(0);
    assert_eq!(remote.plan()["repo"], url);
}

#[test]
fn each_reason_against_a_repository_is_in_the_plan() {
    let remote = RemoteProject::new().change(|project| project.script(&[finish()]));
    let role = json!({"private": true, "default_branch": "main", "archived": true,
        "permissions": {"admin": false, "push": false, "pull": true}});
    let key = "octo/app".to_owned();
    remote.github.state().repositories.insert(key, role);
    let classic = FakeGitHubToken::Classic("public_repo");
    remote.github.add_token(&token(), classic);
    let shown = remote.run_with(&["--dry-run"]).expect(0).stdout;
    let missing: Vec<&str> = shown
        .lines()
        .filter(|line| line.starts_with("missing: "))
        .collect();
    assert_eq!(missing.len(), 3, "{shown}");
    assert!(missing[0].contains("repository `octo/app` is archived"));
    assert!(missing[1].contains("`octocat` may not push to `octo/app`"));
    assert!(missing[2].contains("lacks permissions for `octo/app`"));
    let refused = remote.run().expect(1).stderr;
    assert!(refused.contains("is archived"), "{refused}");
    assert!(refused.contains("may not push"), "{refused}");
}

#[test]
fn a_renamed_repository_is_used_under_its_new_name() {
    let remote = RemoteProject::new().change(|project| project.script(&[finish()]));
    remote.github.state().rename("octo/app", "octo/new");
    let output = remote.run().expect(0);
    let new = format!("{}/octo/new", remote.github.url());
    assert_eq!(remote.plan()["repo"], new);
    let notice = format!("`{}` is now `{new}`", remote.url());
    assert!(output.combined().contains(&notice), "{}", output.combined());
    let bare = remote.hosted.path().join("octo/new.git");
    assert_ne!(git(&bare, &["for-each-ref", "refs/heads/ralph"]), "");
}

#[test]
fn a_repository_that_does_not_exist_is_refused() {
    let remote = RemoteProject::new().change(|project| project.script(&[finish()]));
    let url = format!("{}/octo/none", remote.github.url());
    let refused = remote.project.run_with(&["--repo", &url]).expect(1).stderr;
    assert!(
        refused.contains(&format!("cannot use `{url}`")),
        "{refused}"
    );
    assert!(refused.contains("not found, or no access"), "{refused}");
}
