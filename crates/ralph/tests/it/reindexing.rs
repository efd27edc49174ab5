//! `ralph reindex`: the index of a server, without one.

use std::fs;

use serde_json::json;

use crate::support::{TestRalph, succeeded, working};

#[test]
fn an_index_is_created_updated_and_built_again() {
    let ralph = TestRalph::new();
    ralph.create_run("260301-100000-0001", "one", succeeded());
    ralph.create_run("260301-100000-0002", "two", working());
    let database = ralph.state().root().join("index.db");
    let report = |runs: u64, updated: u64, removed: u64, created: bool| json!({"database": database, "runs": runs, "updated": updated, "removed": removed, "created": created});
    let reindex = || ralph.json(&["reindex", "--json"]);
    assert_eq!(reindex(), report(2, 2, 0, true));
    assert_eq!(reindex(), report(2, 0, 0, false));
    fs::remove_dir_all(ralph.dir("260301-100000-0001").root()).unwrap();
    assert_eq!(reindex(), report(1, 0, 1, false));
    fs::write(&database, "no database at all").unwrap();
    assert_eq!(reindex(), report(1, 1, 0, true));
    assert!(database.with_extension("db.broken").exists());
    let output = ralph.run(&["reindex"]);
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(output.stdout, "the index has 1 run: 0 updated, 0 removed\n");
}

#[test]
fn the_location_of_the_index_is_checked() {
    let ralph = TestRalph::new();
    ralph.create_run("260301-100000-0001", "one", succeeded());
    let reindex = |url: &str| {
        let mut command = ralph.command(&["reindex"]);
        command.env("RALPH_DB_URL", url).output().unwrap()
    };
    let output = reindex("postgres://localhost/ralph");
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        error.contains("this version has SQLite only, not `postgres`"),
        "{error}"
    );
    let output = reindex("sqlite://other.db");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(ralph.project().join("other.db").exists());
    assert!(!ralph.state().root().join("index.db").exists());
}
