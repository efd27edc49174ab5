//! Opening the gate of a run.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ralph_core::budget::{Limits as Budgets, Spent};
use ralph_core::net::{Endpoint, Host, ProviderTool};
use ralph_core::plan::NetworkPlan;
use ralph_core::ports::{Allowance, Clock, Gatekeeper as _};
use ralph_core::price::PriceBook;
use ralph_core::secret::Redactor;
use ralph_gate::{
    Gate, GateError, Identity, Limits, Meter, Outside, Rates, Reachable, Resolver as _, Route,
    Settings, SystemResolver,
};
use tokio::time::timeout;

use super::keeper::Keeper;
use super::records::Records;

/// Why a gate cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpeningError {
    /// A provider that a person named has no address.
    #[error("the provider's host `{host}` has no address: {source}")]
    Named {
        /// The provider.
        host: Host,
        /// What the lookup said.
        source: io::Error,
    },
    /// The gate itself.
    #[error(transparent)]
    Gate(#[from] GateError),
}

/// What a gate is opened for.
pub struct Opening {
    /// Whose it is.
    pub identity: Identity,
    /// What may be reached.
    pub network: NetworkPlan,
    /// The credentials that it adds.
    pub routes: Vec<Route>,
    /// The work outside of the sandbox that requests may ask model providers for.
    pub provider_tools: BTreeSet<ProviderTool>,
    /// Providers whose addresses a person named: credentials are sent there even if they are private.
    /// Nothing else reaches them.
    pub named: Vec<Endpoint>,
    /// Prices that come before the usual ones.
    pub prices: PriceBook,
    /// Where its decisions are written down.
    pub records: PathBuf,
    /// What must never be written down.
    pub redactor: Redactor,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

impl Opening {
    /// Opens the gate. Nothing may be spent before the run says how much.
    pub async fn open(self) -> Result<(Gate, Arc<Keeper>), OpeningError> {
        let limits = Limits::default();
        let credential_reachable = reachable(&self.named, limits.connect_time).await?;
        let rates = Rates {
            requests_per_minute: self.network.model_requests_per_minute,
            prices: self.prices,
        };
        let (budgets, spent) = (Budgets::default(), Spent::default());
        let meter = Meter::new(&budgets, spent, rates, self.clock.clone());
        let records = Records::at(self.records, self.redactor);
        let keeper = Keeper::new(records, meter.clone());
        keeper.allow_spending(Allowance::none());
        let settings = Settings {
            identity: self.identity,
            policy: self.network.policy,
            inspect: self.network.inspect,
            routes: self.routes,
            provider_tools: self.provider_tools,
            limits,
        };
        let outside = Outside {
            resolver: Arc::new(SystemResolver),
            reachable: Reachable::public(),
            credential_reachable,
            roots: ralph_gate::system_roots(),
            clock: self.clock,
            sink: keeper.sink(),
            meter,
            cassette: None,
        };
        let gate = Gate::new(settings, outside)?;
        keeper.keep(gate.clone());
        Ok((gate, keeper))
    }
}

/// Returns what credentials may be sent to: what is public, and the providers that a person named.
async fn reachable(named: &[Endpoint], most: Duration) -> Result<Reachable, OpeningError> {
    let mut reachable = Reachable::public();
    for endpoint in named {
        let looked_up = timeout(most, SystemResolver.lookup(endpoint)).await;
        let looked_up = looked_up.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        let addresses = looked_up.map_err(|source| OpeningError::Named {
            host: endpoint.host.clone(),
            source,
        })?;
        for address in addresses {
            reachable = reachable.and(address);
        }
    }
    Ok(reachable)
}

#[cfg(test)]
mod tests {
    use ralph_core::id::RunId;
    use ralph_core::net::{Allowlist, Policy};
    use ralph_core::secret::Secret;
    use ralph_gate::{Arrival, Listener};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;
    use crate::clock::SystemClock;
    use crate::gate::Port;

    /// Ends a head.
    const CLOSE: &str = "Connection: close\r\n\r\n";
    const HEALTH: &str = "GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

    /// Returns what a gate answers.
    async fn asked(gate: &Gate, listener: Listener, request: &str) -> String {
        let (mut inside, stream) = tokio::io::duplex(1024);
        let arrival = Arrival::through(listener);
        let asking = async {
            // A gate that is closed does not read.
            inside.write_all(request.as_bytes()).await.ok();
            let mut answer = Vec::new();
            inside.read_to_end(&mut answer).await.ok();
            String::from_utf8(answer).unwrap()
        };
        tokio::join!(gate.serve(arrival, stream), asking).1
    }

    /// Returns an opening with one credential. Nothing is decided, so nothing is written.
    fn opening(base: &str) -> Opening {
        let secret = Secret::new("sk-real".to_owned());
        Opening {
            identity: Identity {
                run: RunId::parse("run-1").unwrap(),
                sandbox: "local".to_owned(),
            },
            network: NetworkPlan::default(),
            routes: vec![Route::openai_compatible("models", base, secret).unwrap()],
            provider_tools: BTreeSet::new(),
            named: Vec::new(),
            prices: PriceBook::default(),
            records: PathBuf::from("/dev/null"),
            redactor: Redactor::new(Vec::new()),
            clock: Arc::new(SystemClock::start()),
        }
    }

    #[tokio::test]
    async fn what_stays_refused_cannot_be_allowed() {
        let opening = opening("https://models.example/v1");
        let (gate, keeper) = opening.open().await.unwrap();
        let credential = "`models.example` has a credential of this run: \
                          it is reached through the credential port alone";
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
            assert_eq!(keeper.allow_host(host), expected, "{host}");
        }
        let rules = gate.rules();
        for (host, is_allowed) in [("wanted.example", true), ("10.0.0.1", false)] {
            let endpoint = Endpoint::parse(host, 443).unwrap();
            assert_eq!(rules.decide(&endpoint).is_allowed(), is_allowed, "{host}");
        }
    }

    #[tokio::test]
    async fn a_provider_without_an_address_is_told() {
        let mut opening = opening("https://gateway.invalid/v1");
        opening.named = vec![Endpoint::parse("gateway.invalid", 443).unwrap()];
        let error = opening.open().await.err().unwrap().to_string();
        let expected = "the provider's host `gateway.invalid` has no address: ";
        assert!(error.starts_with(expected), "{error}");
    }

    #[tokio::test]
    async fn a_provider_that_was_named_is_for_credentials_alone() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let named = Endpoint::parse(&address, 80).unwrap();

        let mut others = opening("https://models.example/v1");
        others.named = vec![named.clone()];
        let list = Allowlist::parse([address.as_str()]).unwrap();
        others.network.policy = Policy::Allowlist(list);
        let (gate, _keeper) = others.open().await.unwrap();
        let request = format!("CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n{CLOSE}");
        let refused = asked(&gate, Listener::Proxy, &request).await;
        let why = "x-ralph-gate: private-address\r\n";
        assert!(refused.contains(why), "{refused}");

        let mut own = opening(&format!("http://{address}/v1"));
        own.named = vec![named];
        let (gate, keeper) = own.open().await.unwrap();
        keeper.allow_spending(Allowance {
            cost: None,
            tokens: None,
        });
        let phantom = gate.routes()[0].phantom().as_str();
        let request = format!(
            "GET /models/v1/models HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {phantom}\r\n{CLOSE}"
        );
        let answering = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut piece = [0; 1024];
            assert_ne!(stream.read(&mut piece).await.unwrap(), 0);
            let answer = b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";
            stream.write_all(answer).await.unwrap();
        };
        let answer = tokio::select! {
            answer = asked(&gate, Listener::Credentials, &request) => answer,
            () = async { answering.await; std::future::pending().await } => String::new(),
        };
        assert!(
            answer.starts_with("HTTP/1.1 204 No Content\r\n"),
            "{answer}"
        );
    }

    #[tokio::test]
    async fn a_gate_is_closed_when_its_keeper_is_gone() {
        let opening = opening("https://models.example/v1");
        let (gate, keeper) = opening.open().await.unwrap();
        keeper.hold(Port::open(gate.clone()).await.unwrap());
        let health = || asked(&gate, Listener::Credentials, HEALTH);
        assert!(health().await.starts_with("HTTP/1.1 200 OK"));
        drop(keeper);
        assert_eq!(health().await, "");
    }
}
