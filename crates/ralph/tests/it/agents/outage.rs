//! Agents whose provider is temporarily unavailable.

use ralph_test::ScenarioStep;
use serde_json::json;

use super::fixture::{AgentFixture, REPO, with_script};
use crate::project::Project;

/// Delays short enough for a test.
const QUICK: &str = "[model]\nretry_delay = \"1ms\"\nlongest_retry_delay = \"40ms\"\n";

/// Creates both files and ticks both boxes.
const WORK: &str = "echo one >a.txt; echo two >b.txt; git add a.txt b.txt; \
    git -c user.name=a -c user.email=a@localhost commit --quiet --message both; \
    sed -i 's/- \\[ \\] M/- [x] M/' ralph_task.md";

fn assert_waited_out(project: &Project, sessions: usize) {
    let shown = project.show();
    assert_eq!(shown["status"], "succeeded");
    assert_eq!(shown["iteration"], 1);
    let ends = project.event_values("agent_finished", "end");
    assert_eq!(ends.len(), sessions, "{ends:?}");
    assert!(
        ends[..sessions - 1].iter().all(|end| end == "overloaded"),
        "{ends:?}"
    );
    assert_eq!(project.events("provider_countdown").len(), sessions - 1);
    let errors = project.file("errors.log");
    assert!(!errors.contains("not available"), "{errors}");
    project.audit();
}

#[test]
fn a_script_that_says_that_its_model_is_not_available_is_started_again() {
    let script = format!(
        "tries=$(cat ../scratch/tries 2>/dev/null || echo 0)\n\
         echo $((tries + 1)) >../scratch/tries\n\
         if test \"$tries\" -lt 8; then echo 'no connection to the model' >&2; exit 75; fi\n{WORK}\n"
    );
    let project = with_script(&script).set("max_iterations", "2");
    project.configure("ralph.toml", QUICK);
    let ended = project.ralph(&["run", "--agent", "command"]).expect(0);
    let line = "the provider of `command` is not available: exit 75: no connection to the model; next attempt at ";
    assert!(ended.combined().contains(line), "{}", ended.combined());
    assert_waited_out(&project, 9);
}

#[test]
fn claude_is_started_again_until_its_provider_is_not_overloaded() {
    let command = format!("cd {REPO} 2>/dev/null; {WORK}");
    let input = json!({"command": command, "description": "works"});
    // The agent retries once in each session.
    let steps: [ScenarioStep; 8] = std::array::from_fn(|number| match number {
        0..6 => ScenarioStep::error(529, "Overloaded"),
        6 => ScenarioStep::tool("Bash", input.clone()),
        _ => ScenarioStep::text("Done."),
    });
    let Some(setup) = AgentFixture::local("claude", steps) else {
        return;
    };
    let setup = setup.set("max_iterations", "2");
    setup.project.configure("ralph.toml", QUICK);
    let once = "[claude.environment]\nCLAUDE_CODE_MAX_RETRIES = \"1\"\n";
    setup.project.configure("agents.toml", once);
    setup.run(&[]).expect(0);
    assert_waited_out(&setup.project, 4);
}
