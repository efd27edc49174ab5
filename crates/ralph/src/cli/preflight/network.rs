//! What commands may reach, and the gate that decides about it.

use std::collections::BTreeSet;

use ralph_core::id::RunId;
use ralph_core::net::Policy;
use ralph_core::plan::NetworkPlan;
use ralph_core::price::PriceBook;
use ralph_gate::{Gate, Identity};

use super::ground::Ground;
use crate::cli::checks::Outcome;
use crate::cli::error::CliError;
use crate::cli::network;
use crate::gate::{Opening, Port};
use crate::terminal::lines::life;
use crate::wire::Wiring;

/// The rules for the network have a meaning, and a gate can keep them.
pub(super) async fn gate(ground: &Ground<'_>) -> Option<Outcome> {
    let (Ok(settings), Ok(wiring)) = (&ground.settings, &ground.wiring) else {
        return Some(Outcome::NotRun("the settings cannot be used".into()));
    };
    let preset = ground.worker.preset();
    match ground.sandbox.as_deref() {
        Ok("docker") => {
            let hosts = preset.map(|preset| preset.hosts.as_slice());
            let plan = network::plan(&settings.sandbox.network, hosts.unwrap_or_default());
            Some(match plan {
                Ok(plan) => {
                    let idle = network::idle_list(&settings.sandbox.network);
                    contained(plan, idle, wiring).await
                }
                Err(error) => error.into(),
            })
        }
        // Only what the agent asks of its model goes through a gate.
        Ok(_) if preset.is_some() => Some(alone(wiring).await),
        Ok(_) => None,
        Err(_) => Some(Outcome::NotRun("the settings cannot be used".into())),
    }
}

async fn contained(plan: NetworkPlan, idle: Option<String>, wiring: &Wiring) -> Outcome {
    let idle = idle.map_or_else(String::new, |idle| format!("; {idle}"));
    let told = format!("{}{idle}", told(&plan));
    match open(plan, wiring).await {
        Ok(_) => Outcome::Passed(told),
        Err(error) => error.into(),
    }
}

async fn alone(wiring: &Wiring) -> Outcome {
    let gate = match open(NetworkPlan::default(), wiring).await {
        Ok(gate) => gate,
        Err(error) => return error.into(),
    };
    match Port::open(gate).await {
        Ok(_) => Outcome::Passed(
            "the agent asks its model through the gate, and reaches whatever else you reach".into(),
        ),
        Err(error) => closed(&error).into(),
    }
}

/// Says the policy in words.
pub(in crate::cli) fn told(plan: &NetworkPlan) -> String {
    let name = match &plan.policy {
        Policy::Deny => "deny",
        Policy::Allowlist(_) => "allowlist",
        Policy::AllowAll => "allow-all",
    };
    format!("{name}: commands can reach {}", life::reach(plan))
}

/// Opens a gate. Nothing is written before it has decided something.
async fn open(network: NetworkPlan, wiring: &Wiring) -> Result<Gate, CliError> {
    let opening = Opening {
        identity: Identity {
            run: RunId::new(wiring.clock.now(), 0),
            sandbox: "preflight".into(),
        },
        network,
        routes: Vec::new(),
        provider_tools: BTreeSet::new(),
        named: Vec::new(),
        prices: PriceBook::default(),
        records: wiring.state.root().join("preflight"),
        redactor: wiring.redactor.clone(),
        clock: wiring.clock.clone(),
    };
    let opened = opening.open().await;
    opened.map(|(gate, _)| gate).map_err(|error| closed(&error))
}

/// Says why no gate can be opened.
pub(in crate::cli) fn closed(error: &dyn std::error::Error) -> CliError {
    CliError::runtime(
        "no gate can be opened",
        error.to_string(),
        "look at the base URL of its provider, and at the limits of this user (`ulimit -a`)",
    )
}
