//! Reading the workspace: files, tree and diff, and the paths that are refused.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use super::{below, finished_run, paused_run, question};
use crate::support::{TestProject, TestServer, command_reply, reply};

/// Paths that lead out of the workspace, into the git directory, to secrets, or nowhere.
const REFUSED_PATHS: [&str; 26] = [
    "../journal.jsonl",
    "%2e%2e%2fx",
    "%2e%2e/x",
    "..%2f..%2fetc%2fpasswd",
    "%252e%252e%252fx",
    "%252e%252e/x",
    "a/../../x",
    "/etc/passwd",
    "%2fetc%2fpasswd",
    "a%00b",
    "%00",
    "a%5c..%5cb",
    "C:%5cx",
    "etc/passwd",
    "passwd",
    "scratch/secret",
    "link/config",
    "a.txt/b",
    ".git/config",
    ".git",
    ".GIT/config",
    "git~1/config",
    "src/.git/hooks/x",
    ".env",
    "key.pem",
    "%ff",
];

/// Returns a run whose workspace has a token, a binary file and a large one.
async fn leaking_run() -> (TestServer, String) {
    let project = TestProject::new();
    let leak = "mkdir -p src && printf 'token ghp_%s\\n' 0123456789abcdefghijABCDEFGHIJ012345 >src/leak.txt \
                && printf 'a\\000b' >binary && echo new >new.txt && head -c 5000000 /dev/zero >large";
    project.write_script(&[command_reply(leak), reply(&[question()])]);
    paused_run(project).await
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_read_from_the_sandbox_without_secrets() {
    let (server, run) = leaking_run().await;
    let file = async |path: &str| server.get(&below(&run, &format!("/files/{path}"))).await;
    let read = file("new.txt").await.expect(200);
    assert_eq!(read.json()["text"], "new\n");
    assert_eq!(read.json()["source"], "sandbox");
    assert!(!read.header("etag").is_empty());
    let leaked = file("src/leak.txt").await.expect(200).json();
    assert_eq!(leaked["redacted"], true);
    assert!(
        !leaked.to_string().contains("0123456789abcdefghij"),
        "{leaked}"
    );
    assert_eq!(file("src%2Fleak.txt").await.expect(200).json(), leaked);
    let binary = file("binary").await.expect(200).json();
    assert_eq!(
        (&binary["binary"], &binary["text"], &binary["bytes"]),
        (&json!(true), &json!(""), &json!(3))
    );
    file("large").await.expect(413);
    file("missing.txt").await.expect(404);
    let guardrails = file(".ralph/guardrails.md").await.expect(200).json();
    assert_eq!(guardrails["source"], "host");
    let task = file("ralph_task.md").await.expect(200).json();
    assert!(
        task["text"]
            .as_str()
            .unwrap()
            .contains("- [ ] M1.1 One is there")
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tree_and_the_diff_show_the_workspace_without_secrets() {
    let (server, run) = leaking_run().await;
    let tree = server.get_json(&below(&run, "/tree")).await;
    let paths: Vec<&str> = tree["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["path"].as_str().unwrap())
        .collect();
    assert!(
        paths.contains(&"src/leak.txt") && paths.contains(&"base.txt"),
        "{paths:?}"
    );
    assert!(
        paths.iter().all(|path| !path.starts_with(".git")),
        "{paths:?}"
    );
    let diff = server.get_json(&below(&run, "/diff?of=uncommitted")).await;
    let patch = diff["patch"].as_str().unwrap();
    assert!(
        patch.contains("+new") && !patch.contains("0123456789abcdefghij"),
        "{patch}"
    );
    let nothing = server.get_json(&below(&run, "/diff")).await;
    assert_eq!(
        (&nothing["patch"], &nothing["source"]),
        (&json!(""), &json!("commit"))
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_that_lead_outside_are_refused() {
    let (server, run) = super::asking_run().await;
    let sandbox = server.get_json(&below(&run, "/sandbox")).await;
    let root = server
        .project
        .home()
        .join("sandboxes")
        .join(sandbox["id"].as_str().unwrap());
    symlink("/etc", root.join("repo/etc")).unwrap();
    symlink("/etc/passwd", root.join("repo/passwd")).unwrap();
    symlink("../scratch", root.join("repo/scratch")).unwrap();
    symlink(".git", root.join("repo/link")).unwrap();
    fs::write(root.join("scratch/secret"), "x").unwrap();
    fs::write(root.join("repo/.env"), "KEY=x").unwrap();
    super::set_mode(&server, &run, "guided").await;
    for path in REFUSED_PATHS {
        let address = below(&run, &format!("/files/{path}"));
        let reply = server.get(&address).await;
        let status = reply.status.as_u16();
        assert!(
            [400, 403].contains(&status),
            "GET {path}: {status} {}",
            reply.text()
        );
        assert!(!reply.text().contains("root:"), "{path}");
        let request = server
            .request(hyper::Method::PUT, &address)
            .header("if-match", "*");
        let reply = server.send_json(request, &json!({"text": "x"})).await;
        let status = reply.status.as_u16();
        assert!(
            [400, 403].contains(&status),
            "PUT {path}: {status} {}",
            reply.text()
        );
    }
    for path in [
        ".ralph/guardrails.md",
        ".ralph/activity.log",
        "ralph_task.md",
        ".ralph/x",
    ] {
        let request = server.request(hyper::Method::PUT, &below(&run, &format!("/files/{path}")));
        server
            .send_json(request.header("if-match", "*"), &json!({"text": "x"}))
            .await
            .expect(403);
    }
    let received = server.project.events(&run);
    let edits = received
        .iter()
        .filter(|event| event["command"]["edit"] != Value::Null);
    assert_eq!(edits.count(), 0);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_without_a_sandbox_shows_its_last_commit() {
    let (server, run) = finished_run().await;
    let details = server.get_json(&below(&run, "")).await;
    let diff = server.get_json(&below(&run, "/diff")).await;
    assert!(
        diff["patch"].as_str().unwrap().contains("+++ b/a.txt"),
        "{diff}"
    );
    let tree = server.get_json(&below(&run, "/tree")).await;
    let has = |path: &str| {
        tree["entries"]
            .as_array()
            .unwrap()
            .iter()
            .any(|entry| entry["path"] == path)
    };
    assert!(has("a.txt") && has("base.txt"), "{details} {tree}");
    let file = server.get_json(&below(&run, "/files/b.txt")).await;
    assert_eq!(file["text"], "two\n");
    server.get(&below(&run, "/files/c.txt")).await.expect(404);
    server.stop().await;
}
