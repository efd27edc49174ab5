//! No real credential exists inside: only its placeholder token, which is worthless elsewhere.

use std::io::Write as _;
use std::process::{Command, Stdio};

use ralph_core::ports::{Exec, ExecStatus};
use ralph_core::secret::Secret;
use ralph_gate::Route;
use ralph_test::internet::{FakeInternet, SitePage, SitePages, VisitLog};
use ralph_test::{BASE_IMAGE, skip_without_docker};

use super::gated_sandbox::{GatedSandbox, GatedSandboxConfig, TEST_TIMEOUT, docker};

const CANARY: &str = "sk-canary-7d1f0c55e2b94a63a1d8";
/// Other encodings of the credential.
const DISGUISES: [&str; 4] = [
    CANARY,
    "c2stY2FuYXJ5LTdkMWYwYzU1ZTJiOTRhNjNhMWQ4",
    "736b2d63616e6172792d3764316630633535653262393461363361316438",
    "8d1a36a49b2e55c0f1d7-yranac-ks",
];

/// Calls a model as configured by the environment, and prints the whole response.
const ASK: &str = r#"
import json, os, urllib.error, urllib.request
body = {"model": "m", "messages": [{"role": "user", "content": "what is my key?"}]}
request = urllib.request.Request(os.environ["BASE"] + "/chat/completions", json.dumps(body).encode())
request.add_header("Authorization", "Bearer " + os.environ["KEY"])
request.add_header("Content-Type", "application/json")
try:
    answer = urllib.request.urlopen(request, timeout=10)
except urllib.error.HTTPError as error:
    answer = error
except OSError as error:
    raise SystemExit(print("nobody answers:", error))
print(answer.status, answer.headers, answer.read().decode())
"#;

fn route() -> Route {
    let secret = Secret::new(CANARY.to_owned());
    Route::openai_compatible("models", "https://models.example/v1", secret).unwrap()
}

fn plan() -> GatedSandboxConfig {
    GatedSandboxConfig {
        routes: vec![route()],
        ..GatedSandboxConfig::default()
    }
}

/// Opens a sandbox with the credential of a provider that echoes every request.
async fn room() -> (GatedSandbox, VisitLog) {
    let mut internet = FakeInternet::new();
    let pages = SitePages::from([("/v1/chat/completions".to_owned(), SitePage::Echo)]);
    let provider = internet.start_site(&["models.example"], pages).await;
    (GatedSandbox::open(internet, plan()).await, provider)
}

/// Returns the address of the credential port in a sandbox, and the placeholder token.
fn access(room: &GatedSandbox) -> (String, String) {
    let route = &room.gate.routes()[0];
    let base = route.base_url(ralph_app::gate::CREDENTIAL_ADDRESS);
    (base, route.placeholder().as_str().to_owned())
}

/// Calls the model with a placeholder token.
async fn ask(room: &GatedSandbox, phantom: &str) -> String {
    let exec = Exec::argv(["python3", "-c", ASK], TEST_TIMEOUT)
        .with_env("BASE", access(room).0)
        .with_env("KEY", phantom);
    let (ended, output) = room.run(exec).await;
    assert_eq!(
        (ended, output.stderr_text()),
        (ExecStatus::Exited(0), String::new())
    );
    output.stdout_text()
}

fn assert_no_canary(place: &str, text: &str) {
    for disguise in DISGUISES {
        assert!(!text.contains(disguise), "{place}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_provider_receives_the_credential() {
    if skip_without_docker() {
        return;
    }
    let (room, provider) = room().await;
    let (_, phantom) = access(&room);
    let answer = ask(&room, &phantom).await;
    assert!(answer.starts_with("200 "), "{answer}");
    assert!(answer.contains("what is my key?"), "{answer}");
    assert_no_canary("the answer", &answer);
    let heard = provider.all();
    assert!(
        heard.contains(&format!("authorization: Bearer {CANARY}")),
        "{heard:#?}"
    );
    assert!(!heard.concat().contains(&phantom), "{heard:#?}");
    assert_no_canary("the records", &format!("{:?}", room.records()));
    assert_nowhere_inside(&room).await;
    assert_nowhere_on_the_engine(&room);
    room.finish().await;
}

/// Searches everything that a command, or root in the container, can read.
async fn assert_nowhere_inside(room: &GatedSandbox) {
    let (_, phantom) = access(room);
    let patterns = DISGUISES.join("\n");
    // Files, then the memory of programs as exposed by the kernel.
    let search = "grep -rlFsf - / --exclude-dir=proc --exclude-dir=sys; true";
    let look = "env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null; ps auxe; true";
    let exec = Exec::shell(search, TEST_TIMEOUT).with_stdin(patterns.clone());
    let (_, output) = room.run(exec).await;
    assert_eq!(output.stdout_text(), "");
    let exec = Exec::shell(look, TEST_TIMEOUT).with_env("KEY", &phantom);
    let (_, output) = room.run(exec).await;
    assert_no_canary("a command", &output.stdout_text());
    assert!(output.stdout_text().contains(&phantom));
    assert_eq!(by_root(room, search, &patterns), "");
    let seen = by_root(room, look, "");
    assert_no_canary("root", &seen);
    assert!(!seen.contains(&phantom), "{seen}");
}

/// Runs a shell command as root in the container.
fn by_root(room: &GatedSandbox, line: &str, input: &str) -> String {
    let mut program = Command::new("docker")
        .args(["exec", "--interactive", "--user", "0", &room.container()])
        .args(["sh", "-c", line])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = program.stdin.take().unwrap();
    pipe.write_all(input.as_bytes()).unwrap();
    drop(pipe);
    let output = program.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn assert_nowhere_on_the_engine(room: &GatedSandbox) {
    let (container, phantom) = (room.container(), access(room).1);
    for look in [
        &["container", "inspect", &container][..],
        &["volume", "inspect", &container],
        &["image", "inspect", BASE_IMAGE],
        &["image", "history", "--no-trunc", BASE_IMAGE],
        &["logs", &container],
        &["top", &container, "auxe"],
        &["diff", &container],
    ] {
        let said = docker(look);
        assert_no_canary(&look.join(" "), &said);
        assert!(!said.contains(&phantom), "{look:?}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_placeholder_token_is_worthless_elsewhere_or_later() {
    if skip_without_docker() {
        return;
    }
    let (room, provider) = room().await;
    let (_, phantom) = access(&room);
    let other = room.open_second(plan()).await;
    let answer = ask(&other, &phantom).await;
    assert!(answer.starts_with("401 "), "{answer}");
    assert!(ask(&room, &phantom).await.starts_with("200 "));
    let heard = provider.all();
    room.gate.close();
    let answer = ask(&room, &phantom).await;
    assert!(answer.starts_with("nobody answers: "), "{answer}");
    assert_eq!(provider.all(), heard);
    other.finish().await;
    room.finish().await;
}
