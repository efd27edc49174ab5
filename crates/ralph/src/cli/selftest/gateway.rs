//! The gate of the sandbox that is tried out.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use ralph_core::id::RunId;
use ralph_core::net::Rules;
use ralph_core::plan::NetworkPlan;
use ralph_core::ports::{Allowance, CREDENTIALS, GateNews, Gatekeeper as _};
use ralph_core::price::PriceBook;
use ralph_engine::preflight::Look;
use ralph_gate::{Gate, Identity};
use ralph_providers::agent::CredentialKind;
use ralph_providers::sandbox::way_out::WayOut;

use super::account::Account;
use crate::cli::agent::Login;
use crate::cli::checks::Outcome;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::{network, preflight};
use crate::gate::{Door, Keeper, Opening, Port};
use crate::tokens::{BaseUrl, http};
use crate::wire::Wiring;

/// What an agent may use to say one word.
const TOKENS: u64 = 200_000;

/// A gate, and what is told about it inside.
pub(super) struct Gateway {
    gate: Gate,
    keeper: Arc<Keeper>,
    plan: NetworkPlan,
    /// The file of its decisions, which goes with it.
    records: PathBuf,
    /// What the agent logs in with inside of the sandbox.
    pub(super) pass: Option<Pass>,
}

/// What an agent logs in with inside of the sandbox.
pub(super) struct Pass {
    /// What it is.
    pub(super) kind: CredentialKind,
    /// What stands for the credential.
    pub(super) phantom: String,
    /// Where the gate is.
    pub(super) base_url: String,
    /// The variables of the agent.
    pub(super) environment: BTreeMap<String, String>,
}

impl Gateway {
    /// Opens the gate that the settings describe, with the credential of the account.
    pub(super) async fn open(
        account: &mut Account,
        context: &Context,
        wiring: &Wiring,
    ) -> Result<Self, CliError> {
        let settings = context.settings()?.sandbox.network;
        let plan = network::plan(&settings, &account.preset.hosts)?;
        let (credential, route, named) = match account.login.take() {
            Some(Login {
                credential,
                route,
                named,
                ..
            }) => (Some(credential), Some(route), named),
            None => (None, None, None),
        };
        let name = format!("selftest-{}.jsonl", std::process::id());
        let records = wiring.state.root().join(name);
        let opening = Opening {
            identity: Identity {
                run: RunId::new(wiring.clock.now(), 0),
                sandbox: "selftest".into(),
            },
            network: plan.clone(),
            routes: Vec::from_iter(route),
            provider_tools: [].into(),
            named: Vec::from_iter(named),
            prices: PriceBook::default(),
            records: records.clone(),
            redactor: context.redactor(),
            clock: wiring.clock.clone(),
        };
        let opened = opening.open().await;
        let (gate, keeper) = opened.map_err(|error| preflight::closed(&error))?;
        keeper.allow_spending(Allowance {
            cost: None,
            tokens: Some(TOKENS),
        });
        let pass = gate.routes().first().zip(credential);
        let pass = pass.map(|(route, credential)| {
            let (phantom, base_url) = (route.phantom().as_str(), route.base_url(CREDENTIALS));
            Pass {
                kind: credential.kind,
                phantom: phantom.to_owned(),
                environment: credential.environment(phantom, &base_url),
                base_url,
            }
        });
        Ok(Self {
            gate,
            keeper,
            plan,
            records,
            pass,
        })
    }

    /// Returns the way out of a sandbox that leads to it.
    pub(super) fn way_out(&self) -> Arc<dyn WayOut> {
        let door = Door::new(self.gate.clone());
        Arc::new(if self.plan.inspect.entries().is_empty() {
            door
        } else {
            door.trusting(&crate::gate::known_authorities())
        })
    }

    /// Returns what is tried from inside.
    pub(super) fn look(&self) -> Look {
        Look::walls(&Rules::new(self.plan.policy.clone()))
    }

    /// It answers on this machine.
    pub(super) async fn health(&self) -> Outcome {
        let port = match Port::open(self.gate.clone()).await {
            Ok(port) => port,
            Err(error) => return preflight::closed(&error).into(),
        };
        let address = format!("http://{}", port.address());
        let Ok(base) = BaseUrl::parse(&address) else {
            return Outcome::failed(format!("`{address}` is no address"), "report it");
        };
        match http::get(&base, "/health").await {
            Ok(answer) if answer.status == 200 => {
                let text = String::from_utf8_lossy(&answer.body).trim().to_owned();
                Outcome::Passed(format!("`{text}` at {address}"))
            }
            Ok(answer) => Outcome::failed(
                format!("the gate at {address} answers with {}", answer.status),
                "look whether another program uses this port",
            ),
            Err(error) => Outcome::failed(
                format!("the gate at {address} does not answer: {error}"),
                "look whether a firewall keeps programs of this machine from each other",
            ),
        }
    }

    /// Says the policy, and whom the gate has refused by it.
    pub(super) fn policy(&self) -> Outcome {
        let refused = self.keeper.news().into_iter().find_map(|news| match news {
            GateNews::Blocked { host, .. } => Some(host),
            GateNews::Charged { .. }
            | GateNews::Refused { .. }
            | GateNews::FurtherBlocked { .. }
            | GateNews::ProviderTool { .. } => None,
        });
        let policy = preflight::told(&self.plan);
        Outcome::Passed(match refused {
            Some(host) => format!("{policy}; the gate has refused `{host}`"),
            None => policy,
        })
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // There is none if nothing had to be decided.
        fs::remove_file(&self.records).ok();
    }
}
