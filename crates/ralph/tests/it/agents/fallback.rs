//! Runs whose agent is replaced with its fallback.

use serde_json::json;

use super::fixture::with_script;
use crate::project::Project;

/// Defines `second`, an agent with a script of its own, and short waits.
const SECOND: &str = "[second]\nlike = \"command\"\ncommand = [\"sh\", \".agent-loop/second\"]\n";
const QUICK: &str =
    "[model]\nretry_delay = \"1ms\"\nlongest_retry_delay = \"2ms\"\nmax_outage = \"4ms\"\n";

/// Completes the task, if nothing is left of an earlier session's home.
const WORK: &str = "test ! -e \"$HOME/memory\" || exit 9\n\
    rm -f n.txt; echo one >a.txt; echo two >b.txt; git add a.txt b.txt\n\
    git -c user.name=a -c user.email=a@localhost commit --quiet --message both\n\
    sed -i 's/- \\[ \\] M/- [x] M/' ralph_task.md\n";

/// A project whose first agent is this script, and whose second agent does the work.
fn two_agents(first: &str) -> Project {
    let project = with_script(first);
    project.commit(".agent-loop/second", WORK);
    project.configure("agents.toml", SECOND);
    project.configure("ralph.toml", QUICK);
    project
}

fn assert_second_agent_finished(project: &Project, iteration: u32) {
    let shown = project.show();
    assert_eq!(shown["status"], "succeeded");
    assert_eq!(shown["iteration"], iteration);
    assert_eq!(shown["agent"], "second");
    assert_eq!(shown["model"], "agent:second");
    let since = json!({"agent": "second", "since_iteration": iteration});
    assert_eq!(shown["agent_fallback"], since);
    let started = project.event_values("agent_started", "agent");
    assert_eq!(started.last(), Some(&json!("second")));
    let text = project.ralph(&["show", "last"]).expect(0).stdout;
    let line = format!("  in force the fallback `second` works since iteration {iteration}\n");
    assert!(text.contains(&line), "{text}");
    project.audit();
}

#[test]
fn the_fallback_works_after_the_longest_outage() {
    let project = two_agents("touch \"$HOME/memory\"; echo 'the model is gone' >&2; exit 75\n")
        .set("agent_fallback", "second");
    let ended = project.ralph(&["run", "--agent", "command"]).expect(0);
    let line = "the fallback agent `second` continues: the provider of `command` is not available: exit 75: \
                the model is gone";
    assert!(ended.combined().contains(line), "{}", ended.combined());
    assert_second_agent_finished(&project, 1);
    assert_eq!(project.events("agent_switched").len(), 1);
    let log = project.file("activity.log");
    assert!(
        log.contains("now using the fallback agent `second`: the provider of"),
        "{log}"
    );
    let body = project.show()["pull_request"].to_string();
    assert!(!body.is_empty());
}

#[test]
fn the_ladder_switches_to_the_fallback_agent() {
    let script =
        "cat >/dev/null; seq $$ >n.txt; test -e none || { echo 'no fixture' >&2; exit 3; }\n";
    let project = two_agents(script)
        .set("agent_fallback", "second")
        .set("max_iterations", "9");
    let ended = project.ralph(&["run", "--agent", "command"]);
    let steps: Vec<String> = project
        .events("gutter")
        .iter()
        .map(|event| event["mitigation"].to_string())
        .collect();
    let switch = json!({"step": "fallback_agent", "agent": "second"}).to_string();
    assert!(steps.contains(&switch), "{steps:?}\n{}", ended.combined());
    ended.expect(0);
    // Two gutters: rotate, then switch.
    assert_second_agent_finished(&project, 8);
    let why = project.event_values("agent_switched", "why");
    assert_eq!(why, [json!("the run is circling")]);
}

#[test]
fn the_fallback_stays_in_force_when_the_run_is_resumed() {
    let project = two_agents("exit 75\n").set("agent_fallback", "second");
    let blocked =
        "cat >/dev/null; echo '- M1.1: [blocked: there is no database]' >>.ralph/progress.md\n";
    project.commit(".agent-loop/second", blocked);
    project.ralph(&["run", "--agent", "command"]).expect(11);
    // The definition is pinned: the files may change.
    project.configure("agents.toml", "");
    let resumed = project.ralph(&["resume", "last"]);
    resumed.expect(11);
    let started = project.event_values("agent_started", "agent");
    assert_eq!(
        started.iter().filter(|agent| **agent == "second").count(),
        2,
        "{started:?}"
    );
    assert_eq!(project.events("agent_switched").len(), 1);
    project.audit();
}

#[test]
fn the_users_settings_name_a_fallback_for_tasks_without_one() {
    let project = two_agents("exit 75\n");
    project.configure(
        "ralph.toml",
        &format!("{QUICK}[agent]\nfallback = \"second\"\n"),
    );
    let plan = project
        .ralph(&["run", "--agent", "command", "--dry-run"])
        .expect(0);
    let line = "  fallback second · its own model\n";
    assert!(plan.stdout.contains(line), "{}", plan.stdout);
    // An agent cannot replace itself.
    let plan = project
        .ralph(&["run", "--agent", "second", "--dry-run"])
        .expect(0);
    assert!(!plan.stdout.contains("fallback"), "{}", plan.stdout);
    let checks = project.ralph(&["preflight", "--agent", "command"]).stdout;
    assert!(checks.contains("fallback agent"), "{checks}");
    project.ralph(&["run", "--agent", "command"]).expect(0);
    assert_second_agent_finished(&project, 1);
}

#[test]
fn plan_preflight_and_start_check_the_fallback() {
    let project = two_agents("exit 75\n").set("agent_fallback", "claude:haiku");
    let missing = "`claude`, the program of agent `claude`, is not on PATH";
    let run = project.ralph(&["run", "--agent", "command"]).expect(1);
    assert!(run.stderr.contains(missing), "{}", run.stderr);
    let dry = project
        .ralph(&["run", "--agent", "command", "--dry-run"])
        .expect(0);
    let line = "  fallback claude · haiku\n";
    assert!(dry.stdout.contains(line), "{}", dry.stdout);
    assert!(
        dry.stdout.contains(&format!("missing: {missing}")),
        "{}",
        dry.stdout
    );
    let checks = project.ralph(&["preflight", "--agent", "command"]);
    assert!(checks.stdout.contains(missing), "{}", checks.stdout);

    let project = two_agents("exit 75\n").set("agent_fallback", "secnd");
    let run = project.ralph(&["run", "--agent", "command"]).expect(2);
    assert!(
        run.stderr.contains("there is no agent `secnd`"),
        "{}",
        run.stderr
    );
}

#[test]
fn without_a_fallback_the_run_pauses_after_the_longest_outage() {
    let project = two_agents("exit 75\n");
    project.ralph(&["run", "--agent", "command"]).expect(11);
    assert_eq!(project.show()["agent"], "command");
    assert!(project.show()["agent_fallback"].is_null());
}
