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
use super::git_reading::GitReading;
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
    /// Variables for all commands of a local sandbox, which has no egress.
    pub environment: BTreeMap<String, String>,
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
    /// The address and the token for the agent's telemetry, if the user wants it.
    telemetry: Option<(String, String)>,
}

impl Providers {
    /// Opens the gate of a run and prepares its agent.
    pub async fn set_up_gate(
        &self,
        plan: &RunPlan,
        mut access: Option<AgentAccess>,
        directory: &Path,
    ) -> Result<GateSetup, AppError> {
        let mut logins = GateLogins::take_from(access.as_mut());
        let git = GitReading::of_plan(plan, &self.connections);
        if let Some(git) = &git {
            logins.add_git(git)?;
        }
        if plan.network.is_none() && logins.routes.is_empty() {
            let (agent, fallback_agent) =
                self.agents(access, [AgentLogin::none(), AgentLogin::none()])?;
            return Ok(GateSetup {
                agent,
                fallback_agent,
                ..GateSetup::default()
            });
        }
        let agents = std::mem::take(&mut logins.agents);
        let (gate, run_gate, unpinned_prices) = self.open_gate(plan, logins, directory).await?;
        let address = credential_address(plan.network.as_ref(), &gate, &run_gate).await?;
        let environment = git_environment(git.as_ref(), &gate, address);
        let egress = plan
            .network
            .as_ref()
            .map(|network| connect_egress(network, &gate, environment.clone()));
        let agent_logins = agents.map(|login| {
            let route = |(number, credential)| Some((gate.routes().get(number)?, credential));
            let login = login.and_then(route);
            login.map_or_else(AgentLogin::none, |(route, credential)| {
                AgentLogin::new(route, &credential, address)
            })
        });
        let mut agent_logins = agent_logins;
        if self.models.environment.wants_agent_telemetry() {
            let token = gate.accept_telemetry(run_gate.telemetry());
            let secret = Secret::new(token.as_str().to_owned());
            self.redactor.learn("telemetry token", secret);
            for login in &mut agent_logins {
                login.telemetry = Some((Gate::telemetry_url(address), token.as_str().to_owned()));
            }
        }
        let (agent, fallback_agent) = self.agents(access, agent_logins)?;
        Ok(GateSetup {
            egress,
            gate: Some(run_gate),
            agent,
            fallback_agent,
            environment,
            unpinned_prices,
        })
    }

    /// Opens the gate of a run. Returns it with the prices that it charges, if they are not stored with the run
    /// yet.
    async fn open_gate(
        &self,
        plan: &RunPlan,
        logins: GateLogins,
        directory: &Path,
    ) -> Result<(Gate, Arc<RunGate>, Option<PriceBook>), AppError> {
        let pinned = Self::pinned_prices(directory)?;
        let is_pinned = pinned.is_some();
        let prices = pinned.map_or_else(|| self.models.prices(), Ok)?;
        let gate_config = GateConfig {
            identity: SandboxIdentity {
                run: plan.run.clone(),
                sandbox: plan.sandbox.clone(),
            },
            network: plan.network.clone().unwrap_or_default(),
            routes: logins.routes,
            provider_tools: provider_tools(plan),
            private_providers: logins.custom_endpoints,
            prices: prices.clone(),
            egress_log: directory.join(EGRESS_LOG),
            redactor: self.redactor.clone(),
            clock: self.clock.clone(),
        };
        let opened = gate_config.open().await;
        let (gate, run_gate) = opened.map_err(|error| gate_error(&error))?;
        run_gate.count_decisions(self.counters.clone());
        for route in gate.routes() {
            let token = route.placeholder().as_str().to_owned();
            self.redactor.learn("gate token", Secret::new(token));
        }
        Ok((gate, run_gate, (!is_pinned).then_some(prices)))
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
        let mut environment = login.environment;
        if let Some((url, token)) = &login.telemetry {
            environment.extend(access.preset.telemetry_environment(url, token));
        }
        let settings = PresetAgentSettings {
            model: access.model.clone(),
            base_url: login.base_url,
            login: environment,
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

    /// Adds read access to the run's repository on a source host.
    fn add_git(&mut self, git: &GitReading) -> Result<(), AppError> {
        let route = git.route().map_err(|error| gate_error(&error))?;
        if git.may_be_private() {
            self.custom_endpoints.push(route.endpoint().clone());
        }
        self.routes.push(route);
        Ok(())
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
            telemetry: None,
        }
    }

    fn new(route: &Route, credential: &AgentCredential, address: SocketAddr) -> Self {
        let base_url = route.base_url(address);
        let environment = credential.environment(route.placeholder().as_str(), &base_url);
        Self {
            base_url,
            environment,
            telemetry: None,
        }
    }
}

/// Returns the address of the credential port: a fixed one inside a container. Without a network plan, commands
/// use a port on this machine.
async fn credential_address(
    network: Option<&NetworkPlan>,
    gate: &Gate,
    run_gate: &RunGate,
) -> Result<SocketAddr, AppError> {
    if network.is_some() {
        return Ok(CREDENTIAL_ADDRESS);
    }
    let port = CredentialPort::open(gate.clone()).await;
    let port = port.map_err(|error| gate_error(&error))?;
    let address = port.address();
    run_gate.set_port(port);
    Ok(address)
}

/// Returns the variables with which commands read the run's repository on a source host.
fn git_environment(
    git: Option<&GitReading>,
    gate: &Gate,
    address: SocketAddr,
) -> BTreeMap<String, String> {
    // The route was added last.
    match (git, gate.routes().last()) {
        (Some(git), Some(route)) => git.environment(route, address),
        (Some(_) | None, _) => BTreeMap::new(),
    }
}

/// Connects the containers of a run to its gate.
fn connect_egress(
    network: &NetworkPlan,
    gate: &Gate,
    environment: BTreeMap<String, String>,
) -> Arc<dyn SandboxEgress> {
    let mut connector = GateConnector::new(gate.clone()).with_environment(environment);
    if !network.inspect.entries().is_empty() {
        connector = connector.with_trusted_authorities(&crate::gate::trusted_authorities_pem());
    }
    Arc::new(connector)
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
