//! A real LiteLLM proxy, for tests that need more than a fake.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The time limit for starting the proxy on a busy machine.
const START_TIMEOUT: Duration = Duration::from_mins(5);
/// The time limit for a script on a busy machine.
const SCRIPT_TIMEOUT: Duration = Duration::from_mins(5);

/// Returns whether the test has to be skipped because `RALPH_TEST_NO_LITELLM` is set.
#[must_use]
#[expect(clippy::print_stderr, reason = "skipped tests say so")]
pub fn skip_without_litellm() -> bool {
    let is_disabled =
        std::env::var_os("RALPH_TEST_NO_LITELLM").is_some_and(|value| !value.is_empty());
    if is_disabled {
        eprintln!("skipped: RALPH_TEST_NO_LITELLM is set");
    }
    is_disabled
}

/// A LiteLLM proxy with mocked model responses; it stops when this value is dropped.
#[derive(Debug)]
pub struct LiteLlm {
    process: Child,
    port: u16,
    directory: tempfile::TempDir,
}

impl LiteLlm {
    /// The key that the proxy accepts.
    pub const KEY: &str = "sk-the-master-key-of-a-test";

    /// Installs the proxy if necessary and starts it with the text of a `config.yaml`.
    ///
    /// # Panics
    /// If it cannot be installed or started: a test must not pass because the machine cannot run
    /// it.
    #[must_use]
    pub fn start(config: &str) -> Self {
        match Self::try_start(config) {
            Ok(proxy) => proxy,
            Err(error) => panic!(
                "cannot start a LiteLLM proxy ({error}): see `scripts/litellm`, or set RALPH_TEST_NO_LITELLM=1 to skip this test"
            ),
        }
    }

    fn try_start(config: &str) -> io::Result<Self> {
        let program = install_program()?;
        let directory = tempfile::tempdir()?;
        let file = directory.path().join("config.yaml");
        std::fs::write(&file, config)?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let log = std::fs::File::create(directory.path().join("log"))?;
        let process = Command::new(program)
            .args(["--host", "127.0.0.1", "--port", &port.to_string()])
            .arg("--config")
            .arg(&file)
            .current_dir(directory.path())
            .env("LITELLM_MASTER_KEY", Self::KEY)
            .env("LITELLM_LOCAL_MODEL_COST_MAP", "True")
            .env("LITELLM_LOG", "ERROR")
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        let mut proxy = Self {
            process,
            port,
            directory,
        };
        proxy.wait_until_ready()?;
        Ok(proxy)
    }

    fn wait_until_ready(&mut self) -> io::Result<()> {
        let started = Instant::now();
        while started.elapsed() < START_TIMEOUT {
            if self.is_alive() {
                return Ok(());
            }
            if let Some(status) = self.process.try_wait()? {
                return Err(io::Error::other(format!(
                    "it ended with {status}: {}",
                    self.log_tail()
                )));
            }
            thread::sleep(Duration::from_millis(200));
        }
        Err(io::Error::other(format!(
            "it did not answer within {} s: {}",
            START_TIMEOUT.as_secs(),
            self.log_tail()
        )))
    }

    fn is_alive(&self) -> bool {
        let probe = || -> io::Result<bool> {
            let mut connection = TcpStream::connect(("127.0.0.1", self.port))?;
            connection.set_read_timeout(Some(Duration::from_secs(5)))?;
            connection.write_all(
                b"GET /health/liveliness HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
            )?;
            let mut response = String::new();
            connection.read_to_string(&mut response)?;
            Ok(response.starts_with("HTTP/1.1 200"))
        };
        probe().unwrap_or(false)
    }

    fn log_tail(&self) -> String {
        let log = match std::fs::read_to_string(self.directory.path().join("log")) {
            Ok(log) => log,
            Err(error) => format!("its log cannot be read: {error}"),
        };
        let lines: Vec<&str> = log.lines().rev().take(3).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join(" / ")
    }

    /// Returns the URL of the proxy: `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

impl Drop for LiteLlm {
    fn drop(&mut self) {
        // The proxy may have ended already, and a finished test cannot handle a failure.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// Runs a Python script that imports LiteLLM, installing it if necessary, and returns its output.
///
/// # Panics
/// If LiteLLM cannot be installed, or the script fails or does not end.
#[must_use]
pub fn run_litellm_script(script: &Path) -> String {
    try_run_script(script).unwrap_or_else(|error| {
        panic!(
            "{} cannot be run with LiteLLM ({error}): see `scripts/litellm`, or set RALPH_TEST_NO_LITELLM=1 to skip this test",
            script.display()
        )
    })
}

fn try_run_script(script: &Path) -> io::Result<String> {
    let directory = tempfile::tempdir()?;
    let [output, log] = ["output", "log"].map(|name| directory.path().join(name));
    let mut process = Command::new(install_program()?.with_file_name("python"))
        .arg(script)
        .current_dir(directory.path())
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(&output)?)
        .stderr(std::fs::File::create(&log)?)
        .spawn()?;
    let started = Instant::now();
    let status = loop {
        if let Some(status) = process.try_wait()? {
            break status;
        }
        if started.elapsed() > SCRIPT_TIMEOUT {
            process.kill()?;
            process.wait()?;
            let limit = SCRIPT_TIMEOUT.as_secs();
            return Err(io::Error::other(format!("it did not end within {limit} s")));
        }
        thread::sleep(Duration::from_millis(50));
    };
    if !status.success() {
        let log = std::fs::read_to_string(&log)?;
        let last = log.lines().last().unwrap_or_default();
        return Err(io::Error::other(format!("it ended with {status}: {last}")));
    }
    std::fs::read_to_string(output)
}

/// Installs the proxy if necessary and returns the path of its program.
fn install_program() -> io::Result<PathBuf> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/litellm");
    let output = Command::new(script).stdin(Stdio::null()).output()?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(stderr.trim().to_owned()));
    }
    let path = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    Ok(PathBuf::from(path))
}
