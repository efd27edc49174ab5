//! A gate on loopback for benchmarks: `cargo run --release -p ralph-gate --example serve --
//! UPSTREAM`.
//!
//! `UPSTREAM` is the base URL of a model server on this machine, such as `http://127.0.0.1:9000`.
//! The proxy listens on 3128 and allows `upstream.example`, which resolves to the upstream as well;
//! the credential port is 4141. Prints the placeholder token and serves until it is stopped.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use ralph_core::budget::{BudgetLimits as Budgets, Spent};
use ralph_core::id::RunId;
use ralph_core::net::{Allowlist, EgressPolicy, Endpoint};
use ralph_core::ports::Clock;
use ralph_core::secret::Secret;
use ralph_gate::{
    Arrival, BlockedHostNotice, Charge, CostMeter, Gate, GateAuditRecord, GateDeps, GateLimits,
    GateSettings, GateSink, MeterRates, Reachable, Resolver, Route, SandboxIdentity,
    SandboxListener,
};
use tokio::net::TcpListener;

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// Resolves every name to the upstream.
struct SingleHostResolver(SocketAddr);

#[async_trait]
impl Resolver for SingleHostResolver {
    async fn lookup(&self, _: &Endpoint) -> io::Result<Vec<SocketAddr>> {
        Ok(vec![self.0])
    }
}

struct GateExampleClock(Instant);

impl Clock for GateExampleClock {
    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::now()
    }
    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Discards records, so that only the gate is measured.
struct DiscardingSink;

impl GateSink for DiscardingSink {
    fn record_audit(&self, _: GateAuditRecord) {}
    fn record_blocked_host(&self, _: BlockedHostNotice) {}
    fn record_charge(&self, _: Charge) {}
}

#[tokio::main]
async fn main() -> Result<(), AnyError> {
    let base = std::env::args()
        .nth(1)
        .ok_or("usage: serve http://127.0.0.1:PORT")?;
    let route = Route::openai_compatible("upstream", &base, Secret::new("real-key".to_owned()))?;
    let address: SocketAddr = route.endpoint().to_string().parse()?;
    let line = format!("{}\n", route.placeholder().as_str());
    std::io::stdout().write_all(line.as_bytes())?;
    let gate = gate(route, address)?;
    let proxy = listen(&gate, SandboxListener::Proxy, 3128);
    let credentials = listen(&gate, SandboxListener::Credentials, 4141);
    // Both serve until one of them fails.
    tokio::select! {
        ended = proxy => ended?,
        ended = credentials => ended?,
    }
    Ok(())
}

fn gate(route: Route, address: SocketAddr) -> Result<Gate, AnyError> {
    let clock: Arc<dyn Clock> = Arc::new(GateExampleClock(Instant::now()));
    let run = RunId::parse("bench").ok_or("not a run")?;
    let settings = GateSettings {
        identity: SandboxIdentity {
            run,
            sandbox: "bench".to_owned(),
        },
        policy: EgressPolicy::Allowlist(Allowlist::parse(["upstream.example"])?),
        inspect: Allowlist::default(),
        routes: vec![route],
        provider_tools: [].into(),
        limits: GateLimits {
            connections: 10_000,
            ..GateLimits::default()
        },
    };
    let (budgets, spent) = (Budgets::default(), Spent::default());
    let deps = GateDeps {
        resolver: Arc::new(SingleHostResolver(address)),
        reachable: Reachable::public().with_address(address),
        credential_reachable: Reachable::public().with_address(address),
        roots: ralph_gate::system_roots(),
        meter: CostMeter::new(&budgets, spent, MeterRates::default(), clock.clone()),
        clock,
        sink: Arc::new(DiscardingSink),
        cassette: None,
    };
    Ok(Gate::new(settings, deps)?)
}

async fn listen(gate: &Gate, listener: SandboxListener, port: u16) -> io::Result<()> {
    let sockets = TcpListener::bind(("127.0.0.1", port)).await?;
    let mut connections = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            accepted = sockets.accept() => {
                let (stream, _) = accepted?;
                stream.set_nodelay(true)?;
                let gate = gate.clone();
                connections.spawn(async move { gate.serve(Arrival::new(listener), stream).await });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}
