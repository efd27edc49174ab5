//! The gate of one sandbox.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

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
    GateSink, ProviderToolUse, Reachable, Resolver, Route, SandboxIdentity, SandboxListener,
};

/// How many findings about provider-side tools are announced; the record has all of them.
const MAX_ANNOUNCED_TOOLS: usize = 100;

/// What a gate is to do.
pub struct GateSettings {
    /// Whose gate it is.
    pub identity: SandboxIdentity,
    /// What the sandbox may reach.
    pub policy: EgressPolicy,
    /// The hosts whose TLS is opened, so that no request in it can be for another host.
    pub inspect: Allowlist,
    /// The credentials that are added to requests.
    pub routes: Vec<Route>,
    /// The work outside of the sandbox that requests may ask model providers for.
    pub provider_tools: BTreeSet<ProviderTool>,
    /// What the sandbox may ask of the gate.
    pub limits: GateLimits,
}

/// What a gate needs of the world.
pub struct GateDeps {
    /// Looks names up.
    pub resolver: Arc<dyn Resolver>,
    /// Which addresses may be connected to by the names that the sandbox asks for.
    pub reachable: Reachable,
    /// Which addresses credentials may be sent to. A private one that a person named for a
    /// credential is in here alone, so that no other name leads there.
    pub credential_reachable: Reachable,
    /// Whose certificates are believed.
    pub roots: RootCertStore,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Takes the records.
    pub sink: Arc<dyn GateSink>,
    /// Counts what models cost; the run has the same one.
    pub meter: Arc<CostMeter>,
    /// Writes down what models answer, if that is wanted.
    pub cassette: Option<Arc<Cassette>>,
}

/// Why there is no gate.
#[derive(Debug, thiserror::Error)]
pub enum GateError {
    /// TLS to the outside cannot be set up.
    #[error("cannot set up TLS")]
    Tls {
        /// The cause.
        #[from]
        source: rustls::Error,
    },
    /// The run's authority cannot be made.
    #[error("cannot make the authority of the run")]
    Authority {
        /// The cause.
        #[from]
        source: CertificateError,
    },
    /// Two routes begin alike.
    #[error("two credentials share the path `{prefix}`")]
    DuplicatePrefix {
        /// The path.
        prefix: String,
    },
}

/// The one door out of one sandbox. A clone is the same gate.
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
    /// Whether nothing passes any more.
    is_closed: watch::Sender<bool>,
    pub(crate) authority: CertificateAuthority,
    pub(crate) routes: Routes,
    pub(crate) provider_tools: BTreeSet<ProviderTool>,
    /// The findings about provider-side tools that were announced, each once.
    announced_tools: Mutex<Vec<(Host, ProviderToolUse)>>,
    pub(crate) limits: GateLimits,
    pub(crate) memory: ByteBudget,
    pub(crate) model_calls: Arc<Semaphore>,
    pub(crate) dialer: Dialer,
    pub(crate) client: http::GateHttpClient,
    /// What the credential port sends with: as it comes, and whole.
    pub(crate) credential_client: http::GateHttpClient,
    pub(crate) connection_pool: http::ConnectionPool,
    pub(crate) audit_log: GateAuditLog,
    pub(crate) meter: Arc<CostMeter>,
    pub(crate) cassette: Option<Arc<Cassette>>,
    /// What it says about itself where no sandbox is behind it.
    pub(crate) standalone_health: Option<String>,
}

impl Gate {
    /// Makes the gate of a sandbox.
    pub fn new(settings: GateSettings, outside: GateDeps) -> Result<Self, GateError> {
        Self::build(settings, outside, None)
    }

    /// Makes a gate that stands alone, as a port for other programs that adds credentials. It answers
    /// `/health` with a text of its own and says in plain words when its provider is out of reach.
    pub fn standalone(
        settings: GateSettings,
        outside: GateDeps,
        health: String,
    ) -> Result<Self, GateError> {
        Self::build(settings, outside, Some(health))
    }

    fn build(
        settings: GateSettings,
        outside: GateDeps,
        alone: Option<String>,
    ) -> Result<Self, GateError> {
        let dialer = Dialer {
            resolver: outside.resolver,
            reachable: outside.reachable,
            connect_timeout: settings.limits.connect_timeout,
        };
        let connector = http::GateHttpConnector {
            dialer: dialer.clone(),
            tls: client_config(outside.roots)?,
        };
        let credential_connector = http::GateHttpConnector {
            dialer: Dialer {
                reachable: outside.credential_reachable,
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
            credential_client: http::new_client(credential_connector.clone()),
            connection_pool: http::ConnectionPool::new(
                credential_connector,
                settings.limits.connections,
            ),
            dialer,
            memory: ByteBudget::new(settings.limits.buffered_bytes),
            provider_tools: settings.provider_tools,
            announced_tools: Mutex::default(),
            model_calls: Arc::new(Semaphore::new(settings.limits.model_calls)),
            limits: settings.limits,
            audit_log: GateAuditLog {
                identity: settings.identity,
                clock: outside.clock,
                sink: outside.sink,
            },
            meter: outside.meter,
            cassette: outside.cassette,
            standalone_health: alone,
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Serves one connection from the sandbox to its end, or to that of the gate.
    pub async fn serve(&self, arrival: Arrival, stream: impl ByteStream + 'static) {
        let mut closing = self.inner.is_closed.subscribe();
        if *closing.borrow_and_update() {
            let decision =
                EgressDecision::denied(EgressReason::BlockedByPolicy, EgressDecider::Gate);
            let book = &self.inner.audit_log;
            drop(book.open_unparsed(arrival.listener, "", 0, decision));
            return;
        }
        tokio::select! {
            () = self.dispatch(arrival, stream) => {}
            // The sender lives as long as the gate, and is told one thing only.
            _ = closing.changed() => {}
        }
    }

    /// Ends every connection, and lets nothing through from now on: what the sandbox still holds, its
    /// stand-ins among it, is worth nothing any more.
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
        // The other side sees how its connection ended; the record says what was decided.
        match listener {
            SandboxListener::Proxy => http::serve_proxy(gate, stream).await,
            SandboxListener::Http => http::serve_http(gate, stream, address).await,
            SandboxListener::Https => drop(http::serve_https(gate, stream, address).await),
            SandboxListener::Dns => drop(dns::serve(gate, stream).await),
            SandboxListener::Credentials => credentials::serve(gate, stream).await,
        }
    }

    /// Allows one more host, from now on.
    pub fn allow(&self, entry: AllowlistEntry) {
        self.inner.announced.forget_entry(&entry);
        let mut rules = self
            .inner
            .rules
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        rules.add(entry);
    }

    /// Tells why what an entry names stays refused even when it is allowed, if it does.
    pub fn permanent_refusal(&self, entry: &AllowlistEntry) -> Option<String> {
        let host = entry.host();
        // What is below a host is not the host, and may be reached.
        if self.inner.routes.is_exclusive_host(host) && entry.matches_host(host) {
            return Some(format!(
                "`{host}` has a credential of this run: it is reached through the credential port alone"
            ));
        }
        host.address()?;
        let reachable = &self.inner.dialer.reachable;
        let refusal = reachable.refusal_of_entry(entry)?;
        Some(format!("`{host}` is {refusal}"))
    }

    /// Forgets that a refused host was announced: the next attempt is announced again.
    pub fn forget_announcement(&self, host: &Host) {
        self.inner.announced.forget(host);
    }

    /// Returns the blocked hosts that were not announced one by one, if a report of them is due. Reports
    /// come when their number doubles, and once a minute otherwise.
    pub fn further_blocked(&self) -> Option<FurtherBlockedHosts> {
        let now = self.inner.audit_log.clock.monotonic();
        self.inner.announced.due_report(now)
    }

    /// Returns what the sandbox may reach by now.
    pub fn rules(&self) -> EgressRules {
        let rules = self
            .inner
            .rules
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        rules.clone()
    }

    /// Returns the certificate that programs in the sandbox have to trust where TLS is opened.
    pub fn certificate_pem(&self) -> &str {
        self.inner.authority.pem()
    }

    /// Returns the address that a name has inside the sandbox, as its queries are answered.
    pub fn address_of(&self, host: &Host, port: u16) -> SocketAddr {
        (self.inner.names().address(host), port).into()
    }

    /// Returns the routes to credentials, with the stand-ins that the sandbox is given.
    pub fn routes(&self) -> &[Route] {
        self.inner.routes.as_slice()
    }
}

impl GateInner {
    pub(crate) fn names(&self) -> MutexGuard<'_, DnsAddressMap> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decides about a connection.
    pub(crate) fn decide(&self, endpoint: &Endpoint) -> EgressDecision {
        if self.routes.is_exclusive_host(&endpoint.host) {
            return EgressDecision::denied(EgressReason::CredentialHost, EgressDecider::Credential);
        }
        let rules = self.rules.read().unwrap_or_else(PoisonError::into_inner);
        rules.decide(endpoint)
    }

    /// Decides whether a name exists.
    pub(crate) fn decide_name(&self, host: &Host) -> EgressDecision {
        if self.routes.is_exclusive_host(host) {
            return EgressDecision::denied(EgressReason::CredentialHost, EgressDecider::Credential);
        }
        let rules = self.rules.read().unwrap_or_else(PoisonError::into_inner);
        rules.decide_lookup(host)
    }

    /// Tells whether TLS to an endpoint is opened.
    pub(crate) fn inspects(&self, endpoint: &Endpoint) -> bool {
        endpoint.port == 443 && self.inspect.covers(endpoint)
    }

    /// Opens the record of a decision; what is refused for the first time is announced.
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
        let news = self.announced.endpoint_to_announce(now, listener, endpoint);
        if let Some(Endpoint { host, port }) = news {
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
