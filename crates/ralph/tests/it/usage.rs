//! Error messages for an invalid command line or environment.

use serde_json::json;
use snapbox::{assert_data_eq, str};

use crate::support::{RalphOutput, TestRalph, working};

#[test]
fn every_refusal_is_one_line_and_exit_2() {
    let ralph = TestRalph::new();
    let mut lines = String::new();
    for args in [
        &["frobnicate"][..],
        &["lnit"],
        &["kill"],
        &["delete"],
        &["image", "delete"],
        &["run", "--foo"],
        &["run", "--sanbox", "x"],
        &["run", "a.md", "b.md"],
        &["run", "--engine"],
        &["run", "--engine", "magic"],
        &["run", "--profile", "p", "--model", "m"],
        &["run", "--new", "--resume"],
        &["run", "--repo", ""],
        &["runs", "--json", "--json"],
        &["note"],
        &["note", "last"],
        &["show", ""],
        &["completions"],
        &["completions", "tcsh"],
    ] {
        let output = ralph.run(args);
        assert_eq!(output.code, 2, "{args:?}: {output:?}");
        assert_eq!(output.stderr.lines().count(), 1, "{args:?}: {output:?}");
        assert_eq!(
            output.stderr.matches(" — ").count(),
            2,
            "{args:?}: {output:?}"
        );
        lines.push_str(&output.stderr);
    }
    assert_data_eq!(
        lines,
        str![[r"
ralph: unknown command `frobnicate` — ralph has no such command — see `ralph --help`
ralph: unknown command `lnit` — ralph has no such command — did you mean `init` or `lint`?
ralph: unknown command `kill` — ralph has no such command — use `ralph stop`
ralph: unknown command `delete` — ralph has no such command — use `ralph rm`
ralph: unknown command `delete` — ralph image has no such command — see `ralph image --help`
ralph: unexpected option `--foo` — `ralph run` does not accept it — see `ralph run --help`
ralph: unexpected option `--sanbox` — `ralph run` does not accept it — did you mean `--sandbox`?
ralph: unexpected argument `b.md` — `ralph run` does not accept it — see `ralph run --help`
ralph: no value for --engine <ENGINE> — a value is required — see `ralph run --help`
ralph: invalid value `magic` for --engine <ENGINE> — possible values: actions, agent — see `ralph run --help`
ralph: --profile <PROFILE> cannot be used with --model <MODEL> — only one of them can be given — see `ralph run --help`
ralph: --new cannot be used with --resume — only one of them can be given — see `ralph run --help`
ralph: no value for --repo <PATH|URL> — a value is required — see `ralph run --help`
ralph: --json is given more than once — it can be given only once — see `ralph runs --help`
ralph: missing <TEXT> — `ralph note` requires it — see `ralph note --help`
ralph: missing <TEXT> — `ralph note` requires it — see `ralph note --help`
ralph: no value for [RUN] — a value is required — see `ralph show --help`
ralph: missing <SHELL> — `ralph completions` requires it — see `ralph completions --help`
ralph: invalid value `tcsh` for <SHELL> — possible values: bash, elvish, fish, powershell, zsh — did you mean `zsh`?

"]]
    );
}

#[test]
fn every_failure_is_one_line_and_exit_1() {
    let ralph = TestRalph::new();
    let mut lines = String::new();
    let mut fail = |ralph: &TestRalph, args: &[&str]| {
        let output = ralph.run(args);
        assert_eq!(output.code, 1, "{args:?}: {output:?}");
        assert_eq!(output.stdout, "", "{args:?}");
        assert_eq!(output.stderr.lines().count(), 1, "{args:?}: {output:?}");
        lines.push_str(&output.stderr);
    };
    fail(&ralph, &["show", "last"]);
    fail(&ralph, &["lint"]);
    fail(&ralph, &["lint", "."]);
    ralph.create_run("260301-100000-0001", "one", working());
    ralph.create_run("260301-100000-0002", "two", working());
    for command in [
        "show", "logs", "pause", "resume", "rotate", "stop", "audit", "replay",
    ] {
        fail(&ralph, &[command, "unknown"]);
    }
    fail(&ralph, &["show", "2603"]);
    fail(&ralph, &["pause", "one"]);
    fail(&ralph, &["rotate", "one"]);
    assert_data_eq!(
        lines,
        str![[r"
ralph: there are no runs yet — nothing has been started with this state directory — start one with `ralph run`
ralph: there is no task file `ralph_task.md` — name another file, or create one with `ralph init`
ralph: cannot read `.` — it is a directory, not a regular file — name a task file that you can read
ralph: there is no run `unknown` — no run id starts with it, and no task has this id — list them with `ralph runs`
ralph: there is no run `unknown` — no run id starts with it, and no task has this id — list them with `ralph runs`
ralph: there is no run `unknown` — no run id starts with it, and no task has this id — list them with `ralph runs`
ralph: there is no run `unknown` — no run id starts with it, and no task has this id — list them with `ralph runs`
ralph: there is no run `unknown` — no run id starts with it, and no task has this id — list them with `ralph runs`
ralph: there is no run `unknown` — no run id starts with it, and no task has this id — list them with `ralph runs`
ralph: there is no run `unknown` — no run id starts with it, and no task has this id — list them with `ralph runs`
ralph: there is no run `unknown` — no run id starts with it, and no task has this id — list them with `ralph runs`
ralph: `2603` matches 2 runs — 260301-100000-0001, 260301-100000-0002 — use more characters of the id
ralph: cannot pause run `260301-100000-0001` — no process works on it — continue it with `ralph resume 260301-100000-0001`
ralph: cannot rotate run `260301-100000-0001` — no process works on it — continue it with `ralph resume 260301-100000-0001`

"]]
    );
}

#[test]
fn help_and_version_are_no_errors_and_read_nothing() {
    let ralph = TestRalph::new();
    // An invalid configuration, and no directory for the state.
    std::fs::write(ralph.project().join("ralph.toml"), "nonsense").unwrap();
    for args in [
        &["--help"][..],
        &["-h"],
        &["run", "--help"],
        &["help", "lint"],
        &["--version"],
    ] {
        let output = ralph
            .command(args)
            .env_remove("RALPH_HOME")
            .output()
            .unwrap();
        let output = RalphOutput::from(output);
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{args:?}");
        assert!(output.stdout.contains("ralph"), "{args:?}");
    }
    let output = ralph.run(&[]);
    assert_eq!((output.code, output.stdout.as_str()), (2, ""));
    assert!(
        output.stderr.contains("Usage: ralph [OPTIONS] <COMMAND>"),
        "{output:?}"
    );
}

#[test]
fn without_a_home_there_is_one_clear_line() {
    let ralph = TestRalph::new();
    let output = ralph
        .command(&["runs"])
        .env_remove("RALPH_HOME")
        .output()
        .unwrap();
    assert_eq!(
        RalphOutput::from(output),
        RalphOutput {
            code: 1,
            stdout: String::new(),
            stderr:
                "ralph: the location of the state directory is unknown — neither RALPH_HOME nor HOME \
                     is set — set RALPH_HOME to a directory that you can write to\n"
                    .into(),
        }
    );
}

#[test]
fn scripts_get_the_error_as_json_too() {
    let ralph = TestRalph::new();
    let output = ralph.run(&["show", "last", "--json"]);
    assert_eq!(output.code, 1);
    assert!(output.stderr.starts_with("ralph: there are no runs yet — "));
    let error: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(
        error,
        json!({"error": {
            "what": "there are no runs yet",
            "why": "nothing has been started with this state directory",
            "fix": "start one with `ralph run`",
        }})
    );
    let usage = ralph.run(&["answer", "--json"]);
    let error: serde_json::Value = serde_json::from_str(&usage.stdout).unwrap();
    assert_eq!(
        (usage.code, &error["error"]["what"]),
        (2, &json!("missing <TEXT>"))
    );
}

#[test]
fn a_damaged_journal_is_named() {
    let ralph = TestRalph::new();
    ralph.create_run("260301-100000-0001", "one", working());
    let journal = ralph.dir("260301-100000-0001").journal();
    let text = std::fs::read_to_string(&journal).unwrap();
    std::fs::write(&journal, text.replace("\"attempt\":1", "\"attempt\":2")).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.remove(2);
    std::fs::write(&journal, lines.join("\n") + "\n").unwrap();
    let output = ralph.run(&["show", "one"]);
    assert_eq!(
        (output.code, output.stderr),
        (
            1,
            format!(
                "ralph: journal `{}` is damaged at line 3 — record 4 does not follow record 2 — restore \
                 the file from a copy, or start the task again with `ralph run --new`\n",
                journal.display()
            )
        )
    );
}
