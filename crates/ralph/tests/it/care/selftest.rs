//! The selftest creates real sandboxes and removes all of them.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ralph_guest::best_effort;
use ralph_test::{
    BASE_IMAGE, FakeUpstream, ScenarioStep, UpstreamScenario, agent_image, skip_without_docker,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use snapbox::{assert_data_eq, str};

use crate::support::{RalphOutput, TestRalph};

fn with_image(image: &str) -> TestRalph {
    let ralph = TestRalph::new();
    let settings = format!("[sandbox]\nimage = \"{image}\"\n");
    fs::write(ralph.project().join("ralph.toml"), settings).unwrap();
    ralph
}

/// Returns the volumes and containers of this state directory.
fn leftovers(ralph: &TestRalph) -> String {
    let filter = format!("label=ralph.state={}", ralph.state().root().display());
    let list = |args: &[&str]| {
        let output = Command::new("docker")
            .args(args)
            .args(["--filter", &filter])
            .output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    list(&["volume", "ls", "--quiet"]) + &list(&["ps", "--all", "--quiet"])
}

#[test]
fn docker_sandboxes_pass() {
    if skip_without_docker() {
        return;
    }
    let ralph = with_image(BASE_IMAGE);
    let output = ralph.run(&["selftest", "--offline"]);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
    assert_data_eq!(
        output.stdout,
        str![[r"
  PASS: check token — a fake credential, which a local test server accepts
  PASS: prerequisites — git version [..]
  PASS: engine — docker: containers without a network; Docker Engine [..] (API [..]) at [..]: linux/[..], [..] processors, [..] GiB of memory
  PASS: proxy health — `ralph-gate ok` at http://127.0.0.1:[..]
  PASS: build image — ralph-base:bookworm
  note: no .agent-loop/ config in cwd, skipping
  PASS: create sandbox — docker-[..] for agent-loop-selftest-claude
  PASS: network policy — deny: commands can reach nothing; the gate has refused `google.com`
  PASS: gate reachable from sandbox — it answers at 127.0.0.1:4141
  PASS: agent auth via gate — a request in the format of `claude` was answered with 200; the image has no `claude`
  PASS: network isolation — `https://google.com` is blocked, `1.1.1.1:443` cannot be reached, its name does not resolve, the only active interface is lo
  PASS: run a command — a command finished in [..]
  PASS: files — 1048576 bytes in and out
  PASS: unprivileged user — commands run as the user [..] without capabilities
  PASS: timeout — a process tree was killed after 1s
  PASS: limits — memory, disk and processes are limited to 128 MiB, 64 MiB and 64
  PASS: cleanup — docker-[..] was removed, docker-[..] was removed
  note: images are kept as a cache for the next run
ralph: selftest complete — all 16 checks passed

"]]
    );
    let records = |name: &str| name.starts_with("selftest-");
    let state = fs::read_dir(ralph.state().root()).unwrap();
    let mut names = state.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(!names.any(|name| records(&name)), "records are left");
    assert_eq!(leftovers(&ralph), "");
}

/// An image built by a selftest; removed by the test, not by the selftest.
struct BuiltImage(String);

impl Drop for BuiltImage {
    fn drop(&mut self) {
        let remove = ["image", "rm", "--force", &self.0];
        best_effort(Command::new("docker").args(remove).output());
    }
}

/// The project's layer is built, a sandbox is created from it, and the image still exists
/// afterwards.
#[test]
fn the_layer_of_a_project_is_tested_and_kept() {
    if skip_without_docker() {
        return;
    }
    let ralph = with_image(BASE_IMAGE);
    let directory = ralph.project().join(".agent-loop");
    fs::create_dir(&directory).unwrap();
    let layer = directory.join("Dockerfile.sandbox");
    fs::write(&layer, "ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\nENV LAYER=1\n").unwrap();
    let refused = ralph.run(&["selftest", "--offline"]);
    let line = "  FAIL: build project image — `.agent-loop/Dockerfile.sandbox` is not approved: ";
    assert!(refused.stdout.contains(line), "{refused:?}");
    assert_eq!(ralph.run(&["trust", "--yes"]).code, 0);
    let output = ralph.run(&["selftest", "--offline"]);
    let start = "  PASS: build project image — ";
    let built = output
        .stdout
        .lines()
        .find_map(|line| line.strip_prefix(start));
    let built = BuiltImage(built.unwrap_or_else(|| panic!("{output:?}")).to_owned());
    assert!(
        built.0.starts_with("agent-loop-sandbox-claude-"),
        "{}",
        built.0
    );
    let last = "ralph: selftest complete — all 17 checks passed\n";
    assert!(output.stdout.ends_with(last), "{output:?}");
    let look = ["image", "inspect", "--format", "{{.Config.Env}}", &built.0];
    let kept = Command::new("docker").args(look).output().unwrap();
    let kept = String::from_utf8(kept.stdout).unwrap();
    assert!(kept.contains("LAYER=1"), "{kept}");

    fs::write(&layer, "ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\nRUN exit 3\n").unwrap();
    assert_eq!(ralph.run(&["trust", "--yes"]).code, 0);
    let output = ralph.run(&["selftest", "--offline", "--json"]);
    assert_eq!(output.code, 1, "{output:?}");
    let (statuses, problem) = summary(&output);
    let last = statuses.last().unwrap();
    assert_eq!(
        (last.0.as_str(), last.1.as_str()),
        ("build project image", "fail")
    );
    assert!(
        problem.contains("exit 3") || problem.contains("code: 3"),
        "{problem}"
    );
    assert_eq!(leftovers(&ralph), "");
}

#[test]
fn local_sandboxes_pass() {
    let ralph = TestRalph::new();
    let output = ralph.run(&["selftest", "--type", "local"]);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
    assert_data_eq!(
        output.stdout,
        str![[r"
  PASS: prerequisites — git version [..]
  PASS: machine — local: no isolation: commands run as you; state directory hidden: [..]; memory 8 GiB[..]
  PASS: create sandbox — local-[..]
  PASS: run a command — a command finished in [..]
  PASS: files — 1048576 bytes in and out
  PASS: timeout — a process tree was killed after 1s
  PASS: cleanup — local-[..] was removed
ralph: selftest complete — all 7 checks passed

"]]
    );
    let sandboxes = fs::read_dir(ralph.state().sandboxes()).unwrap();
    assert_eq!(sandboxes.count(), 0);
}

/// Returns the names and statuses of the checks, and the first problem.
fn summary(output: &RalphOutput) -> (Vec<(String, String)>, String) {
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
    let checks = report["checks"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let statuses = checks
        .iter()
        .map(|check| (text(&check["name"]), text(&check["status"])))
        .filter(|(_, status)| status != "not_run")
        .collect();
    assert_eq!(report["ok"], json!(false));
    let failed = checks.iter().find(|check| check["status"] == "fail");
    (statuses, text(&failed.unwrap()["problems"][0]["what"]))
}

#[test]
fn without_an_engine_or_an_image_the_rest_is_not_tried() {
    if skip_without_docker() {
        return;
    }
    let owned = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        let pairs = pairs.iter();
        pairs
            .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()))
            .collect()
    };
    let ralph = with_image("ralph-none:1");
    let output = ralph.run(&["selftest", "--type", "docker", "--offline", "--json"]);
    assert_eq!(output.code, 1, "{output:?}");
    assert_eq!(
        summary(&output),
        (
            owned(&[
                ("check token", "pass"),
                ("prerequisites", "pass"),
                ("engine", "pass"),
                ("proxy health", "pass"),
                ("build image", "fail")
            ]),
            "there is no image `ralph-none:1`".to_owned()
        )
    );
    let nowhere = "unix:///nonexistent/docker.sock";
    let mut command = ralph.command(&["selftest", "--offline", "--json"]);
    let output = RalphOutput::from(command.env("DOCKER_HOST", nowhere).output().unwrap());
    assert_eq!(output.code, 1, "{output:?}");
    assert_eq!(
        summary(&output),
        (
            owned(&[
                ("check token", "pass"),
                ("prerequisites", "pass"),
                ("engine", "fail")
            ]),
            "sandbox `docker` cannot be used: no Docker Engine is running here: socket `/nonexistent/docker.sock` does not exist"
                .to_owned()
        )
    );
    let mut command = ralph.command(&["selftest", "--offline"]);
    let output = RalphOutput::from(command.env("PATH", "/nonexistent").output().unwrap());
    assert_eq!(output.code, 1, "{output:?}");
    assert!(
        output.stdout.ends_with(
            "  NOT RUN: cleanup — a program is missing\nralph: selftest complete — 1/16 checks failed, 14 not run\n"
        ),
        "{output:?}"
    );
}

/// Variables that may contain a credential.
const VARIABLES: [&str; 3] = [
    "CLAUDE_CODE_OAUTH_TOKEN",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
];

#[test]
fn without_a_token_nothing_is_tested() {
    let ralph = with_image(BASE_IMAGE);
    let mut command = ralph.command(&["selftest"]);
    for name in VARIABLES {
        command.env_remove(name);
    }
    let output = RalphOutput::from(command.output().unwrap());
    assert_eq!(output.code, 1, "{output:?}");
    let first = "  FAIL: check token — no token found for agent claude — run: ralph store-token, or test everything else with `ralph selftest --offline`\n  NOT RUN: prerequisites — there is no token\n";
    assert!(output.stdout.starts_with(first), "{output:?}");
    let last = "  NOT RUN: cleanup — there is no token
ralph: selftest complete — 1/16 checks failed, 15 not run
";
    assert!(output.stdout.ends_with(last), "{output:?}");
}

/// The user's token goes to the provider; the sandbox only contains its placeholder.
#[test]
fn a_rejected_token_is_reported() {
    if skip_without_docker() {
        return;
    }
    let provider = FakeUpstream::start(UpstreamScenario::new([ScenarioStep::error(
        401,
        "invalid x-api-key",
    )]));
    let ralph = with_image(BASE_IMAGE);
    let mut command = ralph.command(&["selftest"]);
    for name in VARIABLES {
        command.env_remove(name);
    }
    command.env("ANTHROPIC_AUTH_TOKEN", "sk-canary-canary");
    command.env("ANTHROPIC_BASE_URL", provider.url());
    let output = RalphOutput::from(command.output().unwrap());
    assert_eq!(output.code, 1, "{output:?}");
    let found = format!(
        "  PASS: check token — gateway to {}, found in ANTHROPIC_AUTH_TOKEN, no expiry known\n",
        provider.url()
    );
    for line in [
        found.as_str(),
        "  FAIL: agent auth via gate — the credential of `claude` was refused with 401 — store a valid one with `ralph store-token --agent claude`\n",
        "ralph: selftest complete — 1/16 checks failed\n",
    ] {
        assert!(output.stdout.contains(line), "{line}: {output:?}");
    }
    let requests = provider.model_requests();
    assert_eq!(requests.len(), 1, "{requests:?}");
    let authorization = requests[0].header("authorization");
    assert_eq!(authorization, Some("Bearer sk-canary-canary"));
    assert_eq!(leftovers(&ralph), "");
}

/// The real programs authenticate through the gate.
#[test]
fn real_agents_reply_in_a_container() {
    let Some(image) = agent_image() else {
        return;
    };
    let ralph = with_image(&image);
    for agent in ["claude", "codex"] {
        let output = ralph.run(&["selftest", "--offline", "--agent", agent]);
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
        let line = format!("  PASS: agent auth via gate — `{agent}` replied `ok` in ");
        assert!(output.stdout.contains(&line), "{output:?}");
    }
    assert_eq!(leftovers(&ralph), "");
}

#[test]
fn an_unknown_type_is_refused() {
    let ralph = TestRalph::new();
    let output = ralph.run(&["selftest", "--type", "tart"]);
    let line = "ralph: invalid value `tart` for --type <TYPE> — possible values: docker, local — see `ralph selftest --help`\n";
    assert_eq!((output.code, output.stderr.as_str()), (2, line));
}

#[test]
fn an_interrupted_selftest_leaves_nothing() {
    if skip_without_docker() {
        return;
    }
    let ralph = with_image(BASE_IMAGE);
    let child = ralph
        .command(&["selftest", "--offline"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let began = Instant::now();
    while leftovers(&ralph).lines().count() < 2 {
        let elapsed = began.elapsed();
        assert!(
            elapsed < Duration::from_mins(5),
            "no sandbox after {elapsed:?}"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = RalphOutput::from(child.wait_with_output().unwrap());
    assert_eq!(output.code, 130, "{output:?}");
    assert!(output.stdout.contains("  PASS: cleanup — "), "{output:?}");
    assert!(
        output
            .stderr
            .starts_with("ralph: the selftest did not finish — the program was interrupted — ")
    );
    assert_eq!(leftovers(&ralph), "");
}
