//! The gate of one sandbox.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use ralph_core::net::{
    Allowlist, AllowlistEntry, EgressDecider, EgressDecision, EgressPolicy, EgressReason,
    EgressRules, Endpoint, Host, ProviderTool, ProviderToolAction,
};
use ralph_core::ports::Clock;
use rustls::RootCertStore;
use tokio::sync::{Semaphore, watch};

use crate::announced::AnnouncedHosts;
use crate::audit::{GateAuditLog, OpenRecord};
use crate::credentials::{self, Routes};
use crate::dial::Dialer;
use crate::dns::{self, DnsAddressMap};
use crate::http;
use crate::memory::ByteBudget;
use crate::stream::LimitedStream;
use crate::tls::{CertificateAuthority, CertificateError, client_config};
use crate::{
    Arrival, BlockedHostNotice, ByteStream, Cassette, CostMeter, FurtherBlockedHosts, GateLimits,
    GateSink, PlaceholderToken, ProviderToolUse, Reachable, Resolver, Route, SandboxIdentity,
    SandboxListener, TelemetrySink,
};

/// The number of findings about provider-side tools that are announced; the audit log contains all
/// of them.
const MAX_ANNOUNCED_TOOLS: usize = 100;

/// The configuration of a gate.
pub struct GateSettings {
    pub identity: SandboxIdentity,
    pub policy: EgressPolicy,
    /// The hosts whose TLS is terminated in the gate, so that every request in it can be checked
    /// against the host.
    pub inspect: Allowlist,
    pub routes: Vec<Route>,
    /// The provider-side tools that model requests may use.
    pub provider_tools: BTreeSet<ProviderTool>,
    pub limits: GateLimits,
}

/// The services that a gate depends on.
pub struct GateDeps {
    pub resolver: Arc<dyn Resolver>,
    /// The addresses that hosts requested by the sandbox may resolve to.
    pub reachable: Reachable,
    /// The addresses that credentials may be sent to. A private address configured for a credential
    /// is only listed here, so that no other name can reach it.
    pub credential_reachable: Reachable,
    /// The certificate authorities trusted for upstream connections.
    pub roots: RootCertStore,
    pub clock: Arc<dyn Clock>,
    pub sink: Arc<dyn GateSink>,
    /// Meters model costs; shared with the run.
    pub meter: Arc<CostMeter>,
    /// Records or replays model responses, if set.
    pub cassette: Option<Arc<Cassette>>,
}

/// An error while creating a gate.
#[derive(Debug, thiserror::Error)]
pub enum GateError {
    /// The TLS client cannot be configured.
    #[error("cannot set up TLS")]
    Tls {
        #[from]
        source: rustls::Error,
    },
    /// The run's certificate authority cannot be created.
    #[error("cannot create the certificate authority of the run")]
    Authority {
        #[from]
        source: CertificateError,
    },
    /// Two routes share a path prefix.
    #[error("two credentials share the path `{prefix}`")]
    DuplicatePrefix { prefix: String },
}

/// The only network exit of a sandbox. Clones share the same gate.
#[derive(Clone)]
pub struct Gate {
    inner: Arc<GateInner>,
}

pub(crate) struct GateInner {
    rules: RwLock<EgressRules>,
    inspect: Allowlist,
    names: Mutex<DnsAddressMap>,
    announced: AnnouncedHosts,
    connections: Semaphore,
    /// Whether the gate is closed and refuses all traffic.
    is_closed: watch::Sender<bool>,
    pub(crate) authority: CertificateAuthority,
    pub(crate) routes: Routes,
    pub(crate) provider_tools: BTreeSet<ProviderTool>,
    /// The findings about provider-side tools announced so far.
    announced_tools: Mutex<Vec<(Host, ProviderToolUse)>>,
    pub(crate) limits: GateLimits,
    pub(crate) memory: ByteBudget,
    pub(crate) model_calls: Arc<Semaphore>,
    pub(crate) dialer: Dialer,
    pub(crate) client: http::GateHttpClient,
    /// Sends requests to the providers of credentials.
    pub(crate) credential_client: http::GateHttpClient,
    pub(crate) audit_log: GateAuditLog,
    pub(crate) meter: Arc<CostMeter>,
    pub(crate) cassette: Option<Arc<Cassette>>,
    /// The `/health` response of a standalone gate.
    pub(crate) standalone_health: Option<String>,
    /// Accepts the telemetry of the agent, if the run wants it.
    pub(crate) telemetry: OnceLock<credentials::TelemetryIntake>,
}

impl Gate {
    /// Creates the gate of a sandbox.
    pub fn new(settings: GateSettings, deps: GateDeps) -> Result<Self, GateError> {
        Self::build(settings, deps, None)
    }

    /// Creates a standalone gate: a port that adds credentials for other programs. It answers
    /// `/health` with the given text and reports an unreachable provider in plain text.
    pub fn standalone(
        settings: GateSettings,
        deps: GateDeps,
        health: String,
    ) -> Result<Self, GateError> {
        Self::build(settings, deps, Some(health))
    }

    fn build(
        settings: GateSettings,
        deps: GateDeps,
        health: Option<String>,
    ) -> Result<Self, GateError> {
        let dialer = Dialer {
            resolver: deps.resolver,
            reachable: deps.reachable,
            connect_timeout: settings.limits.connect_timeout,
        };
        let connector = http::GateHttpConnector {
            dialer: dialer.clone(),
            tls: client_config(deps.roots)?,
        };
        let credential_connector = http::GateHttpConnector {
            dialer: Dialer {
                reachable: deps.credential_reachable,
                ..dialer.clone()
            },
            ..connector.clone()
        };
        let inner = GateInner {
            rules: RwLock::new(EgressRules::new(settings.policy)),
            inspect: settings.inspect,
            names: Mutex::default(),
            announced: AnnouncedHosts::default(),
            connections: Semaphore::new(settings.limits.connections),
            is_closed: watch::Sender::new(false),
            authority: CertificateAuthority::new(settings.identity.run.as_str())?,
            routes: Routes::new(settings.routes)?,
            client: http::new_client(connector),
            credential_client: http::new_client(credential_connector),
            dialer,
            memory: ByteBudget::new(settings.limits.buffered_bytes),
            provider_tools: settings.provider_tools,
            announced_tools: Mutex::default(),
            model_calls: Arc::new(Semaphore::new(settings.limits.model_calls)),
            limits: settings.limits,
            audit_log: GateAuditLog {
                identity: settings.identity,
                clock: deps.clock,
                sink: deps.sink,
            },
            meter: deps.meter,
            cassette: deps.cassette,
            standalone_health: health,
            telemetry: OnceLock::new(),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Serves one connection from the sandbox until it ends or the gate closes.
    pub async fn serve(&self, arrival: Arrival, stream: impl ByteStream + 'static) {
        let mut closed = self.inner.is_closed.subscribe();
        if *closed.borrow_and_update() {
            let decision =
                EgressDecision::denied(EgressReason::BlockedByPolicy, EgressDecider::Gate);
            let audit_log = &self.inner.audit_log;
            drop(audit_log.open_unparsed(arrival.listener, "", 0, decision));
            return;
        }
        tokio::select! {
            () = self.dispatch(arrival, stream) => {}
            // The sender lives as long as the gate and only ever signals the close.
            _ = closed.changed() => {}
        }
    }

    /// Accepts telemetry on the credential port. Returns the token that uploads need.
    pub fn accept_telemetry(&self, sink: Arc<dyn TelemetrySink>) -> PlaceholderToken {
        let intake = &self.inner.telemetry;
        let intake = intake.get_or_init(|| credentials::TelemetryIntake::new(sink));
        intake.token().clone()
    }

    /// Returns the address of the credential port for telemetry.
    pub fn telemetry_url(address: SocketAddr) -> String {
        format!("http://{address}{}", credentials::TELEMETRY_PATH)
    }

    /// Ends every connection and refuses new ones. Placeholder tokens that the sandbox still has
    /// become useless.
    pub fn close(&self) {
        self.inner.is_closed.send_replace(true);
    }

    async fn dispatch(&self, arrival: Arrival, stream: impl ByteStream + 'static) {
        let gate = &self.inner;
        let Arrival { listener, address } = arrival;
        let Ok(_slot) = gate.connections.try_acquire() else {
            let decision = EgressDecision::denied(EgressReason::LimitReached, EgressDecider::Gate);
            drop(gate.audit_log.open_unparsed(listener, "", 0, decision));
            return;
        };
        let stream = LimitedStream::new(
            stream,
            gate.limits.idle_timeout,
            gate.limits.connection_bytes,
        );
        // Errors are dropped: the peer sees that its connection ended, and the audit record contains
        // the decision.
        match listener {
            SandboxListener::Proxy => http::serve_proxy(gate, stream).await,
            SandboxListener::Http => http::serve_http(gate, stream, address).await,
            SandboxListener::Https => drop(http::serve_https(gate, stream, address).await),
            SandboxListener::Dns => drop(dns::serve(gate, stream).await),
            SandboxListener::Credentials => credentials::serve(gate, stream).await,
        }
    }

    /// Adds an allowlist entry. Later refusals of its hosts are announced again.
    pub fn allow(&self, entry: AllowlistEntry) {
        self.inner.announced.forget_entry(&entry);
        let mut rules = self
            .inner
            .rules
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        rules.add(entry);
    }

    /// Replaces the hosts that are allowed only during set-up. Connections that are already open
    /// continue until the command ends.
    pub fn set_setup_hosts(&self, hosts: Allowlist) {
        let rules = self.inner.rules.write();
        let mut rules = rules.unwrap_or_else(PoisonError::into_inner);
        rules.set_setup_hosts(hosts);
    }

    /// Returns why an allowlist entry would have no effect, or `None` if it can be added.
    pub fn permanent_refusal(&self, entry: &AllowlistEntry) -> Option<String> {
        let host = entry.host();
        // A wildcard for subdomains does not cover the host itself and may be allowed.
        if self.inner.routes.is_exclusive_host(host) && entry.matches_host(host) {
            return Some(format!(
                "`{host}` has a credential of this run, so it is only reachable through the \
                 credential port"
            ));
        }
        host.address()?;
        let reachable = &self.inner.dialer.reachable;
        let refusal = reachable.refusal_of_entry(entry)?;
        Some(format!("`{host}` is {refusal}"))
    }

    /// Forgets the announcement of a refused host, so that its next attempt is announced again.
    pub fn forget_announcement(&self, host: &Host) {
        self.inner.announced.forget(host);
    }

    /// Returns the blocked hosts that were not announced individually, if a report is due. A report
    /// is due when their number doubles, and otherwise once a minute.
    pub fn further_blocked(&self) -> Option<FurtherBlockedHosts> {
        let now = self.inner.audit_log.clock.monotonic();
        self.inner.announced.due_report(now)
    }

    /// Returns the current egress rules of the sandbox.
    pub fn rules(&self) -> EgressRules {
        let rules = self
            .inner
            .rules
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        rules.clone()
    }

    /// Returns the certificate that programs in the sandbox must trust for hosts whose TLS is
    /// inspected.
    pub fn certificate_pem(&self) -> &str {
        self.inner.authority.pem()
    }

    /// Returns the address that DNS queries inside the sandbox return for a name.
    pub fn address_of(&self, host: &Host, port: u16) -> SocketAddr {
        (self.inner.names().address(host), port).into()
    }

    /// Returns the credential routes with their placeholder tokens.
    pub fn routes(&self) -> &[Route] {
        self.inner.routes.as_slice()
    }
}

impl GateInner {
    pub(crate) fn names(&self) -> MutexGuard<'_, DnsAddressMap> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decides whether the sandbox may connect to an endpoint.
    pub(crate) fn decide(&self, endpoint: &Endpoint) -> EgressDecision {
        if self.routes.is_exclusive_host(&endpoint.host) {
            return EgressDecision::denied(EgressReason::CredentialHost, EgressDecider::Credential);
        }
        let rules = self.rules.read().unwrap_or_else(PoisonError::into_inner);
        rules.decide(endpoint)
    }

    /// Decides whether a name resolves inside the sandbox.
    pub(crate) fn decide_name(&self, host: &Host) -> EgressDecision {
        if self.routes.is_exclusive_host(host) {
            return EgressDecision::denied(EgressReason::CredentialHost, EgressDecider::Credential);
        }
        let rules = self.rules.read().unwrap_or_else(PoisonError::into_inner);
        rules.decide_lookup(host)
    }

    /// Returns whether TLS to an endpoint is inspected.
    pub(crate) fn inspects(&self, endpoint: &Endpoint) -> bool {
        endpoint.port == 443 && self.inspect.covers(endpoint)
    }

    /// Opens the record of a decision and announces a refusal that the allowlist could resolve.
    pub(crate) fn open_record(
        &self,
        listener: SandboxListener,
        endpoint: &Endpoint,
        decision: EgressDecision,
    ) -> OpenRecord {
        let record = self.audit_log.open(listener, endpoint, decision);
        if !decision.is_allowed() && decision.reason.is_allowlist_related() {
            self.announce(listener, endpoint, decision.reason);
        }
        record
    }

    /// Records a provider-side tool in a request, and announces it the first time.
    pub(crate) fn record_provider_tool(
        &self,
        provider: &Endpoint,
        request: (&str, &str),
        found: &ProviderToolUse,
    ) {
        let decision = match found.action {
            ProviderToolAction::Allowed => {
                EgressDecision::allowed(EgressReason::ProviderTool, EgressDecider::Policy)
            }
            ProviderToolAction::Removed | ProviderToolAction::Refused => {
                EgressDecision::denied(EgressReason::ProviderTool, EgressDecider::Policy)
            }
        };
        let mut record = self
            .audit_log
            .open(SandboxListener::Credentials, provider, decision);
        record.set_request(request.0, request.1);
        record.set_detail(&format!("{} {}", found.action, found.what));
        drop(record);
        let announced = self.announced_tools.lock();
        let mut announced = announced.unwrap_or_else(PoisonError::into_inner);
        let notice = (provider.host.clone(), found.clone());
        if announced.len() < MAX_ANNOUNCED_TOOLS && !announced.contains(&notice) {
            announced.push(notice);
            drop(announced);
            self.audit_log.sink.record_provider_tool(provider, found);
        }
    }

    fn announce(&self, listener: SandboxListener, endpoint: &Endpoint, reason: EgressReason) {
        let now = self.audit_log.clock.monotonic();
        let new_endpoint = self.announced.endpoint_to_announce(now, listener, endpoint);
        if let Some(Endpoint { host, port }) = new_endpoint {
            self.audit_log.sink.record_blocked_host(BlockedHostNotice {
                at: self.audit_log.clock.now(),
                host,
                port,
                listener,
                reason,
            });
        }
    }
}
