//! Runs that are resumed and steered from another directory than the one they were started in, after
//! the configuration there has changed.

use std::fs;

use ralph_test::{FakeModelApi, FakeResponse};
use serde_json::json;

use crate::models::{complete_reply, project_at, streamed};
use crate::project::{Project, ProjectOutput};

/// Runs the program in a directory that has nothing to do with the project.
fn ralph_elsewhere(project: &Project, args: &[&str]) -> ProjectOutput {
    let elsewhere = project.path("elsewhere");
    fs::create_dir_all(&elsewhere).unwrap();
    // The configuration of the working directory would be rejected.
    fs::write(elsewhere.join("ralph.toml"), "[model]\nretry_delay = 0\n").unwrap();
    let mut command = project.command(args);
    let output = command.current_dir(elsewhere).output().unwrap();
    ProjectOutput::from_output(&output)
}

fn refused() -> FakeResponse {
    FakeResponse::json(401, r#"{"error":{"message":"wrong key"}}"#)
}

#[test]
fn a_run_is_resumed_with_the_model_and_the_dotenv_of_its_project() {
    let answers = [refused(), streamed(&complete_reply().to_string())];
    let api = FakeModelApi::start(answers).unwrap();
    let project = project_at(&api.url()).without_env("ACME_API_KEY");
    fs::write(
        project.repo().join(".env"),
        "ACME_API_KEY=acme-key-of-dotenv\n",
    )
    .unwrap();
    project.ralph(&["run"]).expect(11);
    ralph_elsewhere(&project, &["resume", "last"]).expect(0);
    assert_eq!(project.show()["status"], "succeeded");
    let requests = api.received();
    let keys = requests
        .iter()
        .map(|request| &request.headers["authorization"]);
    assert_eq!(keys.collect::<Vec<_>>(), ["Bearer acme-key-of-dotenv"; 2]);
    project.audit();
}

#[test]
fn a_run_keeps_the_profiles_it_was_planned_with_and_finds_new_ones() {
    let api = FakeModelApi::start([refused()]).unwrap();
    let project = project_at(&api.url());
    project.ralph(&["run"]).expect(11);
    let script = project.path("added.jsonl");
    fs::write(&script, json!({"reply": complete_reply()}).to_string()).unwrap();
    let added = format!(
        "profiles:\n  added:\n    litellm_model: scripted:{}\n    max_output_tokens: 10\n",
        script.display()
    );
    project.configure("models.yaml", &added);
    let unknown = ralph_elsewhere(&project, &["profile", "last", "nothing"]).expect(2);
    assert!(
        unknown
            .stderr
            .contains("there is no model profile `nothing`"),
        "{}",
        unknown.stderr
    );
    // The file no longer has the profile `file`, and did not have `added` when the run was planned.
    ralph_elsewhere(&project, &["profile", "last", "added"]).expect(0);
    ralph_elsewhere(&project, &["profile", "last", "file"]).expect(0);
    ralph_elsewhere(&project, &["resume", "last"]).expect(0);
    let profiles: Vec<_> = project
        .event_values("model_chosen", "choice")
        .into_iter()
        .map(|mut choice| choice["profile"].take())
        .collect();
    assert_eq!(profiles, [json!("web"), json!("file")]);
    project.audit();
}

#[test]
fn a_run_keeps_the_agent_and_the_outage_policy_it_was_planned_with() {
    let project = Project::new().set("sandbox_provider", "local");
    project.configure("ralph.toml", "[model]\nmax_outage = \"7m\"\n");
    project.configure(
        "agents.toml",
        "[mine]\ncommand = [\"sh\", \"tools/agent\"]\ntimeouts = { idle_seconds = 77 }\n",
    );
    let script = "cat >/dev/null\n\
        test -e ../scratch/ready || { touch ../scratch/ready; \
        echo '- M1.1: [blocked: not yet]' >>.ralph/progress.md; exit; }\n\
        echo one >a.txt; echo two >b.txt; git add a.txt b.txt\n\
        git -c user.name=a -c user.email=a@localhost commit --quiet --message Do\n\
        sed -i 's/- \\[ \\] M1/- [x] M1/' ralph_task.md .ralph/progress.md\n\
        sed -i '/blocked/d' .ralph/progress.md\n";
    project.commit("tools/agent", script);
    let run = ["run", "--agent", "mine", "--sandbox", "local"];
    project.ralph(&run).expect(11);
    let plan = project.events("run_created").remove(0)["plan"].take();
    assert_eq!(plan["agent"]["definition"]["timeouts"]["idle_seconds"], 77);
    assert_eq!(plan["settings"]["outage"]["max_outage_ms"], 420_000);
    fs::remove_file(project.user_config_path("agents.toml")).unwrap();
    fs::remove_file(project.user_config_path("ralph.toml")).unwrap();
    ralph_elsewhere(&project, &["resume", "last"]).expect(0);
    assert_eq!(project.show()["status"], "succeeded");
    project.audit();
}
