//! Git over HTTP: `git http-backend` on bare repositories.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::routes::git_sender;
use super::state::{FakeGitHubState, FakeGitHubToken};
use super::wire::{RawRequest, RawResponse};

/// The hook that rejects pushes to protected branches with GitHub's message.
const UPDATE_HOOK: &str = r#"#!/bin/sh
for branch in $RALPH_FAKE_PROTECTED; do
  if [ "$1" = "refs/heads/$branch" ]; then
    echo "error: GH006: Protected branch update failed for $1." >&2
    exit 1
  fi
done
"#;

/// A permitted request of git.
pub(super) struct GitCall {
    root: PathBuf,
    /// The path below the root: `/owner/name.git/info/refs`.
    path: String,
    query: String,
    protected: String,
    pub(super) is_push: bool,
}

/// Returns the call that a request of git makes, or the refusal; `None` if it is not a request of git.
pub(super) fn authorize(
    state: &mut FakeGitHubState,
    request: &RawRequest,
    url: &str,
) -> Option<Result<GitCall, RawResponse>> {
    let target = request.target().to_owned();
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let (full_name, rest) = path.trim_start_matches('/').split_once(".git/")?;
    if full_name.split('/').count() != 2 {
        return None;
    }
    if let Some(new) = state.renamed.get(full_name) {
        let location = format!("{url}/{new}.git/{rest}?{query}");
        let mut moved = refusal(301, "");
        moved.headers.push(("location".to_owned(), location));
        return Some(Err(moved));
    }
    let root = state.git_root.clone()?;
    let is_push = path.ends_with("/git-receive-pack") || query.contains("service=git-receive-pack");
    let sender = git_sender(state, request);
    let settings = state.repositories.get(full_name);
    let is_public = settings.is_some_and(|settings| settings["private"] == false);
    let is_anonymous = !request.headers.contains_key("authorization");
    if sender.is_none() && !(is_public && is_anonymous && !is_push) {
        let mut rejected = refusal(401, "Invalid username or token.");
        let challenge = "Basic realm=\"GitHub\"".to_owned();
        rejected
            .headers
            .push(("www-authenticate".to_owned(), challenge));
        return Some(Err(rejected));
    }
    if settings.is_none() || !root.join(format!("{full_name}.git")).exists() {
        return Some(Err(refusal(404, "Repository not found.")));
    }
    if is_push && !may_push(state, full_name, sender.as_ref()) {
        let message = format!("Permission to {full_name}.git denied to {}.", state.login);
        return Some(Err(refusal(403, &message)));
    }
    if is_push && state.is_archived(full_name) {
        let message = "This repository was archived so it is read-only.";
        return Some(Err(refusal(403, message)));
    }
    let protected: Vec<String> = state.repo(full_name).protected.iter().cloned().collect();
    Some(Ok(GitCall {
        root,
        path: path.to_owned(),
        query: query.to_owned(),
        protected: protected.join(" "),
        is_push,
    }))
}

fn may_push(state: &FakeGitHubState, full_name: &str, token: Option<&FakeGitHubToken>) -> bool {
    let role = &state.repositories[full_name]["permissions"]["push"];
    let has_permission = match token {
        Some(FakeGitHubToken::FineGrained(denied)) => {
            !denied.contains(&"contents") && !denied.contains(&"contents=write")
        }
        Some(FakeGitHubToken::Installation) => {
            state.installation_permissions["contents"] == "write"
        }
        Some(FakeGitHubToken::Classic(_)) => *role != false,
        None => false,
    };
    has_permission && *role != false
}

fn refusal(status: u16, message: &str) -> RawResponse {
    RawResponse {
        status,
        headers: vec![("content-type".to_owned(), "text/plain".to_owned())],
        body: message.as_bytes().to_vec(),
    }
}

/// Runs `git http-backend`.
pub(super) fn run(call: &GitCall, request: &RawRequest) -> io::Result<RawResponse> {
    let header = |name: &str| request.headers.get(name).map_or("", String::as_str);
    let mut backend = Command::new("git")
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", &call.root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_COUNT", "2")
        .env("GIT_CONFIG_KEY_0", "core.hooksPath")
        .env("GIT_CONFIG_VALUE_0", install_hooks(&call.root)?)
        // Pull requests are refs that a client may fetch and not push.
        .env("GIT_CONFIG_KEY_1", "receive.hideRefs")
        .env("GIT_CONFIG_VALUE_1", "refs/pull")
        .env("RALPH_FAKE_PROTECTED", &call.protected)
        .env("PATH_INFO", &call.path)
        .env("QUERY_STRING", &call.query)
        .env(
            "REQUEST_METHOD",
            request.line.split(' ').next().unwrap_or_default(),
        )
        .env("CONTENT_TYPE", header("content-type"))
        .env("CONTENT_LENGTH", request.body.len().to_string())
        .env("HTTP_CONTENT_ENCODING", header("content-encoding"))
        .env("GIT_PROTOCOL", header("git-protocol"))
        .env("REMOTE_USER", "octocat")
        .env("REMOTE_ADDR", "127.0.0.1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let input = backend.stdin.take();
    let body = request.body.clone();
    // Written by a thread, because the program may respond before it has read everything.
    let writer = std::thread::spawn(move || input.map(|mut input| input.write_all(&body)));
    let output = backend.wait_with_output()?;
    // A program that ends early has rejected the request; its response says why.
    drop(writer.join());
    Ok(parse(&output.stdout))
}

fn install_hooks(root: &Path) -> io::Result<PathBuf> {
    let directory = root.join(".hooks");
    let hook = directory.join("update");
    if !hook.exists() {
        fs::create_dir_all(&directory)?;
        // Renamed at the end: two pushes may install it at once.
        let name = format!("update.{:?}", std::thread::current().id());
        let new = directory.join(name.replace(['(', ')'], ""));
        fs::write(&new, UPDATE_HOOK)?;
        fs::set_permissions(&new, fs::Permissions::from_mode(0o755))?;
        fs::rename(&new, &hook)?;
    }
    Ok(directory)
}

/// Parses the response of a CGI program: headers, an empty line, the body.
fn parse(output: &[u8]) -> RawResponse {
    let end = output.windows(4).position(|part| part == b"\r\n\r\n");
    let Some(end) = end else {
        return refusal(500, "git http-backend did not respond");
    };
    let mut response = refusal(200, "");
    response.headers.clear();
    for line in String::from_utf8_lossy(&output[..end]).lines() {
        match line.split_once(':') {
            Some(("Status", value)) => {
                let code = value.trim().split(' ').next().unwrap_or_default();
                response.status = ralph_core::parse_value(code).unwrap_or(500);
            }
            Some((name, value)) => {
                let header = (name.to_owned(), value.trim().to_owned());
                response.headers.push(header);
            }
            None => {}
        }
    }
    response.body = output[end + 4..].to_vec();
    response
}
