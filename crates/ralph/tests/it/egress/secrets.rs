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
async fn gated() -> (GatedSandbox, VisitLog) {
    let mut internet = FakeInternet::new();
    let pages = SitePages::from([("/v1/chat/completions".to_owned(), SitePage::Echo)]);
    let provider = internet.start_site(&["models.example"], pages).await;
    (GatedSandbox::open(internet, plan()).await, provider)
}

/// Returns the address of the credential port in a sandbox, and the placeholder token.
fn access(gated: &GatedSandbox) -> (String, String) {
    let route = &gated.gate.routes()[0];
    let base = route.base_url(ralph_app::gate::CREDENTIAL_ADDRESS);
    (base, route.placeholder().as_str().to_owned())
}

/// Calls the model with a placeholder token.
async fn ask(gated: &GatedSandbox, placeholder: &str) -> String {
    let exec = Exec::argv(["python3", "-c", ASK], TEST_TIMEOUT)
        .with_env("BASE", access(gated).0)
        .with_env("KEY", placeholder);
    let (ended, output) = gated.run(exec).await;
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
    let (gated, provider) = gated().await;
    let (_, placeholder) = access(&gated);
    let answer = ask(&gated, &placeholder).await;
    assert!(answer.starts_with("200 "), "{answer}");
    assert!(answer.contains("what is my key?"), "{answer}");
    assert_no_canary("the answer", &answer);
    let heard = provider.all();
    assert!(
        heard.contains(&format!("authorization: Bearer {CANARY}")),
        "{heard:#?}"
    );
    assert!(!heard.concat().contains(&placeholder), "{heard:#?}");
    assert_no_canary("the records", &format!("{:?}", gated.records()));
    assert_nowhere_inside(&gated).await;
    assert_nowhere_on_the_engine(&gated);
    gated.finish().await;
}

/// Searches everything that a command, or root in the container, can read.
async fn assert_nowhere_inside(gated: &GatedSandbox) {
    let (_, placeholder) = access(gated);
    let patterns = DISGUISES.join("\n");
    // Files, then the memory of programs as exposed by the kernel.
    let search = "grep -rlFsf - / --exclude-dir=proc --exclude-dir=sys; true";
    let command_line =
        "env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null; ps auxe; true";
    let exec = Exec::shell(search, TEST_TIMEOUT).with_stdin(patterns.clone());
    let (_, output) = gated.run(exec).await;
    assert_eq!(output.stdout_text(), "");
    let exec = Exec::shell(command_line, TEST_TIMEOUT).with_env("KEY", &placeholder);
    let (_, output) = gated.run(exec).await;
    assert_no_canary("a command", &output.stdout_text());
    assert!(output.stdout_text().contains(&placeholder));
    assert_eq!(by_root(gated, search, &patterns), "");
    let output = by_root(gated, command_line, "");
    assert_no_canary("root", &output);
    assert!(!output.contains(&placeholder), "{output}");
}

/// Runs a shell command as root in the container.
fn by_root(gated: &GatedSandbox, line: &str, input: &str) -> String {
    let mut program = Command::new("docker")
        .args(["exec", "--interactive", "--user", "0", &gated.container()])
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

fn assert_nowhere_on_the_engine(gated: &GatedSandbox) {
    let (container, placeholder) = (gated.container(), access(gated).1);
    for arguments in [
        &["container", "inspect", &container][..],
        &["volume", "inspect", &container],
        &["image", "inspect", BASE_IMAGE],
        &["image", "history", "--no-trunc", BASE_IMAGE],
        &["logs", &container],
        &["top", &container, "auxe"],
        &["diff", &container],
    ] {
        let text = docker(arguments);
        assert_no_canary(&arguments.join(" "), &text);
        assert!(!text.contains(&placeholder), "{arguments:?}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_placeholder_token_is_worthless_elsewhere_or_later() {
    if skip_without_docker() {
        return;
    }
    let (gated, provider) = gated().await;
    let (_, placeholder) = access(&gated);
    let other = gated.open_second(plan()).await;
    let answer = ask(&other, &placeholder).await;
    assert!(answer.starts_with("401 "), "{answer}");
    assert!(ask(&gated, &placeholder).await.starts_with("200 "));
    let heard = provider.all();
    gated.gate.close();
    let answer = ask(&gated, &placeholder).await;
    assert!(answer.starts_with("nobody answers: "), "{answer}");
    assert_eq!(provider.all(), heard);
    other.finish().await;
    gated.finish().await;
}
