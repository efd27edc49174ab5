//! A private Docker Engine for a test.

use std::{
    io::{self, BufRead, BufReader, Write},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

/// A Docker Engine without network that the test may kill and restart, with
/// [`BASE_IMAGE`](crate::BASE_IMAGE) loaded.
///
/// `scripts/private-engine` owns its processes and files and removes them when this value is
/// dropped, or when the test process ends in any other way. Needs root on Linux. Every method
/// blocks the thread.
#[derive(Debug)]
pub struct PrivateDockerEngine {
    script: Child,
    /// Closing it stops the Docker Engine.
    requests: Option<ChildStdin>,
    responses: BufReader<ChildStdout>,
    socket: PathBuf,
}

impl PrivateDockerEngine {
    /// Starts a Docker Engine, which takes about three seconds.
    pub fn start() -> io::Result<Self> {
        let mut script = Command::new(script_path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // A signal to the process group of a timed-out test must not kill the script, which
            // still has to remove the Docker Engine.
            .process_group(0)
            .spawn()?;
        let (Some(requests), Some(responses)) = (script.stdin.take(), script.stdout.take()) else {
            return Err(io::Error::other(
                "a pipe of `scripts/private-engine` is missing",
            ));
        };
        let mut engine = Self {
            script,
            requests: Some(requests),
            responses: BufReader::new(responses),
            socket: PathBuf::new(),
        };
        let response = engine.read_response()?;
        match response.strip_prefix("ready unix://") {
            Some(socket) => engine.socket = PathBuf::from(socket),
            None => {
                return Err(io::Error::other(format!(
                    "`scripts/private-engine`: `{response}`"
                )));
            }
        }
        Ok(engine)
    }

    /// Returns the socket of the Docker Engine.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Returns the address in the format of `DOCKER_HOST`.
    pub fn host(&self) -> String {
        format!("unix://{}", self.socket.display())
    }

    /// Kills the Docker Engine, as a crash would, and returns once it is gone; its containers keep
    /// running.
    pub fn kill(&mut self) -> io::Result<()> {
        self.send_command("kill")
    }

    /// Restarts the killed Docker Engine on the same data and socket, and returns once it responds.
    /// Before that it stops the containers that kept running, with a grace period of ten seconds.
    pub fn restart(&mut self) -> io::Result<()> {
        self.send_command("start")
    }

    fn send_command(&mut self, command: &str) -> io::Result<()> {
        let requests = self.requests.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        writeln!(requests, "{command}")?;
        match self.read_response()?.as_str() {
            "done" => Ok(()),
            response => Err(io::Error::other(format!("`{command}`: `{response}`"))),
        }
    }

    fn read_response(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.responses.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }
}

impl Drop for PrivateDockerEngine {
    fn drop(&mut self) {
        drop(self.requests.take());
        // The script cleans up even without this wait; a finished test cannot handle a failure.
        drop(self.script.wait());
    }
}

fn script_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/private-engine")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BASE_IMAGE, skip_without_docker};

    /// Runs `docker` against `engine` and returns its output.
    fn docker(engine: &PrivateDockerEngine, arguments: &[&str]) -> Result<String, String> {
        let output = Command::new("docker")
            .args(["--host", &engine.host()])
            .args(arguments)
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if output.status.success() {
            Ok(text(&output.stdout))
        } else {
            Err(text(&output.stderr))
        }
    }

    /// Returns every process with `needle` in its command line.
    fn processes_with(needle: &str) -> Vec<String> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").unwrap() {
            // Entries that are not processes, or have exited, have no command line.
            let Ok(line) = std::fs::read(entry.unwrap().path().join("cmdline")) else {
                continue;
            };
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            if line.contains(needle) {
                found.push(line);
            }
        }
        found
    }

    #[test]
    fn a_killed_engine_restarts_and_leaves_nothing() {
        if skip_without_docker() {
            return;
        }
        // Starting a Docker Engine without network can remove the bridge of another one.
        let bridge = Path::new("/sys/class/net/docker0");
        let had_bridge = bridge.exists();
        let mut engine = PrivateDockerEngine::start().unwrap();
        let directory = engine.socket().parent().unwrap().to_owned();
        let run = [
            "run",
            "--detach",
            "--init",
            "--network",
            "none",
            BASE_IMAGE,
            "sleep",
            "86399",
        ];
        let state = ["ps", "--all", "--format", "{{.State}}"];
        docker(&engine, &run).unwrap();

        engine.kill().unwrap();
        let refused = docker(&engine, &state).unwrap_err();
        assert!(refused.contains("Cannot connect"), "{refused}");
        engine.restart().unwrap();
        assert_eq!(docker(&engine, &state).unwrap(), "exited");

        // The container that a killed Docker Engine leaves behind is stopped as well.
        docker(&engine, &run).unwrap();
        engine.kill().unwrap();
        drop(engine);
        assert_eq!(
            processes_with(directory.to_str().unwrap()),
            Vec::<String>::new()
        );
        assert!(!directory.exists());
        assert_eq!(bridge.exists(), had_bridge);
    }
}
