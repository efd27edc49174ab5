//! `ralph image`, with and without a Docker Engine.
//!
//! Tests that need a Docker Engine also need `ralph-base:bookworm`, which `scripts/engine`
//! provides. Without it those tests fail; `RALPH_TEST_NO_DOCKER=1` skips them with a message.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use ralph_core::id::Digest;
use ralph_core::image::ImageName;
use ralph_providers::docker::DockerEngine;
use ralph_providers::docker::images::DockerImages;
use ralph_test::{BASE_IMAGE, skip_without_docker};
use serde_json::{Value, json};
use snapbox::{assert_data_eq, str};

use crate::project::{Project, finish};
use crate::support::{RalphOutput, TestRalph, fixed_clock};

const NOWHERE: &str = "unix:///nowhere/docker.sock";

fn without_engine(ralph: &TestRalph, args: &[&str]) -> RalphOutput {
    let command = &mut ralph.command(args);
    command.env("DOCKER_HOST", NOWHERE).output().unwrap().into()
}

#[test]
fn without_an_engine_the_status_is_unknown_and_no_error() {
    let ralph = TestRalph::new();
    let output = without_engine(&ralph, &["image", "status"]);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
    assert_data_eq!(
        output.stdout,
        str![[r"
image    agent-loop-sandbox-plain
status   unknown
why      no Docker Engine is running here: socket `/nowhere/docker.sock` does not exist
fix      start Docker, or set `DOCKER_HOST` to the endpoint that `docker context inspect` shows

"]]
    );
    let output = without_engine(&ralph, &["image", "status", "--image", "x:1", "--json"]);
    let expected = json!({
        "image": "x:1", "status": "unknown", "id": null, "size_bytes": null, "created_at": null,
        "tags": [], "architecture": null, "user": null,
        "problem": {
            "what": "no Docker Engine is running here: socket `/nowhere/docker.sock` does not exist",
            "fix": "start Docker, or set `DOCKER_HOST` to the endpoint that `docker context inspect` shows",
        },
    });
    assert_eq!(output.code, 0);
    assert_eq!(
        serde_json::from_str::<Value>(&output.stdout).unwrap(),
        expected
    );
}

#[test]
fn without_an_engine_nothing_else_works_and_one_line_says_so() {
    let ralph = TestRalph::new();
    for args in [
        &["image", "pull"][..],
        &["image", "pull", "--image", "x:1", "--force"],
        &["image", "build"],
        &["image", "build", "--agent", "claude"],
        &["image", "build", "--dockerfile"],
    ] {
        let output = without_engine(&ralph, args);
        let line = "ralph: no Docker Engine is running here — socket `/nowhere/docker.sock` does not exist — start Docker, or set `DOCKER_HOST` to the endpoint that `docker context inspect` shows\n";
        assert_eq!(
            (output.code, output.stdout.as_str(), output.stderr.as_str()),
            (1, "", line),
            "{args:?}"
        );
    }
}

#[test]
fn invalid_arguments_are_rejected_in_one_line() {
    let ralph = TestRalph::new();
    let settings = ralph.project().join("ralph.toml");
    let mut lines = String::new();
    for args in [
        &["image", "built"][..],
        &["image", "build", "--agent", "cursor"],
        &["image", "build", "--tag", "Big"],
        &["image", "build", "--nix", "--dockerfile"],
        &["image", "build", "--nix", "--agent", "plain"],
        &["image", "build", "--agent", "plain", "--dockerfile", "x"],
        &["image", "pull", "--image", "../containers/x"],
        &["image", "status", "--image", "x", "--agent", "plain"],
        &["image", "status"],
    ] {
        if args.len() == 2 && args[1] == "status" {
            std::fs::write(&settings, "[sandbox]\nimage = \"My Image\"\n").unwrap();
        }
        let output = without_engine(&ralph, args);
        assert_eq!(output.code, 2, "{args:?}: {output:?}");
        lines.push_str(&output.stderr);
    }
    assert_data_eq!(
        lines,
        str![[r"
ralph: unknown command `built` — ralph image has no such command — did you mean `build`?
ralph: invalid value `cursor` for --agent <NAME> — no image for agent `cursor`; known images are `claude`, `codex` and `plain` — see `ralph image build --help`
ralph: invalid value `Big` for --tag <NAME> — `Big` is not an image name: it must consist of lower-case letters, digits and single separators, as in `name:tag` or `registry/name:tag` — see `ralph image build --help`
ralph: --nix cannot be used with --dockerfile [<FILE>] — only one of them can be given — see `ralph image build --help`
ralph: --nix cannot be used with --agent <NAME> — only one of them can be given — see `ralph image build --help`
ralph: --agent <NAME> cannot be used with --dockerfile <FILE> — an agent's image has its own Dockerfile — omit one of the two
ralph: invalid value `../containers/x` for --image <NAME> — `../containers/x` is not an image name: it must consist of lower-case letters, digits and single separators, as in `name:tag` or `registry/name:tag` — see `ralph image pull --help`
ralph: --image <NAME> cannot be used with --agent <NAME> — only one of them can be given — see `ralph image status --help`
ralph: invalid image name in `ralph.toml` — `My Image` is not an image name: it must consist of lower-case letters, digits and single separators, as in `name:tag` or `registry/name:tag` — correct `image` and `base_image` under `[sandbox]`

"]]
    );
}

#[test]
fn requested_nix_must_be_installed() {
    let ralph = TestRalph::new();
    let output = without_engine(&ralph, &["image", "build", "--nix"]);
    let line = "ralph: cannot build the image with nix — there is no `nix` on PATH — install it, or use `ralph image build --dockerfile`\n";
    assert_eq!((output.code, output.stderr.as_str()), (1, line));
}

/// Removes an image, if it exists.
fn remove(image: &ImageName) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let host = std::env::var_os("DOCKER_HOST").map(|host| host.into_string().unwrap());
        let engine = DockerEngine::connect(host.as_deref()).await.unwrap();
        let images = DockerImages::new(engine, "/nowhere".into(), fixed_clock());
        images.remove(image).await.unwrap();
    });
}

/// A test image, removed on drop.
struct ImageScenario {
    ralph: TestRalph,
    image: ImageName,
}

impl ImageScenario {
    /// Returns `None` if Docker tests are skipped.
    fn new(name: &str) -> Option<Self> {
        if skip_without_docker() {
            return None;
        }
        let ralph = TestRalph::new();
        // A registry that refuses connections immediately, so that a pull never leaves this
        // machine.
        let image = format!("127.0.0.1:1/ralph-test-{}-{name}:1", std::process::id());
        Some(Self {
            ralph,
            image: ImageName::parse(&image).unwrap(),
        })
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.ralph.command(args);
        if let Some(host) = std::env::var_os("DOCKER_HOST") {
            command.env("DOCKER_HOST", host);
        }
        command
    }

    fn run(&self, args: &[&str]) -> RalphOutput {
        self.command(args).output().unwrap().into()
    }

    fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.ralph.project().join(path), bytes).unwrap();
    }
}

impl Drop for ImageScenario {
    fn drop(&mut self) {
        remove(&self.image);
    }
}

#[test]
fn an_image_is_built_shown_and_not_pulled_again() {
    let Some(scenario) = ImageScenario::new("built") else {
        return;
    };
    let name = scenario.image.as_str();
    scenario.write("ralph.toml", format!("[sandbox]\nimage = \"{name}\"\n"));
    scenario.write(
        "my.Dockerfile",
        "FROM ralph-base:bookworm\nLABEL a=b\nUSER nobody\n",
    );

    let output = scenario.run(&["image", "status"]);
    let expected = format!(
        "image    {name}\nstatus   not found\nfix      build it with `ralph image build --tag {name}`, or get it with `ralph image pull --image {name}`\n"
    );
    assert_eq!((output.code, output.stdout.clone()), (0, expected));

    let output = scenario.run(&["image", "build", "--dockerfile", "my.Dockerfile"]);
    let repository = scenario.image.repository();
    let expected = format!(
        "building image `{name}`\nstep 1 of 4: FROM ralph-base:bookworm\nstep 2 of 4: LABEL a=b\nstep 3 of 4: USER nobody\nstep 4 of 4: LABEL ralph.image={repository}\nbuilt {name}\n"
    );
    assert_eq!(
        (output.code, output.stdout.clone(), output.stderr.as_str()),
        (0, expected, "")
    );

    let output = scenario.run(&["image", "status", "--json"]);
    let status: Value = serde_json::from_str(&output.stdout).unwrap();
    let facts = json!([
        status["image"],
        status["status"],
        status["tags"],
        status["user"],
        status["problem"]
    ]);
    assert_eq!(facts, json!([name, "present", [name], "nobody", null]));

    let output = scenario.run(&["image", "pull"]);
    let expected = format!("image {name} already exists locally; --force pulls it anyway\n");
    assert_eq!((output.code, output.stdout.clone()), (0, expected));
    let output = scenario.run(&["image", "pull", "--force"]);
    assert_eq!(
        (output.code, output.stdout.clone()),
        (1, format!("pulling image `{name}`\n"))
    );
    assert!(
        output
            .stderr
            .starts_with(&format!("ralph: cannot pull image `{name}` — ")),
        "{output:?}"
    );

    scenario.write(
        "ralph.toml",
        format!("[sandbox]\nimage = \"{name}\"\nuse_local_image = false\n"),
    );
    let output = scenario.run(&["image", "pull"]);
    assert_eq!(
        output.code, 1,
        "without the setting it is pulled again: {output:?}"
    );
}

#[test]
fn a_build_that_fails_shows_its_output_and_one_line() {
    let Some(scenario) = ImageScenario::new("fails") else {
        return;
    };
    scenario.write(
        "bad.Dockerfile",
        "FROM ralph-base:bookworm\nCOPY missing /\n",
    );
    let name = scenario.image.as_str();
    let output = scenario.run(&[
        "image",
        "build",
        "--dockerfile",
        "bad.Dockerfile",
        "--tag",
        name,
    ]);
    let expected = format!(
        "building image `{name}`\nstep 1 of 3: FROM ralph-base:bookworm\nstep 2 of 3: COPY missing /\n"
    );
    assert_eq!((output.code, output.stdout.clone()), (1, expected));
    assert_eq!(output.stderr.lines().count(), 1, "{output:?}");
    assert!(
        output.stderr.starts_with(&format!(
            "ralph: cannot build image `{name}` — step 2 of 3, `COPY missing /`,"
        )),
        "{output:?}"
    );

    let output = scenario.run(&[
        "image",
        "build",
        "--dockerfile",
        "none.Dockerfile",
        "--tag",
        name,
    ]);
    assert_eq!(output.code, 1);
    assert!(
        output
            .stderr
            .starts_with("ralph: cannot read the Dockerfile `none.Dockerfile` — "),
        "{output:?}"
    );
}

#[test]
fn nix_is_used_if_it_is_installed() {
    let Some(scenario) = ImageScenario::new("nix") else {
        return;
    };
    scenario.write("image.tar", saved(&scenario.image));
    let result = scenario.ralph.project().join("image.tar");
    let script = format!(
        "#!/bin/sh\necho \"$@\" > asked\necho evaluating >&2\necho {}\n",
        result.display()
    );
    scenario.write("nix", script);
    let program = scenario.ralph.project().join("nix");
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();

    let path = format!("{}:/usr/bin:/bin", scenario.ralph.project().display());
    let name = scenario.image.as_str();
    let mut command = scenario.command(&["image", "build", "--tag", name]);
    let output: RalphOutput = command.env("PATH", &path).output().unwrap().into();
    let expected = format!(
        "building the image with nix\n  evaluating\nloading `{}`\n  Loaded image: {name}\nbuilt {name}\nto use it, set `image = \"{name}\"` under `[sandbox]` in ralph.toml\n",
        result.display()
    );
    assert_eq!(
        (output.code, output.stdout.clone(), output.stderr.as_str()),
        (0, expected, "")
    );
    let arguments = std::fs::read_to_string(scenario.ralph.project().join("asked")).unwrap();
    assert!(
        arguments.contains("images/flake#dockerImage --no-link --print-out-paths"),
        "{arguments}"
    );

    scenario.write("nix", "#!/bin/sh\necho 'error: it is broken' >&2\nexit 1\n");
    let mut command = scenario.command(&["image", "build", "--nix", "--tag", name]);
    let output: RalphOutput = command.env("PATH", &path).output().unwrap().into();
    let line = "ralph: cannot build the image with nix — error: it is broken — check the output of nix, or use `ralph image build --dockerfile`\n";
    assert_eq!((output.code, output.stderr.as_str()), (1, line));
}

/// Returns a project in containers whose image has an additional file.
fn greeted(greeting: &str) -> Project {
    let host = std::env::var_os("DOCKER_HOST").map(|host| host.into_string().unwrap());
    let project = Project::new()
        .env("DOCKER_HOST", host.unwrap_or_default())
        .set("sandbox_provider", "docker")
        .set("sandbox_image", BASE_IMAGE)
        .set("test_command", &format!("grep -q {greeting} /greeting"))
        .script(&[finish()]);
    let dockerfile = "ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\nCOPY greeting requirements.txt /\n";
    project.commit("requirements.txt", "one\n");
    project.commit(".agent-loop/Dockerfile.sandbox", dockerfile);
    project.commit(".agent-loop/greeting", greeting);
    project
}

#[test]
fn a_run_gets_its_projects_image_as_the_base_commit_says() {
    if skip_without_docker() {
        return;
    }
    let project = greeted(&format!("hello-{}", std::process::id()));
    // Uncommitted files have no effect.
    std::fs::write(project.repo().join(".agent-loop/greeting"), "changed").unwrap();
    let refused = project.run().expect(2);
    assert!(
        refused.stderr.contains(".agent-loop/Dockerfile.sandbox"),
        "{refused:?}"
    );
    project.ralph(&["trust", "--yes"]).expect(0);

    let first = project.run().expect(0);
    let plan = project.event_values("run_created", "plan").remove(0);
    let image = ImageName::parse(plan["container"]["image"].as_str().unwrap()).unwrap();
    let building = format!("building image `{image}`\n");
    let second = project.run_with(&["--new"]).expect(0);
    let third = project.run_with(&["--new", "--rebuild"]).expect(0);
    remove(&image);
    assert_eq!(image.repository(), "agent-loop-sandbox-plain-repo");
    let built = [first, second, third].map(|ended| ended.stdout.contains(&building));
    assert_eq!(built, [true, false, true]);
}

#[test]
fn a_run_whose_image_cannot_be_built_does_not_start() {
    if skip_without_docker() {
        return;
    }
    let project = greeted("hello");
    project.git(&["rm", "--quiet", ".agent-loop/Dockerfile.sandbox"]);
    project.commit(".agent-loop/dependencies", "jq\njq; rm -rf /\n");
    project.ralph(&["trust", "--yes"]).expect(0);
    let ended = project.run().expect(1);
    let line = "ralph: `.agent-loop/dependencies` line 2 — `jq; rm -rf /` is not a package name: one package per line — correct the file, and commit it\n";
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("", line));
    let missing = format!("127.0.0.1:1/ralph-test-{}:none", std::process::id());
    let project = project.set("sandbox_image", &missing);
    let ended = project.run().expect(1);
    assert!(
        ended
            .stderr
            .starts_with(&format!("ralph: there is no image `{missing}` — ")),
        "{ended:?}"
    );
    let runs = std::fs::read_dir(project.home().join("runs"));
    assert_eq!(runs.map_or(0, Iterator::count), 0, "no run was created");
}

/// Returns an archive in the format of `docker save`: an image without files.
fn saved(image: &ImageName) -> Vec<u8> {
    // The end of an empty archive.
    let layer = vec![0; 1024];
    let config = json!({
        "architecture": "amd64", "os": "linux", "config": {},
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{}", Digest::compute(&layer).as_str())]},
    });
    let manifest = json!([
        {"Config": "config.json", "RepoTags": [image.as_str()], "Layers": ["layer.tar"]}
    ]);
    let mut archive = tar::Builder::new(Vec::new());
    for (path, bytes) in [
        ("layer.tar", layer),
        ("config.json", config.to_string().into_bytes()),
        ("manifest.json", manifest.to_string().into_bytes()),
    ] {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, path, &bytes[..]).unwrap();
    }
    archive.into_inner().unwrap()
}
