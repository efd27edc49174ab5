//! Requests of a program to the server of a state directory.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ralph_guest::available;
use serde_json::Value;

use super::fixture::{ServerResponse, send};

/// Longer than anything takes on a busy machine.
const WAIT_TIMEOUT: Duration = Duration::from_mins(5);

/// A program that knows the state directory.
#[derive(Debug, Clone)]
pub(crate) struct ApiClient {
    home: PathBuf,
}

impl ApiClient {
    pub(crate) fn new(home: &Path) -> Self {
        Self {
            home: home.to_owned(),
        }
    }

    /// Returns `server.json`; none before a server has written it.
    pub(crate) fn record(&self) -> Option<Value> {
        let bytes = available(std::fs::read(self.home.join("server.json")))?;
        Some(serde_json::from_slice(&bytes).unwrap())
    }

    /// Sends a request with a JSON body; null means none.
    pub(crate) fn try_send(
        &self,
        method: &str,
        path: &str,
        (body, key): (&Value, Option<&str>),
    ) -> io::Result<ServerResponse> {
        let record = self.record().ok_or(io::ErrorKind::NotFound)?;
        let token = record["token"].as_str().unwrap_or_default();
        let host = record["url"].as_str().unwrap_or_default();
        let host = host.trim_start_matches("http://");
        let mut headers = vec![
            format!("Authorization: Bearer {token}"),
            "Content-Type: application/json".to_owned(),
        ];
        headers.extend(key.map(|key| format!("Idempotency-Key: {key}")));
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        send(host, (method, path), &headers, &body)
    }

    /// Sends a request that must succeed, and returns its JSON.
    #[track_caller]
    pub(crate) fn send(&self, method: &str, path: &str, body: &Value) -> Value {
        let response = self.try_send(method, path, (body, None)).unwrap();
        assert!(response.status < 300, "{method} {path}: {response:?}");
        response.json()
    }

    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Value {
        self.send("GET", path, &Value::Null)
    }

    #[track_caller]
    pub(crate) fn post(&self, path: &str, body: &Value) -> Value {
        self.send("POST", path, body)
    }

    /// Starts a run and returns its id.
    #[track_caller]
    pub(crate) fn start_run(&self, body: &Value) -> String {
        let started = self.post("/api/v1/runs", body);
        started["id"].as_str().unwrap().to_owned()
    }

    /// Waits until a run has a status.
    #[track_caller]
    pub(crate) fn wait_for_status(&self, run: &str, status: &str) {
        self.wait_for_run(run, status, |details| details["status"] == status);
    }

    /// Waits until the details of a run meet a condition.
    #[track_caller]
    pub(crate) fn wait_for_run(&self, run: &str, what: &str, is_true: impl Fn(&Value) -> bool) {
        let start = Instant::now();
        loop {
            let details = self.get(&format!("/api/v1/runs/{run}"));
            if is_true(&details) {
                return;
            }
            assert!(
                start.elapsed() < WAIT_TIMEOUT,
                "waited {WAIT_TIMEOUT:?} in vain until {what}: {details}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns the events of a run, complete records only.
    pub(crate) fn events(&self, run: &str) -> Vec<Value> {
        let journal = self.home.join("runs").join(run).join("journal.jsonl");
        let text = available(std::fs::read_to_string(journal)).unwrap_or_default();
        text.split_inclusive('\n')
            .filter(|line| line.ends_with('\n'))
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["event"].take())
            .collect()
    }

    /// Waits until a run has an event with this type.
    #[track_caller]
    pub(crate) fn wait_for_event(&self, run: &str, kind: &str) {
        let start = Instant::now();
        while !self.events(run).iter().any(|event| event["type"] == kind) {
            assert!(
                start.elapsed() < WAIT_TIMEOUT,
                "waited {WAIT_TIMEOUT:?} in vain until {run} has {kind}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns the last status of a run in its journal.
    pub(crate) fn last_status(&self, run: &str) -> String {
        let events = self.events(run);
        let last = events
            .iter()
            .rfind(|event| event["type"] == "status_changed");
        last.map_or_else(String::new, |event| {
            event["status"].as_str().unwrap_or_default().to_owned()
        })
    }
}
