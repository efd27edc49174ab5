//! What goes through: the credential instead of its stand-in, everything else as it was.

use std::io::{Read as _, Write as _};

use super::running::{Proxy, absent, canary};
use super::upstream::Upstream;
use crate::support::Ralph;

const FREE: &[&str] = &["--listen", "127.0.0.1:0"];
const ASK: &str = r#"{"model":"claude-haiku-4-5","max_tokens":1,"messages":[]}"#;
const SAID: &str =
    r#"{"type":"message","model":"claude-haiku-4-5","usage":{"input_tokens":1,"output_tokens":1}}"#;

#[test]
#[expect(clippy::too_many_lines, reason = "a table with a case for each kind")]
fn each_kind_of_credential_is_put_in_its_place() {
    let ralph = Ralph::new();
    let bearer = format!("Bearer {}", canary());
    for (args, input, mode, variable, path, expected) in [
        (
            &[][..],
            canary(),
            "oauth",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "/v1/messages",
            (Some(bearer.as_str()), None, Some("fine-1,oauth-2025-04-20")),
        ),
        (
            &[],
            format!("api_key\n{}\n", canary()),
            "api_key",
            "ANTHROPIC_API_KEY",
            "/v1/messages",
            (None, Some(canary().leak() as &str), Some("fine-1")),
        ),
        (
            &[],
            format!("gateway\n{}\n", canary()),
            "gateway",
            "ANTHROPIC_AUTH_TOKEN",
            "/v1/messages",
            (Some(&bearer), None, Some("fine-1")),
        ),
        (
            &["--agent", "codex"],
            canary(),
            "api_key",
            "OPENAI_API_KEY",
            "/v1/responses",
            (Some(&bearer), None, Some("fine-1")),
        ),
    ] {
        let upstream = Upstream::new();
        let args = [FREE, args].concat();
        let base = if path == "/v1/responses" {
            format!("{}/v1", upstream.url())
        } else {
            upstream.url()
        };
        let proxy = Proxy::start(&ralph, &base, &args, &input);
        assert!(
            proxy.variables.contains_key(variable),
            "{:?}",
            proxy.variables
        );
        let (address, told) = (proxy.address(), proxy.told.clone());
        assert!(
            told.ends_with(&format!(" listens on {address} ({mode}, to {base})\n")),
            "{told}"
        );
        let client = std::thread::scope(|scope| {
            let asking = scope.spawn(|| {
                let fields = [&proxy.bearer(), "anthropic-beta: fine-1", "cookie: a=b"];
                proxy.ask(&format!("POST {path}?beta=true"), &fields, ASK)
            });
            let asked = upstream.next();
            assert_eq!(asked.head[0], format!("POST {path}?beta=true HTTP/1.0"));
            let seen =
                ["authorization", "x-api-key", "anthropic-beta"].map(|name| asked.field(name));
            assert_eq!((seen[0], seen[1], seen[2]), expected);
            assert_eq!((asked.field("cookie"), asked.body.as_str()), (None, ASK));
            assert!(!asked.head.join("\n").contains(proxy.phantom()));
            asked.answer(200, SAID);
            asking.join().unwrap()
        });
        assert_eq!(client, (200, SAID.to_owned()));
        absent(&ralph, proxy.pid(), &canary());
        let ended = proxy.stop();
        assert_eq!(
            (ended.code, ended.stderr),
            (130, format!("ralph: POST {path} 200\n"))
        );
    }
}

#[test]
fn a_stream_arrives_piece_by_piece() {
    let (ralph, upstream) = (Ralph::new(), Upstream::new());
    let proxy = Proxy::start(&ralph, &upstream.url(), FREE, &canary());
    let mut client = proxy.send("POST /v1/messages", &[&proxy.bearer()], ASK);
    let mut provider = upstream.next().stream();
    let mut heard = String::new();
    for piece in [
        "event: ping\ndata: {}\n\n",
        "event: message_stop\ndata: {}\n\n",
    ] {
        provider.write_all(piece.as_bytes()).unwrap();
        // It waits for nothing else: the next piece is sent only after this one has arrived.
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
fn errors_of_the_provider_pass_and_its_absence_is_told() {
    let (ralph, upstream) = (Ralph::new(), Upstream::new());
    let proxy = Proxy::start(&ralph, &upstream.url(), FREE, &canary());
    for status in [400, 401, 429, 529] {
        std::thread::scope(|scope| {
            let asking = scope.spawn(|| proxy.ask("POST /v1/messages", &[&proxy.bearer()], ASK));
            // Even if it repeats the credential.
            upstream.next().answer(status, &format!("no: {}", canary()));
            let (seen, body) = asking.join().unwrap();
            assert_eq!(seen, status);
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
    let proxy = Proxy::start(&ralph, &format!("http://{address}"), FREE, &canary());
    let (status, body) = proxy.ask("POST /v1/messages", &[&proxy.bearer()], ASK);
    assert_eq!(status, 502);
    assert!(
        body.starts_with(&format!(
            "proxy: upstream unreachable: `{address}` does not answer: "
        )),
        "{body}"
    );
}

#[test]
fn without_the_stand_in_nothing_goes_out() {
    let (ralph, upstream) = (Ralph::new(), Upstream::new());
    let proxy = Proxy::start(&ralph, &upstream.url(), FREE, &canary());
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
        let (status, _) = proxy.ask(request, fields, ASK);
        assert_eq!(status, expected, "{request} {fields:?}");
    }
    assert!(upstream.seen().is_none());
}
