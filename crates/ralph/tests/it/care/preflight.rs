//! Preflight reports all missing requirements of a run together, without changing anything.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use ralph_test::{BASE_IMAGE, skip_without_docker};
use serde_json::{Value, json};
use snapbox::{assert_data_eq, str};

use crate::project::{Project, ProjectOutput, finish};

/// Returns a project that meets all requirements.
fn working_project() -> Project {
    Project::new().script(&[finish()])
}

fn preflight(project: &Project, more: &[&str]) -> ProjectOutput {
    let model = project.model();
    project.ralph(&[&["preflight", "--model", &model], more].concat())
}

/// Returns the lines that report a problem.
fn failures(ended: &ProjectOutput) -> Vec<&str> {
    let lines = ended.stdout.lines();
    lines.filter(|line| line.contains("FAIL")).collect()
}

fn settings(project: &Project, text: &str) {
    fs::write(project.repo().join("ralph.toml"), text).unwrap();
}

/// Returns a directory that contains only these programs.
fn programs(project: &Project, names: &[&str]) -> String {
    let directory = project.path("bin");
    fs::create_dir(&directory).unwrap();
    let path = std::env::var_os("PATH").unwrap();
    for name in names {
        let found = std::env::split_paths(&path).map(|place| place.join(name));
        let program = found.into_iter().find(|file| file.exists()).unwrap();
        symlink(program, directory.join(name)).unwrap();
    }
    directory.display().to_string()
}

#[test]
fn a_complete_project_passes_and_nothing_is_created() {
    let project = working_project();
    let ended = preflight(&project, &[]).expect(0);
    let head = project.git(&["rev-parse", "--short=12", "main"]);
    let shown = ended
        .stdout
        .replace(&project.git(&["--version"]), "[GIT]")
        .replace(&head[..7], "[HEAD]")
        .replace(&project.path("").display().to_string(), "[ROOT]/");
    assert_data_eq!(
        shown,
        str![[r"
  PASS: git — [GIT]
  PASS: state directory — [ROOT]/home, which the first run creates
  PASS: settings — valid
  PASS: task file — ralph_task.md
  PASS: repository — [ROOT]/repo, branch main at [HEAD][..]
  note: ralph calls the model itself, so no agent was checked
  PASS: model — scripted:[ROOT]/replies.jsonl
  note: this sandbox provider does not restrict the network access of commands
  PASS: sandbox — local: no isolation: commands run as you; state directory hidden: [..]; memory 8 GiB[..]
  note: this sandbox provider needs no image
  PASS: plan — branch `ralph/task/make-two-files`
  PASS: disk space — `[ROOT]/home` has [..] GiB free
ralph: preflight complete — all 9 checks passed

"]]
    );
    assert!(!project.home().exists(), "it made the state directory");
    assert_eq!(project.git(&["status", "--porcelain"]), "?? ralph_task.md");
}

#[test]
fn task_checks_are_skipped_without_a_task() {
    let project = working_project();
    fs::remove_file(project.task()).unwrap();
    let ended = preflight(&project, &["--json"]).expect(0);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let names: Vec<&str> = report["checks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|check| check["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "git",
            "state directory",
            "settings",
            "model",
            "sandbox",
            "disk space"
        ]
    );
    assert_eq!(report["ok"], json!(true));
    assert_eq!(
        report["notes"],
        json!([
            "there is no ralph_task.md here, so no task file was checked",
            "there is no task file, so no repository was checked",
            "ralph calls the model itself, so no agent was checked",
            "this sandbox provider does not restrict the network access of commands",
            "this sandbox provider needs no image",
        ])
    );
}

/// A single problem.
struct BrokenSetup {
    /// Introduces the problem.
    spoil: fn(Project) -> Project,
    args: &'static [&'static str],
    /// The prefix of the only line that reports it.
    told: &'static str,
}

const BROKEN: [BrokenSetup; 20] = [
    BrokenSetup {
        spoil: |project| {
            let path = programs(&project, &["sh"]);
            project.env("PATH", path)
        },
        args: &[],
        told: "git — git cannot be used: cannot run git: ",
    },
    BrokenSetup {
        spoil: |project| {
            let path = programs(&project, &["git"]);
            project.env("PATH", path)
        },
        args: &[],
        told: "sandbox — sandbox `local` cannot be used: no directory in `PATH` contains `sh` — ",
    },
    BrokenSetup {
        spoil: |project| {
            fs::write(project.home(), "a file").unwrap();
            project
        },
        args: &["--sandbox", "docker"],
        told: "state directory — cannot write to `",
    },
    BrokenSetup {
        spoil: |project| {
            settings(&project, "[sandbox]\nprovder = 1\n");
            project
        },
        args: &[],
        told: "settings — cannot use `",
    },
    BrokenSetup {
        spoil: |project| {
            fs::create_dir(project.repo().join("config")).unwrap();
            fs::write(project.repo().join("config/models.yaml"), "profiles: [").unwrap();
            project
        },
        args: &[],
        told: "settings — cannot use `",
    },
    BrokenSetup {
        spoil: |project| project,
        args: &["tasks/none.md"],
        told: "task file — there is no task file `tasks/none.md` — ",
    },
    BrokenSetup {
        spoil: |project| project.without("max_iterations"),
        args: &[],
        told: "task file — `ralph_task.md`, line 8: `max_iterations` is missing — ",
    },
    BrokenSetup {
        spoil: |project| {
            fs::remove_dir_all(project.repo().join(".git")).unwrap();
            project
        },
        args: &[],
        told: "repository — there is no git repository at `",
    },
    BrokenSetup {
        spoil: |project| {
            fs::remove_dir_all(project.repo().join(".git")).unwrap();
            project.git(&["init", "--quiet", "--initial-branch=main"]);
            project
        },
        args: &[],
        told: "repository — repository `",
    },
    BrokenSetup {
        spoil: |project| project.set("base_branch", "develop"),
        args: &[],
        told: "repository — there is no branch `develop` in `",
    },
    BrokenSetup {
        spoil: |project| project,
        args: &["--repo", "https://host.invalid/a/b.git"],
        told: "repository — no GitHub credential was found for `host.invalid`: ",
    },
    BrokenSetup {
        spoil: |project| {
            fs::remove_file(project.path("replies.jsonl")).unwrap();
            project
        },
        args: &[],
        told: "model — cannot use the model `scripted:",
    },
    BrokenSetup {
        spoil: |project| project,
        args: &["--sandbox", "moon"],
        told: "sandbox — sandbox `moon` is not available: ",
    },
    BrokenSetup {
        spoil: |project| project.env("DOCKER_HOST", "unix:///nonexistent/docker.sock"),
        args: &["--sandbox", "docker"],
        told: "sandbox — sandbox `docker` cannot be used: no Docker Engine is running here: socket `/nonexistent/docker.sock` does not exist — ",
    },
    BrokenSetup {
        spoil: |project| project.env("DOCKER_HOST", "ssh://build"),
        args: &["--sandbox", "docker"],
        told: "sandbox — sandbox `docker` cannot be used: cannot use Docker Engine `ssh://build`: ",
    },
    BrokenSetup {
        spoil: |project| {
            project.configure(
                "ralph.toml",
                "[sandbox]\nimage = \"ralph-base:bookworm\"\n[sandbox.resources]\ncpus = 4096\n",
            );
            project
        },
        args: &["--sandbox", "docker"],
        told: "sandbox — sandbox `docker` cannot be used: the sandbox is configured for 4096 processors, but the Docker Engine's machine has ",
    },
    BrokenSetup {
        spoil: |project| {
            settings(&project, "[sandbox]\nimage = \"ralph-none:1\"\n");
            project
        },
        args: &["--sandbox", "docker"],
        told: "image — there is no image `ralph-none:1` — ",
    },
    BrokenSetup {
        spoil: |project| project.set("sandbox_image", "ralph-none:2"),
        args: &["--sandbox", "docker"],
        told: "image — there is no image `ralph-none:2` — ",
    },
    BrokenSetup {
        spoil: |project| {
            project.configure(
                "ralph.toml",
                "[sandbox]\nimage = \"ralph-base:bookworm\"\n[sandbox.network]\npolicy = \"allowlist\"\nallowed = [\"a b\"]\n",
            );
            project
        },
        args: &["--sandbox", "docker"],
        told: "network — cannot configure the network of the sandbox: `a b`",
    },
    BrokenSetup {
        spoil: |project| {
            settings(
                &project,
                "[sandbox]\nimage = \"ralph-base:bookworm\"\n[sandbox.network]\nallowed = [\"a b\"]\n",
            );
            project
        },
        args: &["--sandbox", "docker"],
        told: "network — cannot configure the network of the sandbox: `a b`",
    },
];

#[test]
fn each_problem_is_one_line_with_its_fix() {
    if skip_without_docker() {
        return;
    }
    for BrokenSetup { spoil, args, told } in BROKEN {
        let project = working_project();
        settings(&project, &format!("[sandbox]\nimage = \"{BASE_IMAGE}\"\n"));
        let project = spoil(project);
        let ended = preflight(&project, args).expect(1);
        let lines = failures(&ended);
        assert_eq!(lines.len(), 1, "{told}: {}", ended.combined());
        let line = lines[0].strip_prefix("  FAIL: ").unwrap();
        assert!(line.starts_with(told), "{told}: {line}");
        assert_eq!(line.matches(" — ").count(), 2, "{line}");
        let last = ended.stdout.lines().last().unwrap();
        assert!(last.starts_with("ralph: preflight complete — 1/"), "{last}");
    }
}

#[test]
fn all_problems_are_reported_at_once() {
    let project = working_project()
        .without("max_iterations")
        .without_env("HOME");
    settings(&project, "nonsense");
    fs::write(project.home(), "a file").unwrap();
    let ended = preflight(&project, &["--json", "--sandbox", "moon"]).expect(1);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let statuses: Vec<(&str, &str)> = report["checks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|check| {
            let text = |key: &str| check[key].as_str().unwrap();
            (text("name"), text("status"))
        })
        .collect();
    assert_eq!(
        statuses,
        [
            ("git", "pass"),
            ("state directory", "fail"),
            ("settings", "fail"),
            ("task file", "fail"),
            ("repository", "not_run"),
            ("agent", "not_run"),
            ("model", "pass"),
            ("network", "not_run"),
            ("sandbox", "fail"),
            ("disk space", "pass"),
        ]
    );
    assert_eq!(report["ok"], json!(false));
}

#[test]
fn without_a_home_the_other_checks_still_run() {
    let project = working_project()
        .without_env("HOME")
        .without_env("RALPH_HOME");
    let ended = preflight(&project, &[]).expect(1);
    let line = "  FAIL: state directory — the location of the state directory is unknown: neither RALPH_HOME nor HOME is set — set RALPH_HOME to a directory that you can write to";
    assert_eq!(failures(&ended), [line], "{}", ended.combined());
}

#[test]
fn a_docker_sandbox_with_its_image_passes() {
    if skip_without_docker() {
        return;
    }
    let project = working_project();
    settings(&project, &format!("[sandbox]\nimage = \"{BASE_IMAGE}\"\n"));
    let ended = preflight(&project, &["--sandbox", "docker"]).expect(0);
    let image = format!("  PASS: image — {BASE_IMAGE} (");
    let passed = |text: &str| ended.stdout.lines().any(|line| line.starts_with(text));
    assert!(passed(&image), "{}", ended.stdout);
    let engine = "  PASS: sandbox — docker: containers without a network; Docker Engine ";
    assert!(passed(engine), "{}", ended.stdout);
    assert!(!Path::new(&project.home()).exists());
}
