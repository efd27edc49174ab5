//! Preflight checks an agent's requirements without revealing its credential.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use ralph_test::{BASE_IMAGE, skip_without_docker};
use snapbox::{assert_data_eq, str};

use crate::project::{Project, ProjectOutput};

/// Variables that may contain a credential.
const VARIABLES: [&str; 5] = [
    "CLAUDE_CODE_OAUTH_TOKEN",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "OPENAI_API_KEY",
    "CODEX_API_KEY",
];
const KEY: &str = "sk-ant-api03-canary-canary";

/// Returns a project on a machine with a program `claude` and a key.
fn machine_with_key() -> Project {
    let names = VARIABLES
        .iter()
        .filter(|name| **name != "ANTHROPIC_API_KEY");
    let project = machine_without(names);
    project.env("ANTHROPIC_API_KEY", KEY)
}

/// Returns a project on a machine with a program `claude` and without any credential.
fn machine() -> Project {
    machine_without(VARIABLES.iter())
}

fn machine_without<'a>(names: impl Iterator<Item = &'a &'a str>) -> Project {
    let project = Project::new().env("RALPH_DEFAULT_PROVIDER", "local");
    let directory = project.path("bin");
    fs::create_dir(&directory).unwrap();
    let program = directory.join("claude");
    fs::write(&program, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", directory.display());
    let project = project.env("PATH", path);
    names.fold(project, |project, name| project.without_env(name))
}

/// Returns the lines about the agent, without those about the machine and the project.
fn shown(ended: &ProjectOutput) -> String {
    let about = ["agent —", "credential —", "model —", "network —", "image —"];
    let is_about = |line: &&str| about.iter().any(|word| line.contains(word));
    let lines: Vec<&str> = ended.stdout.lines().filter(is_about).collect();
    let last = ended.stdout.lines().last().unwrap();
    format!("{}\n{last}\n", lines.join("\n"))
}

#[test]
fn a_missing_token_is_reported_with_the_command_that_stores_one() {
    let project = machine();
    let ended = project.ralph(&["preflight", "--agent", "claude"]).expect(1);
    assert_data_eq!(
        shown(&ended),
        str![[r"
  PASS: agent — claude, started as `claude`
  FAIL: credential — no token found for agent claude — run: ralph store-token
  PASS: model — `claude` chooses one itself
  PASS: network — the agent's model calls go through the gate; its other connections are not restricted
ralph: preflight complete — 1/12 checks failed

"]]
    );
    assert!(!project.home().exists(), "it made the state directory");
    let args = ["preflight", "--agent", "opencode", "--sandbox", "docker"];
    let ended = project.ralph(&args);
    assert_eq!(ended.code, 1);
    for line in [
        "  FAIL: credential — no token found for agent opencode — run: ralph store-token --agent opencode\n",
        "  FAIL: model — agent `opencode` has no model: it does not choose one itself — choose one with `--model`\n",
    ] {
        assert!(ended.stdout.contains(line), "{}", ended.stdout);
    }
}

#[test]
fn a_token_is_shown_with_its_store_and_expiry() {
    let project = machine_with_key();
    let args = ["preflight", "--engine", "agent", "--model", "haiku"];
    let ended = project.ralph(&args).expect(0);
    assert_data_eq!(
        shown(&ended),
        str![[r"
  PASS: agent — claude, started as `claude`
  PASS: credential — api-key, found in ANTHROPIC_API_KEY, no expiry known
  PASS: model — `claude` uses `haiku`
  PASS: network — the agent's model calls go through the gate; its other connections are not restricted
ralph: preflight complete — all 12 checks passed

"]]
    );
    assert!(!ended.combined().contains("canary"), "{}", ended.combined());

    let tokens = project.home().join("tokens");
    fs::create_dir_all(&tokens).unwrap();
    for directory in [project.home(), tokens.clone()] {
        fs::set_permissions(directory, fs::Permissions::from_mode(0o700)).unwrap();
    }
    let store = |milliseconds: &str| {
        let file = tokens.join("claude-token.json");
        let json = format!(r#"{{"accessToken":"sk-ant-oat01-canary","expiresAt":{milliseconds}}}"#);
        fs::write(&file, json).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    };
    store("4102444800000");
    let ended = project.ralph(&args).expect(0);
    let stored = format!(
        "  PASS: credential — oauth, found in `{}`, expires 2100-01-01, ",
        tokens.join("claude-token.json").display()
    );
    assert!(ended.stdout.contains(&stored), "{}", ended.stdout);
    let address = "http://127.0.0.1:18097";
    store(&format!("4102444800000,\"baseUrl\":\"{address}\""));
    let ended = project.ralph(&args).expect(0);
    let stored = format!("  PASS: credential — oauth to {address}, found in `");
    assert!(ended.stdout.contains(&stored), "{}", ended.stdout);
    let plan = ["run", "--agent", "claude", "--dry-run"];
    let plan = project.ralph(&plan).expect(0);
    let note = format!("note: the credential of `claude` (oauth) goes to {address}\n");
    assert!(plan.stdout.contains(&note), "{}", plan.stdout);
    // An expired credential is not skipped in favor of another.
    store("1772359200000");
    let ended = project.ralph(&args).expect(1);
    let over = "  FAIL: credential — token expired for agent claude (expired 2026-03-01) — run: ralph store-token\n";
    assert!(ended.stdout.contains(over), "{}", ended.stdout);
    assert!(!ended.combined().contains("canary"), "{}", ended.combined());
}

#[test]
fn the_task_chooses_its_agent_and_the_flags_win() {
    let project = machine_with_key()
        .set("engine", "agent")
        .set("agent", "claude");
    let ended = project.ralph(&["preflight"]).expect(0);
    let agent = "  PASS: agent — claude, started as `claude`\n";
    assert!(ended.stdout.contains(agent), "{}", ended.stdout);
    for (args, expected) in [
        (
            &["--agent", "clod"][..],
            "  FAIL: agent — there is no agent `clod`: known agents: `claude`, `codex`, `command`, `opencode` — use one of these, or define it in your own agents.toml\n",
        ),
        (
            &["--engine", "actions", "--agent", "claude"],
            "  FAIL: agent — `--agent` cannot be used with `--engine actions`: ",
        ),
        (
            &["--profile", "fast"],
            "  FAIL: agent — `--profile` cannot be used with an agent: ",
        ),
        (
            &["--agent", "codex"],
            "  FAIL: agent — `codex`, the program of agent `codex`, is not on PATH — install it, or run the agent in a container with `--sandbox docker`\n",
        ),
    ] {
        let ended = project.ralph(&[&["preflight"], args].concat()).expect(1);
        assert!(
            ended.stdout.contains(expected),
            "{expected}: {}",
            ended.stdout
        );
    }
}

#[test]
fn a_script_has_to_be_committed() {
    let project = machine();
    let script = project.repo().join(".agent-loop/agent");
    fs::create_dir(script.parent().unwrap()).unwrap();
    fs::write(&script, "true\n").unwrap();
    let head = project.git(&["rev-parse", "--short=10", "main"]);
    let missing = format!("`.agent-loop/agent` is not in commit {head} of branch `main`");
    let arguments = ["preflight", "--agent", "command"];
    let ended = project.ralph(&arguments).expect(1);
    let expected = format!(
        "  FAIL: agent — the agent `command` has no script: {missing} — commit .agent-loop/agent\n"
    );
    assert!(ended.stdout.contains(&expected), "{}", ended.stdout);
    let refused = project.ralph(&["run", "--agent", "command"]).expect(2);
    assert_eq!(
        refused.stderr,
        format!(
            "ralph: the agent `command` has no script — {missing} — commit .agent-loop/agent\n"
        )
    );
    assert!(!project.home().join("runs").exists(), "a run was made");
    project.commit(".agent-loop/agent", "true\n");
    let ended = project.ralph(&arguments).expect(0);
    let expected = "  PASS: agent — command, started as `sh`\n";
    assert!(ended.stdout.contains(expected), "{}", ended.stdout);
}

#[test]
fn an_agent_in_a_container_is_checked_with_its_network() {
    if skip_without_docker() {
        return;
    }
    let project = machine_with_key();
    let settings = "[sandbox.network]\npolicy = \"allowlist\"\nallowed = [\"github.com\", \"*.example.org:8443\"]\n";
    let write = |text: String| project.configure("ralph.toml", &text);
    write(settings.to_owned());
    let args = ["preflight", "--agent", "claude", "--sandbox", "docker"];
    let ended = project.ralph(&args).expect(0);
    assert_data_eq!(
        shown(&ended),
        str![[r"
  PASS: agent — claude, started as `claude`
  PASS: credential — api-key, found in ANTHROPIC_API_KEY, no expiry known
  PASS: model — `claude` chooses one itself
  PASS: network — allowlist: commands can reach github.com, *.example.org:8443
  PASS: image — [..]claude[..], which is built when it is first needed
ralph: preflight complete — all 13 checks passed

"]]
    );
    write(format!("[sandbox]\nimage = \"{BASE_IMAGE}\"\n"));
    let ended = project.ralph(&args).expect(0);
    let line = "  PASS: network — deny: commands can reach nothing\n";
    assert!(ended.stdout.contains(line), "{}", ended.stdout);
    write(format!(
        "[sandbox]\nimage = \"{BASE_IMAGE}\"\n[sandbox.network]\nallowed = [\"a.example\"]\n"
    ));
    let ended = project.ralph(&args).expect(0);
    let idle = "`allowed` has no effect with the policy `deny`: set `policy = \"allowlist\"`\n";
    let line = format!("  PASS: network — deny: commands can reach nothing; {idle}");
    assert!(ended.stdout.contains(&line), "{}", ended.stdout);
    assert!(!project.home().exists(), "it made the state directory");
}
