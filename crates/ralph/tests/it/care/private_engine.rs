//! A Docker Engine that belongs to one test.

use std::process::Command;

use ralph_test::{BASE_IMAGE, PrivateDockerEngine};

/// A private Docker Engine, so that pruning affects no other test.
pub(super) struct CareEngine {
    engine: PrivateDockerEngine,
}

impl CareEngine {
    pub(super) fn start() -> Self {
        Self {
            engine: PrivateDockerEngine::start().unwrap(),
        }
    }

    /// Returns the value of `DOCKER_HOST`.
    pub(super) fn host(&self) -> String {
        self.engine.host()
    }

    /// Runs `docker` and returns its output.
    #[track_caller]
    pub(super) fn docker(&self, args: &[&str]) -> String {
        let output = Command::new("docker")
            .args(["--host", &self.host()])
            .args(args)
            .output()
            .unwrap();
        assert!(output.status.success(), "docker {args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Starts a container and creates a volume that do not belong to ralph.
    pub(super) fn start_foreign(&self) {
        self.docker(&[
            "run",
            "--detach",
            "--init",
            "--network",
            "none",
            "--name",
            "ralph-lookalike",
            "--volume",
            "ralph-0123456789ab-lookalike:/data",
            "--label",
            "ralph=yes",
            BASE_IMAGE,
            "sleep",
            "3600",
        ]);
    }

    /// Returns the ids of all containers, sorted.
    pub(super) fn containers(&self) -> Vec<String> {
        sorted(&self.docker(&["ps", "--all", "--quiet", "--no-trunc"]))
    }

    /// Returns the names of all volumes except the guest volume of this build, sorted.
    pub(super) fn volumes(&self) -> Vec<String> {
        let filter = "label=ralph.guest";
        let programs = sorted(&self.docker(&["volume", "ls", "--quiet", "--filter", filter]));
        let mut volumes = sorted(&self.docker(&["volume", "ls", "--quiet"]));
        volumes.retain(|name| !programs.contains(name));
        volumes
    }
}

fn sorted(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}
