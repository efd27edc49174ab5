//! Exposure of an agent's credential.

use std::path::Path;
use std::process::Command;

use ralph_test::ScenarioStep;
use serde_json::json;

use super::fixture::{AgentFixture, canary};

/// Searches the whole container for the credential without knowing it, and then waits for
/// inspection.
const SEARCH: &str = "\
grep -rslE 'Canary7[x]Canary7[x]' /workspace /tmp /etc /home /root /run /var /opt /srv; \
cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline | tr '\\0' '\\n' | grep -E 'Canary7[x]Canary7[x]'; \
echo stand-ins:$(cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep -c '^CLAUDE_CODE_OAUTH_TOKEN=sk-ant-oat01-'); test -e /tmp/seen || { touch /tmp/seen; read -t 3 < <(:;tail -f /dev/null); }; echo searched";

#[test]
fn no_real_token_is_in_a_container_its_logs_or_the_runs_files() {
    let search = json!({"command": SEARCH, "description": "searches"});
    let steps = [
        ScenarioStep::tool("Bash", search),
        ScenarioStep::text("Nothing."),
    ];
    let Some(setup) = AgentFixture::new("claude", steps) else {
        return;
    };
    let setup = setup.set("max_iterations", "1");
    let live = setup.project.spawn(&["run", "--agent", "claude"]);
    live.wait_until("the agent searches", |journal| {
        journal.iter().any(|event| event["kind"] == "tool")
    });
    let token = canary("claude");
    for container in setup.containers() {
        for subcommand in [&["inspect"][..], &["logs"], &["diff"], &["top"]] {
            let output = Command::new("docker")
                .args(subcommand)
                .arg(&container)
                .output()
                .unwrap();
            let text = String::from_utf8_lossy(&output.stdout).into_owned()
                + &String::from_utf8_lossy(&output.stderr);
            assert!(!text.contains(&token), "docker {subcommand:?} shows it");
        }
    }
    live.wait().expect(10);
    let request = setup.upstream.model_requests()[1].json().to_string();
    assert!(request.contains("searched"), "{request}");
    let placeholders = request.rsplit("stand-ins:").next().unwrap_or_default();
    assert!(
        placeholders.starts_with(|digit: char| ('1'..='9').contains(&digit)),
        "the search finds what is there: {placeholders}"
    );
    assert!(!request.contains("Canary7xCanary7x"), "it was found inside");
    for name in ["runs", "images", "sockets"] {
        assert_free_of(&setup.project.home().join(name), &token);
    }
}

/// Asserts that no file below a directory contains the text.
fn assert_free_of(directory: &Path, text: &str) {
    let found = Command::new("grep")
        .args([
            "--recursive",
            "--files-with-matches",
            "--text",
            "--fixed-strings",
            text,
        ])
        .arg(directory)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&found.stdout), "");
}
