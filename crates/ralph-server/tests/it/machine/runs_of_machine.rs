use serde_json::json;

use crate::support::{TestServer, command_reply, path_of};
use http_body_util::Full;
use hyper::Method;
use hyper::header::COOKIE;

#[tokio::test(flavor = "multi_thread")]
async fn a_finished_run_has_a_cost_a_size_and_a_repository() {
    let server = TestServer::start().await;
    let run = server.start_run().await;
    server.wait_for_status(&run, "succeeded").await;
    let cost = server.get_json("/api/v1/cost?by=model&since=7d").await;
    assert_eq!(cost["total"]["runs"], 1, "{cost}");
    assert_eq!(cost["total"]["tokens"]["input"], 10);
    server.get("/api/v1/cost?since=yesterday").await.expect(422);
    server.get("/api/v1/cost?by=user").await.expect(400);
    let disk = server.get_json("/api/v1/disk?older_than=0").await;
    assert_eq!(disk["runs"][0]["run"], run.as_str());
    assert!(disk["bytes"].as_u64().unwrap() > 0);
    let repositories = server.get_json("/api/v1/repositories").await;
    let first = &repositories["repositories"][0];
    assert_eq!(
        (&first["runs"], &first["is_local"]),
        (&json!(1), &json!(true))
    );
    assert_eq!(first["last_run"], run.as_str());
    let fleet = server.get_json("/api/v1/fleet").await;
    assert_eq!(fleet["runs"], json!([]), "{fleet}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_fleet_names_the_owner_and_the_activity_of_a_run() {
    let server = TestServer::start().await;
    let waiting = command_reply("while ! test -e go; do sleep 0.1; done");
    server.project.write_script(&[waiting]);
    let run = server.start_run().await;
    let is_working = |details: &serde_json::Value| details["iteration"] == 1;
    server.wait_for_run(&run, "it works", is_working).await;
    let fleet = server.get_json("/api/v1/fleet").await;
    let entry = &fleet["runs"][0];
    assert_eq!(entry["id"], run.as_str(), "{fleet}");
    assert_eq!(entry["owner"]["pid"], std::process::id(), "{fleet}");
    assert_eq!(entry["owner"]["this_server"], true);
    assert_eq!(entry["needs_you"], false);
    let project = server.stop().await;
    drop(project);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_share_link_shows_nothing_of_the_machine() {
    let server = TestServer::start().await;
    let share = server.post("/api/v1/shares", &json!({"minutes": 5})).await;
    let link = share.json()["url"].as_str().unwrap().to_owned();
    let code = path_of(&link).split_once("code=").unwrap().1.to_owned();
    let form = server
        .bare_request(Method::POST, "/login")
        .header("accept", "text/html")
        .header("origin", "null")
        .header("sec-fetch-site", "same-origin")
        .header("content-type", "application/x-www-form-urlencoded")
        .body(Full::from(format!("code={code}")))
        .unwrap();
    let signed_in = server.send(form).await.expect(303);
    let cookie = crate::support::session_cookie(&signed_in);
    for (path, status) in [
        ("/api/v1/runs", 200),
        ("/api/v1/tokens", 403),
        ("/api/v1/config", 403),
        ("/api/v1/repositories", 403),
        ("/metrics", 403),
    ] {
        let request = server
            .bare_request(Method::GET, path)
            .header(COOKIE, &cookie)
            .header("sec-fetch-site", "same-origin")
            .body(Full::default())
            .unwrap();
        server.send(request).await.expect(status);
    }
}
