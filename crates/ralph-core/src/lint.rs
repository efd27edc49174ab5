//! Placeholder until the linter lands.
use serde::Serialize;

/// Whether a finding keeps a run from starting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The run does not start.
    Error,
    /// The run starts.
    Warning,
}

/// One thing that is wrong with a task file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The rule.
    pub code: &'static str,
    /// Its weight.
    pub severity: Severity,
    /// The line.
    pub line: Option<u32>,
    /// The column.
    pub column: Option<u32>,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub fix: String,
}

impl Finding {
    /// Makes the error of a task file that is not there.
    pub fn missing_task_file(path: &str) -> Self {
        Self {
            code: "missing-task-file",
            severity: Severity::Error,
            line: None,
            column: None,
            message: format!("there is no task file `{path}`"),
            fix: "write one with `ralph init`".into(),
        }
    }
}

/// All findings.
#[derive(Debug)]
pub struct Report {
    /// The findings.
    pub findings: Vec<Finding>,
}

/// Judges.
pub fn check(bytes: &[u8]) -> Report {
    let mut findings = Vec::new();
    if !bytes.starts_with(b"---") {
        findings.push(Finding {
            code: "missing-front-matter",
            severity: Severity::Error,
            line: Some(1),
            column: None,
            message: "the file does not start with front matter".into(),
            fix: "start it with a line `---`".into(),
        });
    }
    Report { findings }
}
