//! The settings of the user and of a project: where each value comes from, and that each has an effect.

use std::fs;

use serde_json::{Value, json};

use crate::project::{Project, actions, control, finish};

fn setting(project: &Project, key: &str) -> Value {
    let ended = project.ralph(&["config", "get", key, "--json"]).expect(0);
    serde_json::from_str(&ended.stdout).unwrap()
}

/// A project with settings in every layer.
fn layered_project() -> Project {
    let project = Project::new().env("DOCKER_HOST", "tcp://build:2375");
    project.configure("config.toml", "[monitoring]\nshow_progress = false\n");
    fs::write(
        project.repo().join("ralph.toml"),
        "[sandbox]\nimage = \"theirs\"\n[sandbox.resources]\nprocesses = 9999\n[notify]\nbell = true\n",
    )
    .unwrap();
    fs::write(
        project.repo().join(".env"),
        "RALPH_FALLBACK_MODEL_PROFILE=strong-doctor\n",
    )
    .unwrap();
    project
}

#[test]
fn every_value_has_a_source() {
    let project = layered_project();
    let own = project.user_config_path("config.toml");
    let file = project.repo().join("ralph.toml");
    for (key, value, source, place) in [
        ("sandbox.provider", json!("local"), "default", Value::Null),
        (
            "sandbox.resources.memory",
            json!("8g"),
            "default",
            Value::Null,
        ),
        ("monitoring.show_progress", json!(false), "user", json!(own)),
        ("sandbox.image", json!("theirs"), "project", json!(file)),
        (
            "sandbox.docker.hosts",
            json!(["tcp://build:2375"]),
            "environment",
            json!("DOCKER_HOST"),
        ),
        (
            "RALPH_FALLBACK_MODEL_PROFILE",
            json!("strong-doctor"),
            "dotenv",
            json!("RALPH_FALLBACK_MODEL_PROFILE"),
        ),
    ] {
        let entry = setting(&project, key);
        assert_eq!(entry["value"], value, "{entry}");
        assert_eq!(entry["source"], source, "{entry}");
        let shown = if entry["file"].is_null() {
            &entry["variable"]
        } else {
            &entry["file"]
        };
        assert_eq!(*shown, place, "{entry}");
    }
}

#[test]
fn the_list_shows_sources_and_unused_values() {
    let project = layered_project();
    let own = project.user_config_path("config.toml");
    let file = project.repo().join("ralph.toml");
    let processes = setting(&project, "sandbox.resources.processes");
    assert_eq!(processes["value"], 512);
    assert_eq!(processes["pending"], json!(["9999"]));
    assert_eq!(setting(&project, "notify.bell")["refused"], "true");
    let listed = project.ralph(&["config"]).expect(0).stdout;
    for line in [
        format!(
            "sandbox.image = \"theirs\" # project file {}",
            file.display()
        ),
        format!(
            "monitoring.show_progress = false # your file {}",
            own.display()
        ),
        "sandbox.provider = \"local\" # default".to_owned(),
        "  # approval pending for `9999`: `ralph trust` shows it".to_owned(),
        "  # the repository sets `true`, which only your own file may".to_owned(),
    ] {
        assert!(
            listed.lines().any(|shown| shown == line),
            "{line}\n{listed}"
        );
    }
    let raw = project.ralph(&["config", "get", "sandbox.image"]).expect(0);
    assert_eq!(raw.stdout, "theirs\n");
    let all = project.ralph(&["config", "--json"]).expect(0).stdout;
    let all: Vec<Value> = serde_json::from_str(&all).unwrap();
    assert!(all.len() > 25, "{all:?}");
}

#[test]
fn a_secret_part_of_a_webhook_is_not_listed() {
    let project = Project::new();
    project.configure(
        "config.toml",
        "[notify]\nwebhook = \"https://hooks.example/a/secret\"\n",
    );
    for args in [&["config"][..], &["config", "--json"]] {
        let shown = project.ralph(args).expect(0).stdout;
        assert!(shown.contains("https://hooks.example/…"), "{shown}");
        assert!(!shown.contains("secret"), "{shown}");
    }
    let raw = project
        .ralph(&["config", "get", "notify.webhook"])
        .expect(0);
    assert_eq!(raw.stdout, "https://hooks.example/a/secret\n");
}

#[test]
fn mistakes_get_one_line() {
    let project = Project::new();
    for (key, words) in [
        ("sandbox.provder", "did you mean `sandbox.provider`?"),
        (
            "sandbox",
            "it is a table — name one of its keys, such as `sandbox.base_image`",
        ),
        ("nothing.like.it", "`ralph config` lists all keys"),
    ] {
        let ended = project.ralph(&["config", "get", key]).expect(2);
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    }
    project.configure("config.toml", "");
    project.configure("ralph.toml", "");
    for args in [&["config"][..], &["run", "--dry-run"]] {
        let ended = project.ralph(args).expect(1);
        let line = ended.stderr.trim_end();
        assert!(
            line.starts_with("ralph: your settings are in two files — `")
                && line.ends_with(
                    "both exist — move all values into one of them, and remove the other"
                ),
            "{line}"
        );
    }
}

#[test]
fn values_without_an_effect_are_rejected() {
    let project = Project::new();
    for (text, words) in [
        (
            "[sandbox]\nreuse_container = false\n",
            "one container serves all iterations",
        ),
        (
            "[sandbox.resources]\ntimeout_minutes = 0\n",
            "between 1 and 1440 minutes",
        ),
        (
            "[git]\nprotected_branches = [\"a..b\"]\n",
            "branch `a..b` contains `..`",
        ),
        ("[git.worktree]\nname = \"\"\n", "needs a letter or digit"),
    ] {
        fs::write(project.repo().join("ralph.toml"), text).unwrap();
        let ended = project.run().expect(1);
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
    fs::remove_file(project.repo().join("ralph.toml")).unwrap();
    fs::create_dir(project.repo().join(".agent-loop")).unwrap();
    for (text, code, words) in [
        ("{\"type\": \"dokcer\"}", 1, "did you mean `docker`?"),
        ("{\"type\": \"tart\"}", 2, "sandbox `tart` is not available"),
        (
            "{\"image\": \"x\"}",
            1,
            "unknown field `image`, expected `type`",
        ),
    ] {
        fs::write(project.repo().join(".agent-loop/config.json"), text).unwrap();
        let ended = project.run().expect(code);
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
}

#[test]
fn commits_have_the_configured_author() {
    let project = Project::new().script(&[finish()]);
    project.configure(
        "ralph.toml",
        "[git.worktree]\nname = \"Build 'Bot' $(x)\"\nemail = \"bot@example.com\"\n",
    );
    project.run().expect(0);
    project.audit();
    let branch = project.show()["branch"].as_str().unwrap().to_owned();
    let author = project.git(&["log", "-1", "--format=%an <%ae> %cn <%ce>", &branch]);
    let name = "Build 'Bot' $(x) <bot@example.com>";
    assert_eq!(author, format!("{name} {name}"));
}

#[test]
fn a_run_never_delivers_a_protected_branch() {
    let project = Project::new()
        .set("target_branch_prefix", "release/")
        .set("target_branch_slug", "next")
        .script(&[finish()]);
    fs::write(
        project.repo().join("ralph.toml"),
        "[git]\nprotected_branches = [\"release/*\"]\n",
    )
    .unwrap();
    for args in [&["--dry-run"][..], &[]] {
        let ended = project.run_with(args).expect(2);
        let line = ended.stderr.trim_end();
        assert!(
            line.starts_with("ralph: branch `release/next` is protected — `git.protected_branches` has `release/*`"),
            "{line}"
        );
    }
    let model = project.model();
    let checked = project.ralph(&["preflight", "--model", &model]).expect(1);
    let line = "  FAIL: plan — branch `release/next` is protected: ";
    assert!(checked.stdout.contains(line), "{}", checked.stdout);
    assert_eq!(project.git(&["branch", "--list", "release/*"]), "");
}

/// Required checks need a host that has checks, and a task cannot weaken the user's settings.
#[test]
fn settings_of_checks_that_cannot_be_met_are_refused() {
    for (user, key, value, line) in [
        (
            "",
            "ci",
            "{required: true}",
            "ralph: `ci.required: true` of the task cannot be met — ",
        ),
        (
            "[ci]\nrequired = true\n",
            "ci",
            "{required: false}",
            "ralph: the task cannot set `ci.required` to false — ralph.toml sets it to true",
        ),
        (
            "[overlap]\naction = \"pause\"\n",
            "overlap",
            "{action: warn}",
            "ralph: the task cannot set `overlap.action` to \"warn\" — ralph.toml sets it to \"pause\"",
        ),
    ] {
        let project = Project::new().set(key, value).script(&[finish()]);
        project.configure("ralph.toml", user);
        for args in [&["--dry-run"][..], &[]] {
            let ended = project.run_with(args).expect(2);
            assert!(ended.stderr.starts_with(line), "{}", ended.stderr);
        }
    }
}

/// A repository on this machine has no checks, so the user's general requirement does not apply.
#[test]
fn the_users_required_checks_allow_local_repositories() {
    let project = Project::new().script(&[actions(&[control("pause", "well?")])]);
    project.configure("ralph.toml", "[ci]\nrequired = true\n");
    project.run().expect(11);
    let entry = setting(&project, "ci.required");
    assert_eq!(
        (&entry["value"], &entry["source"]),
        (&json!(true), &json!("user"))
    );
}

#[test]
fn the_agent_of_a_run_cannot_change() {
    let project = Project::new().script(&[actions(&[control("pause", "well?")]), finish()]);
    project.run().expect(11);
    for (line, key) in [
        ("agent: codex", "agent"),
        ("sandbox_image: other", "sandbox_image"),
        (
            "model_profile_default: strong-doctor",
            "model_profile_default",
        ),
        ("pr: {enabled: false}", "pr.enabled"),
    ] {
        let text = project.task_text();
        fs::write(
            project.task(),
            text.replacen("---\n", &format!("---\n{line}\n"), 1),
        )
        .unwrap();
        let ended = project.ralph(&["task", "last"]).expect(2);
        let words = format!("`{key}` cannot change while a run is under way");
        assert!(ended.stderr.contains(&words), "{}", ended.stderr);
    }
}

#[test]
fn the_fallback_profile_of_the_environment_is_used_if_the_task_names_none() {
    let project = Project::new().env("RALPH_FALLBACK_MODEL_PROFILE", "missing");
    let ended = project.run().expect(2);
    assert!(
        ended.stderr.starts_with(
            "ralph: RALPH_FALLBACK_MODEL_PROFILE: there is no model profile `missing` — "
        ),
        "{}",
        ended.stderr
    );
    let project = Project::new()
        .env("RALPH_FALLBACK_MODEL_PROFILE", "strong-doctor")
        .script(&[finish()]);
    let plan = project.run_with(&["--dry-run", "--json"]).expect(0).stdout;
    let plan: Value = serde_json::from_str(&plan).unwrap();
    assert_eq!(plan["settings"]["fallback_profile"], "strong-doctor");
    assert_eq!(plan["settings"]["command_timeout_minutes"], 60);
}

#[test]
fn the_timeout_of_commands_is_pinned_in_the_plan() {
    let project = Project::new().script(&[finish()]);
    let configure = |minutes: &str| {
        let text = format!("[sandbox.resources]\ntimeout_minutes = {minutes}\n");
        project.configure("config.toml", &text);
    };
    configure("1");
    let plan = project.run_with(&["--dry-run", "--json"]).expect(0).stdout;
    let plan: Value = serde_json::from_str(&plan).unwrap();
    assert_eq!(plan["settings"]["command_timeout_minutes"], 1);
    configure("0");
    let refused = project.run_with(&["--dry-run"]).expect(1).stderr;
    let why = "line 2, column 19: the timeout must be between 1 and 1440 minutes";
    assert!(refused.contains(why), "{refused}");
}
