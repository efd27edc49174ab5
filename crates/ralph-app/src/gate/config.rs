//! Opens the gate of a run.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ralph_core::budget::{BudgetLimits as Budgets, Spent};
use ralph_core::net::{Endpoint, Host, ProviderTool};
use ralph_core::plan::NetworkPlan;
use ralph_core::ports::{Allowance, Clock, GateControl as _};
use ralph_core::price::PriceBook;
use ralph_core::secret::Redactor;
use ralph_gate::{
    CostMeter, Gate, GateDeps, GateError, GateLimits, GateSettings, MeterRates, Reachable,
    Resolver as _, Route, SandboxIdentity, SystemResolver,
};
use tokio::time::timeout;

use super::egress_log::EgressLog;
use super::run_gate::RunGate;

/// The reason why a gate cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenGateError {
    /// The host of a configured provider does not resolve.
    #[error("cannot resolve the provider's host `{host}`: {source}")]
    ProviderLookup { host: Host, source: io::Error },
    /// The gate reported an error.
    #[error(transparent)]
    Gate(#[from] GateError),
}

/// The configuration of a gate.
pub struct GateConfig {
    /// The sandbox that uses the gate.
    pub identity: SandboxIdentity,
    pub network: NetworkPlan,
    /// The credentials that the gate adds.
    pub routes: Vec<Route>,
    /// The tools outside the sandbox that requests may ask model providers for.
    pub provider_tools: BTreeSet<ProviderTool>,
    /// Providers at addresses that the user configured: credentials are sent there even if they are
    /// private. Nothing else can reach them.
    pub private_providers: Vec<Endpoint>,
    /// Prices that override the built-in ones.
    pub prices: PriceBook,
    /// The log of the gate's decisions.
    pub egress_log: PathBuf,
    pub redactor: Redactor,
    pub clock: Arc<dyn Clock>,
}

impl GateConfig {
    /// Opens the gate. Its budget is empty until the run sets one.
    pub async fn open(self) -> Result<(Gate, Arc<RunGate>), OpenGateError> {
        let limits = GateLimits::default();
        let credential_reachable =
            credential_reachable(&self.private_providers, limits.connect_timeout).await?;
        let rates = MeterRates {
            requests_per_minute: self.network.model_requests_per_minute,
            prices: self.prices,
        };
        let (budgets, spent) = (Budgets::default(), Spent::default());
        let meter = CostMeter::new(&budgets, spent, rates, self.clock.clone());
        let records = EgressLog::new(self.egress_log, self.redactor);
        let run_gate = RunGate::new(records, meter.clone());
        run_gate.set_allowance(Allowance::zero());
        let settings = GateSettings {
            identity: self.identity,
            policy: self.network.policy,
            inspect: self.network.inspect,
            routes: self.routes,
            provider_tools: self.provider_tools,
            limits,
        };
        let deps = GateDeps {
            resolver: Arc::new(SystemResolver),
            reachable: Reachable::public(),
            credential_reachable,
            roots: ralph_gate::system_roots(),
            clock: self.clock,
            sink: run_gate.sink(),
            meter,
            cassette: None,
        };
        let gate = Gate::new(settings, deps)?;
        run_gate.set_gate(gate.clone());
        Ok((gate, run_gate))
    }
}

/// Returns the addresses that credentials may be sent to: public ones, and the providers that the
/// user configured.
async fn credential_reachable(
    endpoints: &[Endpoint],
    connect_timeout: Duration,
) -> Result<Reachable, OpenGateError> {
    let mut reachable = Reachable::public();
    for endpoint in endpoints {
        let looked_up = timeout(connect_timeout, SystemResolver.lookup(endpoint)).await;
        let looked_up = looked_up.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        let addresses = looked_up.map_err(|source| OpenGateError::ProviderLookup {
            host: endpoint.host.clone(),
            source,
        })?;
        for address in addresses {
            reachable = reachable.with_address(address);
        }
    }
    Ok(reachable)
}

#[cfg(test)]
mod tests {
    use ralph_core::id::RunId;
    use ralph_core::net::{Allowlist, EgressPolicy};
    use ralph_core::secret::Secret;
    use ralph_gate::{Arrival, SandboxListener};
    use ralph_guest::best_effort;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;
    use crate::clock::SystemClock;
    use crate::gate::CredentialPort;

    /// Ends the head of a request.
    const CLOSE: &str = "Connection: close\r\n\r\n";
    const HEALTH: &str = "GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

    /// Returns the gate's response.
    async fn send_request(gate: &Gate, listener: SandboxListener, request: &str) -> String {
        let (mut inside, stream) = tokio::io::duplex(1024);
        let arrival = Arrival::new(listener);
        let client = async {
            // A closed gate does not read.
            best_effort(inside.write_all(request.as_bytes()).await);
            let mut response = Vec::new();
            best_effort(inside.read_to_end(&mut response).await);
            String::from_utf8(response).unwrap()
        };
        tokio::join!(gate.serve(arrival, stream), client).1
    }

    /// Returns a configuration with one credential. The gate decides nothing, so it writes nothing.
    fn gate_config(base: &str) -> GateConfig {
        let secret = Secret::new("sk-real".to_owned());
        GateConfig {
            identity: SandboxIdentity {
                run: RunId::parse("run-1").unwrap(),
                sandbox: "local".to_owned(),
            },
            network: NetworkPlan::default(),
            routes: vec![Route::openai_compatible("models", base, secret).unwrap()],
            provider_tools: BTreeSet::new(),
            private_providers: Vec::new(),
            prices: PriceBook::default(),
            egress_log: PathBuf::from("/dev/null"),
            redactor: Redactor::new(Vec::new()),
            clock: Arc::new(SystemClock::new()),
        }
    }

    #[tokio::test]
    async fn always_refused_hosts_cannot_be_allowed() {
        let config = gate_config("https://models.example/v1");
        let (gate, run_gate) = config.open().await.unwrap();
        let credential = "`models.example` has a credential of this run, so it is only \
                          reachable through the credential port";
        for (host, expected) in [
            ("models.example", Err(credential)),
            ("Models.Example:8443", Err(credential)),
            ("10.0.0.1", Err("`10.0.0.1` is not a public address")),
            ("127.0.0.1:80", Err("`127.0.0.1` is not a public address")),
            ("[fe80::1]", Err("`[fe80::1]` is not a public address")),
            ("*.models.example", Ok(())),
            ("wanted.example", Ok(())),
            ("1.1.1.1", Ok(())),
        ] {
            let expected = expected.map_err(str::to_owned);
            assert_eq!(run_gate.allow_host(host), expected, "{host}");
        }
        let rules = gate.rules();
        for (host, is_allowed) in [("wanted.example", true), ("10.0.0.1", false)] {
            let endpoint = Endpoint::parse(host, 443).unwrap();
            assert_eq!(rules.decide(&endpoint).is_allowed(), is_allowed, "{host}");
        }
    }

    #[tokio::test]
    async fn a_provider_without_an_address_is_reported() {
        let mut config = gate_config("https://gateway.invalid/v1");
        config.private_providers = vec![Endpoint::parse("gateway.invalid", 443).unwrap()];
        let error = config.open().await.err().unwrap().to_string();
        let expected = "cannot resolve the provider's host `gateway.invalid`: ";
        assert!(error.starts_with(expected), "{error}");
    }

    #[tokio::test]
    async fn a_private_provider_is_reachable_for_credentials_only() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let provider = Endpoint::parse(&address, 80).unwrap();

        let mut others = gate_config("https://models.example/v1");
        others.private_providers = vec![provider.clone()];
        let list = Allowlist::parse([address.as_str()]).unwrap();
        others.network.policy = EgressPolicy::Allowlist(list);
        let (gate, _run_gate) = others.open().await.unwrap();
        let request = format!("CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n{CLOSE}");
        let refused = send_request(&gate, SandboxListener::Proxy, &request).await;
        let why = "x-ralph-gate: private-address\r\n";
        assert!(refused.contains(why), "{refused}");

        let mut own = gate_config(&format!("http://{address}/v1"));
        own.private_providers = vec![provider];
        let (gate, run_gate) = own.open().await.unwrap();
        run_gate.set_allowance(Allowance {
            cost: None,
            tokens: None,
        });
        let placeholder = gate.routes()[0].placeholder().as_str();
        let request = format!(
            "GET /models/v1/models HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {placeholder}\r\n{CLOSE}"
        );
        let upstream = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut piece = [0; 1024];
            assert_ne!(stream.read(&mut piece).await.unwrap(), 0);
            let response = b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";
            stream.write_all(response).await.unwrap();
        };
        let response = tokio::select! {
            response = send_request(&gate, SandboxListener::Credentials, &request) => response,
            () = async { upstream.await; std::future::pending().await } => String::new(),
        };
        assert!(
            response.starts_with("HTTP/1.1 204 No Content\r\n"),
            "{response}"
        );
    }

    #[tokio::test]
    async fn telemetry_needs_the_token_of_the_run() {
        let config = gate_config("https://models.example/v1");
        let (gate, run_gate) = config.open().await.unwrap();
        let point =
            r#"{"asDouble":3,"attributes":[{"key":"type","value":{"stringValue":"input"}}]}"#;
        let body = format!(
            r#"{{"resourceMetrics":[{{"scopeMetrics":[{{"metrics":[{{"name":"tokens","sum":{{"aggregationTemporality":1,"dataPoints":[{point}]}}}}]}}]}}]}}"#
        );
        let upload = async |path: &str, token: &str, kind: &str| {
            let length = body.len();
            let request = format!(
                "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nAuthorization: Bearer {token}\r\n{CLOSE}{body}"
            );
            let response = send_request(&gate, SandboxListener::Credentials, &request).await;
            response.split(' ').nth(1).unwrap_or_default().to_owned()
        };
        let json = "application/json";
        let metrics = "/otlp/v1/metrics";
        assert_eq!(upload(metrics, "x", json).await, "404");
        let token = gate.accept_telemetry(run_gate.telemetry());
        let token = token.as_str();
        assert_eq!(upload(metrics, "x", json).await, "401");
        assert_eq!(upload("/otlp/v1/other", token, json).await, "404");
        assert_eq!(upload(metrics, token, "text/plain").await, "415");
        assert_eq!(
            upload(metrics, token, "application/x-protobuf").await,
            "400"
        );
        assert_eq!(run_gate.drain_telemetry(), None);
        assert_eq!(upload(metrics, token, json).await, "200");
        let measured = run_gate.drain_telemetry().unwrap();
        let expected = [("tokens.input".to_owned(), 3.0)];
        assert_eq!(measured.metrics, expected.into());
    }

    #[tokio::test]
    async fn a_gate_closes_when_its_run_gate_is_dropped() {
        let config = gate_config("https://models.example/v1");
        let (gate, run_gate) = config.open().await.unwrap();
        run_gate.set_port(CredentialPort::open(gate.clone()).await.unwrap());
        let health = || send_request(&gate, SandboxListener::Credentials, HEALTH);
        assert!(health().await.starts_with("HTTP/1.1 200 OK"));
        drop(run_gate);
        assert_eq!(health().await, "");
    }
}
