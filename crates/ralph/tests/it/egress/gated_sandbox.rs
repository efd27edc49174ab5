//! A sandbox behind a gate, connected to a fake internet on this machine.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ralph_app::clock::SystemClock;
use ralph_app::gate::{EgressLog, GateConnector, RunGate};
use ralph_core::budget::{BudgetLimits as Budgets, Spent};
use ralph_core::id::RunId;
use ralph_core::net::{Allowlist, EgressPolicy, Endpoint};
use ralph_core::ports::{Clock, Exec, ExecStatus, Sandbox, SandboxProvider as _, SandboxSpec};
use ralph_core::secret::Redactor;
use ralph_gate::{
    CostMeter, Gate, GateDeps, GateLimits, GateSettings, MeterRates, Reachable, Resolver, Route,
    SandboxIdentity,
};
use ralph_guest::{available, best_effort};
use ralph_providers::sandbox::{DockerProvider, DockerSettings};
use ralph_test::internet::FakeInternet;
use ralph_test::{BASE_IMAGE, CollectedOutput};
use rustls::RootCertStore;
use serde_json::Value;
use tempfile::TempDir;

/// Long enough for any command that should end without intervention.
pub(super) const TEST_TIMEOUT: Duration = Duration::from_mins(2);

/// The configuration of a gated sandbox.
pub(super) struct GatedSandboxConfig {
    pub(super) allow: &'static [&'static str],
    pub(super) inspect: &'static [&'static str],
    pub(super) routes: Vec<Route>,
    pub(super) image: String,
}

impl Default for GatedSandboxConfig {
    fn default() -> Self {
        Self {
            allow: &[],
            inspect: &[],
            routes: Vec::new(),
            image: BASE_IMAGE.to_owned(),
        }
    }
}

/// A sandbox behind a gate. Its Docker objects are removed on drop.
pub(super) struct GatedSandbox {
    pub(super) internet: Arc<FakeInternet>,
    pub(super) gate: Gate,
    pub(super) run_gate: Arc<RunGate>,
    pub(super) sandbox: Box<dyn Sandbox>,
    state: TempDir,
}

/// Resolves names of the fake internet.
struct FakeResolver(Arc<FakeInternet>);

#[async_trait]
impl Resolver for FakeResolver {
    async fn lookup(&self, endpoint: &Endpoint) -> io::Result<Vec<SocketAddr>> {
        if let Some(address) = endpoint.host.address() {
            return Ok(vec![SocketAddr::new(address, endpoint.port)]);
        }
        let found = self.0.lookup(&endpoint.host.to_string(), endpoint.port);
        found
            .map(|address| vec![address])
            .ok_or_else(|| io::Error::other("no such name"))
    }
}

/// Creates a gate to the fake internet, and its event receiver.
fn gate(
    internet: &Arc<FakeInternet>,
    plan: GatedSandboxConfig,
    records: PathBuf,
) -> (Gate, Arc<RunGate>) {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let meter = CostMeter::new(
        &Budgets::default(),
        Spent::default(),
        MeterRates::default(),
        clock.clone(),
    );
    let records = EgressLog::new(records, Redactor::new(Vec::new()));
    let run_gate = RunGate::new(records, meter.clone());
    let list = |entries: &[&'static str]| Allowlist::parse(entries.iter().copied()).unwrap();
    let settings = GateSettings {
        identity: SandboxIdentity {
            run: RunId::parse("run-1").unwrap(),
            sandbox: "room".to_owned(),
        },
        policy: EgressPolicy::Allowlist(list(plan.allow)),
        inspect: list(plan.inspect),
        routes: plan.routes,
        provider_tools: [].into(),
        limits: GateLimits::default(),
    };
    let mut roots = RootCertStore::empty();
    roots.add(internet.authority().clone()).unwrap();
    let open = internet.open_addresses().iter();
    let reachable = open.fold(Reachable::public(), |open, address| {
        open.with_address(*address)
    });
    let outside = GateDeps {
        resolver: Arc::new(FakeResolver(internet.clone())),
        reachable: reachable.clone(),
        credential_reachable: reachable,
        roots,
        clock,
        sink: run_gate.sink(),
        meter,
        cassette: None,
    };
    let gate = Gate::new(settings, outside).unwrap();
    run_gate.set_gate(gate.clone());
    (gate, run_gate)
}

impl GatedSandbox {
    /// Opens a sandbox whose image trusts the sites' certificates.
    pub(super) async fn open(internet: FakeInternet, plan: GatedSandboxConfig) -> Self {
        Self::with_gate(Arc::new(internet), plan, |connector, _| connector).await
    }

    /// Opens a sandbox whose programs trust the sites and the gate through the egress files.
    pub(super) async fn with_trusted_ca(internet: FakeInternet, plan: GatedSandboxConfig) -> Self {
        let trusting = |connector: GateConnector, internet: &FakeInternet| {
            connector.with_trusted_authorities(internet.authority_pem())
        };
        Self::with_gate(Arc::new(internet), plan, trusting).await
    }

    /// Opens another sandbox connected to the same internet.
    pub(super) async fn open_second(&self, plan: GatedSandboxConfig) -> Self {
        Self::with_gate(self.internet.clone(), plan, |connector, _| connector).await
    }

    async fn with_gate(
        internet: Arc<FakeInternet>,
        plan: GatedSandboxConfig,
        change: impl FnOnce(GateConnector, &FakeInternet) -> GateConnector,
    ) -> Self {
        let state = tempfile::tempdir().unwrap();
        let docker = DockerSettings::new(&plan.image, state.path());
        let (gate, run_gate) = gate(&internet, plan, state.path().join("gate.jsonl"));
        let connector = change(GateConnector::new(gate.clone()), &internet);
        let provider = DockerProvider::new(docker).with_egress(Arc::new(connector));
        let sandbox = provider.create(&SandboxSpec::default()).await.unwrap();
        Self {
            internet,
            gate,
            run_gate,
            sandbox,
            state,
        }
    }

    /// Runs a command, and returns its status and output.
    pub(super) async fn run(&self, exec: Exec) -> (ExecStatus, CollectedOutput) {
        let mut output = CollectedOutput::default();
        let outcome = self.sandbox.exec(exec, None, &mut output).await.unwrap();
        (outcome.ended, output)
    }

    /// Runs a shell command that must succeed, and returns its output.
    pub(super) async fn sh(&self, line: &str) -> String {
        let (ended, output) = self.run(Exec::shell(line, TEST_TIMEOUT)).await;
        let (stdout, stderr) = (output.stdout_text(), output.stderr_text());
        assert_eq!(
            ended,
            ExecStatus::Exited(0),
            "`{line}` said: {stdout}{stderr}\n{:#?}",
            self.decisions()
        );
        stdout
    }

    /// Returns the name of the container.
    pub(super) fn container(&self) -> String {
        self.sandbox.id().0.replace("docker-", "ralph-")
    }

    /// Returns the recorded lines.
    pub(super) fn records(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.state.path().join("gate.jsonl"));
        // Without any decision there is no file.
        available(text)
            .unwrap_or_default()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Returns each decision as `listener host:port verdict reason`.
    pub(super) fn decisions(&self) -> Vec<String> {
        let field = |record: &Value, name: &str| record[name].as_str().unwrap_or("?").to_owned();
        self.records()
            .iter()
            .map(|record| {
                let names = ["listener", "host", "verdict", "reason"];
                let [listener, host, verdict, reason] = names.map(|name| field(record, name));
                format!("{listener} {host}:{} {verdict} {reason}", record["port"])
            })
            .collect()
    }

    /// Waits for `count` decisions after the first `from`, and returns them sorted: each is
    /// recorded only when its connection has ended.
    pub(super) async fn wait_for_decisions(&self, from: usize, count: usize) -> Vec<String> {
        for _ in 0..500 {
            if self.decisions().len() >= from + count {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let mut decisions = self.decisions().split_off(from);
        decisions.sort();
        decisions
    }

    /// Removes the sandbox.
    pub(super) async fn finish(self) {
        self.sandbox.remove().await.unwrap();
    }
}

/// Runs `docker`, which must succeed, and returns its output.
pub(super) fn docker(arguments: &[&str]) -> String {
    let output = Command::new("docker").args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

impl Drop for GatedSandbox {
    fn drop(&mut self) {
        // Only after a panic; a completed test has already removed everything.
        let label = format!("label=ralph.state={}", self.state.path().display());
        for (list, remove) in [
            (&["ps", "--all"][..], &["rm", "--force"][..]),
            (&["volume", "ls"], &["volume", "rm", "--force"]),
        ] {
            let found = Command::new("docker")
                .args(list)
                .args(["--quiet", "--filter", &label])
                .output();
            let found = available(found)
                .map(|output| output.stdout)
                .unwrap_or_default();
            let left: Vec<_> = std::str::from_utf8(&found).unwrap_or("").lines().collect();
            if !left.is_empty() {
                best_effort(Command::new("docker").args(remove).args(left).output());
            }
        }
    }
}
