//! The diagnostics log: `tracing` events of ralph's own crates, redacted, as lines of a bounded file in
//! the state directory and, with `-v` or in `ralph serve`, on standard error.
//!
//! Writing never fails a command. A file that cannot be written is reported once on standard error.

mod filter;
mod log_file;

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use ralph_core::printable;
use ralph_core::secret::Redactor;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};

use self::filter::LogFilter;
use self::log_file::LogFile;

/// The length limit of a line in bytes, without its line break.
const MAX_LINE_BYTES: usize = 4096;

/// The name of the log in the state directory.
const LOG_PATH: &str = "log/ralph.log";

/// The filter and the destinations of the log.
#[derive(Debug, Clone, Default)]
pub struct LogSettings {
    /// The state directory, if its location is known. The log never creates it.
    pub state_dir: Option<PathBuf>,
    /// The value of `RALPH_LOG`.
    pub filter: Option<String>,
    /// The number of `-v` flags.
    pub verbosity: u8,
    /// The log on standard error.
    pub stderr: StderrLog,
}

/// The log on standard error.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StderrLog {
    /// It is printed as text with `-v`.
    #[default]
    Verbose,
    /// It is printed as lines of text.
    Text,
    /// It is printed as a JSON object per line.
    Json,
}

/// Returns the redactor that knows all secrets of this process at the time of the call.
type CurrentRedactor = Box<dyn Fn() -> Redactor + Send + Sync>;

/// Starts logging the events of this process.
pub fn install(settings: LogSettings, redactor: impl Fn() -> Redactor + Send + Sync + 'static) {
    let (filter, problems) = LogFilter::new(settings.filter.as_deref(), settings.verbosity);
    for problem in problems {
        print_to_stderr(&format!("ralph: warning: {problem}"));
    }
    let log = DiagnosticsLog::new(settings, filter, Box::new(redactor));
    if let Err(error) = tracing::subscriber::set_global_default(log) {
        print_to_stderr(&format!(
            "ralph: warning: cannot start the diagnostics log: {error}"
        ));
    }
}

/// Formats events as lines and writes them.
struct DiagnosticsLog {
    filter: LogFilter,
    file: Option<Mutex<LogFile>>,
    stderr: Option<StderrFormat>,
    is_failure_reported: AtomicBool,
    redactor: CurrentRedactor,
    spans: Mutex<HashMap<u64, OpenSpan>>,
    next_span: AtomicU64,
}

/// A span that some handle still refers to.
struct OpenSpan {
    /// The fields that every line inside the span repeats, each with a leading space.
    fields: String,
    /// The same fields by name.
    pairs: Vec<(&'static str, String)>,
    handles: usize,
}

/// The format of a line on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StderrFormat {
    Text,
    Json,
}

thread_local! {
    /// The spans that this thread is in, innermost last.
    static ENTERED: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

impl DiagnosticsLog {
    fn new(settings: LogSettings, filter: LogFilter, redactor: CurrentRedactor) -> Self {
        let file = settings
            .state_dir
            .map(|state| Mutex::new(LogFile::new(state, LOG_PATH)));
        Self {
            filter,
            file,
            stderr: match settings.stderr {
                StderrLog::Verbose => (settings.verbosity > 0).then_some(StderrFormat::Text),
                StderrLog::Text => Some(StderrFormat::Text),
                StderrLog::Json => Some(StderrFormat::Json),
            },
            is_failure_reported: AtomicBool::new(false),
            redactor,
            spans: Mutex::default(),
            next_span: AtomicU64::new(1),
        }
    }

    /// Returns the fields of all spans that this thread is in.
    fn span_fields(&self) -> String {
        let spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        ENTERED.with_borrow(|entered| {
            let fields = entered.iter().filter_map(|id| spans.get(id));
            fields.map(|span| span.fields.as_str()).collect()
        })
    }

    fn line(&self, event: &Event<'_>) -> String {
        let mut fields = FieldText::default();
        event.record(&mut fields);
        let metadata = event.metadata();
        let line = format!(
            "{:.3} {:<5} {}{} {}{}",
            jiff::Timestamp::now(),
            metadata.level(),
            metadata.target(),
            self.span_fields(),
            fields.message,
            fields.rest,
        );
        // Secrets may span the end of a cut line, so they are replaced before it is cut.
        let redacted = (self.redactor)().redact(&line).replace('\n', "⏎");
        let mut line = printable::escape_text(&redacted).into_owned();
        if line.len() > MAX_LINE_BYTES {
            line.truncate(line.floor_char_boundary(MAX_LINE_BYTES - '…'.len_utf8()));
            line.push('…');
        }
        line
    }

    /// Returns an event as a JSON object: its fields and those of its spans, each redacted.
    fn json_line(&self, event: &Event<'_>) -> String {
        let mut fields = FieldText::default();
        event.record(&mut fields);
        let redactor = (self.redactor)();
        let clean = |text: &str| {
            let mut text = redactor.redact(text).into_owned();
            text.truncate(text.floor_char_boundary(MAX_LINE_BYTES));
            Value::from(text)
        };
        let metadata = event.metadata();
        let mut line = Map::new();
        line.insert("ts".into(), format!("{:.3}", jiff::Timestamp::now()).into());
        let level = metadata.level().as_str().to_ascii_lowercase();
        line.insert("level".into(), level.into());
        line.insert("target".into(), metadata.target().into());
        line.insert("message".into(), clean(&fields.message));
        let of_spans = self.span_pairs();
        for (name, value) in of_spans.iter().chain(&fields.pairs) {
            line.insert((*name).into(), clean(value));
        }
        Value::Object(line).to_string()
    }

    /// Returns the fields of all spans that this thread is in, by name.
    fn span_pairs(&self) -> Vec<(&'static str, String)> {
        let spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        ENTERED.with_borrow(|entered| {
            let open = entered.iter().filter_map(|id| spans.get(id));
            open.flat_map(|span| span.pairs.clone()).collect()
        })
    }

    fn print(&self, event: &Event<'_>, line: &str) {
        match self.stderr {
            None => {}
            Some(StderrFormat::Text) => print_to_stderr(line),
            Some(StderrFormat::Json) => print_to_stderr(&self.json_line(event)),
        }
    }

    fn write(&self, line: &str) {
        let Some(file) = &self.file else { return };
        let written = file
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .append(line);
        if let Err(error) = written
            && !self.is_failure_reported.swap(true, Ordering::Relaxed)
        {
            print_to_stderr(&format!(
                "ralph: warning: cannot write the diagnostics log `{LOG_PATH}`: {error}"
            ));
        }
    }
}

impl Subscriber for DiagnosticsLog {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.enabled(metadata) {
            Interest::always()
        } else {
            Interest::never()
        }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // Spans are few and name the run, regardless of the level of the events inside them.
        metadata.is_span() && metadata.target().starts_with("ralph")
            || self.filter.enables(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        // At least the level of spans.
        Some(self.filter.max_level().max(LevelFilter::INFO))
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = FieldText::default();
        span.record(&mut fields);
        let id = self.next_span.fetch_add(1, Ordering::Relaxed);
        let span = OpenSpan {
            fields: fields.rest,
            pairs: fields.pairs,
            handles: 1,
        };
        let mut spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        spans.insert(id, span);
        Id::from_u64(id)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let mut fields = FieldText::default();
        values.record(&mut fields);
        let mut spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(span) = spans.get_mut(&span.into_u64()) {
            span.fields.push_str(&fields.rest);
            span.pairs.extend(fields.pairs);
        }
    }

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let line = self.line(event);
        self.print(event, &line);
        self.write(&line);
    }

    fn enter(&self, span: &Id) {
        ENTERED.with_borrow_mut(|entered| entered.push(span.into_u64()));
    }

    fn exit(&self, span: &Id) {
        ENTERED.with_borrow_mut(|entered| {
            if let Some(last) = entered.iter().rposition(|id| *id == span.into_u64()) {
                entered.remove(last);
            }
        });
    }

    fn clone_span(&self, span: &Id) -> Id {
        let mut spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(span) = spans.get_mut(&span.into_u64()) {
            span.handles += 1;
        }
        span.clone()
    }

    fn try_close(&self, span: Id) -> bool {
        let mut spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(open) = spans.get_mut(&span.into_u64()) else {
            return false;
        };
        open.handles -= 1;
        let is_closed = open.handles == 0;
        if is_closed {
            spans.remove(&span.into_u64());
        }
        is_closed
    }
}

/// The fields of an event or a span as text: the message, and ` name=value` for each other field.
#[derive(Default)]
struct FieldText {
    message: String,
    rest: String,
    /// The other fields by name.
    pairs: Vec<(&'static str, String)>,
}

impl Visit for FieldText {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}");
        self.push(field, &text);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.push(field, value);
    }
}

impl FieldText {
    fn push(&mut self, field: &Field, text: &str) {
        if field.name() == "message" {
            self.message.push_str(text);
            return;
        }
        self.pairs.push((field.name(), text.to_owned()));
        let is_one_word =
            !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c == '"');
        let written = if is_one_word {
            write!(self.rest, " {}={text}", field.name())
        } else {
            write!(self.rest, " {}={text:?}", field.name())
        };
        written.expect("writing to a string cannot fail");
    }
}

fn print_to_stderr(line: &str) {
    let written = writeln!(std::io::stderr(), "{line}");
    // With standard error closed there is no place left to report anything.
    drop(written);
}

#[cfg(test)]
mod tests;
