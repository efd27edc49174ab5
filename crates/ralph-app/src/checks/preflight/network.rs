//! Checks of the network policy and the gate that enforces it.

use std::collections::BTreeSet;

use ralph_core::id::RunId;
use ralph_core::net::EgressPolicy;
use ralph_core::plan::NetworkPlan;
use ralph_core::price::PriceBook;
use ralph_gate::{Gate, SandboxIdentity};

use super::preflight_context::PreflightContext;
use crate::checks::CheckOutcome;
use crate::error::AppError;
use crate::gate::{CredentialPort, GateConfig};
use crate::planning::network;
use crate::providers::Providers;
use crate::providers::gate_setup::gate_error;

/// Checks that the network rules are valid and that a gate can enforce them.
pub(super) async fn check_gate(context: &PreflightContext<'_>) -> Option<CheckOutcome> {
    let (Ok(settings), Ok(providers)) = (&context.settings, &context.providers) else {
        return Some(CheckOutcome::NotRun("the settings cannot be used".into()));
    };
    let preset = context.worker.preset();
    match context.sandbox.as_deref() {
        Ok("docker") => {
            let hosts = preset.map(|preset| preset.hosts.as_slice());
            let plan = network::network_plan(&settings.sandbox.network, hosts.unwrap_or_default());
            Some(match plan {
                Ok(plan) => {
                    let notice = network::unused_list_notice(&settings.sandbox.network);
                    check_container_gate(plan, notice, providers).await
                }
                Err(error) => error.into(),
            })
        }
        // Only the agent's model requests go through a gate.
        Ok(_) if preset.is_some() => Some(check_agent_gate(providers).await),
        Ok(_) => None,
        Err(_) => Some(CheckOutcome::NotRun("the settings cannot be used".into())),
    }
}

async fn check_container_gate(
    plan: NetworkPlan,
    notice: Option<String>,
    providers: &Providers,
) -> CheckOutcome {
    let notice = notice.map_or_else(String::new, |notice| format!("; {notice}"));
    let description = format!("{}{notice}", describe_policy(&plan));
    match open_gate(plan, providers).await {
        Ok(_) => CheckOutcome::Passed(description),
        Err(error) => error.into(),
    }
}

async fn check_agent_gate(providers: &Providers) -> CheckOutcome {
    let gate = match open_gate(NetworkPlan::default(), providers).await {
        Ok(gate) => gate,
        Err(error) => return error.into(),
    };
    match CredentialPort::open(gate).await {
        Ok(_) => CheckOutcome::Passed(
            "the agent's model calls go through the gate; its other connections are not restricted"
                .into(),
        ),
        Err(error) => gate_error(&error).into(),
    }
}

/// Describes the network policy: its name and the hosts that commands can reach.
pub(in crate::checks) fn describe_policy(plan: &NetworkPlan) -> String {
    let name = match &plan.policy {
        EgressPolicy::Deny => "deny",
        EgressPolicy::Allowlist(_) => "allowlist",
        EgressPolicy::AllowAll => "allow-all",
    };
    format!(
        "{name}: commands can reach {}",
        network::network_summary(plan)
    )
}

/// Opens a gate. It writes no file before its first decision.
async fn open_gate(network: NetworkPlan, providers: &Providers) -> Result<Gate, AppError> {
    let gate_config = GateConfig {
        identity: SandboxIdentity {
            run: RunId::new(providers.clock.now(), 0),
            sandbox: "preflight".into(),
        },
        network,
        routes: Vec::new(),
        provider_tools: BTreeSet::new(),
        private_providers: Vec::new(),
        prices: PriceBook::default(),
        egress_log: providers.state.root().join("preflight"),
        redactor: providers.redactor.clone(),
        clock: providers.clock.clone(),
    };
    let opened = gate_config.open().await;
    opened
        .map(|(gate, _)| gate)
        .map_err(|error| gate_error(&error))
}
