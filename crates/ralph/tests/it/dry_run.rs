//! `ralph run --dry-run` without anything that a start needs.

use serde_json::{Value, json};

use crate::project::Project;

/// Nothing listens there.
const NO_ENGINE: &str = "tcp://127.0.0.1:1";

fn plan(project: &Project, arguments: &[&str]) -> Value {
    let arguments = [&["run", "--dry-run", "--json"], arguments].concat();
    serde_json::from_str(&project.ralph(&arguments).expect(0).stdout).unwrap()
}

#[test]
fn a_plan_without_login_and_engine_lists_both() {
    let project = Project::new().env("DOCKER_HOST", NO_ENGINE);
    let shown = project
        .ralph(&["run", "--dry-run", "--agent", "claude"])
        .expect(0);
    assert_eq!(shown.stderr, "");
    for line in [
        "sandbox  docker · container without a network · image auto\n",
        "agent    claude · its own model\n",
        "missing: no token found for agent claude — run: ralph store-token\n",
        "missing: sandbox `docker` cannot be used — ",
    ] {
        assert!(shown.stdout.contains(line), "{line}: {}", shown.stdout);
    }
    let planned = plan(&project, &["--agent", "claude"]);
    assert_eq!(planned["sandbox"], "docker");
    assert_eq!(planned["agent"]["name"], "claude");
    assert_eq!(planned["agent"]["auth"], Value::Null);
    let missing = planned["missing"].as_array().unwrap();
    assert_eq!(missing.len(), 2, "{missing:?}");
    // The same errors prevent the start.
    let refused = project.ralph(&["run", "--agent", "claude"]).expect(2);
    for line in missing {
        let line = format!("ralph: {}\n", line.as_str().unwrap());
        assert!(refused.stderr.contains(&line), "{line}: {}", refused.stderr);
    }
    assert!(!project.home().join("runs").exists(), "a run was made");
}

#[test]
fn a_plan_without_a_key_or_with_configured_engines_that_are_down_is_shown() {
    let project = Project::new();
    let planned = plan(&project, &["--model", "zai/glm-4.7"]);
    assert_eq!(planned["model"], "zai/glm-4.7");
    let missing = "cannot use the model `zai/glm-4.7` — `ZAI_API_KEY` is not set — set it in the environment or in `.env`, \
                   or choose another model with `--profile`";
    assert_eq!(planned["missing"], json!([missing]));
    let key = project.env("ZAI_API_KEY", "a-key-of-the-user-1234");
    let planned = plan(&key, &["--model", "zai/glm-4.7"]);
    assert_eq!(planned["missing"], json!([]));
    assert_eq!(planned["model_key"], "ZAI_API_KEY");
    key.configure(
        "ralph.toml",
        &format!("[sandbox.docker]\nhosts = [\"{NO_ENGINE}\"]\n"),
    );
    let planned = plan(&key, &["--model", "zai/glm-4.7", "--sandbox", "docker"]);
    let missing = planned["missing"][0].as_str().unwrap();
    let line = "no Docker Engine in `sandbox.docker.hosts` responds — ";
    assert!(missing.starts_with(line), "{missing}");
    assert_eq!(planned["container"]["image"], "auto");
}

#[test]
fn a_repository_that_chooses_local_for_an_agent_is_listed() {
    let project = Project::new().set("sandbox_provider", "local");
    project.commit(".agent-loop/agent", "true\n");
    let planned = plan(&project, &["--agent", "command"]);
    assert_eq!(planned["sandbox"], "local");
    let missing = "agent `command` would work without isolation — only the repository chooses the sandbox `local` — \
                   use `--sandbox docker`, or accept it with `--sandbox local`";
    assert_eq!(planned["missing"], json!([missing]));
}

#[test]
fn a_task_that_the_linter_rejects_or_a_missing_repository_has_no_plan() {
    let project = Project::new().without("test_command");
    project.ralph(&["run", "--dry-run"]).expect(12);
    let project = Project::new().set("base_branch", "nowhere");
    let refused = project
        .ralph(&["run", "--dry-run", "--model", "zai/glm-4.7"])
        .expect(2);
    let lines: Vec<&str> = refused.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{}", refused.stderr);
    assert!(lines[0].contains("nowhere"), "{}", refused.stderr);
    assert!(lines[1].contains("ZAI_API_KEY"), "{}", refused.stderr);
}
