//! Escape attempts in a real container, by an agent and by root. They are judged by the traffic
//! that arrives at forbidden hosts.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use ralph_core::ports::{Exec, ExecStatus, GateControl as _, GateEvent};
use ralph_core::secret::Secret;
use ralph_gate::Route;
use ralph_test::internet::{
    CATCH_ALL_RESPONSE, CatchAllHost, FakeInternet, SitePage, SitePages, VisitLog, tools_image,
};
use ralph_test::skip_without_docker;

use super::gated_sandbox::{GatedSandbox, GatedSandboxConfig, TEST_TIMEOUT};

/// All attempts and their helpers.
const SCRIPT: &str = concat!(
    include_str!("escapes/first.py"),
    include_str!("escapes/raw.py"),
    include_str!("escapes/names.py"),
    include_str!("escapes/proxy.py"),
    include_str!("escapes/tls.py"),
    include_str!("escapes/settings.py"),
    include_str!("escapes/powers.py"),
    include_str!("escapes/credentials.py"),
    include_str!("escapes/last.py"),
);
/// Minimum number of attempts.
const ATTEMPTS: usize = 350;

/// The allowed names: some of them resolve to addresses that are not allowed.
const ALLOWED: [&str; 4] = [
    "allowed.example",
    "cdn.example",
    "rebind.example",
    "metadata.example",
];

/// A gated sandbox and the hosts around it.
struct EscapeScenario {
    gated: GatedSandbox,
    /// Answers for every name that is not allowed; the gate could reach it.
    evil: CatchAllHost,
    /// Has a private address to which allowed names resolve.
    inside: CatchAllHost,
    allowed: VisitLog,
    cdn: VisitLog,
    provider: VisitLog,
    placeholder: String,
}

async fn escape_scenario(inspect: &'static [&'static str]) -> EscapeScenario {
    let mut internet = FakeInternet::new();
    let (evil, inside) = (CatchAllHost::start().await, CatchAllHost::start().await);
    internet.map_all_other_names(&evil);
    let redirect = |to: &str| SitePage::Redirect(to.to_owned());
    let pages = SitePages::from([
        ("/".to_owned(), SitePage::text("allowed\n")),
        ("/to-evil".to_owned(), redirect("http://evil.example/")),
        (
            "/to-metadata".to_owned(),
            redirect("http://169.254.169.254/"),
        ),
        (
            "/to-sink".to_owned(),
            redirect(&format!("http://127.0.0.1:{}/", evil.address().port())),
        ),
    ]);
    let allowed = internet
        .start_site(&["allowed.example"], pages.clone())
        .await;
    let cdn = internet
        .start_site(&["cdn.example", "evil-cdn.example"], pages.clone())
        .await;
    let provider = internet.start_site(&["models.example"], pages).await;
    internet.map_unreachable("rebind.example", inside.address());
    internet.map_unreachable(
        "metadata.example",
        SocketAddr::from(([169, 254, 169, 254], 80)),
    );
    let secret = Secret::new("sk-canary-of-the-escapes".to_owned());
    let route = Route::openai_compatible("models", "https://models.example/v1", secret).unwrap();
    let placeholder = route.placeholder().as_str().to_owned();
    let plan = GatedSandboxConfig {
        allow: &ALLOWED,
        inspect,
        routes: vec![route],
        image: tools_image(),
    };
    EscapeScenario {
        gated: GatedSandbox::open(internet, plan).await,
        evil,
        inside,
        allowed,
        cdn,
        provider,
        placeholder,
    }
}

/// Returns the non-loopback addresses of this machine.
fn addresses() -> String {
    let output = Command::new("hostname").arg("-I").output().unwrap();
    let addresses = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    assert!(!addresses.is_empty(), "this machine has no addresses");
    addresses
}

impl EscapeScenario {
    fn variables(&self) -> [(&'static str, String); 4] {
        [
            ("SINK_PORT", self.evil.address().port().to_string()),
            ("SINK_SOCKET", self.evil.socket_name()),
            ("HOSTS", addresses()),
            ("PHANTOM", self.placeholder.clone()),
        ]
    }

    /// Runs all attempts as the agent.
    async fn attempt_as_agent(&self) -> String {
        let mut exec = Exec::argv(["python3", "-"], TEST_TIMEOUT).with_stdin(SCRIPT);
        for (name, value) in self.variables() {
            exec = exec.with_env(name, value);
        }
        let (ended, output) = self.gated.run(exec).await;
        assert_eq!(
            (ended, output.stderr_text()),
            (ExecStatus::Exited(0), String::new())
        );
        output.stdout_text()
    }

    /// Runs all attempts as root in the same container.
    fn attempt_as_root(&self) -> String {
        let mut docker = Command::new("docker");
        docker.args(["exec", "--interactive", "--user", "0"]);
        for (name, value) in self.variables() {
            docker.args(["--env", &format!("{name}={value}")]);
        }
        let container = self.gated.container();
        docker.args([&container, "python3", "-"]);
        let mut docker = docker
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = docker.stdin.take().unwrap();
        input.write_all(SCRIPT.as_bytes()).unwrap();
        drop(input);
        let output = docker.wait_with_output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    }

    /// Asserts that every attempt ran and that nothing arrived at the forbidden hosts.
    fn assert_nothing_got_out(&self, outcomes: &str) {
        let outcomes: Vec<(String, String)> = outcomes
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let broken: Vec<_> = outcomes
            .iter()
            .filter(|(_, outcome)| outcome.starts_with("broken"))
            .collect();
        assert!(broken.is_empty(), "{broken:#?}");
        assert!(outcomes.len() >= ATTEMPTS, "{}", outcomes.len());
        let nothing: Vec<String> = Vec::new();
        assert_eq!(self.evil.visits().all(), nothing);
        assert_eq!(self.inside.visits().all(), nothing);
        assert_eq!(self.provider.all(), nothing);
        let answered: Vec<_> = outcomes
            .iter()
            .filter(|(_, outcome)| outcome.contains(CATCH_ALL_RESPONSE))
            .collect();
        assert!(answered.is_empty(), "{answered:#?}");
        let others = |visits: &VisitLog, host: &str| -> Vec<String> {
            let mut visits = visits.all();
            visits.retain(|visit| !visit.contains(&format!("://{host}/")));
            visits
        };
        assert_eq!(others(&self.allowed, "allowed.example"), nothing);
        assert_eq!(others(&self.cdn, "cdn.example"), nothing);
        let mut looked_up = self.gated.internet.lookups().all();
        looked_up.retain(|name| !ALLOWED.contains(&name.as_str()));
        assert_eq!(looked_up, nothing);
    }

    /// Asserts that only allowed traffic passed, and that each blocked host was reported once per
    /// port.
    fn assert_all_reported(&self) {
        let mut passed = self.gated.decisions();
        assert!(passed.len() >= ATTEMPTS / 2, "{}", passed.len());
        passed.retain(|decision| decision.contains(" allowed "));
        passed.retain(|decision| !ALLOWED.iter().any(|name| decision.contains(name)));
        assert_eq!(passed, Vec::<String>::new());
        let events = self.gated.run_gate.drain_events();
        let hosts = events.iter().map(|event| match event {
            GateEvent::Blocked { host, port, .. } => (host.as_str(), *port),
            GateEvent::Charged { model, .. } => panic!("{model} was paid for"),
            GateEvent::Refused { status } => panic!("a provider answered {status}"),
            GateEvent::FurtherBlocked { count, .. } => panic!("{count} further hosts"),
            GateEvent::ProviderTool { what, .. } => panic!("{what} was asked for"),
        });
        let hosts: Vec<(&str, u16)> = hosts.collect();
        let distinct: BTreeSet<(&str, u16)> = hosts.iter().copied().collect();
        assert_eq!(hosts.len(), distinct.len(), "{hosts:#?}");
        assert!(distinct.contains(&("evil.example", 443)), "{hosts:#?}");
        assert!(
            distinct.iter().all(|(host, _)| *host != "sandbox"),
            "{hosts:#?}"
        );
    }
}

/// Prints the ports with a listener inside.
const LISTENING: &str = "python3 -c '
lines = [line.split() for file in (\"tcp\", \"udp\") for line in list(open(\"/proc/net/\" + file))[1:]]
print(*sorted(int(line[1].split(\":\")[1], 16) for line in lines if line[3] in (\"0A\", \"07\")))'";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_gets_out_of_a_container() {
    if skip_without_docker() {
        return;
    }
    let scenario = escape_scenario(&["cdn.example"]).await;
    assert_eq!(
        scenario.gated.sh(LISTENING).await,
        "53 53 80 443 3128 4141\n"
    );
    scenario.assert_nothing_got_out(&scenario.attempt_as_agent().await);
    scenario.assert_all_reported();
    scenario.assert_nothing_got_out(&scenario.attempt_as_root());
    // The gate is responsible: allowed traffic works, and the hosts do count visits.
    let gated = &scenario.gated;
    assert_eq!(
        gated.sh("curl -s http://allowed.example/").await,
        "allowed\n"
    );
    let outside = format!(
        "{}:{}",
        addresses().split(' ').next().unwrap(),
        scenario.evil.address().port()
    );
    std::net::TcpStream::connect(outside).unwrap();
    gated.run_gate.allow_host("evil.example").unwrap();
    assert_eq!(
        gated.sh("curl -s http://evil.example/").await,
        CATCH_ALL_RESPONSE
    );
    let visits = scenario.evil.visits().all();
    assert_eq!(visits.len(), 3, "{visits:#?}");
    scenario.gated.finish().await;
}

/// Requests the hidden host through a TLS connection to the fronting one.
const FRONTED: &str = "\
curl -sk --http1.1 -H 'Host: evil-cdn.example' https://cdn.example/ -o /dev/null -w '%{http_code}'";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_intercepted_tls_detects_domain_fronting() {
    if skip_without_docker() {
        return;
    }
    for (inspect, status, arrived) in [
        (&[][..], "200", vec!["GET https://evil-cdn.example/"]),
        (&["cdn.example"], "403", vec![]),
    ] {
        let scenario = escape_scenario(inspect).await;
        assert_eq!(scenario.gated.sh(FRONTED).await, status, "{inspect:?}");
        assert_eq!(scenario.cdn.all(), arrived, "{inspect:?}");
        scenario.gated.finish().await;
    }
}
