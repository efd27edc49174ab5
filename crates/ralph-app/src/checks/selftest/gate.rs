//! The gate of the tested sandbox.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use ralph_core::id::RunId;
use ralph_core::net::EgressRules;
use ralph_core::plan::NetworkPlan;
use ralph_core::ports::{Allowance, CREDENTIAL_ADDRESS, GateControl as _, GateEvent};
use ralph_core::price::PriceBook;
use ralph_engine::preflight::PreflightProbe;
use ralph_gate::{Gate, SandboxIdentity};
use ralph_guest::best_effort;
use ralph_providers::agent::CredentialKind;
use ralph_providers::sandbox::egress::SandboxEgress;

use super::account::SelftestAccount;
use crate::agent::ProviderLogin;
use crate::app::App;
use crate::checks::CheckOutcome;
use crate::checks::preflight;
use crate::error::AppError;
use crate::gate::{CredentialPort, GateConfig, GateConnector, RunGate};
use crate::planning::network;
use crate::providers::{Providers, gate_setup};
use crate::tokens::{BaseUrl, http};

/// The token budget of the agent's short reply.
const TOKEN_BUDGET: u64 = 200_000;

/// A gate and its settings inside the sandbox.
pub(super) struct SelftestGate {
    gate: Gate,
    run_gate: Arc<RunGate>,
    plan: NetworkPlan,
    /// The log of the gate's decisions, removed together with the gate.
    decision_log: PathBuf,
    /// The login of the agent inside the sandbox.
    pub(super) login: Option<SandboxLogin>,
}

/// The login of an agent inside the sandbox.
pub(super) struct SandboxLogin {
    pub(super) kind: CredentialKind,
    /// The placeholder for the credential.
    pub(super) placeholder_token: String,
    /// The address of the gate.
    pub(super) base_url: String,
    /// The environment variables of the agent.
    pub(super) environment: BTreeMap<String, String>,
}

impl SelftestGate {
    /// Opens the gate with the configured network rules, and moves the login of the account to it.
    pub(super) async fn open(
        account: &mut SelftestAccount,
        app: &App,
        providers: &Providers,
    ) -> Result<Self, AppError> {
        let settings = app.settings()?.sandbox.network;
        let plan = network::network_plan(&settings, &account.preset.hosts)?;
        let (credential, route, custom_endpoint) = match account.login.take() {
            Some(ProviderLogin {
                credential,
                route,
                custom_endpoint,
                ..
            }) => (Some(credential), Some(route), custom_endpoint),
            None => (None, None, None),
        };
        let name = format!("selftest-{}.jsonl", std::process::id());
        let decision_log = providers.state.root().join(name);
        let gate_config = GateConfig {
            identity: SandboxIdentity {
                run: RunId::new(providers.clock.now(), 0),
                sandbox: "selftest".into(),
            },
            network: plan.clone(),
            routes: Vec::from_iter(route),
            provider_tools: [].into(),
            private_providers: Vec::from_iter(custom_endpoint),
            prices: PriceBook::default(),
            egress_log: decision_log.clone(),
            redactor: app.redactor(),
            clock: providers.clock.clone(),
        };
        let opened = gate_config.open().await;
        let (gate, run_gate) = opened.map_err(|error| gate_setup::gate_error(&error))?;
        run_gate.set_allowance(Allowance {
            cost: None,
            tokens: Some(TOKEN_BUDGET),
        });
        let login = gate.routes().first().zip(credential);
        let login = login.map(|(route, credential)| {
            let placeholder = route.placeholder().as_str();
            let base_url = route.base_url(CREDENTIAL_ADDRESS);
            SandboxLogin {
                kind: credential.kind,
                placeholder_token: placeholder.to_owned(),
                environment: credential.environment(placeholder, &base_url),
                base_url,
            }
        });
        Ok(Self {
            gate,
            run_gate,
            plan,
            decision_log,
            login,
        })
    }

    /// Returns the sandbox egress that leads to the gate.
    pub(super) fn egress(&self) -> Arc<dyn SandboxEgress> {
        let connector = GateConnector::new(self.gate.clone());
        Arc::new(if self.plan.inspect.entries().is_empty() {
            connector
        } else {
            connector.with_trusted_authorities(&crate::gate::trusted_authorities_pem())
        })
    }

    /// Returns the network probe to run inside the sandbox.
    pub(super) fn network_probe(&self) -> PreflightProbe {
        PreflightProbe::for_rules(&EgressRules::new(self.plan.policy.clone()))
    }

    /// Checks that the gate answers on this machine.
    pub(super) async fn check_health(&self) -> CheckOutcome {
        let port = match CredentialPort::open(self.gate.clone()).await {
            Ok(port) => port,
            Err(error) => return gate_setup::gate_error(&error).into(),
        };
        let address = format!("http://{}", port.address());
        let Ok(base) = BaseUrl::parse(&address) else {
            return CheckOutcome::failed(
                format!("`{address}` is not a valid address"),
                "report the problem",
            );
        };
        match http::get(&base, "/health").await {
            Ok(answer) if answer.status == 200 => {
                let text = String::from_utf8_lossy(&answer.body).trim().to_owned();
                CheckOutcome::Passed(format!("`{text}` at {address}"))
            }
            Ok(answer) => CheckOutcome::failed(
                format!("the gate at {address} answers with {}", answer.status),
                "check whether another program uses this port",
            ),
            Err(error) => CheckOutcome::failed(
                format!("the gate at {address} does not answer: {error}"),
                "check whether a firewall blocks connections between programs of this machine",
            ),
        }
    }

    /// Describes the policy and the first host that the gate refused. Never fails.
    pub(super) fn check_policy(&self) -> CheckOutcome {
        let refused = self
            .run_gate
            .drain_events()
            .into_iter()
            .find_map(|event| match event {
                GateEvent::Blocked { host, .. } => Some(host),
                GateEvent::Charged { .. }
                | GateEvent::Refused { .. }
                | GateEvent::FurtherBlocked { .. }
                | GateEvent::ProviderTool { .. } => None,
            });
        let policy = preflight::describe_policy(&self.plan);
        CheckOutcome::Passed(match refused {
            Some(host) => format!("{policy}; the gate has refused `{host}`"),
            None => policy,
        })
    }
}

impl Drop for SelftestGate {
    fn drop(&mut self) {
        // The file does not exist if the gate decided nothing.
        best_effort(fs::remove_file(&self.decision_log));
    }
}
