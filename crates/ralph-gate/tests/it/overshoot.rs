//! Spent and reserved amounts never exceed a budget, compared with the provider's own ledger.

use std::time::Duration;

use ralph_core::money::Usd;
use ralph_gate::{Arrival, CostMeter, Gate, SandboxListener};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinSet;

use crate::billing_provider::{BillingBehavior, BillingProvider, BillingWire};
use crate::credentials::{placeholder, post};
use crate::support::{GateTestbed, connect, status};

const PARALLEL: [usize; 4] = [1, 20, 100, 250];

/// The behavior of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientBehavior {
    /// Reads the response.
    Stays,
    /// Disconnects after sending the request.
    Leaves,
    /// Disconnects after the first bytes of the response.
    LeavesAtFirstBytes,
    /// Requests a background job.
    RequestsBackgroundJob,
}

/// The budget that is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BudgetKind {
    Dollars,
    Tokens,
}

const CASES: [(BillingBehavior, ClientBehavior); 9] = [
    (BillingBehavior::Object, ClientBehavior::Stays),
    (BillingBehavior::Stream, ClientBehavior::Stays),
    (BillingBehavior::HiddenReasoning, ClientBehavior::Stays),
    (BillingBehavior::CutStream, ClientBehavior::Stays),
    (BillingBehavior::BadUsage, ClientBehavior::Stays),
    (BillingBehavior::Object, ClientBehavior::Leaves),
    (BillingBehavior::Stream, ClientBehavior::Leaves),
    (BillingBehavior::Stream, ClientBehavior::LeavesAtFirstBytes),
    (
        BillingBehavior::Object,
        ClientBehavior::RequestsBackgroundJob,
    ),
];

pub(crate) struct OvershootSetup {
    pub(crate) gate: Gate,
    pub(crate) meter: std::sync::Arc<CostMeter>,
    pub(crate) provider: BillingProvider,
    pub(crate) testbed: GateTestbed,
}

pub(crate) async fn overshoot_setup(
    wire: BillingWire,
    behavior: BillingBehavior,
    set: BudgetKind,
) -> OvershootSetup {
    let provider = BillingProvider::start(wire, behavior, Duration::from_millis(8)).await;
    let mut testbed = GateTestbed::new();
    testbed.map_name(&provider.address.to_string(), provider.address);
    testbed.routes = vec![wire.route(provider.address)];
    testbed.limits.reservation_wait = Duration::from_secs(2);
    match set {
        BudgetKind::Dollars => testbed.budgets.max_cost = Some(limit(wire)),
        BudgetKind::Tokens => testbed.budgets.max_tokens = Some(200_000),
    }
    let (gate, meter) = testbed.build_gate();
    OvershootSetup {
        gate,
        meter,
        provider,
        testbed,
    }
}

pub(crate) fn limit(wire: BillingWire) -> Usd {
    Usd::from_dollars(match wire {
        BillingWire::Messages => 1.5,
        BillingWire::Chat | BillingWire::Responses => 3.0,
    })
    .unwrap()
}

/// Sends one request as the client and returns the response status if the client waits for it.
pub(crate) async fn send_as_client(
    gate: Gate,
    request: String,
    client: ClientBehavior,
) -> Option<u16> {
    let mut stream = connect(&gate, Arrival::new(SandboxListener::Credentials));
    // A request that is refused early is not read to its end.
    drop(stream.write_all(request.as_bytes()).await);
    match client {
        ClientBehavior::Leaves => {
            // Long enough to send the request.
            tokio::time::sleep(Duration::from_millis(3)).await;
            None
        }
        ClientBehavior::LeavesAtFirstBytes => {
            let mut first = [0; 16];
            // A refusal may be shorter.
            drop(stream.read_exact(&mut first).await);
            None
        }
        ClientBehavior::Stays | ClientBehavior::RequestsBackgroundJob => {
            let mut response = Vec::new();
            // A response may end with the connection.
            drop(stream.read_to_end(&mut response).await);
            Some(status(&String::from_utf8_lossy(&response)))
        }
    }
}

/// Sends many concurrent requests, waits until all are charged and returns the distinct statuses.
async fn flood(
    setup: &OvershootSetup,
    wire: BillingWire,
    (behavior, client): (BillingBehavior, ClientBehavior),
    count: usize,
) -> Vec<u16> {
    let auth = format!("Authorization: Bearer {}", placeholder(&setup.gate));
    let mut body = wire.request(
        &"word ".repeat(100),
        Some(20_000),
        behavior != BillingBehavior::Object,
    );
    if client == ClientBehavior::RequestsBackgroundJob {
        body["background"] = json!(true);
    }
    let request = post(wire.path(), &auth, &body.to_string());
    let mut clients = JoinSet::new();
    for _ in 0..count {
        clients.spawn(send_as_client(setup.gate.clone(), request.clone(), client));
    }
    let mut statuses: Vec<u16> = clients.join_all().await.into_iter().flatten().collect();
    statuses.sort_unstable();
    statuses.dedup();
    while setup.meter.open_calls() > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    statuses
}

/// Sends many concurrent requests and compares the provider's ledger with the limit.
async fn assert_within_budget(
    wire: BillingWire,
    set: BudgetKind,
    (behavior, client): (BillingBehavior, ClientBehavior),
    count: usize,
) {
    let case = format!("{wire:?} {set:?} {behavior:?} {client:?} ×{count}");
    let setup = overshoot_setup(wire, behavior, set).await;
    let statuses = flood(&setup, wire, (behavior, client), count).await;
    let (spent, billed) = (setup.meter.spent(), setup.provider.cost());
    let tokens = setup.provider.tokens();
    if client == ClientBehavior::RequestsBackgroundJob && wire == BillingWire::Messages {
        // This wire format does not have the option, so it is removed.
        let bills = setup.provider.bills();
        let has_job = |request: &Value| request.get("background").is_some();
        assert!(!bills.iter().any(|bill| has_job(&bill.request)), "{case}");
    } else if client == ClientBehavior::RequestsBackgroundJob {
        assert_eq!(
            (setup.provider.bills().len(), &*statuses),
            (0, &[400][..]),
            "{case}"
        );
        return;
    }
    match set {
        BudgetKind::Dollars => {
            let max = limit(wire);
            assert!(
                billed <= max && spent.cost <= max,
                "{case}: {billed} {}",
                spent.cost
            );
        }
        BudgetKind::Tokens => {
            assert!(
                tokens <= 200_000 && spent.tokens <= 200_000,
                "{case}: {tokens}"
            );
        }
    }
    assert!(
        spent.cost >= billed && spent.tokens >= tokens,
        "{case}: charged less than billed"
    );
    assert!(!setup.provider.bills().is_empty(), "{case}: nothing passed");
    assert!(
        statuses.iter().all(|code| matches!(code, 200 | 402)),
        "{case}: {statuses:?}"
    );
    if count >= 100
        && client == ClientBehavior::Stays
        && matches!(behavior, BillingBehavior::Object | BillingBehavior::Stream)
    {
        // The rest does not cover a useful response.
        let is_used = match set {
            BudgetKind::Dollars => billed.nanos() * 100 >= limit(wire).nanos() * 97,
            BudgetKind::Tokens => tokens * 100 >= 200_000 * 97,
        };
        assert!(is_used, "{case}: the budget is not used: {billed} {tokens}");
    }
}

async fn assert_all_cases_within_budget(wire: BillingWire, set: BudgetKind) {
    for case in CASES {
        for count in PARALLEL {
            assert_within_budget(wire, set, case, count).await;
        }
    }
}

macro_rules! no_overshoot {
    ($($name:ident: $wire:ident $set:ident),* $(,)?) => {$(
        #[tokio::test]
        async fn $name() {
            assert_all_cases_within_budget(BillingWire::$wire, BudgetKind::$set).await;
        }
    )*};
}

no_overshoot! {
    parallel_calls_of_messages_stay_within_a_dollar_budget: Messages Dollars,
    parallel_calls_of_messages_stay_within_a_token_budget: Messages Tokens,
    parallel_calls_of_chat_stay_within_a_dollar_budget: Chat Dollars,
    parallel_calls_of_chat_stay_within_a_token_budget: Chat Tokens,
    parallel_calls_of_responses_stay_within_a_dollar_budget: Responses Dollars,
    parallel_calls_of_responses_stay_within_a_token_budget: Responses Tokens,
}
