//! User input to a live run: messages and allowed hosts.

use std::fs;

use ralph_core::event::{CommandEvent, EgressEvent, Event, MessageState};
use ralph_core::net::{ProviderTool, ProviderToolAction};
use ralph_core::plan::{NetworkPlan, RunPlan};
use ralph_core::run::{PauseReason, RunStatus};
use ralph_core::secret::Redactor;
use ralph_engine::journal::Journal;
use serde_json::{Value, json};

use crate::project::{Project, actions, control, finish, run};
use crate::support::{RalphOutput, TestRalph, fixed_clock, status, working};

const ONE: &str = "260301-100000-0001";
const PART: &str = "## Messages from the user\n\nFrom the user, for this iteration. They are \
                    shown once.\n\n```messages\n- use a.txt\n```\n";

fn paused(project: Project) -> Project {
    let question = actions(&[control("pause", "where?")]);
    let project = project.script(&[question, actions(&[run("true")]), finish()]);
    project.run().expect(11);
    project
}

fn states(project: &Project) -> Vec<Value> {
    let shown = project.show();
    let messages = shown["messages"].as_array().unwrap().iter();
    messages.map(|message| message["state"].clone()).collect()
}

#[test]
fn a_text_without_quotes_and_run_is_refused_with_a_hint() {
    let project = paused(Project::new());
    for command in ["message", "answer"] {
        let refused = project.ralph(&[command, "use", "a.txt"]).expect(1).stderr;
        let expected = format!(
            "ralph: there is no run `use` — no run id starts with it, and no task has this id — list them \
             with `ralph runs`, or quote the whole text to use the last run: `ralph {command} '…'`\n"
        );
        assert_eq!(refused, expected);
    }
    let id = project.show()["id"].as_str().unwrap().to_owned();
    project.ralph(&["answer", "use a.txt"]).expect(0);
    let refused = project.ralph(&["note", "too late"]).expect(1).stderr;
    let what = format!("ralph: cannot add a note to run `{id}` — ");
    assert!(refused.starts_with(&what), "{refused}");
}

#[test]
fn a_message_to_a_model_is_in_exactly_one_prompt() {
    let project = paused(Project::new().set("mode", "guided"));
    let ended = project.ralph(&["tell", "last", "use", "a.txt"]).expect(0);
    assert!(
        ended.stdout.ends_with(": the message is queued\n"),
        "{}",
        ended.stdout
    );
    assert_eq!(states(&project), [json!("queued")]);
    let shown = project.ralph(&["show", "last"]).expect(0).stdout;
    assert!(
        shown.contains("\n  message  queued: use a.txt\n"),
        "{shown}"
    );
    project.ralph(&["resume", "last"]).expect(0);
    let prompts = [1, 2, 3].map(|number| project.prompt(number).contains(PART));
    assert_eq!(prompts, [false, true, false]);
    assert_eq!(
        project.event_values("message_moved", "to"),
        [json!("queued"), json!("delivered"), json!("acknowledged")]
    );
    assert_eq!(states(&project), [json!("acknowledged")]);
    project.audit();
    let replayed = project.ralph(&["replay", "last"]).expect(0).stdout;
    assert!(
        replayed.contains("a message was acknowledged: use a.txt"),
        "{replayed}"
    );
}

#[test]
fn a_message_reaches_a_run_that_is_being_worked_on() {
    let mut slow = actions(&[run("true")]);
    slow["delay_ms"] = 1_500.into();
    let project = Project::new().set("mode", "guided");
    let project = project.script(&[slow, finish()]);
    let live = project.start();
    live.wait_for_event("model_asked", 1);
    project.ralph(&["message", "last", "use a.txt"]).expect(0);
    live.wait().expect(0);
    assert!(!project.prompt(1).contains(PART));
    assert!(project.prompt(2).contains(PART));
    project.audit();
}

#[test]
fn invalid_messages_are_refused_in_one_line() {
    let project = paused(Project::new());
    let id = project.show()["id"].as_str().unwrap().to_owned();
    let long = "x".repeat(8193);
    let see = format!("check its status with `ralph show {id}`");
    for (args, code, expected) in [
        (
            vec!["message", "last", " "],
            1,
            format!("cannot send run `{id}` a message — the message is empty — {see}"),
        ),
        (
            vec!["allow", "last", "a.example"],
            1,
            format!(
                "cannot allow `a.example` for run `{id}` — its sandbox `local` does not restrict \
                 network access — {see}"
            ),
        ),
        (
            vec!["allow", "last", "https://a.example/x"],
            2,
            "`https://a.example/x` is a URL: write only its host, as `example.com` or \
             `example.com:8443` — write a host as `example.com`, `*.example.com` or `example.com:8443`"
                .into(),
        ),
    ] {
        let ended = project.ralph(&args).expect(code);
        assert_eq!(ended.stderr, format!("ralph: {expected}\n"));
    }
    let project = paused(Project::new().set("mode", "guided"));
    let ended = project.ralph(&["message", "last", &long]).expect(1);
    assert!(
        ended
            .stderr
            .contains(" — the message has 8193 bytes, at most 8192 are allowed — "),
        "{}",
        ended.stderr
    );
    assert!(project.events("message_moved").is_empty());
}

/// Creates a paused run in a container that tried to reach two hosts.
fn contained(ralph: &TestRalph) {
    contained_until(ralph, RunStatus::Paused(PauseReason::Person));
}

/// Creates a run in a container that tried to reach two hosts and has this status.
fn contained_until(ralph: &TestRalph, last: RunStatus) {
    let plan: RunPlan = serde_json::from_value(json!({
        "run": ONE, "task_id": "one", "title": "Say hello", "task_file": "/project/ralph_task.md",
        "contract": "0".repeat(64), "repo": "/project", "base_branch": "main", "base": "a".repeat(40),
        "branch": "ralph/one", "engine": "actions", "sandbox": "docker", "isolation": "container",
        "network": NetworkPlan::default(),
        "model": "scripted:none", "scm": "local", "delivery": "branch",
        "limits": {"max_iterations": null, "max_wall_time": null, "max_cost": null, "max_tokens": null},
        "test_command": "true", "checkboxes": 1,
    }))
    .unwrap();
    let dir = ralph.dir(ONE);
    let mut journal = Journal::create(&dir, plan, fixed_clock(), Redactor::default()).unwrap();
    let blocked = |host: &str, port| {
        Event::Egress(EgressEvent::HostBlocked {
            host: host.into(),
            port,
            reason: "it is not on the list".into(),
            command: None,
        })
    };
    let mut events = working();
    events.extend([
        blocked("b.example", 5432),
        blocked("a.example", 443),
        status(last),
    ]);
    journal.append_all(events).unwrap();
}

#[test]
fn a_blocked_host_is_shown_with_the_command_that_allows_it() {
    let ralph = TestRalph::new();
    contained(&ralph);
    let shown = ralph.run(&["show", "one"]).stdout;
    let lines = format!(
        "  blocked  a.example · `ralph allow {ONE} a.example` allows it\n           b.example:5432 · \
         `ralph allow {ONE} b.example:5432` allows it\n"
    );
    assert!(shown.contains(&lines), "{shown}");
    let output = ralph.run(&["allow", ONE, "b.example:5432"]);
    let said = format!("run {ONE}: commands can reach `b.example:5432` once it resumes\n");
    assert_eq!(
        (output.code, output.stdout, output.stderr),
        (0, said, String::new())
    );
    let shown = ralph.json(&["show", "one", "--json"]);
    assert_eq!(
        (
            &shown["blocked_hosts"],
            &shown["allowed_hosts"],
            &shown["messages"]
        ),
        (
            &json!([{"host": "a.example", "allow": format!("ralph allow {ONE} a.example")}]),
            &json!(["b.example:5432"]),
            &Value::Null
        )
    );
    let replayed = ralph.run(&["replay", "one"]).stdout;
    assert!(replayed.contains("b.example:5432 is allowed"), "{replayed}");
}

#[test]
fn a_host_can_be_allowed_for_later_runs_too() {
    let ralph = TestRalph::new();
    contained(&ralph);
    let path = ralph.project().join("ralph.toml");
    fs::write(
        &path,
        "# ours\n[sandbox.network]\npolicy = \"allowlist\" # strict\nallowed = [\"z.example\"]\n",
    )
    .unwrap();
    let shown = path.canonicalize().unwrap();
    for when in ["now", "already"] {
        let output = ralph.run(&["allow", "one", "*.a.example", "--project"]);
        let expected = format!(
            "run {ONE}: commands can reach `*.a.example` once it resumes\n`{}` {when} lists `*.a.example`\n",
            shown.display()
        );
        assert_eq!(
            (output.code, output.stdout, output.stderr),
            (0, expected, String::new())
        );
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            "# ours\n[sandbox.network]\npolicy = \"allowlist\" # strict\nallowed = [\"z.example\", \"*.a.example\"]\n"
        );
    }
    fs::write(&path, "[sandbox.network]\nallowed = 1\n").unwrap();
    let output = ralph.run(&["allow", "one", "a.example", "--project"]);
    let expected = RalphOutput {
        code: 1,
        stdout: format!("run {ONE}: commands can reach `a.example` once it resumes\n"),
        stderr: format!(
            "ralph: cannot use `{}` — line 2, column 11: invalid type: integer `1`, expected a sequence — \
             correct that line\n",
            shown.display()
        ),
    };
    assert_eq!(output, expected);
}

#[test]
fn hosts_of_a_flood_and_tools_of_the_provider_are_shown() {
    let ralph = TestRalph::new();
    contained(&ralph);
    let dir = ralph.dir(ONE);
    let mut journal = Journal::open(&dir, fixed_clock(), Redactor::default()).unwrap();
    let further = |count| {
        Event::Egress(EgressEvent::FurtherHostsBlocked {
            count,
            examples: Vec::new(),
        })
    };
    let screened = Event::Egress(EgressEvent::ProviderToolScreened {
        provider: "api.example".into(),
        what: "a URL at `evil.example`".into(),
        tool: Some(ProviderTool::Urls),
        action: ProviderToolAction::Refused,
    });
    let events = vec![further(12_000), further(345), screened];
    journal.append_all(events).unwrap();
    drop(journal);
    let shown = ralph.run(&["show", "one"]).stdout;
    let lines = "           and 12,345 further hosts, in `egress.jsonl`\n  \
                 provider refused: a URL at `evil.example` at api.example\n";
    assert!(shown.contains(lines), "{shown}");
    let shown = ralph.json(&["show", "one", "--json"]);
    assert_eq!(shown["further_blocked"], 12_345);
    assert_eq!(
        shown["provider_tools"],
        json!([{"provider": "api.example", "what": "a URL at `evil.example`", "action": "refused"}])
    );
}

#[test]
fn json_output_and_the_journal_have_no_character_that_changes_what_is_shown() {
    let ralph = TestRalph::new();
    contained(&ralph);
    let dir = ralph.dir(ONE);
    let mut journal = Journal::open(&dir, fixed_clock(), Redactor::default()).unwrap();
    let text = "a\u{9b}31mb\u{202e}c\u{2066}d\u{61c}e\u{7f}f";
    let moved = Event::Command(CommandEvent::MessageMoved {
        id: "1".into(),
        text: text.into(),
        to: MessageState::Queued,
    });
    journal.append_all(vec![moved]).unwrap();
    drop(journal);
    let printed = ralph.run(&["show", "one", "--json"]).stdout;
    let written = fs::read_to_string(dir.journal()).unwrap();
    for shown in [&printed, &written] {
        let is_deceptive = |c: char| text.contains(c) && !c.is_ascii_alphanumeric();
        assert!(!shown.contains(is_deceptive), "{shown:?}");
    }
    let shown: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(shown["messages"][0]["text"], text, "nothing is lost");
}

#[test]
fn after_the_end_a_host_is_allowed_for_later_runs_only() {
    let ralph = TestRalph::new();
    contained_until(&ralph, RunStatus::Stopped);
    let shown = ralph.run(&["show", "one"]).stdout;
    let line = format!(
        "  blocked  a.example · `ralph allow {ONE} a.example --project` allows it for later runs\n"
    );
    assert!(shown.contains(&line), "{shown}");
    let refused = ralph.run(&["allow", ONE, "a.example"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    let path = ralph.project().canonicalize().unwrap().join("ralph.toml");
    for (before, expected_text, after) in [
        (
            "",
            "it has ended; later runs can reach the host\n[FILE] now lists `a.example`\n",
            "[sandbox.network]\npolicy = \"allowlist\"\nallowed = [\"a.example\"]\n",
        ),
        (
            "[sandbox.network]\nallowed = [\"z.example\"]\n",
            "it has ended\n[FILE] now lists `a.example`\nits policy is `deny`, which ignores the list: set it to `allowlist`\n",
            "[sandbox.network]\nallowed = [\"z.example\", \"a.example\"]\n",
        ),
    ] {
        fs::write(&path, before).unwrap();
        let expected_text = expected_text.replace("[FILE]", &format!("`{}`", path.display()));
        let expected = RalphOutput {
            code: 0,
            stdout: format!("run {ONE}: {expected_text}"),
            stderr: String::new(),
        };
        let allow = ["allow", ONE, "a.example", "--project"];
        assert_eq!(ralph.run(&allow), expected);
        assert_eq!(fs::read_to_string(&path).unwrap(), after);
    }
}
