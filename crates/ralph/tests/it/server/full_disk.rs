//! The disk of one run is full.

use std::fs::{self, File};
use std::io::Write as _;
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;

use super::api_client::ApiClient;
use super::tasks::{audit, let_commands_end, request, serve, waiting_command, write_task};
use crate::project::{Project, actions, finish, run};
use crate::tmpfs_mount::TmpfsMount;

#[test]
fn a_run_whose_disk_is_full_waits_for_space_and_the_others_continue() {
    let project = Project::new();
    let api = ApiClient::new(&project.home());
    let server = serve(&project, "4");
    for name in ["full", "one", "two"] {
        write_task(&project, name, "test -s base.txt");
    }
    let script = [actions(&[run(&waiting_command(&project))]), finish()];
    let full = api.start_run(&request(&project, "full.md", &script));
    api.wait_for_event(&full, "action_started");

    // Its files of iterations are on a disk of their own from now on.
    let directory = project.home().join("runs").join(&full).join("iterations");
    let copy = project.path("copy");
    let copied = |from: &std::path::Path, to: &std::path::Path| {
        let copied = Command::new("cp").arg("-a").args([from, to]).status();
        assert!(copied.unwrap().success());
    };
    copied(&directory, &copy);
    let Some(disk) = TmpfsMount::at(&directory, "size=256k") else {
        return;
    };
    copied(&copy.join("1.open"), &directory);
    let filler = directory.join("filler");
    let mut file = File::create(&filler).unwrap();
    while file.write_all(&[0; 1024]).is_ok() {}

    let_commands_end(&project);
    let others = ["one", "two"]
        .map(|name| api.start_run(&request(&project, &format!("{name}.md"), &script)));
    for run in &others {
        api.wait_for_status(run, "succeeded");
        audit(&project, run);
    }
    api.wait_for_status(&full, "paused");
    let details = api.get(&format!("/api/v1/runs/{full}"));
    let reason = details["reason"].as_str().unwrap();
    assert!(reason.contains("No space left on device"), "{details}");

    fs::remove_file(&filler).unwrap();
    disk.remount("size=16m");
    api.post(&format!("/api/v1/runs/{full}/resume"), &Value::Null);
    api.wait_for_status(&full, "succeeded");
    audit(&project, &full);
    assert_eq!(server.end_with(Signal::TERM).code, Some(0));
}
