//! A gate that closes while it is in use: nothing inside can connect any more.

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use ralph_core::ports::{Exec, ExecStatus, OutputSink, OutputStream};
use ralph_core::secret::Secret;
use ralph_gate::Route;
use ralph_guest::best_effort;
use ralph_test::internet::{FakeInternet, SitePage, SitePages, VisitLog};
use ralph_test::skip_without_docker;
use tokio::runtime::Runtime;

use super::gated_sandbox::{GatedSandbox, GatedSandboxConfig, TEST_TIMEOUT, docker};

/// Reads an endless page.
const ENDLESS: &str = r"
import socket
s = socket.create_connection(('allowed.example', 80))
s.sendall(b'GET /endless HTTP/1.1\r\nHost: allowed.example\r\n\r\n')
while True:
    piece = s.recv(1000)
    if not piece: break
    print(piece, flush=True)
";

/// Tries every kind of connection, and prints those that still work.
const EVERYTHING: &str = r"
import socket, struct
def tcp(port, data):
    with socket.create_connection(('127.0.0.1', port), 3) as s:
        s.sendall(data)
        return s.recv(1000)
get = b'GET http://allowed.example/ HTTP/1.1\r\nHost: allowed.example\r\n\r\n'
query = struct.pack('!HHHHHH', 1, 0x100, 1, 0, 0, 0) + b'\7allowed\7example\0\0\1\0\1'
def datagram():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(1)
        s.sendto(query, ('127.0.0.1', 53))
        return s.recv(1000)
for name, attempt in {
    'proxy': lambda: tcp(3128, get),
    'tunnel': lambda: tcp(3128, b'CONNECT allowed.example:443 HTTP/1.1\r\nHost: allowed.example:443\r\n\r\n'),
    'plain': lambda: tcp(80, get),
    'secure': lambda: tcp(443, b'\x16\3\1\0\5hello'),
    'names': datagram,
    'names on a stream': lambda: tcp(53, struct.pack('!H', len(query)) + query),
    'credentials': lambda: tcp(4141, b'GET /health HTTP/1.1\r\nHost: x\r\n\r\n'),
}.items():
    try:
        if attempt(): print(name)
    except OSError:
        pass
";

/// The connections that work while the gate is open: invalid TLS is never answered.
const OPEN: &str = "proxy\ntunnel\nplain\nnames\nnames on a stream\ncredentials\n";

/// Signals the first output.
struct FirstOutputSignal(Option<mpsc::Sender<()>>);

impl OutputSink for FirstOutputSignal {
    fn chunk(&mut self, _: OutputStream, _: &[u8]) {
        if let Some(sender) = self.0.take() {
            best_effort(sender.send(()));
        }
    }
}

async fn internet() -> (FakeInternet, VisitLog) {
    let mut internet = FakeInternet::new();
    let pages = SitePages::from([
        ("/".to_owned(), SitePage::text("allowed\n")),
        ("/endless".to_owned(), SitePage::Endless),
    ]);
    let visits = internet.start_site(&["allowed.example"], pages).await;
    (internet, visits)
}

async fn gated(internet: FakeInternet) -> GatedSandbox {
    let secret = Secret::new("sk-canary-of-the-closing".to_owned());
    let plan = GatedSandboxConfig {
        allow: &["allowed.example"],
        routes: vec![
            Route::openai_compatible("models", "https://models.example/v1", secret).unwrap(),
        ],
        ..GatedSandboxConfig::default()
    };
    GatedSandbox::open(internet, plan).await
}

async fn reachable_services(gated: &GatedSandbox) -> String {
    let (ended, output) = gated
        .run(Exec::argv(["python3", "-c", EVERYTHING], TEST_TIMEOUT))
        .await;
    assert_eq!(
        (ended, output.stderr_text()),
        (ExecStatus::Exited(0), String::new())
    );
    output.stdout_text()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_gate_ends_what_passes_and_lets_nothing_through() {
    if skip_without_docker() {
        return;
    }
    let (internet, visits) = internet().await;
    let gated = gated(internet).await;
    assert_eq!(reachable_services(&gated).await, OPEN);
    let (sender, first_word) = mpsc::channel();
    let mut output = FirstOutputSignal(Some(sender));
    let reading = gated.sandbox.exec(
        Exec::argv(["python3", "-c", ENDLESS], TEST_TIMEOUT),
        None,
        &mut output,
    );
    let closing = async {
        let waited = tokio::task::spawn_blocking(move || first_word.recv());
        waited.await.unwrap().unwrap();
        gated.gate.close();
        Instant::now()
    };
    let (read, closed) = tokio::join!(reading, closing);
    assert_eq!(read.unwrap().ended, ExecStatus::Exited(0));
    assert!(closed.elapsed() < TEST_TIMEOUT, "{closed:?}");
    let before = visits.all();
    assert_eq!(reachable_services(&gated).await, "");
    assert_eq!(visits.all(), before);
    let decisions = gated.decisions();
    assert!(
        decisions.contains(&"credentials :0 denied blocked-by-policy".to_owned()),
        "{decisions:#?}"
    );
    gated.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restarted_container_reconnects_to_the_gate() {
    if skip_without_docker() {
        return;
    }
    let (internet, _) = internet().await;
    let gated = gated(internet).await;
    docker(&["kill", &gated.container()]);
    assert_eq!(reachable_services(&gated).await, OPEN);
    gated.finish().await;
}

#[test]
fn closing_the_gate_ends_everything_in_the_container() {
    if skip_without_docker() {
        return;
    }
    let outside = Runtime::new().unwrap();
    let (internet, visits) = outside.block_on(internet());
    // Shuts down all of ralph in the middle of its work, as if it was killed.
    let ralph = Runtime::new().unwrap();
    let gated = Arc::new(ralph.block_on(gated(internet)));
    let (sender, first_word) = mpsc::channel();
    let reading = ralph.spawn({
        let gated = gated.clone();
        async move {
            let exec = Exec::argv(["python3", "-c", ENDLESS], TEST_TIMEOUT);
            let mut output = FirstOutputSignal(Some(sender));
            gated.sandbox.exec(exec, None, &mut output).await
        }
    });
    first_word.recv().unwrap();
    ralph.shutdown_background();
    let deadline = Instant::now() + Duration::from_secs(10);
    let state = [
        "inspect",
        "--format",
        "{{.State.Running}}",
        &gated.container(),
    ];
    while docker(&state) != "false\n" {
        assert!(Instant::now() < deadline, "the container still runs");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(outside.block_on(reading).unwrap_err().is_cancelled());
    assert_eq!(visits.all(), ["GET http://allowed.example/endless"]);
}
