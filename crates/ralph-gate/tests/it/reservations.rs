//! Single calls against a budget: what is reserved, lowered, charged and refused.

use std::time::Duration;

use ralph_core::money::Usd;
use ralph_gate::{Arrival, SandboxListener};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::task::JoinSet;

use crate::billing_provider::{BillingBehavior, BillingProvider, BillingWire};
use crate::credentials::{placeholder, post};
use crate::overshoot::{
    BudgetKind, ClientBehavior, OvershootSetup, limit, overshoot_setup, send_as_client,
};
use crate::support::{GateTestbed, body, connect, header, send, status};

/// Sends one request and returns the response.
async fn send_request(setup: &OvershootSetup, wire: BillingWire, body: &Value) -> String {
    let auth = format!("Authorization: Bearer {}", placeholder(&setup.gate));
    let request = post(wire.path(), &auth, &body.to_string());
    send(&setup.gate, SandboxListener::Credentials, request).await
}

const WIRES: [BillingWire; 3] = [
    BillingWire::Messages,
    BillingWire::Chat,
    BillingWire::Responses,
];

#[tokio::test]
async fn sequential_calls_use_the_budget_without_exceeding_it() {
    for wire in WIRES {
        let setup = overshoot_setup(wire, BillingBehavior::Object, BudgetKind::Dollars).await;
        let body = wire.request("Hello", Some(32_000), false);
        let mut last = String::new();
        for _ in 0..40 {
            last = send_request(&setup, wire, &body).await;
        }
        assert_eq!(status(&last), 402, "{last}");
        assert_eq!(header(&last, "x-ralph-gate"), Some("budget-spent"));
        let text = self::body(&last);
        assert!(text.contains("does not cover this request"), "{text}");
        let (billed, max) = (setup.provider.cost(), limit(wire));
        assert!(
            billed <= max && billed.nanos() * 100 >= max.nanos() * 98,
            "{billed}"
        );
        assert_eq!(setup.meter.spent().cost, billed);
        assert!(setup.meter.insufficient_budget().is_some());
    }
}

#[tokio::test]
async fn the_output_limit_is_lowered_to_the_remaining_budget() {
    for wire in WIRES {
        let setup = overshoot_setup(wire, BillingBehavior::Object, BudgetKind::Tokens).await;
        for (requested, code) in [(150_000, 200), (150_000, 200), (150_000, 402), (100, 402)] {
            let response =
                send_request(&setup, wire, &wire.request("Hello", Some(requested), false)).await;
            assert_eq!(status(&response), code, "{response}");
        }
        let bills = setup.provider.bills();
        let sent = |index: usize| bills[index].request[wire.limit_key()].as_u64().unwrap();
        assert_eq!(sent(0), 150_000);
        // Everything left after the input bound: its bytes and the provider's overhead.
        assert!((47_000..50_000).contains(&sent(1)), "{}", sent(1));
    }
}

#[tokio::test]
async fn requests_without_an_output_limit_get_the_model_limit() {
    for (wire, max) in [
        (BillingWire::Messages, 64_000),
        (BillingWire::Chat, 128_000),
        (BillingWire::Responses, 128_000),
    ] {
        let setup = overshoot_setup(wire, BillingBehavior::Object, BudgetKind::Tokens).await;
        let response = send_request(&setup, wire, &wire.request("Hello", None, false)).await;
        assert_eq!(status(&response), 200, "{response}");
        let sent = &setup.provider.bills()[0].request;
        assert_eq!(sent[wire.limit_key()], max, "{sent}");
    }
}

#[tokio::test]
async fn thinking_is_lowered_along_with_the_output() {
    let wire = BillingWire::Messages;
    let setup = overshoot_setup(wire, BillingBehavior::Object, BudgetKind::Tokens).await;
    let mut body = wire.request("Hello", Some(1_000_000), false);
    body["thinking"] = json!({"type": "enabled", "budget_tokens": 900_000});
    assert_eq!(status(&send_request(&setup, wire, &body).await), 200);
    let sent = &setup.provider.bills()[0].request;
    let (limit, budget) = (
        sent["max_tokens"].as_u64().unwrap(),
        sent["thinking"]["budget_tokens"].as_u64().unwrap(),
    );
    assert!((1024..limit).contains(&budget), "{sent}");
    // The rest covers a short response, but not one with thinking.
    assert_eq!(status(&send_request(&setup, wire, &body).await), 402);
}

#[tokio::test]
async fn every_choice_of_a_chat_is_paid_for() {
    let wire = BillingWire::Chat;
    let setup = overshoot_setup(wire, BillingBehavior::Object, BudgetKind::Tokens).await;
    let mut body = wire.request("Hello", Some(100_000), false);
    body["n"] = json!(8);
    assert_eq!(status(&send_request(&setup, wire, &body).await), 200);
    let bill = &setup.provider.bills()[0];
    let each = bill.request["max_completion_tokens"].as_u64().unwrap();
    assert!((24_000..25_000).contains(&each), "{each}");
    assert!(bill.usage.total() <= 200_000);
}

#[tokio::test]
async fn without_a_budget_a_request_is_not_changed() {
    for wire in WIRES {
        let provider = BillingProvider::start(wire, BillingBehavior::Object, Duration::ZERO).await;
        let mut testbed = GateTestbed::new();
        testbed.map_name(&provider.address.to_string(), provider.address);
        testbed.routes = vec![wire.route(provider.address)];
        let (gate, meter) = testbed.build_gate();
        let setup = OvershootSetup {
            gate,
            meter,
            provider,
            testbed,
        };
        let response = send_request(&setup, wire, &wire.request("Hello", None, false)).await;
        assert_eq!(status(&response), 200, "{response}");
        let sent = &setup.provider.bills()[0].request;
        assert!(sent.get(wire.limit_key()).is_none(), "{sent}");
        assert_eq!(setup.meter.spent().cost, setup.provider.cost());
    }
}

#[tokio::test]
async fn typical_agent_requests_pass_with_three_dollars() {
    let provider = BillingProvider::start(
        BillingWire::Messages,
        BillingBehavior::Object,
        Duration::ZERO,
    )
    .await;
    let mut testbed = GateTestbed::new();
    testbed.map_name(&provider.address.to_string(), provider.address);
    testbed.routes = vec![BillingWire::Messages.route(provider.address)];
    testbed.budgets.max_cost = Usd::from_dollars(3.0);
    let (gate, meter) = testbed.build_gate();
    let setup = OvershootSetup {
        gate,
        meter,
        provider,
        testbed,
    };
    let mut body = BillingWire::Messages.request(&"x".repeat(200_000), Some(32_000), false);
    for model in ["claude-opus-4-8", "claude-sonnet-4-5", "claude-haiku-4-5"] {
        body["model"] = json!(model);
        let response = send_request(&setup, BillingWire::Messages, &body).await;
        assert_eq!(status(&response), 200, "{model}: {response}");
        let sent = setup.provider.bills().pop().unwrap().request;
        assert_eq!(sent["max_tokens"], 32_000, "{model}");
    }
}

#[tokio::test]
async fn calls_wait_for_reservations_of_other_calls() {
    let wire = BillingWire::Chat;
    let setup = overshoot_setup(wire, BillingBehavior::Object, BudgetKind::Tokens).await;
    // Two of these requests fit one after the other, but not concurrently.
    let body = wire.request("Hello", Some(60_000), false);
    let mut larger_body = body.clone();
    larger_body["max_completion_tokens"] = json!(130_000);
    let (first, second) = tokio::join!(
        send_request(&setup, wire, &larger_body),
        send_request(&setup, wire, &body)
    );
    assert_eq!((status(&first), status(&second)), (200, 200));
    let limits: Vec<u64> = setup
        .provider
        .bills()
        .iter()
        .map(|bill| bill.request["max_completion_tokens"].as_u64().unwrap())
        .collect();
    assert_eq!(limits.len(), 2);
    assert!(
        limits.contains(&130_000) && limits.contains(&60_000),
        "{limits:?}"
    );
}

#[tokio::test]
async fn disconnected_clients_are_charged_the_billed_amount() {
    for wire in WIRES {
        for (behavior, client) in [
            (BillingBehavior::Object, ClientBehavior::Leaves),
            (BillingBehavior::Stream, ClientBehavior::Leaves),
            (BillingBehavior::Stream, ClientBehavior::LeavesAtFirstBytes),
        ] {
            let setup = overshoot_setup(wire, behavior, BudgetKind::Dollars).await;
            let auth = format!("Authorization: Bearer {}", placeholder(&setup.gate));
            let body = wire.request("Hello", Some(20_000), behavior == BillingBehavior::Stream);
            let request = post(wire.path(), &auth, &body.to_string());
            send_as_client(setup.gate.clone(), request, client).await;
            let charges = setup.testbed.sink.wait_for_charges(1).await;
            assert!(!charges[0].is_estimate, "{wire:?} {behavior:?} {client:?}");
            assert_eq!(charges[0].usage, setup.provider.bills()[0].usage);
            assert_eq!(charges[0].cost, setup.provider.cost());
        }
    }
}

#[tokio::test]
async fn background_reads_are_limited_and_charge_the_reservation() {
    for is_stopped in [false, true] {
        let wire = BillingWire::Messages;
        let pause = Duration::from_secs(30);
        let provider = BillingProvider::start(wire, BillingBehavior::Stream, pause).await;
        let mut testbed = GateTestbed::new();
        testbed.map_name(&provider.address.to_string(), provider.address);
        testbed.routes = vec![wire.route(provider.address)];
        testbed.budgets.max_cost = Usd::from_dollars(3.0);
        if !is_stopped {
            testbed.limits.background_read_timeout = Duration::from_secs(3);
        }
        let (gate, meter) = testbed.build_gate();
        let auth = format!("Authorization: Bearer {}", placeholder(&gate));
        let body = wire.request("Hello", Some(20_000), true);
        let request = post(wire.path(), &auth, &body.to_string());
        let mut stream = connect(&gate, Arrival::new(SandboxListener::Credentials));
        stream.write_all(request.as_bytes()).await.unwrap();
        while meter.open_calls() != 1 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        drop(stream);
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(
            meter.open_calls(),
            1,
            "the response is read in the background"
        );
        if is_stopped {
            meter.stop_background_reads();
        }
        let charges = testbed.sink.wait_for_charges(1).await;
        assert!(charges[0].is_estimate);
        assert_eq!(charges[0].usage.output_tokens, 20_000);
        assert!(charges[0].cost >= provider.cost());
        assert_eq!(meter.spent().cost, charges[0].cost);
    }
}

#[tokio::test]
async fn concurrent_calls_are_limited() {
    let wire = BillingWire::Chat;
    let provider =
        BillingProvider::start(wire, BillingBehavior::Object, Duration::from_millis(500)).await;
    let mut testbed = GateTestbed::new();
    testbed.map_name(&provider.address.to_string(), provider.address);
    testbed.routes = vec![wire.route(provider.address)];
    testbed.limits.model_calls = 3;
    testbed.limits.reservation_wait = Duration::from_millis(100);
    let (gate, _) = testbed.build_gate();
    let auth = format!("Authorization: Bearer {}", placeholder(&gate));
    let body = wire.request("Hello", Some(100), false);
    let request = post(wire.path(), &auth, &body.to_string());
    let mut clients = JoinSet::new();
    for _ in 0..10 {
        clients.spawn(send_as_client(
            gate.clone(),
            request.clone(),
            ClientBehavior::Stays,
        ));
    }
    let mut statuses: Vec<u16> = clients.join_all().await.into_iter().flatten().collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 200, 429, 429, 429, 429, 429, 429, 429]);
    assert_eq!(provider.bills().len(), 3);
}

#[tokio::test]
async fn endpoints_without_a_price_are_refused() {
    for (wire, path) in [
        (BillingWire::Messages, "/anthropic/v1/messages/batches"),
        (BillingWire::Messages, "/anthropic/v1/files"),
        (BillingWire::Messages, "/anthropic/v1/complete"),
        (BillingWire::Responses, "/openai/v1/batches"),
        (BillingWire::Responses, "/openai/v1/files"),
        (BillingWire::Responses, "/openai/v1/images/generations"),
        (BillingWire::Responses, "/openai/v1/embeddings"),
        (BillingWire::Responses, "/openai/v1/completions"),
        (BillingWire::Responses, "/openai/v1/responses/resp_1"),
        (BillingWire::Responses, "/openai/v1/audio/speech"),
    ] {
        let setup = overshoot_setup(wire, BillingBehavior::Object, BudgetKind::Dollars).await;
        let auth = format!("Authorization: Bearer {}", placeholder(&setup.gate));
        let body = wire.request("Hello", Some(100), false).to_string();
        let response = send(
            &setup.gate,
            SandboxListener::Credentials,
            post(path, &auth, &body),
        )
        .await;
        assert_eq!(status(&response), 404, "{path}");
        assert_eq!(header(&response, "x-ralph-gate"), Some("path-not-allowed"));
        assert!(setup.provider.bills().is_empty());
    }
}
