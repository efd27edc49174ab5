//! Escape sequences are only written to terminals that support them, and never come from a run.

use ralph_core::event::{Event, RunEvent};
use ralph_guest::available;

use crate::support::{RalphOutput, TestRalph, working};

const EVIL: &str = "\u{1b}]0;owned\u{7}\u{1b}[31mred\u{9b}2J\u{202e}";

fn evil() -> Vec<Event> {
    let mut events = working();
    events.push(Event::Run(RunEvent::Notice {
        message: EVIL.into(),
    }));
    events
}

#[test]
fn a_pipe_gets_no_escape_sequences() {
    let ralph = TestRalph::new();
    ralph.create_run("260301-100000-0001", "one", evil());
    let log = ralph.dir("260301-100000-0001").file("activity.log");
    std::fs::write(log, EVIL).unwrap();
    for args in [
        &["runs"][..],
        &["top"],
        &["show", "one"],
        &["show", "one", "--json"],
        &["logs", "one"],
        &["attach", "one"],
        &["replay", "one"],
        &["show", EVIL],
        &[EVIL],
        &["init"],
        &["lint"],
        &["lint", EVIL],
        &["--help"],
    ] {
        let output = ralph.run(args);
        let all = format!("{}{}", output.stdout, output.stderr);
        assert!(
            !all.contains(['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}']),
            "{args:?}: {all:?}"
        );
    }
}

/// Runs a command on a separate terminal; `None` if `script` is missing.
fn on_a_terminal(ralph: &TestRalph, args: &str, no_colour: &str) -> Option<String> {
    let command = format!("{} {args}", env!("CARGO_BIN_EXE_ralph"));
    let home = ralph.state().root().to_owned();
    let output = available(
        std::process::Command::new("script")
            .args(["--quiet", "--return", "--command", &command, "/dev/null"])
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("TERM", "xterm")
            .env("NO_COLOR", no_colour)
            .env("RALPH_HOME", home)
            .stdin(std::process::Stdio::null())
            .output(),
    )?;
    Some(RalphOutput::from(output).stdout)
}

/// Commands of `local` have their own session, so that they cannot use the terminal.
#[test]
fn a_run_succeeds_on_a_terminal() {
    let ralph = TestRalph::new();
    let dir = ralph.project().join("demo");
    let command = format!("demo --no-serve --dir {}", dir.display());
    let Some(shown) = on_a_terminal(&ralph, &command, "1") else {
        println!("skipped: there is no program `script`");
        return;
    };
    assert!(shown.contains("succeeded"), "{shown}");
    let mut audit = ralph.command(&["audit", "last"]);
    let audited = audit.env("RALPH_HOME", dir.join("state")).output().unwrap();
    assert_eq!(audited.status.code(), Some(0), "{audited:?}");
}

#[test]
fn a_terminal_gets_colours_unless_it_does_not_want_them() {
    let ralph = TestRalph::new();
    ralph.create_run("260301-100000-0001", "one", evil());
    for command in ["runs", "replay one", "show one"] {
        let Some(coloured) = on_a_terminal(&ralph, command, "") else {
            println!("skipped: there is no program `script`");
            return;
        };
        assert!(coloured.contains("\u{1b}[2m"), "{command}: {coloured:?}");
        assert!(
            !coloured.contains("\u{1b}[31mred"),
            "{command}: {coloured:?}"
        );
        let plain = on_a_terminal(&ralph, command, "1").unwrap();
        assert!(!plain.contains('\u{1b}'), "{command}: {plain:?}");
    }
}
