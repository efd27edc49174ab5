//! An agent works without isolation only if the user chooses that.

use super::fixture::with_script;
use crate::project::Project;

const DONE: &str = "cat >/dev/null; echo one >a.txt; echo two >b.txt; git add a.txt b.txt; \
     git -c user.name=a -c user.email=a@localhost commit --quiet --message both; \
     sed -i 's/- \\[ \\] M/- [x] M/' ralph_task.md";

/// Nothing listens there.
const NO_ENGINE: &str = "tcp://127.0.0.1:1";

const REFUSED: &str = "ralph: agent `command` would work without isolation — only the repository chooses the sandbox \
     `local` — use `--sandbox docker`, or accept it with `--sandbox local`\n";

fn project() -> Project {
    let project = Project::new();
    project.commit(".agent-loop/agent", DONE);
    project
}

#[test]
fn a_repository_alone_cannot_choose_local_for_an_agent() {
    let run = ["run", "--agent", "command"];
    let by_task = project().set("sandbox_provider", "local");
    assert_eq!(by_task.ralph(&run).expect(2).stderr, REFUSED);
    let engine = by_task.set("engine", "agent").set("agent", "command");
    assert_eq!(engine.ralph(&["run"]).expect(2).stderr, REFUSED);
    let by_dotenv = project();
    by_dotenv.commit(".env", "RALPH_DEFAULT_PROVIDER=local\n");
    assert_eq!(by_dotenv.ralph(&run).expect(2).stderr, REFUSED);
    for project in [engine, by_dotenv] {
        let check = project
            .ralph(&["preflight", "--agent", "command"])
            .expect(1);
        let line = "  FAIL: sandbox — agent `command` would work without isolation: ";
        assert!(check.stdout.contains(line), "{}", check.stdout);
        assert!(!project.home().join("runs").exists(), "a run was made");
    }
}

#[test]
fn the_user_chooses_local_with_a_flag_or_in_the_configuration() {
    let typed = project().set("sandbox_provider", "local");
    let run = ["run", "--agent", "command", "--sandbox", "local"];
    typed.ralph(&run).expect(0);
    assert_eq!(typed.show()["sandbox"], "local");
    let configured = project();
    configured.configure("ralph.toml", "[sandbox]\nprovider = \"local\"\n");
    configured.ralph(&["run", "--agent", "command"]).expect(0);
    assert_eq!(configured.show()["sandbox"], "local");
    let variable = with_script(DONE);
    variable.ralph(&["run", "--agent", "command"]).expect(0);
    assert_eq!(variable.show()["sandbox"], "local");
}

#[test]
fn without_an_engine_the_user_is_told_how_to_work_without_isolation() {
    let project = project().env("DOCKER_HOST", NO_ENGINE);
    let refused = project.ralph(&["run", "--agent", "command"]).expect(2);
    assert_eq!(refused.stderr.lines().count(), 1, "{}", refused.stderr);
    for words in [
        "ralph: sandbox `docker` cannot be used — ",
        ", or let the agent work without isolation with `--sandbox local`\n",
    ] {
        assert!(refused.stderr.contains(words), "{}", refused.stderr);
    }
    // A repository's settings do not change the default.
    project.commit("ralph.toml", "[sandbox]\nenabled = false\n");
    project.ralph(&["run", "--agent", "command"]).expect(2);
    assert!(!project.home().join("runs").exists(), "a run was made");
    // The actions engine is not affected.
    let plan = project.ralph(&["run", "--dry-run", "--json", "--engine", "actions"]);
    let plan: serde_json::Value = serde_json::from_str(&plan.expect(0).stdout).unwrap();
    assert_eq!(plan["sandbox"], "local");
}

#[test]
fn on_a_terminal_the_user_is_asked_about_local() {
    let question = "Let the agent work without isolation, as you? [y/N] ";
    for (keys, code) in [
        ("y\n", 0),
        ("YES\n", 0),
        ("n\n", 2),
        ("\n", 2),
        ("\u{4}", 2),
        ("\u{3}", 130),
    ] {
        let project = project().set("sandbox_provider", "local");
        let Some(shown) = project.on_terminal(&["run", "--agent", "command"], (question, keys))
        else {
            println!("skipped: there is no program `script`");
            return;
        };
        let shown = shown.expect(code);
        assert!(shown.stdout.contains(question), "{keys:?} {shown:?}");
        let is_started = project.home().join("runs").exists();
        assert_eq!(is_started, code == 0, "{keys:?} {shown:?}");
        if code == 2 {
            let refused = "ralph: agent `command` would work without isolation — ";
            assert!(
                shown.stdout.contains(&format!("\n{refused}")),
                "{keys:?} {shown:?}"
            );
        }
    }
}
