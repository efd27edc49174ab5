//! Guardrails, notes and messages, and requests with a key.

use hyper::Method;
use serde_json::json;

use super::{asking_run, below, set_mode};

#[tokio::test(flavor = "multi_thread")]
async fn guardrails_and_notes_reach_the_run() {
    let (server, run) = asking_run().await;
    let guardrail =
        json!({"name": "one first", "trigger": "when adding", "instruction": "add one"});
    let added = server
        .post(&below(&run, "/guardrails"), &guardrail)
        .await
        .expect(200);
    assert_eq!(added.json()["done"], true);
    let text = server.get(&below(&run, "/guardrails")).await.expect(200);
    assert!(
        text.json()["text"]
            .as_str()
            .unwrap()
            .contains("### sign: one first")
    );
    assert!(text.header("etag").starts_with('"'));
    let incomplete = json!({"name": "n", "trigger": "", "instruction": "i"});
    let rejected = server
        .post(&below(&run, "/guardrails"), &incomplete)
        .await
        .expect(422);
    assert!(
        rejected.json()["detail"]
            .as_str()
            .unwrap()
            .contains("needs a trigger")
    );

    let note = json!({"kind": "decision", "text": "use a.txt", "author": "me"});
    server.post(&below(&run, "/notes"), &note).await.expect(200);
    let notes = server.get_json(&below(&run, "/notes")).await;
    assert!(
        notes["text"]
            .as_str()
            .unwrap()
            .contains("- text: use a.txt")
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_reach_the_run() {
    let (server, run) = asking_run().await;
    server
        .post(&below(&run, "/messages"), &json!({"text": "not 80"}))
        .await
        .expect(200);
    let messages = server.get_json(&below(&run, "/messages")).await;
    let message = &messages["messages"][0];
    assert_eq!(
        (&message["text"], &message["state"]),
        (&json!("not 80"), &json!("queued"))
    );
    let empty = server
        .post(&below(&run, "/messages"), &json!({"text": " "}))
        .await
        .expect(422);
    assert!(
        empty.json()["detail"]
            .as_str()
            .unwrap()
            .contains("the message is empty")
    );
    let audit = server.get_json(&below(&run, "/audit")).await;
    assert_eq!(audit["green"], true, "{audit}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_request_with_a_key_adds_nothing() {
    let (server, run) = asking_run().await;
    let send = async |key: &str, rest: &str, body| {
        let request = server.request(Method::POST, &below(&run, rest));
        server
            .send_json(request.header("Idempotency-Key", key), &body)
            .await
    };
    let message = json!({"text": "not 80"});
    let first = send("k1", "/messages", message.clone())
        .await
        .expect(200)
        .json();
    let second = send("k1", "/messages", message.clone())
        .await
        .expect(200)
        .json();
    assert_eq!(first, second);
    let other = send("k1", "/messages", json!({"text": "80"}))
        .await
        .expect(422)
        .json();
    assert_eq!(other["type"], "urn:ralph:problem:reused-key");
    send("k2", "/messages", message).await.expect(200);
    let note = json!({"kind": "file", "text": "see a.txt"});
    for _ in 0..2 {
        send("note 1", "/notes", note.clone()).await.expect(200);
    }
    let guardrail = json!({"name": "n", "trigger": "t", "instruction": "i"});
    for _ in 0..2 {
        send("sign 1", "/guardrails", guardrail.clone())
            .await
            .expect(200);
    }
    send(" ", "/messages", json!({"text": "x"}))
        .await
        .expect(400);
    let commands = server.project.events(&run);
    let received = commands
        .iter()
        .filter(|event| event["type"] == "command_received");
    assert_eq!(received.count(), 4, "two messages, a note and a guardrail");
    // The journal has the keys, so a restarted server knows them, too.
    let server = crate::support::TestServer::start_for(server.stop().await).await;
    let request = server.request(Method::POST, &below(&run, "/notes"));
    let request = request.header("Idempotency-Key", "note 1");
    server.send_json(request, &note).await.expect(200);
    let notes = server.get_json(&below(&run, "/notes")).await;
    assert_eq!(
        notes["text"].as_str().unwrap().matches("see a.txt").count(),
        1
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mode_decides_about_notes_and_messages() {
    let project = crate::support::TestProject::new();
    project.write_script(&[
        crate::support::command_reply("until test -e ../scratch/go; do sleep 0.05; done"),
        crate::support::finishing_reply(),
    ]);
    let server = crate::support::TestServer::start_for(project).await;
    let run = server.start_run().await;
    let is_working =
        |details: &serde_json::Value| details["iteration"] == 1 && details["status"] == "running";
    server.wait_for_run(&run, "it works", is_working).await;
    let note = json!({"kind": "clarify", "text": "x"});
    for (rest, body) in [
        ("/notes", note.clone()),
        ("/messages", json!({"text": "x"})),
    ] {
        let problem = server
            .post(&below(&run, rest), &body)
            .await
            .expect(403)
            .json();
        assert!(
            problem["detail"]
                .as_str()
                .unwrap()
                .contains("need the mode `guided`"),
            "{problem}"
        );
        let allowed = problem["allowed"].as_array().unwrap();
        assert!(
            allowed.contains(&json!("mode")) && !allowed.contains(&json!("note")),
            "{problem}"
        );
    }
    let same = server
        .put(&below(&run, "/mode"), &json!({"mode": "autonomous"}))
        .await
        .expect(409);
    assert!(same.json()["detail"].as_str().unwrap().contains("already"));
    server
        .put(&below(&run, "/mode"), &json!({"mode": "guided"}))
        .await
        .expect(200);
    let sandbox = server.get_json(&below(&run, "/sandbox")).await;
    let scratch = server
        .project
        .home()
        .join("sandboxes")
        .join(sandbox["id"].as_str().unwrap());
    std::fs::write(scratch.join("scratch/go"), "").unwrap();
    server.wait_for_status(&run, "succeeded").await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_must_exist() {
    let (server, run) = asking_run().await;
    set_mode(&server, &run, "guided").await;
    let unknown = server
        .put(&below(&run, "/profile"), &json!({"profile": "nothing"}))
        .await;
    unknown.expect(422);
    server.stop().await;
}
