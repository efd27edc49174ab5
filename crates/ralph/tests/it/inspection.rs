//! What scripts read: `cost`, `show --json`, `logs --json`, `replay --json`, completions, the version.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::project::{Project, actions, control, finish};

fn json_lines(text: &str) -> Vec<Value> {
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn priced(project: &Project) {
    let script = project.path("replies.jsonl");
    let profile = format!(
        "profiles:\n  priced:\n    litellm_model: \"scripted:{}\"\n    max_output_tokens: 100\n    \
         input_cost_per_token: 0.001\n    output_cost_per_token: 0.002\n    tags: [default]\n",
        script.display()
    );
    project.configure("models.yaml", &profile);
}

#[test]
fn the_cost_is_summed_by_run_day_repository_and_model() {
    let project = Project::new().script(&[actions(&[]), finish()]);
    let none = project.ralph(&["cost"]).expect(0);
    assert_eq!(none.stdout, "no model calls\n");
    priced(&project);
    project.ralph(&["run"]).expect(0);
    let cost = |args: &[&str]| -> Value {
        let ended = project
            .ralph(&[&["cost", "--json"], args].concat())
            .expect(0);
        serde_json::from_str(&ended.stdout).unwrap()
    };
    let show = project.show();
    let total =
        json!({"runs": 1, "calls": 2, "cost_usd": 0.06, "tokens": {"input": 20, "output": 20}});
    assert_eq!(show["cost_usd"], 0.06);
    let today = &show["updated_at"].as_str().unwrap()[..10];
    let repo = fs::canonicalize(project.repo()).unwrap();
    for (by, key) in [
        ("run", show["id"].as_str().unwrap().to_owned()),
        ("day", today.to_owned()),
        ("repo", repo.display().to_string()),
        ("model", project.model()),
    ] {
        let report = cost(&["--by", by]);
        assert_eq!(report["by"], by);
        assert_eq!(report["total"], total);
        assert_eq!(report["rows"].as_array().unwrap().len(), 1, "{report}");
        let row = &report["rows"][0];
        assert_eq!(row["key"], key);
        assert_eq!(row["cost_usd"], 0.06);
    }
    assert_eq!(cost(&["--since", "1h"])["total"], total);
    assert_eq!(cost(&["--since", "2999-01-01"])["rows"], json!([]));
    let text = project.ralph(&["cost", "--by", "model"]).expect(0).stdout;
    assert!(text.contains("COST") && text.contains("$0.06"), "{text}");
    assert!(text.trim_end().ends_with("1  total"), "{text}");
    let wrong = project.ralph(&["cost", "--since", "soon"]).expect(2);
    assert!(
        wrong.stderr.contains("expected a time such as `7d`"),
        "{}",
        wrong.stderr
    );
}

#[test]
fn show_has_the_whole_run() {
    let project = Project::new().script(&[finish()]);
    project.run().expect(0);
    let show = project.show();
    assert_eq!(show["title"], "Make two files");
    assert_eq!(show["task_file"], json!(project.task()));
    assert_eq!(show["model"], project.model());
    assert_eq!(show["agent"], Value::Null);
    assert_eq!(show["mode"], "autonomous");
    assert_eq!(
        show["boxes"],
        json!([
            {"id": "M1.1", "text": "One is there", "ticked": true},
            {"id": "M1.2", "text": "Two is there", "ticked": true},
        ])
    );
    assert_eq!(
        show["budgets"]["iterations"],
        json!({"limit": 5, "used": 1})
    );
    assert_eq!(show["budgets"]["cost_usd"]["limit"], Value::Null);
    assert_eq!(
        show["budgets"]["tokens"],
        json!({"limit": 1_000_000, "used": 20})
    );
    assert_eq!(
        show["verified"],
        json!({"commit": show["head"], "green": true})
    );
    assert!(
        show["warnings"].is_u64() && show["notices"].is_u64(),
        "{show}"
    );
}

#[test]
fn logs_and_records_are_json_on_request() {
    let project = Project::new().script(&[actions(&[control("pause", "hm")]), finish()]);
    project.run().expect(11);
    let lines = json_lines(&project.ralph(&["logs", "last", "--json"]).expect(0).stdout);
    let plain = project.ralph(&["logs", "last"]).expect(0).stdout;
    assert_eq!(lines.len(), plain.lines().count());
    for (entry, line) in lines.iter().zip(plain.lines()) {
        let at = entry["at"].as_str().unwrap();
        assert!(line.starts_with(at), "{line} {entry}");
        assert!(
            line.ends_with(entry["text"].as_str().unwrap()),
            "{line} {entry}"
        );
    }
    let records = json_lines(
        &project
            .ralph(&["replay", "last", "--json"])
            .expect(0)
            .stdout,
    );
    let events: Vec<&Value> = records.iter().map(|record| &record["event"]).collect();
    let journal = project.journal();
    assert_eq!(events, journal.iter().collect::<Vec<_>>());
}

#[test]
fn the_version_names_the_commit() {
    let project = Project::new();
    let version = project.ralph(&["--version"]).expect(0).stdout;
    let start = concat!("ralph ", env!("CARGO_PKG_VERSION"));
    let rest = version.trim_end().strip_prefix(start).unwrap();
    let commit = rest
        .strip_prefix(" (")
        .and_then(|rest| rest.strip_suffix(')'));
    match commit {
        Some(commit) => assert!(commit.len() >= 7, "{version}"),
        None => assert_eq!(rest, "", "{version}"),
    }
}

#[test]
fn bash_completes_runs_profiles_and_agents() {
    let project = Project::new().script(&[finish()]);
    project.run().expect(0);
    let id = project.show()["id"].as_str().unwrap().to_owned();
    let script = project.ralph(&["completions", "bash"]).expect(0).stdout;
    let complete = |words: &[&str]| {
        let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        let position = words.len() - 1;
        let commands = format!(
            "{script}\nCOMP_WORDS=({}); COMP_CWORD={position}; _ralph \"${{COMP_WORDS[0]}}\" \"${{COMP_WORDS[{position}]}}\" x; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            quoted.join(" ")
        );
        let output = Command::new("bash")
            .args(["-c", &commands])
            .env("RALPH_HOME", project.home())
            .env("HOME", project.path("user"))
            .current_dir(project.repo())
            .output()
            .unwrap();
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        shown.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    if Command::new("bash").arg("--version").output().is_err() {
        println!("skipped: there is no bash");
        return;
    }
    let ralph = env!("CARGO_BIN_EXE_ralph");
    assert_eq!(
        complete(&[ralph, "show", ""]),
        [id.as_str(), "task", "last"]
    );
    assert_eq!(complete(&[ralph, "show", &id[..4]]), [id.as_str()]);
    assert_eq!(
        complete(&[ralph, "run", "--profile", "str"]),
        ["strong-doctor"]
    );
    assert_eq!(complete(&[ralph, "run", "--agent", "cla"]), ["claude"]);
    assert_eq!(
        complete(&[ralph, "store-token", "--agent", "gi"]),
        ["github"]
    );
    assert_eq!(
        complete(&[ralph, "config", "get", "git.work"]),
        ["git.worktree.email", "git.worktree.name"]
    );
    // Without values, the static script answers.
    assert_eq!(complete(&[ralph, "pau"]), ["pause"]);
}
