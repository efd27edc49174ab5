//! The gate of one sandbox.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use ralph_core::net::{
    Allowlist, Decider, Decision, Endpoint, Entry, Host, Policy, ProviderTool, ProviderToolAction,
    Reason, Rules,
};
use ralph_core::ports::Clock;
use rustls::RootCertStore;
use tokio::sync::{Semaphore, watch};

use crate::announced::AnnouncedHosts;
use crate::audit::{Book, OpenRecord};
use crate::credentials::{self, Routes};
use crate::dial::Dialer;
use crate::dns::{self, Names};
use crate::http;
use crate::memory::ByteBudget;
use crate::stream::Bounded;
use crate::tls::{Authority, CertificateError, client_config};
use crate::{
    Arrival, Blocked, Cassette, FurtherBlocked, Identity, Limits, Listener, Meter, ProviderToolUse,
    Reachable, Resolver, Route, Sink, Stream,
};

/// How many findings about provider-side tools are announced; the record has all of them.
const MAX_ANNOUNCED_TOOLS: usize = 100;

/// What a gate is to do.
pub struct Settings {
    /// Whose gate it is.
    pub identity: Identity,
    /// What the sandbox may reach.
    pub policy: Policy,
    /// The hosts whose TLS is opened, so that no request in it can be for another host.
    pub inspect: Allowlist,
    /// The credentials that are added to requests.
    pub routes: Vec<Route>,
    /// The work outside of the sandbox that requests may ask model providers for.
    pub provider_tools: BTreeSet<ProviderTool>,
    /// What the sandbox may ask of the gate.
    pub limits: Limits,
}

/// What a gate needs of the world.
pub struct Outside {
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
    pub sink: Arc<dyn Sink>,
    /// Counts what models cost; the run has the same one.
    pub meter: Arc<Meter>,
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
    SamePrefix {
        /// The path.
        prefix: String,
    },
}

/// The one door out of one sandbox. A clone is the same gate.
#[derive(Clone)]
pub struct Gate {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    rules: RwLock<Rules>,
    inspect: Allowlist,
    names: Mutex<Names>,
    announced: AnnouncedHosts,
    connections: Semaphore,
    /// Whether nothing passes any more.
    is_closed: watch::Sender<bool>,
    pub(crate) authority: Authority,
    pub(crate) routes: Routes,
    pub(crate) provider_tools: BTreeSet<ProviderTool>,
    /// The findings about provider-side tools that were announced, each once.
    announced_tools: Mutex<Vec<(Host, ProviderToolUse)>>,
    pub(crate) limits: Limits,
    pub(crate) memory: ByteBudget,
    pub(crate) model_calls: Arc<Semaphore>,
    pub(crate) dialer: Dialer,
    pub(crate) client: http::Client,
    /// What the credential port sends with: as it comes, and whole.
    pub(crate) credential_client: http::Client,
    pub(crate) lines: http::Lines,
    pub(crate) book: Book,
    pub(crate) meter: Arc<Meter>,
    pub(crate) cassette: Option<Arc<Cassette>>,
    /// What it says about itself where no sandbox is behind it.
    pub(crate) alone: Option<String>,
}

impl Gate {
    /// Makes the gate of a sandbox.
    pub fn new(settings: Settings, outside: Outside) -> Result<Self, GateError> {
        Self::make(settings, outside, None)
    }

    /// Makes a gate that stands alone, as a port for other programs that adds credentials. It answers
    /// `/health` with a text of its own and says in plain words when its provider is out of reach.
    pub fn alone(settings: Settings, outside: Outside, health: String) -> Result<Self, GateError> {
        Self::make(settings, outside, Some(health))
    }

    fn make(
        settings: Settings,
        outside: Outside,
        alone: Option<String>,
    ) -> Result<Self, GateError> {
        let dialer = Dialer {
            resolver: outside.resolver,
            reachable: outside.reachable,
            connect_time: settings.limits.connect_time,
        };
        let connector = http::Connector {
            dialer: dialer.clone(),
            tls: client_config(outside.roots)?,
        };
        let credential_connector = http::Connector {
            dialer: Dialer {
                reachable: outside.credential_reachable,
                ..dialer.clone()
            },
            ..connector.clone()
        };
        let inner = Inner {
            rules: RwLock::new(Rules::new(settings.policy)),
            inspect: settings.inspect,
            names: Mutex::default(),
            announced: AnnouncedHosts::default(),
            connections: Semaphore::new(settings.limits.connections),
            is_closed: watch::Sender::new(false),
            authority: Authority::new(settings.identity.run.as_str())?,
            routes: Routes::new(settings.routes)?,
            client: http::client(connector),
            credential_client: http::client(credential_connector.clone()),
            lines: http::Lines::new(credential_connector, settings.limits.connections),
            dialer,
            memory: ByteBudget::new(settings.limits.buffered_bytes),
            provider_tools: settings.provider_tools,
            announced_tools: Mutex::default(),
            model_calls: Arc::new(Semaphore::new(settings.limits.model_calls)),
            limits: settings.limits,
            book: Book {
                identity: settings.identity,
                clock: outside.clock,
                sink: outside.sink,
            },
            meter: outside.meter,
            cassette: outside.cassette,
            alone,
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Serves one connection from the sandbox to its end, or to that of the gate.
    pub async fn serve(&self, arrival: Arrival, stream: impl Stream + 'static) {
        let mut closing = self.inner.is_closed.subscribe();
        if *closing.borrow_and_update() {
            let decision = Decision::denied(Reason::BlockedByPolicy, Decider::Gate);
            let book = &self.inner.book;
            drop(book.open_text(arrival.listener, "", 0, decision));
            return;
        }
        tokio::select! {
            () = self.pass(arrival, stream) => {}
            // The sender lives as long as the gate, and is told one thing only.
            _ = closing.changed() => {}
        }
    }

    /// Ends every connection, and lets nothing through from now on: what the sandbox still holds, its
    /// stand-ins among it, is worth nothing any more.
    pub fn close(&self) {
        self.inner.is_closed.send_replace(true);
    }

    async fn pass(&self, arrival: Arrival, stream: impl Stream + 'static) {
        let gate = &self.inner;
        let Arrival { listener, address } = arrival;
        let Ok(_slot) = gate.connections.try_acquire() else {
            let decision = Decision::denied(Reason::LimitReached, Decider::Gate);
            drop(gate.book.open_text(listener, "", 0, decision));
            return;
        };
        let stream = Bounded::new(stream, gate.limits.idle, gate.limits.connection_bytes);
        // The other side sees how its connection ended; the record says what was decided.
        match listener {
            Listener::Proxy => http::serve_proxy(gate, stream).await,
            Listener::Http => http::serve_http(gate, stream, address).await,
            Listener::Https => drop(http::serve_https(gate, stream, address).await),
            Listener::Dns => drop(dns::serve(gate, stream).await),
            Listener::Credentials => credentials::serve(gate, stream).await,
        }
    }

    /// Allows one more host, from now on.
    pub fn allow(&self, entry: Entry) {
        self.inner.announced.forget_entry(&entry);
        let mut rules = self
            .inner
            .rules
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        rules.add(entry);
    }

    /// Tells why what an entry names stays refused even when it is allowed, if it does.
    pub fn refuses_always(&self, entry: &Entry) -> Option<String> {
        let host = entry.host();
        // What is below a host is not the host, and may be reached.
        if self.inner.routes.keep(host) && entry.names(host) {
            return Some(format!(
                "`{host}` has a credential of this run: it is reached through the credential port alone"
            ));
        }
        host.address()?;
        let reachable = &self.inner.dialer.reachable;
        let refusal = reachable.refuses_all_of(entry)?;
        Some(format!("`{host}` is {refusal}"))
    }

    /// Forgets that a refused host was announced: the next attempt is announced again.
    pub fn forget(&self, host: &Host) {
        self.inner.announced.forget(host);
    }

    /// Returns the blocked hosts that were not announced one by one, if a report of them is due. Reports
    /// come when their number doubles, and once a minute otherwise.
    pub fn further_blocked(&self) -> Option<FurtherBlocked> {
        let now = self.inner.book.clock.monotonic();
        self.inner.announced.further(now)
    }

    /// Returns what the sandbox may reach by now.
    pub fn rules(&self) -> Rules {
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
        self.inner.routes.all()
    }
}

impl Inner {
    pub(crate) fn names(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decides about a connection.
    pub(crate) fn decide(&self, endpoint: &Endpoint) -> Decision {
        if self.routes.keep(&endpoint.host) {
            return Decision::denied(Reason::CredentialHost, Decider::Credential);
        }
        let rules = self.rules.read().unwrap_or_else(PoisonError::into_inner);
        rules.decide(endpoint)
    }

    /// Decides whether a name exists.
    pub(crate) fn decide_name(&self, host: &Host) -> Decision {
        if self.routes.keep(host) {
            return Decision::denied(Reason::CredentialHost, Decider::Credential);
        }
        let rules = self.rules.read().unwrap_or_else(PoisonError::into_inner);
        rules.decide_name(host)
    }

    /// Tells whether TLS to an endpoint is opened.
    pub(crate) fn inspects(&self, endpoint: &Endpoint) -> bool {
        endpoint.port == 443 && self.inspect.covers(endpoint)
    }

    /// Opens the record of a decision; what is refused for the first time is announced.
    pub(crate) fn record(
        &self,
        listener: Listener,
        endpoint: &Endpoint,
        decision: Decision,
    ) -> OpenRecord {
        let record = self.book.open(listener, endpoint, decision);
        if !decision.is_allowed() && decision.reason.is_about_the_list() {
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
            ProviderToolAction::Allowed => Decision::allowed(Reason::ProviderTool, Decider::Policy),
            ProviderToolAction::Removed | ProviderToolAction::Refused => {
                Decision::denied(Reason::ProviderTool, Decider::Policy)
            }
        };
        let mut record = self.book.open(Listener::Credentials, provider, decision);
        record.set_request(request.0, request.1);
        record.set_detail(&format!("{} {}", found.action, found.what));
        drop(record);
        let announced = self.announced_tools.lock();
        let mut announced = announced.unwrap_or_else(PoisonError::into_inner);
        let notice = (provider.host.clone(), found.clone());
        if announced.len() < MAX_ANNOUNCED_TOOLS && !announced.contains(&notice) {
            announced.push(notice);
            drop(announced);
            self.book.sink.provider_tool(provider, found);
        }
    }

    fn announce(&self, listener: Listener, endpoint: &Endpoint, reason: Reason) {
        let now = self.book.clock.monotonic();
        let news = self.announced.news(now, listener, endpoint);
        if let Some(Endpoint { host, port }) = news {
            self.book.sink.blocked(Blocked {
                at: self.book.clock.now(),
                host,
                port,
                listener,
                reason,
            });
        }
    }
}
