//! Records and events of the gate's decisions, and rule changes by the user in the meantime.

use ralph_core::ports::{Exec, GateControl as _, GateEvent};
use ralph_test::internet::{CATCH_ALL_RESPONSE, CatchAllHost, FakeInternet, SitePage, SitePages};
use ralph_test::skip_without_docker;

use super::gated_sandbox::{GatedSandbox, GatedSandboxConfig, TEST_TIMEOUT};

/// Requests a host in every way: by name, through the proxy, in a tunnel, and by DNS.
const ASK: &str = r"
import socket, sys
host = sys.argv[1]
def tcp(port, data):
    with socket.create_connection(('127.0.0.1', port), 5) as s:
        s.sendall(data.replace(b'HOST', host.encode()))
        print(s.recv(1000)[9:12].decode())
try: print(socket.gethostbyname(host))
except OSError as error: print('no such name')
tcp(3128, b'GET http://HOST/ HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n')
tcp(3128, b'CONNECT HOST:443 HTTP/1.1\r\nHost: HOST:443\r\n\r\n')
tcp(80, b'GET / HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n')
";

async fn ask(gated: &GatedSandbox, host: &str) -> String {
    let exec = Exec::argv(["python3", "-c", ASK, host], TEST_TIMEOUT);
    let (ended, output) = gated.run(exec).await;
    assert_eq!(output.stderr_text(), "", "{ended}");
    output.stdout_text()
}

fn blocked(host: &str, port: u16, reason: &str) -> GateEvent {
    GateEvent::Blocked {
        host: host.to_owned(),
        port,
        reason: reason.to_owned(),
        command: None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
async fn every_decision_is_recorded_and_a_blocked_port_is_reported_once() {
    if skip_without_docker() {
        return;
    }
    let mut internet = FakeInternet::new();
    let evil = CatchAllHost::start().await;
    internet.map_all_other_names(&evil);
    let pages = SitePages::from([("/".to_owned(), SitePage::text("allowed\n"))]);
    internet.start_site(&["allowed.example"], pages).await;
    let plan = GatedSandboxConfig {
        allow: &["allowed.example"],
        ..GatedSandboxConfig::default()
    };
    let gated = GatedSandbox::open(internet, plan).await;

    assert_eq!(
        ask(&gated, "allowed.example").await,
        "127.1.0.1\n200\n200\n200\n"
    );
    let written = [
        "dns allowed.example:53 allowed listed",
        "http allowed.example:80 allowed listed",
        "proxy allowed.example:443 denied unsupported-protocol",
        "proxy allowed.example:80 allowed listed",
    ];
    assert_eq!(gated.wait_for_decisions(0, written.len()).await, written);
    assert_eq!(gated.run_gate.drain_events(), []);

    assert_eq!(
        ask(&gated, "evil.example").await,
        "no such name\n403\n403\n403\n"
    );
    let written = [
        "dns evil.example:53 denied blocked-by-allowlist",
        "http evil.example:80 denied blocked-by-allowlist",
        "proxy evil.example:443 denied blocked-by-allowlist",
        "proxy evil.example:80 denied blocked-by-allowlist",
    ];
    assert_eq!(gated.wait_for_decisions(4, written.len()).await, written);
    // A resolved name is assumed to be for HTTPS: the user can allow port 443.
    let expected = [443, 80].map(|port| blocked("evil.example", port, "blocked-by-allowlist"));
    assert_eq!(gated.run_gate.drain_events(), expected);
    ask(&gated, "evil.example").await;
    assert_eq!(gated.run_gate.drain_events(), []);
    assert_eq!(evil.visits().all(), Vec::<String>::new());

    // Takes effect immediately in the same container.
    gated.run_gate.allow_host("evil.example").unwrap();
    assert_eq!(
        ask(&gated, "evil.example").await,
        "127.1.0.2\n200\n200\n200\n"
    );
    let page =
        "import urllib.request as r; print(r.urlopen('http://evil.example/').read().decode())";
    let exec = Exec::argv(["python3", "-c", page], TEST_TIMEOUT);
    assert_eq!(
        gated.run(exec).await.1.stdout_text().trim(),
        CATCH_ALL_RESPONSE
    );
    assert_eq!(gated.run_gate.drain_events(), []);
    let record = gated.records().pop().unwrap();
    assert_eq!(record["decider"], "human");
    assert_eq!(
        (&record["run"], &record["sandbox"]),
        (&"run-1".into(), &"room".into())
    );
    gated.finish().await;
}

/// Malformed requests, by listener.
const NONSENSE: &str = r"
import socket
for address, port in (('127.0.0.1', 3128), ('127.0.0.1', 80), ('127.0.0.1', 443), ('127.0.0.1', 4141), ('127.0.0.1', 53), ('127.1.9.9', 80), ('127.1.9.9', 443)):
    with socket.create_connection((address, port), 5) as s:
        s.sendall(b'\0\5nonsense\r\n\r\n')
        s.shutdown(socket.SHUT_WR)
        s.recv(1000)
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_requests_are_recorded() {
    if skip_without_docker() {
        return;
    }
    let gated = GatedSandbox::open(FakeInternet::new(), GatedSandboxConfig::default()).await;
    let exec = Exec::argv(["python3", "-c", NONSENSE], TEST_TIMEOUT);
    assert_eq!(gated.run(exec).await.1.stderr_text(), "");
    let written = [
        "credentials :0 denied malformed",
        "dns :53 denied malformed",
        "http 127.1.9.9:80 denied name-mismatch",
        "http :0 denied malformed",
        "https 127.1.9.9:443 denied name-mismatch",
        "https :443 denied unsupported-protocol",
        "proxy :0 denied malformed",
    ];
    assert_eq!(gated.wait_for_decisions(0, written.len()).await, written);
    assert_eq!(gated.run_gate.drain_events(), []);
    gated.finish().await;
}

/// Sends the head of a rejected request, and its body much later.
const SLOWLY: &str = r"
import socket, time
for port, target in ((3128, 'http://evil.example/'), (80, '/'), (4141, '/models/v1/chat/completions')):
    with socket.create_connection(('127.0.0.1', port), 5) as s:
        head = f'POST {target} HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 3000000\r\n\r\n'
        s.sendall(head.encode())
        for _ in range(3):
            time.sleep(0.2)
            s.sendall(b'x' * 1000000)
        print(s.recv(1000)[9:12].decode())
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_reaches_a_client_that_is_still_sending() {
    if skip_without_docker() {
        return;
    }
    let gated = GatedSandbox::open(FakeInternet::new(), GatedSandboxConfig::default()).await;
    let exec = Exec::argv(["python3", "-c", SLOWLY], TEST_TIMEOUT);
    let (_, output) = gated.run(exec).await;
    let texts = (output.stdout_text(), output.stderr_text());
    assert_eq!(texts, ("403\n403\n404\n".to_owned(), String::new()));
    gated.finish().await;
}
