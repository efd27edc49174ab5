//! Shows the work on issues.

use std::io::{self, Write};
use std::sync::Mutex;

use async_trait::async_trait;
use ralph_app::AppError;
use ralph_app::image::ImageProgress;
use ralph_app::issues::{IssueEnd, IssueEvent, IssueFrontEnd, WaitingIssue};
use ralph_app::runs::{ReadyRun, StartQuestions};
use ralph_core::run::RunStatus;
use ralph_core::secret::Redactor;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::cli::context::Context;
use crate::cli::drive::show_and_drive;
use crate::cli::image::ImageProgressOutput;
use crate::cli::output::CliOutput;
use crate::cli::questions::TerminalQuestions;
use crate::terminal::OutputMode;
use crate::terminal::styled_line::{StyledLine, Tone};

/// How the runs are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunDisplay {
    /// One at a time.
    Alone,
    /// Several at the same time: each line starts with the number of the issue.
    BesideOthers,
}

/// The output of the work on issues.
pub(super) struct IssueOutput {
    output: CliOutput,
    mode: OutputMode,
    display: RunDisplay,
    redactor: Redactor,
    /// The last line about waiting, which is printed only when it changes.
    last: Mutex<Option<String>>,
}

impl IssueOutput {
    pub(super) fn new(
        context: &Context,
        is_json: bool,
        display: RunDisplay,
    ) -> Result<Self, AppError> {
        let mode = context.view_mode(is_json, &context.app.settings()?);
        let mode = match (display, mode) {
            (RunDisplay::BesideOthers, OutputMode::Rich(..) | OutputMode::Uncoloured(_)) => {
                OutputMode::Plain
            }
            (RunDisplay::Alone | RunDisplay::BesideOthers, mode) => mode,
        };
        Ok(Self {
            output: context.output(),
            mode,
            display,
            redactor: context.app.redactor(),
            last: Mutex::new(None),
        })
    }

    /// Prints the end of polling.
    pub(super) fn print_end(&self, text: &str) {
        if self.mode == OutputMode::Json {
            self.print_json(&json!({"event": "ended", "reason": text}));
        } else {
            self.print(&StyledLine::from_text("ralph: ").plain(text));
        }
    }

    fn print(&self, line: &StyledLine) {
        // Work continues without a reader of its output.
        if let Err(error) = self.output.print_lines(std::slice::from_ref(line)) {
            tracing::debug!(%error, "cannot print a line");
        }
    }

    fn print_json(&self, value: &Value) {
        if let Err(error) = self.output.print_json(value) {
            tracing::debug!(%error, "cannot print a record");
        }
    }

    /// Returns whether a line about waiting differs from the last one.
    fn is_new(&self, line: &str) -> bool {
        let mut last = self
            .last
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let is_new = last.as_deref() != Some(line);
        *last = Some(line.to_owned());
        is_new
    }

    fn print_event(&self, event: &IssueEvent) {
        let line = StyledLine::from_text("ralph: ");
        match event {
            IssueEvent::Watching {
                repository,
                label,
                authors,
                interval,
            } => {
                let authors = authors.join(", ");
                let seconds = interval.as_secs();
                let text = format!(
                    "watching {repository} for issues with `{label}` by {authors}, every {seconds} s"
                );
                self.print(&line.plain(&text));
            }
            IssueEvent::Looked {
                waiting,
                working,
                next,
            } => {
                let text = looked_text(waiting, working);
                if self.is_new(&text) {
                    self.print(&line.quiet(&format!("{text}; next look in {} s", next.as_secs())));
                }
            }
            IssueEvent::LookFailed(error) => {
                let error = error.clone().redacted(&self.redactor).to_string();
                if self.is_new(&error) {
                    self.output.print_stderr_lines([&line.plain(&error)]);
                }
            }
            IssueEvent::Unblocked { number } => {
                self.print(&line.plain(&format!(
                    "issue #{number} is ready: its dependencies are done"
                )));
            }
            IssueEvent::Started {
                number,
                title,
                branch,
                run,
                is_resumed,
            } => {
                let verb = if *is_resumed { "continues" } else { "starts" };
                let text =
                    format!("issue #{number} {verb} on branch `{branch}` (run {run}): {title}");
                self.print(&line.plain(&text));
            }
            IssueEvent::Notice { number, message } => {
                let text = format!("issue #{number}: {message}");
                self.output.print_stderr_lines([&line.plain(&text)]);
            }
            IssueEvent::Ended { number, end } => self.print_issue_end(*number, end),
        }
    }

    fn print_issue_end(&self, number: u64, end: &IssueEnd) {
        let line = StyledLine::from_text("ralph: ").plain(&format!("issue #{number} "));
        let line = match end {
            IssueEnd::Done { pull: Some(pull) } => {
                line.span(Tone::Good, "is done").plain(&format!(": {pull}"))
            }
            IssueEnd::Done { pull: None } => line.span(Tone::Good, "is done"),
            IssueEnd::AlreadyDone => line.plain("is done already; the ready label starts it again"),
            IssueEnd::Failed { reason } => {
                line.span(Tone::Bad, "failed").plain(&format!(": {reason}"))
            }
            IssueEnd::NeedsAttention { reason } => line
                .span(Tone::Warn, "needs attention")
                .plain(&format!(": {reason}")),
            IssueEnd::Blocked(unmet) => line
                .span(Tone::Warn, "is blocked")
                .plain(&format!(": waits for {}", unmet.describe())),
            IssueEnd::Interrupted => line.plain("is ready again: the work was interrupted"),
            IssueEnd::Refused(error) => {
                let error = error.clone().redacted(&self.redactor);
                return self.output.print_error(&error, false);
            }
        };
        self.print(&line);
    }

    fn event_json(&self, event: &IssueEvent) -> Value {
        match event {
            IssueEvent::Watching {
                repository,
                label,
                authors,
                interval,
            } => json!({
                "event": "watching", "repository": repository, "label": label, "authors": authors,
                "interval_seconds": interval.as_secs(),
            }),
            IssueEvent::Looked {
                waiting,
                working,
                next,
            } => json!({
                "event": "looked", "waiting": waiting, "working": working, "next_seconds": next.as_secs(),
            }),
            IssueEvent::LookFailed(error) => {
                json!({"event": "look_failed", "error": error.clone().redacted(&self.redactor).json()})
            }
            IssueEvent::Unblocked { number } => json!({"event": "unblocked", "issue": number}),
            IssueEvent::Started {
                number,
                title,
                branch,
                run,
                is_resumed,
            } => json!({
                "event": "started", "issue": number, "title": title, "branch": branch, "run": run,
                "resumed": is_resumed,
            }),
            IssueEvent::Notice { number, message } => {
                json!({"event": "notice", "issue": number, "message": message})
            }
            IssueEvent::Ended { number, end } => {
                let mut value =
                    json!({"event": "issue_ended", "issue": number, "result": end.as_str()});
                match end {
                    IssueEnd::Done { pull } => value["pull_request"] = json!(pull),
                    IssueEnd::Failed { reason } | IssueEnd::NeedsAttention { reason } => {
                        value["reason"] = json!(reason);
                    }
                    IssueEnd::Blocked(unmet) => {
                        value["waits_for"] = json!(unmet.on);
                        if !unmet.unknown.is_empty() {
                            value["unknown"] = json!(unmet.unknown);
                        }
                    }
                    IssueEnd::Refused(error) => {
                        value["error"] = error.clone().redacted(&self.redactor).json();
                    }
                    IssueEnd::AlreadyDone | IssueEnd::Interrupted => {}
                }
                value
            }
        }
    }
}

#[async_trait(?Send)]
impl IssueFrontEnd for IssueOutput {
    fn report(&self, event: &IssueEvent) {
        if self.mode == OutputMode::Json {
            self.print_json(&self.event_json(event));
        } else {
            self.print_event(event);
        }
    }

    fn questions(&self) -> &dyn StartQuestions {
        &TerminalQuestions
    }

    fn show_image_progress(&self, progress: ImageProgress) {
        ImageProgressOutput::with_mode(self.mode).show(progress);
    }

    async fn drive(
        &self,
        run: ReadyRun,
        interrupted: watch::Receiver<bool>,
    ) -> Result<RunStatus, AppError> {
        let issue = run.journal().state().plan.issue.as_ref();
        let number = issue.map_or(0, |issue| issue.number);
        let out: Box<dyn Write + Send> = match (self.display, self.mode == OutputMode::Json) {
            (RunDisplay::BesideOthers, false) => Box::new(PrefixedLines::new(number)),
            (RunDisplay::Alone | RunDisplay::BesideOthers, _) => Box::new(io::stdout()),
        };
        Box::pin(show_and_drive(run, (out, self.mode), interrupted)).await
    }
}

fn looked_text(waiting: &[WaitingIssue], working: &[u64]) -> String {
    let mut parts = Vec::new();
    if !working.is_empty() {
        parts.push(format!("working on {}", list(working)));
    }
    let waits = waiting
        .iter()
        .map(|issue| format!("#{} waits for {}", issue.number, issue.unmet.describe()));
    parts.extend(waits);
    if working.is_empty() {
        parts.insert(0, "no ready issues".to_owned());
    }
    parts.join("; ")
}

fn list(numbers: &[u64]) -> String {
    let numbers: Vec<String> = numbers.iter().map(|number| format!("#{number}")).collect();
    numbers.join(", ")
}

/// Writes whole lines to standard output, each with the number of an issue.
struct PrefixedLines {
    prefix: String,
    line: Vec<u8>,
}

impl PrefixedLines {
    fn new(issue: u64) -> Self {
        Self {
            prefix: format!("#{issue} | "),
            line: Vec::new(),
        }
    }
}

impl Write for PrefixedLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                let mut stdout = io::stdout().lock();
                stdout.write_all(self.prefix.as_bytes())?;
                stdout.write_all(&self.line)?;
                self.line.clear();
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush()
    }
}
