//! One proxy per agent: reused, replaced, stopped.

use std::time::{Duration, Instant};

use super::running::{RunningProxy, canary};
use crate::support::{RalphOutput, TestRalph};
use crate::tokens::fixture::TokenTestEnv;

const TARGET: &str = "http://127.0.0.1:9";
const FREE: &[&str] = &["--listen", "127.0.0.1:0"];

#[track_caller]
fn health(proxy: &RunningProxy, mode: &str) -> String {
    let (status, body) = proxy.request("GET /health", &[], "");
    assert_eq!(status, 200);
    let version = body
        .split("v=")
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap()
        .to_owned();
    assert!(
        version.len() == 12 && version.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "{body}"
    );
    let address = proxy.address();
    assert_eq!(
        body.trim_end(),
        format!("agent-loop-proxy ok v={version} mode={mode} addr={address}")
    );
    version
}

#[test]
fn a_running_proxy_is_reused() {
    let ralph = TestRalph::new();
    let first = RunningProxy::start(&ralph, TARGET, FREE, &canary());
    health(&first, "oauth");
    let mut second =
        RunningProxy::start(&ralph, TARGET, &["--listen", &first.address()], &canary());
    assert_eq!(second.variables, first.variables);
    let address = first.address();
    assert_eq!(
        second.announcement,
        format!(
            "ralph: proxy for agent claude already listens on {address} (oauth, to {TARGET})\n"
        )
    );
    let nothing = |code| RalphOutput {
        code,
        stdout: String::new(),
        stderr: String::new(),
    };
    assert_eq!(second.wait(), nothing(0));
    health(&first, "oauth");
    // Another agent has its own.
    let codex = RunningProxy::start(
        &ralph,
        TARGET,
        &[FREE, &["--agent", "codex"]].concat(),
        &canary(),
    );
    health(&codex, "api_key");
    assert_eq!(first.stop(), nothing(130));
    let files = std::fs::read_dir(ralph.state().proxies()).unwrap();
    let mut names: Vec<_> = files.map(|file| file.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["claude.lock", "codex.json", "codex.lock"]);
}

#[test]
fn a_proxy_with_another_target_or_credential_is_replaced() {
    let ralph = TestRalph::new();
    let first = RunningProxy::start(&ralph, TARGET, FREE, &canary());
    let address = first.address();
    let mut running = first;
    for (target, input) in [
        (TARGET, format!("api_key\n{}", canary())),
        (TARGET, format!("api_key\n{}other", canary())),
        ("http://127.0.0.1:8", format!("api_key\n{}other", canary())),
    ] {
        let next = RunningProxy::start(&ralph, target, &["--listen", &address], &input);
        assert_eq!(next.address(), address);
        assert_eq!(running.wait().code, 130);
        assert_ne!(next.placeholder_token(), running.placeholder_token());
        health(&next, "api_key");
        running = next;
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_hung_or_killed_proxy_is_replaced() {
    let ralph = TestRalph::new();
    let signal = |proxy: &RunningProxy, signal| {
        let pid = rustix::process::Pid::from_raw(i32::try_from(proxy.pid()).unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    };
    let hangs = RunningProxy::start(&ralph, TARGET, FREE, &canary());
    signal(&hangs, rustix::process::Signal::STOP);
    let killed = RunningProxy::start(&ralph, TARGET, &["--listen", &hangs.address()], &canary());
    health(&killed, "oauth");
    signal(&killed, rustix::process::Signal::KILL);
    let last = RunningProxy::start(&ralph, TARGET, &["--listen", &killed.address()], &canary());
    health(&last, "oauth");
}

#[test]
fn it_exits_when_unused() {
    let ralph = TestRalph::new();
    let idle = [FREE, &["--idle-timeout", "2s"]].concat();
    let mut proxy = RunningProxy::start(&ralph, TARGET, &idle, &canary());
    let begin = Instant::now();
    // Health requests keep it alive.
    while begin.elapsed() < Duration::from_secs(3) {
        health(&proxy, "oauth");
        std::thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(
        proxy.wait(),
        RalphOutput {
            code: 0,
            stdout: String::new(),
            stderr: "ralph: proxy ended — no request for 2 seconds\n".to_owned(),
        }
    );
}

#[test]
fn invalid_arguments_and_credentials_are_rejected() {
    let ralph = TestRalph::new();
    let holder = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = holder.local_addr().unwrap().to_string();
    for (args, input, code, line) in [
        (
            &[][..],
            "",
            1,
            "no credential provided on stdin — pipe it in: `ralph get-token | ralph proxy`",
        ),
        (
            &[],
            "a\nb\nc",
            1,
            "cannot read the credential from stdin — expected one or two lines, got 3 — pipe it in: `ralph get-token | ralph proxy`",
        ),
        (
            &["--agent", "mine"],
            "x",
            2,
            "cannot start a proxy for agent mine — ralph does not know the API of this agent — name an agent whose API it knows: claude, codex, opencode",
        ),
        (
            &["--listen", &taken],
            "canary-canary",
            1,
            &format!(
                "cannot listen on {taken} — Address already in use (os error 98) — end the program that listens there, or choose another address with `--listen`"
            ),
        ),
    ] {
        let mut proxy = RunningProxy::spawn(&ralph, TARGET, args, input);
        let ended = proxy.wait();
        assert_eq!(
            ended,
            RalphOutput {
                code,
                stdout: String::new(),
                stderr: format!("ralph: {line}\n"),
            }
        );
    }
    drop(holder);
}

#[test]
fn a_foreign_credential_is_not_forwarded() {
    let test_env = TokenTestEnv::new();
    let codex = ["proxy", "--agent", "codex"];
    let own = "https://api.anthropic.com";
    let refused = |args: &[&str], input: &str, line: &str| {
        let expected = RalphOutput {
            code: 2,
            stdout: String::new(),
            stderr: format!("ralph: {line}\n"),
        };
        assert_eq!(test_env.run_with_input(args, input), expected);
    };
    refused(
        &["proxy"],
        &format!("gateway\n{}", canary()),
        &format!(
            "the key of a gateway cannot be sent to {own} — it is sent to its gateway only — name the gateway with `--target URL`"
        ),
    );
    refused(
        &["proxy"],
        "oauth\ncanary-canary",
        &format!(
            "the credential does not look like one for {own} — its credentials start with `sk-ant-` — name the API of the credential with `--target URL`"
        ),
    );
    refused(
        &codex,
        &canary(),
        "the credential does not look like one for https://api.openai.com/v1 — its credentials start with `sk-` — name the API of the credential with `--target URL`",
    );
    let address = "http://127.0.0.1:18097";
    test_env.store(&["--auth", "oauth", "--base-url", address], &canary());
    refused(
        &["proxy"],
        &test_env.run(&["get-token"]).stdout,
        &format!(
            "the token of agent claude cannot be sent to {own} — it was stored for {address} only — use `--target {address}`"
        ),
    );
}
