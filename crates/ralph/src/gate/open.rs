//! Opening the gate of a run.

use std::path::PathBuf;
use std::sync::Arc;

use ralph_core::budget::{Limits as Budgets, Spent};
use ralph_core::net::Endpoint;
use ralph_core::plan::NetworkPlan;
use ralph_core::ports::{Allowance, Clock, Gatekeeper as _};
use ralph_core::price::PriceBook;
use ralph_core::secret::Redactor;
use ralph_gate::{
    Gate, GateError, Identity, Limits, Meter, Outside, Rates, Reachable, Resolver as _, Route,
    Settings, SystemResolver,
};

use super::keeper::Keeper;
use super::records::Records;

/// What a gate is opened for.
pub struct Opening {
    /// Whose it is.
    pub identity: Identity,
    /// What may be reached.
    pub network: NetworkPlan,
    /// The credentials that it adds.
    pub routes: Vec<Route>,
    /// Providers whose addresses a person named: they are reached even if they are private.
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
    pub async fn open(self) -> Result<(Gate, Arc<Keeper>), GateError> {
        let mut reachable = Reachable::public();
        for endpoint in &self.named {
            let addresses = SystemResolver.lookup(endpoint).await.unwrap_or_default();
            for address in addresses {
                reachable = reachable.and(address);
            }
        }
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
            limits: Limits::default(),
        };
        let outside = Outside {
            resolver: Arc::new(SystemResolver),
            reachable,
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

#[cfg(test)]
mod tests {
    use ralph_core::id::RunId;
    use ralph_core::secret::Secret;
    use ralph_gate::{Arrival, Listener};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;
    use crate::clock::SystemClock;
    use crate::gate::Port;

    const HEALTH: &[u8] = b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

    /// Returns what a gate answers.
    async fn asked(gate: &Gate) -> String {
        let (mut inside, stream) = tokio::io::duplex(1024);
        let arrival = Arrival::through(Listener::Credentials);
        let asking = async {
            // A gate that is closed does not read.
            inside.write_all(HEALTH).await.ok();
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
    async fn a_gate_is_closed_when_its_keeper_is_gone() {
        let opening = opening("https://models.example/v1");
        let (gate, keeper) = opening.open().await.unwrap();
        keeper.hold(Port::open(gate.clone()).await.unwrap());
        assert!(asked(&gate).await.starts_with("HTTP/1.1 200 OK"));
        drop(keeper);
        assert_eq!(asked(&gate).await, "");
    }
}
