//! The gate of a proxy.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use ralph_core::budget::{BudgetLimits as Budgets, Spent};
use ralph_core::id::RunId;
use ralph_core::net::{Allowlist, EgressPolicy, ProviderTool};
use ralph_core::ports::Clock;
use ralph_gate::{
    CostMeter, Gate, GateDeps, GateLimits, GateSettings, MeterRates, Reachable, Resolver as _,
    Route, SandboxIdentity, SystemResolver,
};

use super::health::Health;
use super::log::RequestLog;
use crate::error::AppError;

/// The timeout of an idle connection, for example to a provider that does not answer.
const IDLE_TIMEOUT: Duration = Duration::from_mins(5);

/// Opens the gate of a proxy, with one credential and no other destination. `is_named` means that
/// the user named the API, so its address may be private.
pub async fn open_gate(
    route: Route,
    health: Health,
    is_named: bool,
    tools: Vec<ProviderTool>,
    clock: Arc<dyn Clock>,
) -> Result<Gate, AppError> {
    let mut reachable = Reachable::public();
    if is_named {
        let named = SystemResolver.lookup(route.endpoint()).await;
        // With a name that does not resolve, each request fails with the reason.
        for address in named.into_iter().flatten() {
            reachable = reachable.with_address(address);
        }
    }
    let run = RunId::parse("proxy").ok_or_else(|| start_error(&"it has no name"))?;
    let settings = GateSettings {
        identity: SandboxIdentity {
            run,
            sandbox: "none".to_owned(),
        },
        policy: EgressPolicy::Deny,
        inspect: Allowlist::default(),
        routes: vec![route],
        provider_tools: tools.into_iter().collect(),
        limits: GateLimits {
            idle_timeout: IDLE_TIMEOUT,
            ..GateLimits::default()
        },
    };
    let budgets = (Budgets::default(), Spent::default(), MeterRates::default());
    let deps = GateDeps {
        resolver: Arc::new(SystemResolver),
        reachable: Reachable::public(),
        credential_reachable: reachable,
        roots: ralph_gate::system_roots(),
        meter: CostMeter::new(&budgets.0, budgets.1, budgets.2, clock.clone()),
        clock,
        sink: Arc::new(RequestLog::start(io::stderr())),
        cassette: None,
    };
    Gate::standalone(settings, deps, health.text()).map_err(|error| start_error(&error))
}

/// Returns the error of a proxy that cannot start.
pub fn start_error(why: &impl ToString) -> AppError {
    AppError::runtime(
        "cannot start the proxy",
        why.to_string(),
        "check the limits of this user (`ulimit -a`)",
    )
}
