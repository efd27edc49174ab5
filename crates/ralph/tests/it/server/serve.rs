//! Tests of starting and ending a server.

use std::os::unix::fs::PermissionsExt as _;

use rustix::process::Signal;
use serde_json::Value;

use super::fixture::RunningServer;
use crate::support::TestRalph;

fn record(ralph: &TestRalph) -> Value {
    let path = ralph.state().root().join("server.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn the_first_line_signs_a_browser_in_and_the_file_a_program() {
    let ralph = TestRalph::new();
    let server = RunningServer::start(ralph.command(&["serve", "--port", "0"]));
    let link = server
        .first_line
        .strip_prefix("dashboard: ")
        .unwrap()
        .to_owned();
    assert!(link.starts_with("http://127.0.0.1:"), "{link}");
    let path = link.split_once(&server.host()).unwrap().1;
    assert!(path.starts_with("/login?code="), "{link}");
    let signed_in = server.request("GET", path, &[]);
    assert_eq!(signed_in.status, 303, "{signed_in:?}");
    assert!(
        signed_in.head.contains("set-cookie: ralph_session="),
        "{signed_in:?}"
    );
    assert_eq!(server.request("GET", path, &[]).status, 401);
    assert_eq!(
        server.request("GET", "/health", &[]).body,
        r#"{"status":"ok"}"#
    );
    assert_eq!(server.request("GET", "/api/v1/runs", &[]).status, 401);

    let found = record(&ralph);
    let file = ralph.state().root().join("server.json");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(found["url"], format!("http://{}", server.host()));
    assert_eq!(found["pid"], server.pid().as_raw_nonzero().get());
    let token = found["token"].as_str().unwrap();
    assert_eq!(server.request_as(token, "GET", "/api/v1/runs").status, 200);

    let ended = server.end_with(Signal::TERM);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(!ended.stderr.contains(token), "{ended:?}");
    assert!(!file.exists());
    let log = std::fs::read_to_string(ralph.state().root().join("log/ralph.log")).unwrap();
    assert!(log.contains("rejected an invalid login code"), "{log}");
    assert!(!log.contains(token), "{log}");
    assert!(!log.contains(path.split_once('=').unwrap().1), "{log}");
}

#[test]
fn a_script_gets_json_and_its_own_token() {
    let ralph = TestRalph::new();
    let token = "0123456789abcdef0123456789abcdef";
    let mut command = ralph.command(&["serve", "--listen", "localhost:0", "--json"]);
    command.env("RALPH_TOKEN", token).env("RALPH_WORKERS", "3");
    let server = RunningServer::start(command);
    let line: Value = serde_json::from_str(&server.first_line).unwrap();
    assert_eq!(line["pid"], server.pid().as_raw_nonzero().get());
    let url = line["url"].as_str().unwrap();
    assert_eq!(url, format!("http://{}", server.host()));
    assert!(
        line["login"]
            .as_str()
            .unwrap()
            .starts_with(&format!("{url}/login?code="))
    );
    assert_eq!(record(&ralph)["token"], token);
    assert_eq!(server.request_as(token, "GET", "/api/v1/runs").status, 200);
    let ended = server.end_with(Signal::INT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn invalid_settings_are_refused_before_anything_is_written() {
    for (args, variables, message) in [
        (
            &["--host", "0.0.0.0"][..],
            ("RALPH_X", ""),
            "ralph: refusing to listen on 0.0.0.0 — other machines can reach it, and connections are not encrypted — \
             use `--tls-cert` and `--tls-key`, or `--behind-proxy` if a proxy encrypts them\n",
        ),
        (
            &[],
            ("RALPH_TOKEN", "secret"),
            "ralph: `RALPH_TOKEN` is not accepted — it has 6 characters of 5 kinds, which can be guessed — \
             create one with `openssl rand -hex 32`, or unset it for a random one\n",
        ),
        (
            &[],
            ("RALPH_HOST", "example.org"),
            "ralph: cannot use `RALPH_HOST` — it is not an IP address, such as 127.0.0.1 — change or unset it\n",
        ),
        (
            &[],
            ("RALPH_PORT", "80000"),
            "ralph: cannot use `RALPH_PORT` — it is not a number up to 65535 — change or unset it\n",
        ),
        (
            &[],
            ("RALPH_WORKERS", "0"),
            "ralph: cannot use `RALPH_WORKERS` — it is not a number from 1 to 256 — change or unset it\n",
        ),
        (
            &["--public-url", "http://ralph.example"],
            ("RALPH_X", ""),
            "ralph: `http://ralph.example` cannot be the public address — cookies and tokens would be sent without encryption — \
             name it as users type it, such as `https://ralph.example/path/`\n",
        ),
        (
            &["--tls-cert", "/nothing.pem", "--tls-key", "/nothing.key"],
            ("RALPH_X", ""),
            "ralph: cannot use `/nothing.pem` for TLS — I/O error: No such file or directory (os error 2) — \
             name a certificate with its issuers and its key, both as PEM\n",
        ),
    ] {
        let ralph = TestRalph::new();
        let mut command = ralph.command(&[&["serve", "--port", "0"], args].concat());
        if args.is_empty() {
            command = ralph.command(&["serve"]);
        }
        let output = command.env(variables.0, variables.1).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), message);
        assert!(!ralph.state().root().join("server.json").exists());
    }
}

#[test]
fn a_port_that_is_in_use_is_an_error() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let ralph = TestRalph::new();
    let output = ralph.run(&["serve", "--port", &port]);
    let message = format!(
        "ralph: cannot listen on 127.0.0.1:{port} — Address already in use (os error 98) — \
         choose another port with `--port`, or a free one with `--port 0`\n"
    );
    assert_eq!((output.code, output.stderr), (1, message));
}

#[test]
fn a_token_of_a_repository_is_not_used() {
    let ralph = TestRalph::new();
    let token = "0123456789abcdef0123456789abcdef";
    let text = format!("RALPH_TOKEN={token}\nRALPH_HOST=0.0.0.0\nRALPH_PORT=0\n");
    std::fs::write(ralph.project().join(".env"), text).unwrap();
    let server = RunningServer::start(ralph.command(&["serve"]));
    assert!(
        server.host().starts_with("127.0.0.1:"),
        "{}",
        server.first_line
    );
    assert_eq!(server.request_as(token, "GET", "/api/v1/runs").status, 401);
    let ended = server.end_with(Signal::TERM);
    assert!(
        ended.stderr.contains("`RALPH_TOKEN` of `.env` is not used"),
        "{ended:?}"
    );
}

#[test]
fn a_missing_browser_is_only_reported() {
    let ralph = TestRalph::new();
    let programs = ralph.project().join("programs");
    std::fs::create_dir(&programs).unwrap();
    let mut command = ralph.command(&["serve", "--port", "0", "--open"]);
    command.env("PATH", &programs);
    let server = RunningServer::start(command);
    assert_eq!(server.request("GET", "/health", &[]).status, 200);
    let ended = server.end_with(Signal::TERM);
    assert_eq!(ended.code, Some(0));
    assert!(
        ended.stderr.contains("ralph: no browser was opened — "),
        "{ended:?}"
    );
}

#[test]
fn the_running_server_gives_a_new_link_and_a_new_token() {
    let ralph = TestRalph::new();
    let missing = "ralph: there is no running server — no process serves this state directory — \
                   start one with `ralph serve`\n";
    for flag in ["--login", "--rotate-token"] {
        let output = ralph.run(&["serve", flag]);
        assert_eq!((output.code, &*output.stderr), (1, missing));
    }
    let server = RunningServer::start(ralph.command(&["serve", "--port", "0"]));
    let link = ralph.run(&["serve", "--login"]);
    assert_eq!((link.code, &*link.stderr), (0, ""));
    let path = link.stdout.trim_end().split_once(&server.host()).unwrap().1;
    let signed_in = server.request("GET", path, &[]);
    assert_eq!(signed_in.status, 303, "{signed_in:?}");
    let cookie = signed_in
        .head
        .lines()
        .find_map(|line| line.strip_prefix("set-cookie: "));
    let cookie = cookie.unwrap().split(';').next().unwrap();
    let session = || server.request("GET", "/api/v1/session", &[format!("Cookie: {cookie}")]);
    assert_eq!(session().status, 200);
    let json = ralph.json(&["serve", "--login", "--json"]);
    assert_eq!(json["pid"], server.pid().as_raw_nonzero().get());
    assert_eq!(json["url"], format!("http://{}", server.host()));

    let old = record(&ralph)["token"].as_str().unwrap().to_owned();
    let replaced = ralph.run(&["serve", "--rotate-token"]);
    let message = "the token was replaced, and all sessions ended\n";
    assert_eq!((replaced.code, &*replaced.stdout), (0, message));
    assert_eq!(session().status, 401);
    assert_eq!(
        server.request_as(&old, "GET", "/api/v1/session").status,
        401
    );
    let new = record(&ralph)["token"].as_str().unwrap().to_owned();
    assert_eq!(
        server.request_as(&new, "GET", "/api/v1/session").status,
        200
    );
}
