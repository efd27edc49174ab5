//! Egress rules and their audit records.

use ralph_core::net::{AllowlistEntry, EgressPolicy};
use ralph_gate::{Arrival, SandboxListener};

use crate::support::{GateTestbed, OK_RESPONSE, body, header, send, send_at, status};

#[tokio::test]
async fn blocked_hosts_are_refused_with_a_reason() {
    let mut testbed = GateTestbed::allowing(&["allowed.example"]);
    let received = testbed.start_host("allowed.example:80", OK_RESPONSE).await;
    let (gate, _) = testbed.build_gate();
    let request = "GET http://allowed.example/a?b HTTP/1.1\r\nHost: ALLOWED.example.\r\n\
                   Proxy-Authorization: Basic eA==\r\nConnection: close\r\n\r\n";
    let response = send(&gate, SandboxListener::Proxy, request).await;
    assert_eq!((status(&response), body(&response)), (200, "ok"));
    let sent = received.text();
    assert!(sent.starts_with("GET /a?b HTTP/1.1\r\n"), "{sent}");
    assert!(sent.contains("host: allowed.example\r\n"), "{sent}");
    assert!(!sent.to_lowercase().contains("proxy-"), "{sent}");

    let request =
        "GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
    let response = send(&gate, SandboxListener::Proxy, request).await;
    assert_eq!(status(&response), 403);
    assert_eq!(
        header(&response, "x-ralph-gate"),
        Some("blocked-by-allowlist")
    );
    assert_eq!(
        body(&response),
        "ralph: `evil.example` is blocked — it is not on this run's allowlist — \
         ask the user to run `ralph allow run-1 evil.example`\n"
    );
    assert_eq!(
        testbed.sink.wait_for_decisions(2).await,
        [
            "proxy allowed.example:80 + listed policy",
            "proxy evil.example:80 - blocked-by-allowlist policy",
        ]
    );
    let audits = testbed.sink.audits.lock().unwrap();
    let first = (
        audits[0].status,
        audits[0].bytes_in,
        audits[0].request.clone(),
    );
    assert_eq!(first, (Some(200), 2, Some("GET /a".to_owned())));
}

#[tokio::test]
async fn a_host_can_be_allowed_during_a_run() {
    let mut testbed = GateTestbed::new();
    let received = testbed.start_host("late.example:80", OK_RESPONSE).await;
    let (gate, _) = testbed.build_gate();
    let request = "GET / HTTP/1.1\r\nHost: late.example\r\nConnection: close\r\n\r\n";
    for _ in 0..3 {
        let response = send(&gate, SandboxListener::Http, request).await;
        assert_eq!(header(&response, "x-ralph-gate"), Some("blocked-by-policy"));
    }
    assert_eq!(received.connections(), 0);
    let announced = testbed.sink.blocked.lock().unwrap().clone();
    let announced: Vec<_> = announced
        .iter()
        .map(|notice| notice.host.to_string())
        .collect();
    assert_eq!(announced, ["late.example"]);
    gate.allow(AllowlistEntry::parse("late.example").unwrap());
    let response = send(&gate, SandboxListener::Http, request).await;
    assert_eq!((status(&response), received.connections()), (200, 1));
    let decisions = testbed.sink.wait_for_decisions(4).await;
    assert_eq!(decisions[3], "http late.example:80 + listed human");
}

#[tokio::test]
async fn plain_http_reaches_the_host_of_the_mapped_address() {
    let mut testbed = GateTestbed::allowing(&["a.example", "b.example"]);
    let received_a = testbed.start_host("a.example:80", OK_RESPONSE).await;
    let received_b = testbed.start_host("b.example:80", OK_RESPONSE).await;
    let (gate, _) = testbed.build_gate();
    let address = gate.address_of(&"a.example".to_owned().try_into().unwrap(), 80);
    let arrival = Arrival::with_address(SandboxListener::Http, address);
    let request =
        |host: &str| format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let response = send_at(&gate, arrival, request("a.example")).await;
    assert_eq!(status(&response), 200);
    let response = send_at(&gate, arrival, request("b.example")).await;
    assert_eq!(header(&response, "x-ralph-gate"), Some("name-mismatch"));
    // An unassigned address is refused.
    let unassigned = Arrival::with_address(SandboxListener::Http, "127.1.9.9:80".parse().unwrap());
    assert_eq!(send_at(&gate, unassigned, request("a.example")).await, "");
    // Without a mapped address, the request itself names the host.
    let unmapped = Arrival::with_address(SandboxListener::Http, "127.0.0.1:80".parse().unwrap());
    assert_eq!(
        status(&send_at(&gate, unmapped, request("b.example")).await),
        200
    );
    assert_eq!((received_a.connections(), received_b.connections()), (1, 1));
}

#[tokio::test]
async fn names_with_private_addresses_are_refused() {
    let mut testbed = GateTestbed::new();
    testbed.policy = EgressPolicy::AllowAll;
    let received = testbed.start_host("fine.example:80", OK_RESPONSE).await;
    let (inside, _) = crate::support::start_host(OK_RESPONSE.into(), None).await;
    testbed.map_name_unreachable("inside.example:80", &[inside]);
    testbed.map_name_unreachable(
        "metadata.example:80",
        &["169.254.169.254:80".parse().unwrap()],
    );
    let (gate, _) = testbed.build_gate();
    let request = |host: &str| {
        format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
    };
    for (host, code, reason) in [
        ("fine.example", 200, None),
        ("inside.example", 403, Some("private-address")),
        ("metadata.example", 403, Some("private-address")),
        ("127.0.0.1", 403, Some("private-address")),
        ("[::1]", 403, Some("private-address")),
        ("[::ffff:10.0.0.1]", 403, Some("private-address")),
        ("unknown.example", 502, Some("unreachable")),
        ("fine.example:8080", 403, Some("port-not-allowed")),
    ] {
        let response = send(&gate, SandboxListener::Proxy, request(host)).await;
        assert_eq!(status(&response), code, "{host}: {response}");
        assert_eq!(header(&response, "x-ralph-gate"), reason, "{host}");
    }
    assert_eq!(received.connections(), 1);
}

#[tokio::test]
async fn connections_to_a_host_are_reused() {
    let mut testbed = GateTestbed::allowing(&["allowed.example"]);
    let received = testbed.start_host("allowed.example:80", OK_RESPONSE).await;
    let (gate, _) = testbed.build_gate();
    let request = "GET http://allowed.example/ HTTP/1.1\r\nHost: allowed.example\r\nConnection: close\r\n\r\n";
    for _ in 0..5 {
        assert_eq!(
            status(&send(&gate, SandboxListener::Proxy, request).await),
            200
        );
    }
    assert_eq!(received.connections(), 1);
}
