//! Debug commands: only ids of the contract, only in the mode `debug`.

use hyper::Method;
use serde_json::json;

use super::{asking_run, below, set_mode};

#[tokio::test(flavor = "multi_thread")]
async fn only_ids_of_the_contract_run_and_only_in_debug_mode() {
    let (server, run) = asking_run().await;
    let listed = server.get_json(&below(&run, "/debug")).await;
    let ids: Vec<&str> = listed["commands"]
        .as_array()
        .unwrap()
        .iter()
        .map(|command| command["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["test", "log-activity", "log-errors", "log-tests"]);
    assert_eq!(listed["commands"][0]["command"], "test -s base.txt");
    let start = async |id: &str| {
        let request = server.request(Method::POST, &below(&run, &format!("/debug/{id}")));
        server
            .send(request.body(http_body_util::Full::default()).unwrap())
            .await
    };
    for mode in ["autonomous", "guided"] {
        if mode == "guided" {
            set_mode(&server, &run, mode).await;
        }
        let refused = start("test").await.expect(403).json();
        assert!(
            refused["detail"]
                .as_str()
                .unwrap()
                .contains("needs the mode `debug`"),
            "{refused}"
        );
        start("nothing").await.expect(403);
    }
    set_mode(&server, &run, "debug").await;
    let unknown = start("nothing").await.expect(404).json();
    assert!(
        unknown["hint"].as_str().unwrap().contains("log-activity"),
        "{unknown}"
    );
    let path = below(&run, "/debug/test");
    server
        .post(&path, &json!({"command": "id"}))
        .await
        .expect(400);
    let tested = start("test").await.expect(200).json();
    assert_eq!(
        (&tested["done"], &tested["succeeded"]),
        (&json!(true), &json!(true))
    );
    assert!(
        tested["detail"]
            .as_str()
            .unwrap()
            .contains("`test -s base.txt`: exit 0"),
        "{tested}"
    );
    let log = start("log-activity").await.expect(200).json();
    assert!(
        log["output"].as_str().unwrap().contains("iteration=1"),
        "{log}"
    );
    server.get(&path).await.expect(405);
    server.stop().await;
}
