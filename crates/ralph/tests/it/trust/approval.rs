//! Approvals: per repository and content, requested on a terminal, denied without one.

use std::fs;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::assert_refused;
use crate::project::Project;

fn listing(hosts: &str) -> String {
    format!("[sandbox.network]\npolicy = \"allowlist\"\nallowed = [{hosts}]\n")
}

fn trust(project: &Project) -> Value {
    let ended = project.ralph(&["trust", "--json"]);
    serde_json::from_str(&ended.stdout).unwrap()
}

fn pending(project: &Project) -> Vec<String> {
    let pending = trust(project)["pending"].as_array().unwrap().clone();
    let value = |proposal: Value| proposal["value"].as_str().unwrap().to_owned();
    pending.into_iter().map(value).collect()
}

#[test]
fn an_approval_is_for_this_content_of_this_repository() {
    let project = Project::new();
    project.commit("ralph.toml", &listing("\"a.example\""));
    assert_eq!(pending(&project), ["a.example", "allowlist"]);
    let shown = project.ralph(&["trust"]).expect(2);
    let line = "  needs approval  ralph.toml: sandbox.network.allowed = a.example\n";
    assert!(shown.stdout.contains(line), "{}", shown.stdout);
    project.ralph(&["trust", "--yes"]).expect(0);
    assert_eq!(pending(&project), Vec::<String>::new());
    // Everything else in the file may change.
    let text = listing("\"a.example\"") + "[monitoring]\nshow_progress = false\n";
    project.commit("ralph.toml", &text);
    assert_eq!(pending(&project), Vec::<String>::new());
    project.commit("ralph.toml", &listing("\"a.example\", \"b.example\""));
    assert_eq!(pending(&project), ["b.example"]);
    let earlier = &trust(&project)["pending"][0]["approved_before"];
    assert_eq!(earlier, &json!(["a.example"]));
    let listed = project.ralph(&["trust", "--list"]).expect(0);
    assert!(
        listed
            .stdout
            .contains("sandbox.network.allowed = a.example")
    );
    project.ralph(&["trust", "--revoke"]).expect(0);
    assert_eq!(pending(&project).len(), 3);
    let listed = project.ralph(&["trust", "--list"]).expect(0);
    assert_eq!(listed.stdout, "no proposals are approved\n");
}

#[test]
fn another_clone_at_the_same_path_is_another_repository() {
    let project = Project::new();
    project.commit("ralph.toml", &listing("\"a.example\""));
    project.ralph(&["trust", "--yes"]).expect(0);
    project.git(&["remote", "add", "origin", "/somewhere/else"]);
    assert_eq!(pending(&project).len(), 2);
}

#[test]
fn a_checked_out_branch_of_an_agent_shows_what_it_changed() {
    let project = Project::new();
    project.commit("ralph.toml", &listing("\"a.example\""));
    project.ralph(&["trust", "--yes"]).expect(0);
    project.git(&["checkout", "--quiet", "-b", "ralph/task/work"]);
    project.commit("ralph.toml", &listing("\"a.example\", \"evil.example\""));
    let model = project.model();
    let args = ["run", "--sandbox", "docker", "--model", &model];
    let words = ["ralph.toml: sandbox.network.allowed = evil.example"];
    assert_refused(&project, &args, &words);
}

#[test]
fn a_dry_run_prints_the_proposals_and_exits_with_2_until_they_are_approved() {
    let project = Project::new().script(&[json!({"reply": {"summary": "no", "actions": []}})]);
    let profile = "profiles:\n  theirs:\n    litellm_model: zai/glm-4.7\n    max_output_tokens: 64\n    \
                   api_base: https://llm.example\n";
    project.commit("config/models.yaml", profile);
    let shown = project.ralph(&["run", "--dry-run"]).expect(2);
    let line = "config/models.yaml: profiles.theirs.api_base = https://llm.example";
    assert!(shown.stdout.contains(line), "{}", shown.combined());
    assert!(shown.stderr.contains("`ralph trust`"), "{}", shown.stderr);
    // An explicitly named model needs no profile.
    project.run_with(&["--dry-run"]).expect(0);
    let failed = project.ralph(&["preflight"]).expect(1);
    assert!(
        failed
            .stdout
            .contains("  FAIL: trust — config/models.yaml: "),
        "{}",
        failed.stdout
    );
    project.ralph(&["trust", "--yes"]).expect(0);
    let shown = project.ralph(&["run", "--dry-run"]).expect(0);
    assert!(
        shown
            .stdout
            .contains(&format!("  approved        {line}\n")),
        "{}",
        shown.combined()
    );
    let passed = project.ralph(&["preflight"]).expect(0);
    let line = "  PASS: trust — 1 proposal of this repository approved\n";
    assert!(passed.stdout.contains(line), "{}", passed.stdout);
}

#[test]
fn a_host_that_the_user_allows_for_the_project_is_approved_with_it() {
    let project = Project::new().script(&[json!({"reply": {"summary": "no", "actions": []}})]);
    let project = project.set("max_iterations", "1");
    project.run().expect(10);
    project
        .ralph(&["allow", "last", "a.example", "--project"])
        .expect(0);
    assert_eq!(pending(&project), Vec::<String>::new());
    assert_eq!(trust(&project)["approved"].as_array().unwrap().len(), 2);
    // Other hosts of the same list are not approved with it.
    let text = fs::read_to_string(project.repo().join("ralph.toml")).unwrap();
    let text = text.replace("\"a.example\"", "\"a.example\", \"evil.example\"");
    fs::write(project.repo().join("ralph.toml"), text).unwrap();
    project
        .ralph(&["allow", "last", "b.example", "--project"])
        .expect(0);
    assert_eq!(pending(&project), ["evil.example"]);
}

/// Runs a command in a terminal, types an answer at the prompt, and returns its exit code and
/// output.
#[cfg(target_os = "linux")]
fn asked(project: &Project, arguments: &str, answer: &str) -> (i32, String) {
    let ralph = project.command(&[]);
    let line = format!("{} {arguments}", ralph.get_program().to_string_lossy());
    let mut command = Command::new("/usr/bin/script");
    command.args(["-qec", &line, "/dev/null"]).env_clear();
    for (name, value) in ralph.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    let mut child = command
        .current_dir(project.repo())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut shown = Vec::new();
    while !String::from_utf8_lossy(&shown).contains("[y/N] ") {
        let mut byte = [0];
        stdout.read_exact(&mut byte).unwrap();
        shown.push(byte[0]);
    }
    stdin.write_all(answer.as_bytes()).unwrap();
    stdin.flush().unwrap();
    stdout.read_to_end(&mut shown).unwrap();
    let code = child.wait().unwrap().code().unwrap();
    (code, String::from_utf8(shown).unwrap())
}

#[test]
#[cfg(target_os = "linux")]
fn on_a_terminal_a_run_shows_the_proposals_and_asks() {
    let project = Project::new().set("max_iterations", "1");
    let profile = "profiles:\n  theirs:\n    litellm_model: zai/glm-4.7\n    max_output_tokens: 64\n    \
                   api_base: http://127.0.0.1:9\n    timeout_s: 1\n";
    project.commit("config/models.yaml", profile);
    let (code, shown) = asked(&project, "run", "n\r");
    assert_eq!(code, 2, "{shown}");
    assert!(
        shown.contains("profiles.theirs.api_base = http://127.0.0.1:9"),
        "{shown}"
    );
    assert!(!project.home().join("runs").exists(), "a run was made");
    let (code, shown) = asked(&project, "trust", "y\r");
    assert_eq!(code, 0, "{shown}");
    assert_eq!(pending(&project), Vec::<String>::new());
}

#[test]
fn approvals_are_revoked_regardless_of_the_files() {
    let project = Project::new();
    project.commit("ralph.toml", &listing("\"a.example\""));
    project.ralph(&["trust", "--yes"]).expect(0);
    project.commit("ralph.toml", "nonsense");
    project.ralph(&["trust"]).expect(1);
    let ended = project.ralph(&["trust", "--revoke"]).expect(0);
    assert!(
        ended.stdout.starts_with("revoked 2 approvals of "),
        "{}",
        ended.stdout
    );
    let listed = project.ralph(&["trust", "--list"]).expect(0);
    assert_eq!(listed.stdout, "no proposals are approved\n");
}

#[test]
fn values_that_are_not_allowed_are_refused_with_the_file_that_they_belong_in() {
    let project = Project::new();
    let text = "[sandbox.docker]\nhosts = [\"tcp://evil.example:2375\"]\n";
    project.commit("ralph.toml", text);
    let own = project.user_config_path("ralph.toml").display().to_string();
    for args in [&["trust"][..], &["trust", "--yes"]] {
        assert_refused(
            &project,
            args,
            &[
                "ralph.toml may not set `sandbox.docker.hosts`",
                "tcp://evil.example:2375",
                &own,
            ],
        );
    }
    project.ralph(&["trust", "--json"]).expect(2);
    let not_allowed = &trust(&project)["not_allowed"][0];
    assert_eq!(not_allowed["user_file"], "ralph.toml");
    assert_eq!(not_allowed["value"], "[\"tcp://evil.example:2375\"]");
    let listed = project.ralph(&["trust", "--list"]).expect(0);
    assert_eq!(listed.stdout, "no proposals are approved\n");
}

#[test]
fn an_invalid_host_is_an_error_and_no_proposal() {
    for host in ["x y", "*", "*.com", "https://a.example"] {
        for (file, text) in [
            ("ralph.toml", listing(&format!("\"{host}\""))),
            (
                "config/agents.toml",
                format!("[command]\nhosts = [\"{host}\"]\n"),
            ),
        ] {
            let project = Project::new();
            project.commit(file, &text);
            let ended = project.ralph(&["trust", "--yes"]).expect(1);
            assert!(ended.stderr.contains(host), "{}", ended.stderr);
            assert!(ended.stderr.contains(file), "{}", ended.stderr);
            assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
            let listed = project.ralph(&["trust", "--list"]).expect(0);
            assert_eq!(listed.stdout, "no proposals are approved\n");
        }
    }
}
