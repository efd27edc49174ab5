//! The credential stays in the memory of ralph and git.

use std::fs;
use std::path::Path;

use ralph_test::{FakeGitHubToken, FaultRule, GitHubFault};

use super::{RemoteProject, assert_no_token_in};
use crate::project::finish;

/// Returns the arguments and the environments of all processes but one.
fn processes_except(own: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc")
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let is_process = |path: &std::path::PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.bytes().all(|byte| byte.is_ascii_digit()) && name != own
    };
    let text = |path: &Path| {
        // A process may end meanwhile, or belong to another user.
        let read = |name| fs::read(path.join(name)).unwrap_or_else(|_| Vec::new());
        let parts = [read("cmdline"), read("environ")];
        String::from_utf8_lossy(&parts.concat()).replace('\0', "\n")
    };
    entries.filter(is_process).map(|path| text(&path)).collect()
}

#[test]
fn the_credential_of_git_is_in_no_process_and_no_file() {
    for operation in ["git-upload-pack", "git-receive-pack"] {
        // No other test uses this token.
        let token = format!("ghp_{}{}", "s3Cr3t".repeat(5), operation.len());
        let remote = RemoteProject::new()
            .change(|project| project.script(&[finish()]).env("GITHUB_PAT", &token));
        let accepted = FakeGitHubToken::Classic("repo, workflow");
        remote.github.add_token(&token, accepted);
        let request = format!("POST /octo/app.git/{operation}");
        // The first fetch lists the branches.
        let hang = FaultRule::once(&request, GitHubFault::Hang);
        remote.github.plan(hang);
        let run = remote.start();
        let own = run.pid().as_raw_pid().to_string();
        remote.wait_for_lost(&request);
        let sockets = remote.project.home().join("git/askpass-");
        let socket = format!("RALPH_ASKPASS_SOCKET={}", sockets.display());
        let processes = processes_except(&own);
        assert!(processes.iter().any(|text| text.contains(&socket)));
        let leaking: Vec<_> = processes
            .iter()
            .filter(|text| text.contains(&token))
            .collect();
        assert!(leaking.is_empty(), "{leaking:?}");
        assert_no_token_in(&remote.project.home(), &token);
        assert_no_token_in(&remote.project.repo(), &token);
        assert_no_token_in(remote.hosted.path(), &token);
    }
}
