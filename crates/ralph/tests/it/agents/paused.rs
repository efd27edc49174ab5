//! A pause freezes an agent in a container, and ends its session elsewhere.

use std::time::Duration;

use ralph_test::{BASE_IMAGE, skip_without_docker};
use rustix::process::Signal;

use super::fixture::with_script;
use crate::project::Project;

/// Counts for a while in one session, then completes both boxes.
const COUNTING: &str = r#"
cat >/dev/null
for number in $(seq 1 60); do echo "counted $number"; sleep 0.1; done
echo one >a.txt; echo two >b.txt; git add a.txt b.txt
git -c user.name=a -c user.email=a@localhost commit --quiet --message both
sed -i 's/- \[ \] M/- [x] M/' ralph_task.md
"#;

fn in_container(script: &str) -> Project {
    let project = Project::new()
        .set("sandbox_provider", "docker")
        .set("sandbox_image", BASE_IMAGE);
    project.commit(".agent-loop/agent", script);
    project
}

/// Returns the number of lines that the agent has printed.
fn counted(project: &Project) -> usize {
    let texts = project.events("agent_did");
    texts
        .iter()
        .filter(|event| event.to_string().contains("counted "))
        .count()
}

#[test]
fn a_pause_freezes_an_agent_in_a_container_and_loses_nothing() {
    if skip_without_docker() {
        return;
    }
    let project = in_container(COUNTING);
    let live = project.spawn(&["run", "--agent", "command"]);
    live.wait_until("the agent counts", |_| counted(&project) > 3);
    project.ralph(&["pause", "last"]).expect(0);
    live.wait_for_status("paused");
    assert_eq!(project.show()["status"], "paused");
    std::thread::sleep(Duration::from_millis(500));
    let before = counted(&project);
    std::thread::sleep(Duration::from_secs(4));
    assert_eq!(counted(&project), before, "the agent is frozen");
    assert!(before < 60, "the agent was paused while it counted");
    project.ralph(&["resume", "last"]).expect(0);
    live.wait().expect(0);
    let shown = project.show();
    assert_eq!(
        (&shown["status"], &shown["iteration"]),
        (&"succeeded".into(), &1.into())
    );
    assert_eq!(project.events("agent_started").len(), 1, "one session");
    assert_eq!(counted(&project), 60);
    let took = project.events("agent_finished")[0]["duration_ms"]
        .as_u64()
        .unwrap();
    let waited = project.events("agent_finished")[0].to_string();
    assert!(took < 30_000, "{waited}");
    project.audit();
    project.remove_docker_objects();
}

#[test]
fn a_frozen_agent_can_be_stopped_and_survives_the_end_of_its_process() {
    if skip_without_docker() {
        return;
    }
    let project = in_container(COUNTING);
    let live = project.spawn(&["run", "--agent", "command"]);
    live.wait_until("the agent counts", |_| counted(&project) > 3);
    project.ralph(&["pause", "last"]).expect(0);
    live.wait_for_status("paused");
    live.signal(Signal::KILL);
    live.wait();
    // The next process replaces the frozen container and starts a new session.
    let live = project.spawn(&["resume", "last"]);
    live.wait_for_event("agent_started", 2);
    live.wait_until("the agent counts again", |_| counted(&project) > 8);
    project.ralph(&["pause", "last"]).expect(0);
    live.wait_for_status("paused");
    project.ralph(&["stop", "last"]).expect(0);
    live.wait();
    assert_eq!(project.show()["status"], "stopped");
    project.remove_docker_objects();
}

#[test]
fn a_pause_ends_the_session_of_an_agent_that_cannot_be_frozen() {
    let project = with_script(COUNTING);
    let live = project.spawn(&["run", "--agent", "command"]);
    live.wait_until("the agent counts", |_| counted(&project) > 3);
    project.ralph(&["pause", "last"]).expect(0);
    live.wait_for_status("paused");
    let ends = project.events("agent_finished");
    assert_eq!(ends.len(), 1, "{ends:?}");
    assert_eq!(ends[0]["end"], "halted", "{ends:?}");
    project.ralph(&["stop", "last"]).expect(0);
    live.wait();
}
