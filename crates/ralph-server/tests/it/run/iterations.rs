//! Iterations, their files and actions.

use serde_json::{Value, json};

use super::{below, finished_run};

#[tokio::test(flavor = "multi_thread")]
async fn iterations_have_summaries_files_and_actions() {
    let (server, run) = finished_run().await;
    let list = server.get_json(&below(&run, "/iterations")).await;
    let first = &list["iterations"][0];
    assert_eq!(list["iterations"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&first["iteration"], &first["summary"]),
        (&json!(1), &json!("work"))
    );
    assert_eq!(first["metrics"]["usage"]["input_tokens"], 10);
    assert!(
        first["finished_at"].is_string() && first["evidence"].is_array(),
        "{first}"
    );
    let shown = server.get_json(&below(&run, "/iterations/1")).await;
    assert!(
        shown["diff"]["text"]
            .as_str()
            .unwrap()
            .contains("+++ b/a.txt"),
        "{shown}"
    );
    for number in ["0", "2", "99"] {
        server
            .get(&below(&run, &format!("/iterations/{number}")))
            .await
            .expect(404);
    }
    for number in ["x", "-1", "99999999999"] {
        server
            .get(&below(&run, &format!("/iterations/{number}")))
            .await
            .expect(400);
    }
    let actions = server.get_json(&below(&run, "/actions")).await;
    let kinds: Vec<&Value> = actions["actions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|action| &action["action"])
        .collect();
    assert_eq!(kinds, ["write", "write", "commit"]);
    assert_eq!(actions["actions"][0]["state"], "succeeded");
    let part = server.get_json(&below(&run, "/actions?limit=2")).await;
    let next = part["next"].as_u64().unwrap();
    let rest = server
        .get_json(&below(&run, &format!("/actions?after={next}")))
        .await;
    assert_eq!(
        (&rest["actions"][0]["action"], &rest["next"]),
        (&json!("commit"), &json!(null))
    );
    let none = server.get_json(&below(&run, "/actions?iteration=2")).await;
    assert_eq!(none["actions"], json!([]));
    server
        .get(&below(&run, "/iterations/1/transcript"))
        .await
        .expect(404);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_an_iteration_are_sent_in_ranges() {
    let (server, run) = finished_run().await;
    let path = |name: &str| below(&run, &format!("/iterations/1/{name}"));
    for name in [
        "prompt.md",
        "response.json",
        "actions.jsonl",
        "git_diff.patch",
        "test_output.txt",
        "metrics.json",
        "pr_state.json",
    ] {
        let file = server.get(&path(name)).await.expect(200);
        let stored =
            std::fs::read(server.project.run_dir(&run).join("iterations/1").join(name)).unwrap();
        assert_eq!(file.body, stored, "{name}");
        assert_eq!(file.header("content-type"), "text/plain; charset=utf-8");
    }
    let whole = server.get(&path("prompt.md")).await.text();
    let range = async |range: &str| {
        let request = server
            .request(hyper::Method::GET, &path("prompt.md"))
            .header("range", range);
        server
            .send(request.body(http_body_util::Full::default()).unwrap())
            .await
    };
    let part = range("bytes=10-19").await.expect(206);
    assert_eq!(part.text(), whole[10..20]);
    assert_eq!(
        part.header("content-range"),
        format!("bytes 10-19/{}", whole.len())
    );
    assert_eq!(
        range("bytes=-7").await.expect(206).text(),
        whole[whole.len() - 7..]
    );
    range("bytes=99999999-").await.expect(416);
    assert_eq!(range("lines=1-2").await.expect(200).text(), whole);
    for name in [
        "journal.jsonl",
        "..%2f..%2fjournal.jsonl",
        "output.log",
        "transcript.jsonl",
    ] {
        server.get(&path(name)).await.expect(404);
    }
    server.stop().await;
}
