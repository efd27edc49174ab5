//! Forwarding: the placeholder token is replaced by the credential, everything else is unchanged.

use std::io::{Read as _, Write as _};

use super::running::{RunningProxy, assert_absent, canary};
use super::upstream::ProxyTestUpstream;
use crate::support::TestRalph;

const FREE: &[&str] = &["--listen", "127.0.0.1:0"];
const ASK: &str = r#"{"model":"claude-haiku-4-5","max_tokens":1,"messages":[]}"#;
const SAID: &str =
    r#"{"type":"message","model":"claude-haiku-4-5","usage":{"input_tokens":1,"output_tokens":1}}"#;

/// A credential, the proxy's handling of it, and the request the provider should receive.
struct ForwardingCase {
    args: &'static [&'static str],
    /// The mode and credential on standard input, which is not visible to other processes.
    input: &'static str,
    mode: &'static str,
    variable: &'static str,
    path: &'static str,
    /// The path prefix at the provider.
    base: &'static str,
    field: &'static str,
    beta: &'static str,
    ask: &'static str,
}

const CLAUDE: ForwardingCase = ForwardingCase {
    args: &[],
    input: "",
    mode: "oauth",
    variable: "CLAUDE_CODE_OAUTH_TOKEN",
    path: "/v1/messages",
    base: "",
    field: "authorization: Bearer ",
    beta: "fine-1,oauth-2025-04-20",
    ask: ASK,
};

const CASES: [ForwardingCase; 4] = [
    CLAUDE,
    ForwardingCase {
        input: "api_key\n",
        mode: "api_key",
        variable: "ANTHROPIC_API_KEY",
        field: "x-api-key: ",
        beta: "fine-1",
        ..CLAUDE
    },
    ForwardingCase {
        input: "gateway\n",
        mode: "gateway",
        variable: "ANTHROPIC_AUTH_TOKEN",
        beta: "fine-1",
        ..CLAUDE
    },
    ForwardingCase {
        args: &["--agent", "codex"],
        mode: "api_key",
        variable: "OPENAI_API_KEY",
        path: "/v1/responses",
        base: "/v1",
        beta: "fine-1",
        ask: r#"{"model":"gpt-5","input":[]}"#,
        ..CLAUDE
    },
];

#[test]
fn each_kind_of_credential_is_sent_in_its_header() {
    for case in CASES {
        let (ralph, upstream) = (TestRalph::new(), ProxyTestUpstream::new());
        let target = format!("{}{}", upstream.url(), case.base);
        let input = format!("{}{}\n", case.input, canary());
        let proxy = RunningProxy::start(&ralph, &target, &[FREE, case.args].concat(), &input);
        assert!(
            proxy.variables.contains_key(case.variable),
            "{:?}",
            proxy.variables
        );
        let line = format!(
            " listens on {} ({}, to {target})\n",
            proxy.address(),
            case.mode
        );
        assert!(
            proxy.announcement.ends_with(&line),
            "{}",
            proxy.announcement
        );
        std::thread::scope(|scope| {
            let asking = scope.spawn(|| {
                let fields = [&proxy.bearer(), "anthropic-beta: fine-1", "cookie: a=b"];
                proxy.request(&format!("POST {}?beta=true", case.path), &fields, case.ask)
            });
            let request = upstream.next_request();
            let (head, body) = (request.head.join("\n"), request.body.clone());
            request.respond(200, SAID);
            assert_eq!(asking.join().unwrap(), (200, SAID.to_owned()));
            assert!(
                head.starts_with(&format!("POST {}?beta=true HTTP/1.0\n", case.path)),
                "{head}"
            );
            let carrying = ["authorization", "x-api-key", "anthropic-beta", "cookie"];
            let mut fields: Vec<&str> = head
                .lines()
                .filter(|line| carrying.iter().any(|name| line.starts_with(name)))
                .collect();
            fields.sort_unstable();
            let expected = [
                format!("anthropic-beta: {}", case.beta),
                format!("{}{}", case.field, canary()),
            ];
            assert_eq!(fields, expected);
            assert_eq!(body, case.ask);
        });
        assert_absent(&ralph, proxy.pid(), &canary());
        let ended = proxy.stop();
        let log = format!("ralph: POST {} 200\n", case.path);
        assert_eq!((ended.code, ended.stderr), (130, log));
    }
}

#[test]
fn a_stream_arrives_piece_by_piece() {
    let (ralph, upstream) = (TestRalph::new(), ProxyTestUpstream::new());
    let proxy = RunningProxy::start(&ralph, &upstream.url(), FREE, &canary());
    let mut client = proxy.send("POST /v1/messages", &[&proxy.bearer()], ASK);
    let mut provider = upstream.next_request().stream();
    let mut heard = String::new();
    for piece in [
        "event: ping\ndata: {}\n\n",
        "event: message_stop\ndata: {}\n\n",
    ] {
        provider.write_all(piece.as_bytes()).unwrap();
        // Nothing is buffered: the next chunk is sent only after this one has arrived.
        while !heard.ends_with(piece) {
            let mut byte = [0];
            client.read_exact(&mut byte).unwrap();
            heard.push(char::from(byte[0]));
        }
    }
    provider.shutdown(std::net::Shutdown::Both).unwrap();
    client.read_to_string(&mut heard).unwrap();
    assert!(heard.starts_with("HTTP/1.0 200 OK\r\n"), "{heard}");
}

#[test]
fn provider_errors_pass_through_and_an_outage_is_reported() {
    let (ralph, upstream) = (TestRalph::new(), ProxyTestUpstream::new());
    let proxy = RunningProxy::start(&ralph, &upstream.url(), FREE, &canary());
    for status in [400, 401, 429, 529] {
        std::thread::scope(|scope| {
            let asking =
                scope.spawn(|| proxy.request("POST /v1/messages", &[&proxy.bearer()], ASK));
            // Even if it echoes the credential.
            upstream
                .next_request()
                .respond(status, &format!("no: {}", canary()));
            let (received_status, body) = asking.join().unwrap();
            assert_eq!(received_status, status);
            assert_eq!(body, "no: [REDACTED:anthropic]");
        });
    }
    let log = proxy.stop().stderr;
    assert_eq!(
        log.lines().collect::<Vec<_>>(),
        [400, 401, 429, 529].map(|status| format!("ralph: POST /v1/messages {status}"))
    );
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = closed.local_addr().unwrap();
    drop(closed);
    let proxy = RunningProxy::start(&ralph, &format!("http://{address}"), FREE, &canary());
    let (status, body) = proxy.request("POST /v1/messages", &[&proxy.bearer()], ASK);
    assert_eq!(status, 502);
    assert!(
        body.starts_with(&format!(
            "proxy: upstream unreachable: `{address}` is unreachable: "
        )),
        "{body}"
    );
}

#[test]
fn nothing_is_forwarded_without_the_placeholder_token() {
    let (ralph, upstream) = (TestRalph::new(), ProxyTestUpstream::new());
    let proxy = RunningProxy::start(&ralph, &upstream.url(), FREE, &canary());
    let bearer = proxy.bearer();
    for (request, fields, expected) in [
        ("POST /v1/messages", &[][..], 401),
        ("POST /v1/messages", &["authorization: Bearer phantom"], 401),
        (
            "POST /v1/messages",
            &["x-api-key: phantom", bearer.as_str()],
            401,
        ),
        ("GET /v1/organizations", &[bearer.as_str()], 404),
        ("DELETE /v1/messages", &[bearer.as_str()], 404),
        ("POST /v1/../admin", &[bearer.as_str()], 404),
        (
            "POST http://evil.example/v1/messages",
            &[bearer.as_str()],
            400,
        ),
    ] {
        let (status, _) = proxy.request(request, fields, ASK);
        assert_eq!(status, expected, "{request} {fields:?}");
    }
    assert!(upstream.try_next_request().is_none());
}
