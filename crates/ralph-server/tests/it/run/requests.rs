//! Runs that do not exist, invalid bodies and queries, and commands that a run does not accept.

use hyper::Method;
use serde_json::json;

use super::{asking_run, below, command, finished_run};

#[tokio::test(flavor = "multi_thread")]
async fn a_resource_of_an_unknown_run_is_not_found() {
    let (server, run) = asking_run().await;
    let prefix = run.split_once('-').unwrap().0;
    for id in [
        "last",
        "task",
        prefix,
        "000000-000000-0000",
        "..%2f..",
        "%00",
        "x y".replace(' ', "%20").as_str(),
    ] {
        for rest in [
            "",
            "/tree",
            "/diff",
            "/iterations",
            "/guardrails",
            "/notes",
            "/messages",
            "/task",
            "/diagnostics",
            "/debug",
            "/egress",
            "/sandbox",
            "/attention",
            "/pull",
            "/evidence",
            "/audit",
            "/actions",
            "/files/a.txt",
            "/iterations/1",
            "/iterations/1/prompt.md",
            "/iterations/1/transcript",
        ] {
            let reply = server.get(&below(id, rest)).await.expect(404);
            assert_eq!(reply.header("content-type"), "application/problem+json");
        }
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_fields_and_parameters_are_rejected() {
    let (server, run) = asking_run().await;
    let extra = |body: serde_json::Value| {
        let mut body = body;
        body["status"] = json!("succeeded");
        body
    };
    for (method, rest, body) in [
        (Method::PUT, "/profile", json!({"profile": "x"})),
        (Method::PUT, "/mode", json!({"mode": "debug"})),
        (Method::POST, "/answer", json!({"text": "x"})),
        (Method::POST, "/continue", json!({"max_iterations": 9})),
        (
            Method::POST,
            "/notes",
            json!({"kind": "clarify", "text": "x"}),
        ),
        (Method::POST, "/messages", json!({"text": "x"})),
        (
            Method::POST,
            "/guardrails",
            json!({"name": "n", "trigger": "t", "instruction": "i"}),
        ),
        (Method::POST, "/egress", json!({"host": "example.com"})),
        (Method::POST, "/merge", json!({"unverified": false})),
    ] {
        let request = server.request(method, &below(&run, rest));
        let reply = server.send_json(request, &extra(body)).await;
        let status = reply.status.as_u16();
        assert!([400, 422].contains(&status), "{rest}: {status}");
        assert_eq!(reply.header("content-type"), "application/problem+json");
    }
    for rest in [
        "/diff?what=base",
        "/actions?iteration=x",
        "/actions?cost=1",
        "/diff?of=all",
    ] {
        server.get(&below(&run, rest)).await.expect(400);
    }
    // Nothing of it took effect.
    assert!(
        server
            .project
            .events(&run)
            .iter()
            .all(|event| event["type"] != "command_received")
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_the_status_forbids_names_the_allowed_ones() {
    let (server, run) = finished_run().await;
    let details = server.get_json(&below(&run, "")).await;
    let pause = command(&details, "pause");
    assert_eq!(
        (&pause["allowed"], &pause["reason"]),
        (&json!(false), &json!("it has succeeded"))
    );
    for (method, rest, body) in [
        (Method::PUT, "/mode", json!({"mode": "debug"})),
        (Method::POST, "/answer", json!({"text": "x"})),
        (
            Method::POST,
            "/notes",
            json!({"kind": "clarify", "text": "x"}),
        ),
        (Method::POST, "/messages", json!({"text": "x"})),
        (
            Method::POST,
            "/guardrails",
            json!({"name": "n", "trigger": "t", "instruction": "i"}),
        ),
        (Method::POST, "/continue", json!({"max_iterations": 9})),
        (Method::POST, "/diagnostics", json!(null)),
        (Method::POST, "/diagnostics/apply", json!(null)),
    ] {
        let request = server.request(method, &below(&run, rest));
        let problem = server.send_json(request, &body).await.expect(409).json();
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("it has succeeded"), "{rest}: {problem}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_run_says_what_it_accepts_and_what_it_needs() {
    let (server, run) = asking_run().await;
    let details = server.get_json(&below(&run, "")).await;
    for (name, allowed) in [
        ("answer", true),
        ("note", true),
        ("message", true),
        ("resume", true),
        ("stop", true),
        ("pause", false),
        ("debug", false),
        ("edit", false),
        ("apply", false),
    ] {
        assert_eq!(
            command(&details, name)["allowed"],
            allowed,
            "{name}: {details}"
        );
    }
    let debug = command(&details, "debug")["reason"].as_str().unwrap();
    assert!(debug.contains("needs the mode `debug`"), "{debug}");
    let attention = server.get_json(&below(&run, "/attention")).await;
    let item = &attention["items"][0];
    assert_eq!(
        (&item["kind"], &item["text"]),
        (&json!("question"), &json!("which port?"))
    );
    assert_eq!(item["answers"][0]["command"], "answer");
    let sandbox = server.get_json(&below(&run, "/sandbox")).await;
    assert_eq!(
        (&sandbox["provider"], &sandbox["isolation"]),
        (&json!("local"), &json!("none"))
    );
    assert!(sandbox["disk_bytes"].as_u64().unwrap() > 0, "{sandbox}");
    let egress = server.get_json(&below(&run, "/egress")).await;
    assert_eq!(egress["policy"], json!(null));
    // A local sandbox has no gate that could allow a host.
    let allowed = server
        .post(&below(&run, "/egress"), &json!({"host": "example.com"}))
        .await;
    allowed.expect(422);
    let invalid = server
        .post(&below(&run, "/egress"), &json!({"host": "http://x/"}))
        .await;
    invalid.expect(422);
    server.stop().await;
}
