//! How recorded sessions are classified.

use std::time::Duration;

use ralph_core::ports::{AgentEnd, ExecStatus};

use super::read_output;

/// Parses a recorded output with the agent named by the fixture's prefix.
macro_rules! end_of {
    ($name:literal, $ended:expr) => {
        end_of!($name, $ended, "")
    };
    ($name:literal, $ended:expr, $stderr:expr) => {{
        let lines = include_str!(concat!("fixtures/", $name, ".jsonl"));
        let agent = $name.split('-').next().unwrap();
        let read = read_output(agent, lines, $ended, $stderr);
        (read.end, read.is_done)
    }};
}

const EXIT_ONE: ExecStatus = ExecStatus::Exited(1);

fn unauthorized(why: &str) -> AgentEnd {
    AgentEnd::Unauthorized { why: why.into() }
}

fn quota(why: &str, seconds: Option<u64>) -> AgentEnd {
    AgentEnd::Quota {
        why: why.into(),
        wait: seconds.map(Duration::from_secs),
    }
}

fn overloaded(why: &str) -> AgentEnd {
    AgentEnd::Overloaded { why: why.into() }
}

fn crashed(why: &str) -> AgentEnd {
    AgentEnd::Crashed { why: why.into() }
}

/// Compares results that the program itself reported.
fn assert_reported_ends(cases: Vec<((AgentEnd, bool), AgentEnd)>) {
    for (found, expected) in cases {
        assert_eq!(found, (expected, true));
    }
}

#[test]
fn claude_reports_its_result() {
    assert_reported_ends(vec![
        (
            end_of!("claude-ok", ExecStatus::Exited(0)),
            AgentEnd::Finished,
        ),
        // Killed because it did not exit after its last output.
        (
            end_of!("claude-ok", ExecStatus::Signalled(9)),
            AgentEnd::Finished,
        ),
        (
            end_of!("claude-529-twice", ExecStatus::Exited(0)),
            AgentEnd::Finished,
        ),
        (
            end_of!("claude-failing-tools", ExecStatus::Exited(0)),
            AgentEnd::Finished,
        ),
        (
            end_of!("claude-401", EXIT_ONE),
            unauthorized("Failed to authenticate. API Error: 401 invalid bearer token"),
        ),
        (
            end_of!("claude-403", EXIT_ONE),
            unauthorized("Failed to authenticate. API Error: 403 ralph: not allowed"),
        ),
        (
            end_of!("claude-not-logged-in", EXIT_ONE),
            unauthorized("Not logged in · Please run /login"),
        ),
        (end_of!("claude-402", EXIT_ONE), AgentEnd::OutOfBudget),
    ]);
}

#[test]
fn claude_reports_provider_errors() {
    assert_reported_ends(vec![
        (
            end_of!("claude-429-limit", EXIT_ONE),
            quota(
                "You've hit your 5-hour limit · resets 2:53am (UTC)",
                Some(7200),
            ),
        ),
        (
            end_of!("claude-429", EXIT_ONE),
            quota(
                "API Error: Server is temporarily limiting requests (not your usage limit) · \
                 Number of request tokens has exceeded your per-minute rate limit",
                None,
            ),
        ),
        (
            end_of!("claude-credit", EXIT_ONE),
            quota("Credit balance is too low", None),
        ),
        (
            end_of!("claude-529", EXIT_ONE),
            overloaded(
                "API Error: 529 Overloaded. This is a server-side issue, usually temporary — try \
                 again in a moment. If it persists, check your inference gateway (127.0.0.1:4141).",
            ),
        ),
        (
            end_of!("claude-cut", EXIT_ONE),
            overloaded(
                "API Error: Connection to the API was lost (ECONNRESET). This is usually \
                 temporary — try again.",
            ),
        ),
        (
            end_of!("claude-turns", EXIT_ONE),
            AgentEnd::GaveUp {
                why: "Reached maximum number of turns (1)".into(),
            },
        ),
    ]);
}

#[test]
fn codex_reports_its_result() {
    let url = "url: http://127.0.0.1:4141/v1/responses";
    let demand = "We’re currently experiencing high demand, which may cause temporary errors.";
    assert_reported_ends(vec![
        (
            end_of!("codex-ok", ExecStatus::Exited(0)),
            AgentEnd::Finished,
        ),
        (
            end_of!("codex-529-twice", ExecStatus::Exited(0)),
            AgentEnd::Finished,
        ),
        (
            end_of!("codex-401", EXIT_ONE),
            unauthorized(&format!(
                "unexpected status 401 Unauthorized: Incorrect API key provided, {url}"
            )),
        ),
        (end_of!("codex-402", EXIT_ONE), AgentEnd::OutOfBudget),
        (
            end_of!("codex-429", EXIT_ONE),
            quota(
                "exceeded retry limit, last status: 429 Too Many Requests",
                None,
            ),
        ),
        (
            end_of!("codex-usage-limit", EXIT_ONE),
            quota(
                "You’ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro), \
                 visit https://chatgpt.com/settings/usage to purchase more credits or try again \
                 at 2:57 AM.",
                None,
            ),
        ),
        (
            end_of!("codex-quota", EXIT_ONE),
            quota("Quota exceeded. Check your plan and billing details.", None),
        ),
        (
            end_of!("codex-529", EXIT_ONE),
            overloaded(&format!(
                "unexpected status 529 <unknown status code>: Overloaded, {url}"
            )),
        ),
        (end_of!("codex-500", EXIT_ONE), overloaded(demand)),
        (
            end_of!("codex-cut", EXIT_ONE),
            overloaded(
                "stream disconnected before completion: Transport error: network error: error \
                 decoding response body",
            ),
        ),
        (
            end_of!("codex-400", EXIT_ONE),
            crashed(
                r#"{"error":{"message":"bad model","type":"invalid_request_error","param":null,"code":null}}"#,
            ),
        ),
    ]);
}

#[test]
fn opencode_reports_its_result() {
    assert_reported_ends(vec![
        (
            end_of!("opencode-ok", ExecStatus::Exited(0)),
            AgentEnd::Finished,
        ),
        (end_of!("opencode-401", EXIT_ONE), unauthorized("no: 401")),
        // Without the gate's prefix, the provider itself demands payment.
        (end_of!("opencode-402", EXIT_ONE), quota("no: 402", None)),
    ]);
}

#[test]
fn an_agent_without_a_result_is_judged_by_its_exit() {
    let root = "--dangerously-skip-permissions cannot be used with root/sudo privileges for \
                security reasons\n";
    let killed = ExecStatus::Signalled(9);
    for (found, expected) in [
        (
            end_of!("claude-killed", killed),
            crashed("killed by signal 9, without any output"),
        ),
        (
            end_of!("claude-killed", killed, "a warning\nout of file handles\n"),
            crashed("killed by signal 9: out of file handles"),
        ),
        (
            end_of!("claude-killed", ExecStatus::OutOfMemory),
            crashed("killed: out of memory, without any output"),
        ),
        (
            end_of!("codex-killed", ExecStatus::TimedOut),
            AgentEnd::TimedOut,
        ),
        // It waited for an hour without output until the user stopped it.
        (
            end_of!("codex-429-waiting", ExecStatus::TimedOut),
            quota(
                "Reconnecting... 1/5 (exceeded retry limit, last status: 429 Too Many Requests)",
                None,
            ),
        ),
        (
            end_of!("codex-429-waiting", ExecStatus::DiskLimit),
            crashed("killed: the sandbox's disk is full, without any output"),
        ),
    ] {
        assert_eq!(found, (expected, false));
    }
    let silent = |ended, stderr: &str| read_output("claude", "", ended, stderr).end;
    assert_eq!(
        silent(EXIT_ONE, root),
        crashed(&format!("exit 1: {}", root.trim()))
    );
    assert_eq!(
        silent(ExecStatus::Exited(0), ""),
        crashed("exit 0, without any output")
    );
    let plain = |lines: &str, ended| read_output("command", lines, ended, "").end;
    assert_eq!(plain("done\n", ExecStatus::Exited(0)), AgentEnd::Finished);
    assert_eq!(plain("no way\n", EXIT_ONE), crashed("exit 1: no way"));
    assert_eq!(plain("", ExecStatus::TimedOut), AgentEnd::TimedOut);
}

#[test]
fn an_agent_with_a_permanent_error_is_done() {
    for (lines, is_permanent) in [
        (include_str!("fixtures/codex-401.jsonl"), true),
        (include_str!("fixtures/codex-402.jsonl"), true),
        (include_str!("fixtures/codex-529.jsonl"), false),
        (include_str!("fixtures/codex-cut.jsonl"), false),
    ] {
        let first_try: Vec<&str> = lines.lines().take(4).collect();
        let read = read_output(
            "codex",
            &first_try.join("\n"),
            ExecStatus::Signalled(15),
            "",
        );
        assert_eq!(read.is_done, is_permanent, "{}", first_try[3]);
    }
}

#[test]
fn model_text_about_errors_is_not_an_error() {
    let line = r#"{"type":"item.completed","item":{"id":"item_2","type":"agent_message","text":"unexpected status 401 Unauthorized; usage limit"}}"#;
    let read = read_output("codex", line, EXIT_ONE, "");
    assert_eq!(
        read.end,
        crashed("exit 1: unexpected status 401 Unauthorized; usage limit")
    );
}
