//! A real browser without a window, for tests of what pages can do.

use std::io::{self, BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Returns whether the test has to be skipped because `RALPH_TEST_NO_BROWSER` is set.
#[must_use]
#[expect(clippy::print_stderr, reason = "skipped tests say so")]
pub fn skip_without_browser() -> bool {
    let is_disabled =
        std::env::var_os("RALPH_TEST_NO_BROWSER").is_some_and(|value| !value.is_empty());
    if is_disabled {
        eprintln!("skipped: RALPH_TEST_NO_BROWSER is set");
    }
    is_disabled
}

/// A browser with a profile of its own; it ends when this value is dropped.
#[derive(Debug)]
pub struct BrowserProcess {
    process: Child,
    control: String,
    _profile: tempfile::TempDir,
}

impl BrowserProcess {
    /// Installs Chromium if necessary and starts it.
    ///
    /// # Panics
    /// If it cannot be installed or started: a test must not pass because the machine cannot run it.
    #[must_use]
    pub fn start() -> Self {
        match Self::try_start() {
            Ok(browser) => browser,
            Err(error) => panic!(
                "cannot start Chromium ({error}): see `scripts/chromium`, or set RALPH_TEST_NO_BROWSER=1 to skip this test"
            ),
        }
    }

    /// Returns the address of the WebSocket that controls the browser.
    #[must_use]
    pub fn control(&self) -> &str {
        &self.control
    }

    fn try_start() -> io::Result<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/chromium");
        let found = Command::new(script).stdin(Stdio::null()).output()?;
        let program = String::from_utf8_lossy(&found.stdout).trim().to_owned();
        if !found.status.success() {
            let why = String::from_utf8_lossy(&found.stderr).trim().to_owned();
            return Err(io::Error::other(why));
        }
        let profile = tempfile::tempdir()?;
        let mut process = Command::new(program)
            .args(["--headless=new", "--disable-gpu", "--disable-dev-shm-usage"])
            // Only the test's own pages are loaded; without it, root cannot start the browser.
            .arg("--no-sandbox")
            .args(["--no-first-run", "--disable-background-networking"])
            .arg("--remote-debugging-port=0")
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .env("HOME", profile.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let output = process.stderr.take().map(BufReader::new);
        let mut browser = Self {
            process,
            control: String::new(),
            _profile: profile,
        };
        let mut lines = output.into_iter().flat_map(BufReader::lines);
        let announced = lines.find_map(|line| {
            let line = line.unwrap_or_else(|error| error.to_string());
            let address = line.strip_prefix("DevTools listening on ")?;
            Some(address.to_owned())
        });
        browser.control = announced.ok_or_else(|| io::Error::other("it ended at once"))?;
        // A full pipe would stop the browser.
        std::thread::spawn(move || lines.for_each(drop));
        Ok(browser)
    }
}

impl Drop for BrowserProcess {
    fn drop(&mut self) {
        // Its processes end with it.
        let _killed = self.process.kill();
        let _waited = self.process.wait();
    }
}
