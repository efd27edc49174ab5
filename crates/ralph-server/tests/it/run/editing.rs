//! Replacing files: conditions, modes, concurrent edits.

use hyper::Method;
use serde_json::{Value, json};

use super::{asking_run, below, set_mode};
use crate::support::{HttpReply, TestServer};

async fn put(
    server: &TestServer,
    path: &str,
    condition: Option<(&str, &str)>,
    text: &str,
) -> HttpReply {
    let mut request = server.request(Method::PUT, path);
    if let Some((name, value)) = condition {
        request = request.header(name, value);
    }
    server.send_json(request, &json!({"text": text})).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_replaced_only_in_the_version_that_was_read() {
    let (server, run) = asking_run().await;
    let path = below(&run, "/files/a.txt");
    let read = server.get(&path).await.expect(200);
    let version = read.header("etag").to_owned();
    let current = Some(("if-match", version.as_str()));
    let forbidden = put(&server, &path, current, "uno\n")
        .await
        .expect(403)
        .json();
    assert_eq!(forbidden["type"], "urn:ralph:problem:forbidden-by-mode");
    set_mode(&server, &run, "guided").await;
    put(&server, &path, None, "uno\n").await.expect(428);
    put(&server, &path, Some(("if-none-match", "*")), "uno\n")
        .await
        .expect(412);
    let replaced = put(&server, &path, current, "uno\n").await.expect(200);
    let next = server.get(&path).await.expect(200);
    assert_eq!(next.json()["text"], "uno\n");
    assert_eq!(next.header("etag"), replaced.header("etag"));
    let stale = put(&server, &path, current, "dos\n")
        .await
        .expect(412)
        .json();
    assert_eq!(stale["diff"], "@@ -1,1 +1,1 @@\n-uno\n+dos\n");
    assert_eq!(server.get(&path).await.json()["text"], "uno\n");

    let new = below(&run, "/files/src/new.txt");
    put(&server, &new, Some(("if-match", "*")), "x\n")
        .await
        .expect(412);
    put(&server, &new, Some(("if-none-match", "*")), "x\n")
        .await
        .expect(200);
    assert_eq!(server.get(&new).await.json()["text"], "x\n");
    let large = "x".repeat((1 << 20) + 1);
    let too_large = put(&server, &new, Some(("if-match", "*")), &large).await;
    assert!(
        [413, 422].contains(&too_large.status.as_u16()),
        "{}",
        too_large.text()
    );

    server
        .post(&below(&run, "/answer"), &json!({"text": "8080"}))
        .await
        .expect(200);
    server.wait_for_status(&run, "succeeded").await;
    let audit = server.get_json(&below(&run, "/audit")).await;
    assert_eq!(audit["green"], true, "{audit}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_concurrent_edits_one_is_rejected() {
    let (server, run) = asking_run().await;
    set_mode(&server, &run, "guided").await;
    for path in [
        below(&run, "/files/a.txt"),
        below(&run, "/files/.ralph/notes.md"),
    ] {
        let version = server
            .get(&path)
            .await
            .expect(200)
            .header("etag")
            .to_owned();
        let current = Some(("if-match", version.as_str()));
        let (one, two) = tokio::join!(
            put(&server, &path, current, "of the first\n"),
            put(&server, &path, current, "of the second\n"),
        );
        let mut statuses = [one.status.as_u16(), two.status.as_u16()];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 412], "{} {}", one.text(), two.text());
        let text = server.get_json(&path).await["text"].clone();
        let winner = if one.status.as_u16() == 200 {
            "of the first\n"
        } else {
            "of the second\n"
        };
        assert_eq!(text, winner);
    }
    let edits: Vec<Value> = server
        .project
        .events(&run)
        .into_iter()
        .filter(|event| event["command"]["edit"] != Value::Null)
        .collect();
    assert!(edits.len() >= 2, "{edits:?}");
    server.stop().await;
}
