//! Sets up the gate of a run and the agent behind it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use ralph_core::net::{Endpoint, ProviderTool};
use ralph_core::plan::{NetworkPlan, RunPlan};
use ralph_core::ports::{Agent, GateControl};
use ralph_core::price::PriceBook;
use ralph_core::secret::Secret;
use ralph_engine::durable::{self, StoreError};
use ralph_gate::{Gate, Route, SandboxIdentity};
use ralph_providers::agent::{AgentCredential, PresetAgentSettings};
use ralph_providers::sandbox::egress::SandboxEgress;

use super::Providers;
use crate::agent::{AgentAccess, ProviderLogin};
use crate::config::{MAX_PRICE_BYTES, read_regular};
use crate::error::AppError;
use crate::gate::{CREDENTIAL_ADDRESS, CredentialPort, GateConfig, GateConnector, RunGate};

/// The log of a gate's decisions, in the directory of its run.
pub const EGRESS_LOG: &str = "egress.jsonl";
/// The prices that a gate charges in addition to the built-in ones, in the directory of its run.
const PRICES_FILE: &str = "prices.json";

/// The gate of a run and the agent behind it, if the run has them.
#[derive(Default)]
pub struct GateSetup {
    /// The egress of the run's sandboxes.
    pub egress: Option<Arc<dyn SandboxEgress>>,
    pub gate: Option<Arc<dyn GateControl>>,
    pub agent: Option<Arc<dyn Agent>>,
    /// The agent that replaces it.
    pub fallback_agent: Option<Arc<dyn Agent>>,
    /// The prices that the gate charges, if they are not stored with the run yet.
    pub unpinned_prices: Option<PriceBook>,
}

/// Stores the prices of a gate in the directory of its run, so that a resumed run charges the same
/// ones. The agent chooses its models, so the plan cannot name their prices.
pub fn pin_prices(prices: Option<&PriceBook>, directory: &Path) -> Result<(), AppError> {
    let Some(prices) = prices else {
        return Ok(());
    };
    let path = directory.join(PRICES_FILE);
    let bytes = serde_json::to_vec(prices)
        .map_err(io::Error::from)
        .map_err(StoreError::when("write", &path))?;
    Ok(durable::write(&path, &bytes)?)
}

/// The login settings of an agent: the address of the gate and the environment with the placeholder
/// token.
struct AgentLogin {
    base_url: String,
    environment: BTreeMap<String, String>,
}

impl Providers {
    /// Opens the gate of a run and prepares its agent.
    pub async fn set_up_gate(
        &self,
        plan: &RunPlan,
        mut access: Option<AgentAccess>,
        directory: &Path,
    ) -> Result<GateSetup, AppError> {
        let logins = GateLogins::take_from(access.as_mut());
        if plan.network.is_none() && logins.routes.is_empty() {
            let (agent, fallback_agent) =
                self.agents(access, [AgentLogin::none(), AgentLogin::none()])?;
            return Ok(GateSetup {
                agent,
                fallback_agent,
                ..GateSetup::default()
            });
        }
        let GateLogins {
            routes,
            custom_endpoints,
            agents,
        } = logins;
        let pinned = Self::pinned_prices(directory)?;
        let is_pinned = pinned.is_some();
        let prices = pinned.map_or_else(|| self.models.prices(), Ok)?;
        let gate_config = GateConfig {
            identity: SandboxIdentity {
                run: plan.run.clone(),
                sandbox: plan.sandbox.clone(),
            },
            network: plan.network.clone().unwrap_or_default(),
            routes,
            provider_tools: provider_tools(plan),
            private_providers: custom_endpoints,
            prices: prices.clone(),
            egress_log: directory.join(EGRESS_LOG),
            redactor: self.redactor.clone(),
            clock: self.clock.clone(),
        };
        let (gate, run_gate) = gate_config
            .open()
            .await
            .map_err(|error| gate_error(&error))?;
        for route in gate.routes() {
            let token = route.placeholder().as_str().to_owned();
            self.redactor.learn("gate token", Secret::new(token));
        }
        let (egress, address) = connect_gate(plan.network.as_ref(), &gate, &run_gate).await?;
        let agent_logins = agents.map(|login| {
            let route = |(number, credential)| Some((gate.routes().get(number)?, credential));
            let login = login.and_then(route);
            login.map_or_else(AgentLogin::none, |(route, credential)| {
                AgentLogin::new(route, &credential, address)
            })
        });
        let (agent, fallback_agent) = self.agents(access, agent_logins)?;
        Ok(GateSetup {
            egress,
            gate: Some(run_gate),
            agent,
            fallback_agent,
            unpinned_prices: (!is_pinned).then_some(prices),
        })
    }

    /// Creates the agent of a run and its fallback, in this order, with their logins.
    fn agents(
        &self,
        access: Option<AgentAccess>,
        [login, fallback_login]: [AgentLogin; 2],
    ) -> Result<AgentPair, AppError> {
        let Some(access) = access else {
            return Ok((None, None));
        };
        let fallback = access.fallback.as_ref();
        let fallback = fallback.map(|fallback| self.agent(fallback, fallback_login));
        Ok((Some(self.agent(&access, login)?), fallback.transpose()?))
    }

    /// Returns the prices that the run started with, or `None` for a new run.
    fn pinned_prices(directory: &Path) -> Result<Option<PriceBook>, AppError> {
        let path = directory.join(PRICES_FILE);
        let damaged = |why: String| {
            AppError::runtime(
                format!("cannot use the prices in `{}`", path.display()),
                why,
                "restore the file from a copy, or remove it to use the current prices",
            )
        };
        let file = match read_regular(&path, directory, MAX_PRICE_BYTES) {
            Ok(file) => file,
            Err(problem) if problem.is_missing() => return Ok(None),
            Err(problem) => return Err(damaged(problem.to_string())),
        };
        let prices = serde_json::from_slice(&file.bytes);
        prices.map(Some).map_err(|error| damaged(error.to_string()))
    }

    fn agent(&self, access: &AgentAccess, login: AgentLogin) -> Result<Arc<dyn Agent>, AppError> {
        let settings = PresetAgentSettings {
            model: access.model.clone(),
            base_url: login.base_url,
            login: login.environment,
            clock: self.clock.clone(),
        };
        match access.preset.build_agent(&settings) {
            Ok(agent) => Ok(Arc::from(agent)),
            Err(error) => Err(AppError::usage(
                error.to_string(),
                "it does not choose one itself",
                "choose one with `--model`",
            )),
        }
    }
}

/// An agent and its fallback.
type AgentPair = (Option<Arc<dyn Agent>>, Option<Arc<dyn Agent>>);

/// The credentials of an agent and its fallback, and the routes that use them.
#[derive(Default)]
struct GateLogins {
    routes: Vec<Route>,
    custom_endpoints: Vec<Endpoint>,
    /// For the agent and its fallback, the index of the route and the credential.
    agents: [Option<(usize, AgentCredential)>; 2],
}

impl GateLogins {
    /// Takes the logins of an agent and its fallback. Two agents with one credential share a route.
    fn take_from(access: Option<&mut AgentAccess>) -> Self {
        let mut logins = Self::default();
        let Some(access) = access else {
            return logins;
        };
        let fallback = access.fallback.as_mut();
        let fallback = fallback.and_then(|fallback| fallback.login.take());
        let login = access.login.take();
        if let (Some(login), Some(fallback)) = (&login, &fallback)
            && login.is_same(fallback)
        {
            logins.agents[1] = Some((0, fallback.credential.clone()));
        }
        if let Some(login) = login {
            logins.add(0, login);
        }
        if let Some(fallback) = fallback
            && logins.agents[1].is_none()
        {
            logins.add(1, fallback);
        }
        logins
    }

    fn add(&mut self, agent: usize, login: ProviderLogin) {
        let ProviderLogin {
            credential, route, ..
        } = login;
        let is_named = self.routes.iter().any(|other| other.name() == route.name());
        let route = if is_named {
            let name = format!("{}-fallback", route.name());
            route.renamed(&name)
        } else {
            route
        };
        self.agents[agent] = Some((self.routes.len(), credential));
        self.routes.push(route);
        self.custom_endpoints.extend(login.custom_endpoint);
    }
}

/// Returns the provider-side tools that the plan allows the agent.
fn provider_tools(plan: &RunPlan) -> BTreeSet<ProviderTool> {
    let agent = plan.agent.as_ref();
    agent
        .map(|agent| agent.provider_tools.clone())
        .unwrap_or_default()
}

impl AgentLogin {
    fn none() -> Self {
        Self {
            base_url: String::new(),
            environment: BTreeMap::new(),
        }
    }

    fn new(route: &Route, credential: &AgentCredential, address: SocketAddr) -> Self {
        let base_url = route.base_url(address);
        let environment = credential.environment(route.placeholder().as_str(), &base_url);
        Self {
            base_url,
            environment,
        }
    }
}

/// Connects the run to its gate. A container gets an egress and a fixed address inside it; without a
/// network plan, the agent uses a port on this machine. Returns the egress and the address of the
/// credential port.
async fn connect_gate(
    network: Option<&NetworkPlan>,
    gate: &Gate,
    run_gate: &RunGate,
) -> Result<(Option<Arc<dyn SandboxEgress>>, SocketAddr), AppError> {
    let Some(network) = network else {
        let port = CredentialPort::open(gate.clone()).await;
        let port = port.map_err(|error| gate_error(&error))?;
        let address = port.address();
        run_gate.set_port(port);
        return Ok((None, address));
    };
    let mut connector = GateConnector::new(gate.clone());
    if !network.inspect.entries().is_empty() {
        connector = connector.with_trusted_authorities(&crate::gate::trusted_authorities_pem());
    }
    Ok((Some(Arc::new(connector)), CREDENTIAL_ADDRESS))
}

/// Describes why no gate can be opened.
pub(crate) fn gate_error(error: &dyn std::error::Error) -> AppError {
    AppError::runtime(
        "cannot open the gate of the sandbox",
        error.to_string(),
        "check the base URL of its provider and the limits of this user (`ulimit -a`)",
    )
}

#[cfg(test)]
mod tests {
    use ralph_core::price::Price;

    use super::*;

    #[test]
    fn a_resumed_run_uses_its_pinned_prices() {
        let run = tempfile::tempdir().unwrap();
        let pinned = || Providers::pinned_prices(run.path());
        assert_eq!(pinned().unwrap(), None);
        let mut prices = PriceBook::default();
        prices.add("acme/one".to_owned(), Price::FREE);
        pin_prices(Some(&prices), run.path()).unwrap();
        assert_eq!(pinned().unwrap(), Some(prices.clone()));
        // A run with stored prices does not change them.
        pin_prices(None, run.path()).unwrap();
        assert_eq!(pinned().unwrap(), Some(prices));
        std::fs::write(run.path().join(PRICES_FILE), "{").unwrap();
        let damaged = pinned().unwrap_err().to_string();
        assert!(damaged.contains("cannot use the prices in `"), "{damaged}");
        // A run without a directory is new.
        let missing = run.path().join("none");
        assert_eq!(Providers::pinned_prices(&missing).unwrap(), None);
    }
}
