//! `ralph init`: what it finds, what it writes, and what it says.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::thread;

use serde_json::json;
use snapbox::{assert_data_eq, str};

use super::{has_line, project, settings};
use crate::project::Project;

/// Adds a program to the search path.
fn with_program(project: Project, name: &str) -> Project {
    let directory = project.path("programs");
    fs::create_dir_all(&directory).unwrap();
    let program = directory.join(name);
    fs::write(&program, "#!/bin/sh\nexit 1\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var_os("PATH").unwrap().into_string().unwrap();
    let path = format!("{}:{path}", directory.display());
    project.env("PATH", path)
}

/// Starts a server that responds like a Docker Engine to version and info requests, and returns its
/// address.
fn start_engine() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = vec![0; 4096];
            let length = stream.read(&mut request).unwrap();
            let request = String::from_utf8_lossy(&request[..length]);
            let body = if request.contains("/version") {
                json!({"Version": "29.0", "ApiVersion": "1.47", "MinAPIVersion": "1.24"})
            } else {
                json!({"OSType": "linux", "Architecture": "x86_64", "NCPU": 8,
                       "MemTotal": 16_u64 << 30, "ServerVersion": "29.0"})
            };
            let body = body.to_string();
            let response = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\
                 Content-Length: {}\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(response.as_bytes()).unwrap();
        }
    });
    format!("tcp://{address}")
}

#[test]
fn init_reports_what_it_found_and_the_next_commands() {
    let project = project();
    project.commit("go.mod", "module a\n");
    let output = project.ralph(&["init"]).expect(0);
    let repository = project.repo().canonicalize().unwrap();
    let text = output
        .stdout
        .replace(repository.to_str().unwrap(), "[REPOSITORY]");
    assert_data_eq!(
        text,
        str![[r"
repository  [REPOSITORY], branch `main`
language    Go
tests       `go test ./...` (go.mod); also found: `sh test.sh`
sandbox     local, without isolation; docker cannot be used: no Docker Engine is running here: socket `/nowhere/docker.sock` does not exist
worker      none found: store a credential with `ralph store-token`, or set `ZAI_API_KEY` or `OPENAI_API_KEY`
wrote ralph_task.md

next:
  1. store a credential: ralph store-token
  2. describe what you want: edit ralph_task.md
  3. see the plan: ralph run --dry-run
  4. start the run: ralph run

"]]
    );
    let lint = project.ralph(&["lint"]).expect(0);
    assert_eq!(lint.stdout, "ralph_task.md: ok\n");
    for line in [
        "base_branch: \"main\"",
        "sandbox_provider: \"local\"",
        "test_command: \"go test ./...\"",
        "- [ ] T1 All tests pass",
        "  - verify: `go test ./...`",
    ] {
        assert!(
            has_line(&project, line),
            "{line}: {:#?}",
            settings(&project)
        );
    }
    let text = fs::read_to_string(project.task()).unwrap();
    assert!(
        text.contains("# also found: sh test.sh (test.sh)"),
        "{text}"
    );
    assert!(!text.contains("repo_url"), "{text}");
}

#[test]
fn init_chooses_docker_if_an_engine_answers() {
    let project = project().env("DOCKER_HOST", start_engine());
    let output = project.ralph(&["init"]).expect(0);
    let line = "sandbox     docker: a Docker Engine answers";
    assert!(output.stdout.contains(line), "{}", output.stdout);
    assert!(has_line(&project, "sandbox_provider: \"docker\""));
    project.ralph(&["lint"]).expect(0);
}

#[test]
fn init_leaves_the_sandbox_to_the_configuration() {
    let project = project().env("RALPH_DEFAULT_PROVIDER", "local");
    let output = project.ralph(&["init"]).expect(0);
    let line = "sandbox     local, from your configuration";
    assert!(output.stdout.contains(line), "{}", output.stdout);
    assert!(!has_line(&project, "sandbox_provider: \"local\""));
}

#[test]
fn init_chooses_the_agent_whose_credential_exists_and_whose_program_can_start() {
    let claude = "sk-ant-api03-0123456789";
    for (variable, value, program, lines) in [
        (
            "ANTHROPIC_API_KEY",
            claude,
            "claude",
            &["engine: \"agent\"", "agent: \"claude\""][..],
        ),
        (
            "OPENAI_API_KEY",
            "sk-0123456789",
            "codex",
            &["engine: \"agent\"", "agent: \"codex\""],
        ),
        // The agent is not installed; its key is that of a model profile.
        (
            "OPENAI_API_KEY",
            "sk-0123456789",
            "other",
            &[
                "engine: \"actions\"",
                "model_profile_default: \"codex-like\"",
            ],
        ),
        (
            "ZAI_API_KEY",
            "0123456789",
            "claude",
            &[
                "engine: \"actions\"",
                "model_profile_default: \"default-cheap\"",
            ],
        ),
    ] {
        let project = with_program(project(), program).env(variable, value);
        let output = project.ralph(&["init"]).expect(0);
        for line in lines {
            assert!(
                has_line(&project, line),
                "{line}: {:#?}",
                settings(&project)
            );
        }
        assert!(!output.combined().contains(value), "{}", output.combined());
        project.ralph(&["lint"]).expect(0);
        let plan = project.ralph(&["run", "--dry-run"]);
        assert_eq!(plan.code, 0, "{variable}: {}", plan.combined());
    }
}

#[test]
fn init_without_a_test_command_says_what_to_fill_in() {
    let project = project();
    project.git(&["rm", "--quiet", "test.sh"]);
    let output = project.ralph(&["init", "-p", "Do it"]).expect(0);
    for line in [
        "language    none recognised",
        "tests       no test command found: fill in `test_command` in ralph_task.md",
        "  1. fill in `test_command`, the command that runs the tests: edit ralph_task.md",
    ] {
        assert!(output.stdout.contains(line), "{line}: {}", output.stdout);
    }
    let lint = project.ralph(&["lint"]).expect(1);
    assert!(lint.stdout.contains("error[missing-test-command]"));
    assert!(
        lint.stdout.ends_with("1 error, 0 warnings\n"),
        "{}",
        lint.stdout
    );
}

#[test]
fn init_in_a_subdirectory_uses_its_tests_or_those_of_the_repository() {
    let project = project();
    project.commit("shop/go.mod", "module shop\n");
    project.commit("docs/index.md", "# Docs\n");
    for (directory, command) in [
        ("shop", "test_command: \"cd shop && go test ./...\""),
        ("docs", "test_command: \"sh test.sh\""),
    ] {
        let mut init = project.command(&["init"]);
        let output = init.current_dir(project.repo().join(directory)).output();
        assert!(output.unwrap().status.success());
        let task = project.repo().join(directory).join("ralph_task.md");
        let text = fs::read_to_string(task).unwrap();
        assert!(text.contains(command), "{text}");
    }
}

#[test]
fn init_works_without_a_usable_repository() {
    let project = project();
    fs::create_dir(project.path("empty")).unwrap();
    fs::create_dir(project.path("unborn")).unwrap();
    project.git_in(&project.path("unborn"), &["init", "--quiet"]);
    for (directory, line) in [
        ("empty", "there is no git repository at"),
        ("unborn", "has no commits"),
    ] {
        let mut init = project.command(&["init"]);
        let output = init.current_dir(project.path(directory)).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{text}");
        assert!(text.contains(line), "{text}");
        assert!(text.contains("1. make the repository usable"), "{text}");
    }
}

#[test]
fn the_default_branch_of_the_origin_is_the_base_branch() {
    let project = project();
    let origin = project.repo().display().to_string();
    let clone = project.path("clone");
    project.git(&["clone", "--quiet", &origin, clone.to_str().unwrap()]);
    project.git_in(&clone, &["switch", "--quiet", "--create", "feature"]);
    let mut init = project.command(&["init"]);
    assert!(init.current_dir(&clone).output().unwrap().status.success());
    let text = fs::read_to_string(clone.join("ralph_task.md")).unwrap();
    assert!(text.contains("base_branch: \"main\""), "{text}");
}

#[test]
fn lint_names_examples_and_sandboxes_that_are_not_available() {
    let project = project();
    project.ralph(&["init", "--full"]).expect(0);
    let text = fs::read_to_string(project.task()).unwrap();
    assert_eq!(text, ralph_core::templates::TASK);
    let lint = project.ralph(&["lint"]).expect(0);
    for line in [
        "ralph_task.md:3: warning[example-left] `https://github.com/ORG/REPO.git` is an example of the template",
        "ralph_task.md:11: warning[unavailable-sandbox] sandbox `daytona` is not available: this version has local, docker",
    ] {
        assert!(lint.stdout.contains(line), "{}", lint.stdout);
    }
    let refused = project.run_with(&["--repo", "."]);
    assert!(
        refused
            .stderr
            .contains("sandbox `daytona` is not available"),
        "{}",
        refused.stderr
    );
    project.ralph(&["init", "--full", "-p", "x"]).expect(2);
}
