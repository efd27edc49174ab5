//! The sandbox, Docker Engine and network of a run.

use std::fs;

use ralph_test::{BASE_IMAGE, skip_without_docker};
use serde_json::Value;

use super::{HostileServer, assert_refused};
use crate::project::Project;

fn plan(project: &Project, more: &[&str]) -> Value {
    let model = project.model();
    let args = [&["run", "--dry-run", "--json", "--model", &model], more].concat();
    serde_json::from_str(&project.ralph(&args).expect(0).stdout).unwrap()
}

fn scripted() -> Project {
    Project::new().script(&[serde_json::json!({"reply": {"summary": "no", "actions": []}})])
}

#[test]
fn engines_of_a_repository_are_never_contacted() {
    let evil = HostileServer::start();
    let project = scripted();
    let hosts = format!("[sandbox.docker]\nhosts = [\"tcp://{}\"]\n", evil.address);
    project.commit("ralph.toml", &hosts);
    let words = [
        "ralph.toml may not set `sandbox.docker.hosts`",
        "user/.config/ralph/ralph.toml",
    ];
    let model = project.model();
    let run = ["run", "--sandbox", "docker", "--model", &model];
    assert_refused(&project, &run, &words);
    project
        .ralph(&[&run[..], &["--dry-run"]].concat())
        .expect(2);
    project
        .ralph(&["preflight", "--sandbox", "docker"])
        .expect(1);
    project.ralph(&["trust", "--yes"]).expect(2);
    assert_refused(&project, &run, &words);
    project.ralph(&["prune-sandboxes", "--dry-run"]);
    project.ralph(&["image", "status"]);
    project.ralph(&["selftest", "--offline", "--type", "local"]);
    evil.assert_no_connection("an engine of the repository was contacted");
    // The same line in the user's own file is valid.
    project.git(&["rm", "--quiet", "ralph.toml"]);
    project.configure("ralph.toml", &hosts);
    let ended = project.ralph(&run).expect(1);
    let line = "ralph: no Docker Engine in `sandbox.docker.hosts` responds";
    assert!(ended.stderr.starts_with(line), "{}", ended.stderr);
}

#[test]
fn a_repository_cannot_open_the_network() {
    let project = scripted();
    let model = project.model();
    let run = ["run", "--sandbox", "docker", "--model", &model];
    project.commit("ralph.toml", "[sandbox.network]\npolicy = \"allow-all\"\n");
    assert_refused(
        &project,
        &run,
        &[
            "may not set `sandbox.network.policy`",
            "commands in containers reach every host",
        ],
    );
    project.commit(
        "ralph.toml",
        "[sandbox.network]\npolicy = \"allowlist\"\nallowed = [\"evil.example\"]\n",
    );
    assert_refused(&project, &run, &["needs your approval", "(and 1 more)"]);
}

#[test]
fn hosts_of_a_repositorys_agents_open_nothing_without_approval() {
    if skip_without_docker() {
        return;
    }
    let project = scripted().set("sandbox_image", BASE_IMAGE);
    project.commit(".agent-loop/agent", "true\n");
    project.commit(
        "config/agents.toml",
        "[command]\nhosts = [\"evil.example\"]\n",
    );
    let run = ["run", "--sandbox", "docker", "--agent", "command"];
    let words = [
        "config/agents.toml: command.hosts = evil.example",
        "whatever the network policy says",
    ];
    assert_refused(&project, &run, &words);
    let dry = [&run[..], &["--dry-run", "--json"]].concat();
    let shown = project.ralph(&dry).expect(2);
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(shown["network"]["policy"], "deny", "{shown}");
    assert_eq!(shown["proposals"]["pending"][0]["value"], "evil.example");
    project.ralph(&["trust", "--yes"]).expect(0);
    let shown = project.ralph(&dry).expect(0);
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_ne!(shown["network"]["policy"], "deny", "{shown}");
    // A repository can never choose the program of an agent.
    project.commit(
        "config/agents.toml",
        "[claude]\ncommand = [\"sh\", \"-c\", \"evil\"]\n",
    );
    assert_refused(
        &project,
        &run,
        &["config/agents.toml may not set `claude.command`"],
    );
}

#[test]
fn a_repository_cannot_choose_a_weaker_sandbox_than_the_user() {
    if skip_without_docker() {
        return;
    }
    let with_task = || {
        scripted()
            .set("sandbox_provider", "local")
            .set("sandbox_image", BASE_IMAGE)
    };
    // Set by the environment.
    let project = with_task().env("RALPH_DEFAULT_PROVIDER", "docker");
    assert_eq!(plan(&project, &[])["sandbox"], "docker");
    assert_eq!(plan(&project, &["--sandbox", "local"])["sandbox"], "local");
    let model = project.model();
    let shown = project
        .ralph(&["run", "--dry-run", "--model", &model])
        .expect(0);
    let note = "the task asks for the sandbox `local`; you chose `docker`, which isolates more and is used";
    assert!(shown.stdout.contains(note), "{}", shown.stdout);
    // Set by the user's own file, overriding the task, a `.env` and the repository's file.
    let project = with_task();
    project.configure("ralph.toml", "[sandbox]\nprovider = \"docker\"\n");
    assert_eq!(plan(&project, &[])["sandbox"], "docker");
    let project = project.without("sandbox_provider");
    fs::write(
        project.repo().join(".env"),
        "RALPH_DEFAULT_PROVIDER=local\n",
    )
    .unwrap();
    fs::write(
        project.repo().join("ralph.toml"),
        "[sandbox]\nenabled = false\nprovider = \"local\"\n",
    )
    .unwrap();
    assert_eq!(plan(&project, &[])["sandbox"], "docker");
    // Without a user setting, the task chooses.
    let project = with_task();
    assert_eq!(plan(&project, &[])["sandbox"], "local");
    let project = project.set("sandbox_provider", "docker");
    assert_eq!(plan(&project, &[])["sandbox"], "docker");
}

#[test]
fn a_script_of_the_task_does_not_run_on_the_host_of_a_user_who_chose_containers() {
    if skip_without_docker() {
        return;
    }
    let marker = tempfile::tempdir().unwrap();
    let file = marker.path().join("ran-on-the-host");
    let command = format!("touch {} 2>/dev/null; test -s base.txt", file.display());
    let project = scripted()
        .set("sandbox_provider", "local")
        .set("sandbox_image", BASE_IMAGE)
        .set("max_iterations", "1")
        .set("test_command", &format!("\"{command}\""))
        .env("RALPH_DEFAULT_PROVIDER", "docker");
    project.run().expect(10);
    assert!(!file.exists());
}

#[test]
fn sizes_above_the_users_are_approved_first() {
    let project = scripted().set("sandbox_resources", "{ memory_gib: 64, vcpu: 1 }");
    let model = project.model();
    let run = ["run", "--sandbox", "docker", "--model", &model];
    assert_refused(
        &project,
        &run,
        &["ralph_task.md: sandbox_resources.memory_gib = 64"],
    );
    // They have no effect without containers.
    project.run_with(&["--dry-run"]).expect(0);
}

#[test]
fn a_task_that_works_on_another_repository_is_approved_first() {
    let project = scripted();
    let other = project.path("other");
    fs::create_dir(&other).unwrap();
    project.git_in(&other, &["init", "--quiet", "--initial-branch=main"]);
    let url = format!("file://{}", other.display());
    let project = project.set("repo_url", &url);
    fs::write(other.join("x"), "x").unwrap();
    project.git_in(&other, &["add", "."]);
    project.git_in(&other, &["commit", "--quiet", "--message=x"]);
    let model = project.model();
    assert_refused(
        &project,
        &["run", "--model", &model],
        &["repo_url", "the run works on the repository"],
    );
    project
        .ralph(&["run", "--dry-run", "--model", &model, "--repo", &url])
        .expect(0);
    project.ralph(&["trust", "--yes"]).expect(0);
    project.run_with(&["--dry-run"]).expect(0);
}
