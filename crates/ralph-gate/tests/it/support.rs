//! A gate between a test and fake hosts on loopback.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use ralph_core::budget::{BudgetLimits as Budgets, Spent};
use ralph_core::id::RunId;
use ralph_core::net::{Allowlist, EgressPolicy, Endpoint, ProviderTool};
use ralph_core::ports::Clock;
use ralph_gate::{
    Arrival, BlockedHostNotice, Cassette, Charge, CostMeter, Gate, GateAuditRecord, GateDeps,
    GateLimits, GateSettings, GateSink, MeterRates, ProviderToolUse, Reachable, Resolver, Route,
    SandboxIdentity, SandboxListener,
};
use ralph_test::TestClock;
use rcgen::{CertificateParams, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// Collects the records of the gate.
#[derive(Default)]
pub(crate) struct RecordingGateSink {
    pub(crate) audits: Mutex<Vec<GateAuditRecord>>,
    pub(crate) blocked: Mutex<Vec<BlockedHostNotice>>,
    pub(crate) charges: Mutex<Vec<Charge>>,
    pub(crate) tools: Mutex<Vec<(String, ProviderToolUse)>>,
}

impl GateSink for RecordingGateSink {
    fn record_audit(&self, record: GateAuditRecord) {
        self.audits.lock().unwrap().push(record);
    }
    fn record_blocked_host(&self, notice: BlockedHostNotice) {
        self.blocked.lock().unwrap().push(notice);
    }
    fn record_provider_tool(&self, provider: &Endpoint, found: &ProviderToolUse) {
        let notice = (provider.to_string(), found.clone());
        self.tools.lock().unwrap().push(notice);
    }
    fn record_charge(&self, charge: Charge) {
        self.charges.lock().unwrap().push(charge);
    }
}

impl RecordingGateSink {
    /// Returns each decision as `listener host:port verdict reason decider`.
    pub(crate) fn decisions(&self) -> Vec<String> {
        let audits = self.audits.lock().unwrap();
        audits.iter().map(format_record).collect()
    }

    pub(crate) async fn wait_for_charges(&self, count: usize) -> Vec<Charge> {
        for _ in 0..500 {
            if self.charges.lock().unwrap().len() >= count {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.charges.lock().unwrap().clone()
    }

    pub(crate) async fn wait_for_decisions(&self, count: usize) -> Vec<String> {
        for _ in 0..500 {
            if self.audits.lock().unwrap().len() >= count {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.decisions()
    }
}

fn format_record(audit: &GateAuditRecord) -> String {
    let verdict = if audit.decision.is_allowed() {
        "+"
    } else {
        "-"
    };
    let decider = format!("{:?}", audit.decision.decider).to_lowercase();
    format!(
        "{} {}:{} {verdict} {} {decider}",
        audit.listener.name(),
        audit.host,
        audit.port,
        audit.decision.reason,
    )
}

/// Resolves the names of the fake hosts.
#[derive(Clone, Default)]
pub(crate) struct GateTestResolver {
    names: HashMap<String, Vec<SocketAddr>>,
    fallback: Option<SocketAddr>,
}

#[async_trait]
impl Resolver for GateTestResolver {
    async fn lookup(&self, endpoint: &Endpoint) -> io::Result<Vec<SocketAddr>> {
        if let Some(address) = endpoint.host.address() {
            return Ok(vec![SocketAddr::new(address, endpoint.port)]);
        }
        let found = self.names.get(&endpoint.to_string()).cloned();
        found
            .or(self.fallback.map(|address| vec![address]))
            .ok_or_else(|| io::Error::other("no such name"))
    }
}

/// The bytes that a fake host received, per connection.
#[derive(Clone, Default)]
pub(crate) struct ReceivedBytes(Arc<Mutex<Vec<Vec<u8>>>>);

impl ReceivedBytes {
    pub(crate) fn connections(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    pub(crate) fn text(&self) -> String {
        let all = self.0.lock().unwrap().concat();
        String::from_utf8_lossy(&all).into_owned()
    }

    fn start(&self) -> usize {
        let mut all = self.0.lock().unwrap();
        all.push(Vec::new());
        all.len() - 1
    }

    fn add(&self, index: usize, bytes: &[u8]) {
        self.0.lock().unwrap()[index].extend_from_slice(bytes);
    }
}

/// The environment of a gate.
pub(crate) struct GateTestbed {
    resolver: GateTestResolver,
    reachable: Reachable,
    credential_reachable: Reachable,
    roots: RootCertStore,
    issuer: Issuer<'static, KeyPair>,
    pub(crate) policy: EgressPolicy,
    pub(crate) inspect: Allowlist,
    pub(crate) routes: Vec<Route>,
    pub(crate) provider_tools: BTreeSet<ProviderTool>,
    pub(crate) limits: GateLimits,
    pub(crate) budgets: Budgets,
    pub(crate) rates: MeterRates,
    pub(crate) sink: Arc<RecordingGateSink>,
    pub(crate) clock: Arc<TestClock>,
    pub(crate) cassette: Option<Arc<Cassette>>,
}

impl GateTestbed {
    pub(crate) fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(certificate.der().clone()).unwrap();
        Self {
            resolver: GateTestResolver::default(),
            reachable: Reachable::public(),
            credential_reachable: Reachable::public(),
            roots,
            issuer: Issuer::new(params, key),
            policy: EgressPolicy::Deny,
            inspect: Allowlist::default(),
            routes: Vec::new(),
            provider_tools: BTreeSet::new(),
            limits: GateLimits::default(),
            budgets: Budgets::default(),
            rates: MeterRates::default(),
            sink: Arc::default(),
            clock: TestClock::running(),
            cassette: None,
        }
    }

    pub(crate) fn allowing(entries: &[&str]) -> Self {
        let list = Allowlist::parse(entries.iter().copied()).unwrap();
        Self {
            policy: EgressPolicy::Allowlist(list),
            ..Self::new()
        }
    }

    /// Maps a name to an address that the gate may reach.
    pub(crate) fn map_name(&mut self, name: &str, address: SocketAddr) {
        self.make_reachable(address);
        self.map_name_unreachable(name, &[address]);
    }

    /// Maps a name to an address that only credentials may be sent to.
    pub(crate) fn map_name_for_credentials(&mut self, name: &str, address: SocketAddr) {
        self.credential_reachable =
            std::mem::take(&mut self.credential_reachable).with_address(address);
        self.map_name_unreachable(name, &[address]);
    }

    fn make_reachable(&mut self, address: SocketAddr) {
        for reachable in [&mut self.reachable, &mut self.credential_reachable] {
            *reachable = std::mem::take(reachable).with_address(address);
        }
    }

    /// Maps every other name, on every port, to an address that the gate may reach.
    pub(crate) fn map_all_other_names(&mut self, address: SocketAddr) {
        self.make_reachable(address);
        self.resolver.fallback = Some(address);
    }

    /// Maps a name to addresses without allowing them.
    pub(crate) fn map_name_unreachable(&mut self, name: &str, addresses: &[SocketAddr]) {
        self.resolver
            .names
            .insert(name.to_owned(), addresses.to_vec());
    }

    /// Starts a host with a fixed response.
    pub(crate) async fn start_host(&mut self, name: &str, response: &str) -> ReceivedBytes {
        let (address, received) = start_host(response.as_bytes().to_vec(), None).await;
        self.map_name(name, address);
        received
    }

    /// Starts a TLS host with a fixed response and a certificate for the given name.
    pub(crate) async fn start_tls_host(
        &mut self,
        name: &str,
        for_name: &str,
        response: &str,
    ) -> ReceivedBytes {
        let acceptor = self.acceptor(for_name);
        let (address, received) = start_host(response.as_bytes().to_vec(), Some(acceptor)).await;
        self.map_name(name, address);
        received
    }

    pub(crate) fn acceptor(&self, name: &str) -> TlsAcceptor {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let leaf = params.signed_by(&key, &self.issuer).unwrap();
        let chain: Vec<CertificateDer<'static>> = vec![leaf.der().clone()];
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, PrivateKeyDer::Pkcs8(key.serialize_der().into()))
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }

    pub(crate) fn roots(&self) -> RootCertStore {
        self.roots.clone()
    }

    pub(crate) fn build_gate(&mut self) -> (Gate, Arc<CostMeter>) {
        let clock: Arc<dyn Clock> = self.clock.clone();
        let rates = self.rates.clone();
        let meter = CostMeter::new(&self.budgets, Spent::default(), rates, clock.clone());
        let settings = GateSettings {
            identity: SandboxIdentity {
                run: RunId::parse("run-1").unwrap(),
                sandbox: "box-1".to_owned(),
            },
            policy: self.policy.clone(),
            inspect: self.inspect.clone(),
            routes: std::mem::take(&mut self.routes),
            provider_tools: self.provider_tools.clone(),
            limits: self.limits.clone(),
        };
        let deps = GateDeps {
            resolver: Arc::new(self.resolver.clone()),
            reachable: self.reachable.clone(),
            credential_reachable: self.credential_reachable.clone(),
            roots: self.roots.clone(),
            clock,
            sink: self.sink.clone(),
            meter: meter.clone(),
            cassette: self.cassette.clone(),
        };
        (Gate::new(settings, deps).unwrap(), meter)
    }
}

/// Starts a host and returns its address and received bytes.
pub(crate) async fn start_host(
    response: Vec<u8>,
    tls: Option<TlsAcceptor>,
) -> (SocketAddr, ReceivedBytes) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let received = ReceivedBytes::default();
    let recorder = received.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let index = recorder.start();
            let (recorder, response, tls) = (recorder.clone(), response.clone(), tls.clone());
            tokio::spawn(async move {
                match tls {
                    Some(tls) => {
                        if let Ok(stream) = tls.accept(stream).await {
                            answer_connection(stream, index, &recorder, &response).await;
                        }
                    }
                    None => answer_connection(stream, index, &recorder, &response).await,
                }
            });
        }
    });
    (address, received)
}

/// Answers each request head on a connection. Bodies are recorded with their heads.
async fn answer_connection(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    index: usize,
    received: &ReceivedBytes,
    response: &[u8],
) {
    let mut chunk = vec![0; 64 * 1024];
    let mut request = Vec::new();
    loop {
        let Ok(count @ 1..) = stream.read(&mut chunk).await else {
            return;
        };
        received.add(index, &chunk[..count]);
        request.extend_from_slice(&chunk[..count]);
        if is_complete(&request) {
            request.clear();
            if stream.write_all(response).await.is_err() {
                return;
            }
        }
    }
}

fn is_complete(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .map_or(0, |length| length.parse().unwrap());
    if head.contains("transfer-encoding: chunked") {
        return body.ends_with("0\r\n\r\n");
    }
    body.len() >= length
}

/// Opens a connection through a listener.
pub(crate) fn connect(gate: &Gate, arrival: Arrival) -> DuplexStream {
    let (client, server) = tokio::io::duplex(64 * 1024);
    let gate = gate.clone();
    tokio::spawn(async move { gate.serve(arrival, server).await });
    client
}

/// Sends bytes through a listener and returns the complete response.
pub(crate) async fn send(
    gate: &Gate,
    listener: SandboxListener,
    bytes: impl AsRef<[u8]>,
) -> String {
    send_at(gate, Arrival::new(listener), bytes).await
}

pub(crate) async fn send_at(gate: &Gate, arrival: Arrival, bytes: impl AsRef<[u8]>) -> String {
    let mut stream = connect(gate, arrival);
    // A request that is refused early is not read completely.
    drop(stream.write_all(bytes.as_ref()).await);
    let mut response = Vec::new();
    let read = stream.read_to_end(&mut response);
    let ended = tokio::time::timeout(Duration::from_secs(10), read).await;
    // A response may end with the connection.
    drop(ended.expect("the gate responds in time"));
    String::from_utf8_lossy(&response).into_owned()
}

pub(crate) const OK_RESPONSE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// Returns the status of a response.
pub(crate) fn status(response: &str) -> u16 {
    response
        .split(' ')
        .nth(1)
        .and_then(ralph_core::parse_value)
        .unwrap_or(0)
}

/// Returns a header of a response.
pub(crate) fn header<'a>(response: &'a str, name: &str) -> Option<&'a str> {
    let head = response.split("\r\n\r\n").next()?;
    head.lines()
        .filter_map(|line| line.split_once(": "))
        .find(|(key, _)| key.eq_ignore_ascii_case(name))
        .map(|(_, value)| value)
}

/// Returns the body of a response.
pub(crate) fn body(response: &str) -> &str {
    response.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}
