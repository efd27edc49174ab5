use std::fs;
use std::path::Path;

use ralph_core::secret::Secret;
use tracing::{debug, info, info_span, warn};

use super::*;

fn logged(state: &Path, filter: &str, events: impl FnOnce()) -> String {
    let redactor = Redactor::new(vec![(
        "API_KEY".to_owned(),
        Secret::new("s3nt1nel-value".to_owned()),
    )]);
    let settings = LogSettings {
        state_dir: Some(state.to_owned()),
        filter: Some(filter.to_owned()),
        verbosity: 0,
        stderr: StderrLog::default(),
    };
    let (filter, _) = LogFilter::new(settings.filter.as_deref(), 0);
    let log = DiagnosticsLog::new(settings, filter, Box::new(move || redactor.clone()));
    tracing::subscriber::with_default(log, events);
    fs::read_to_string(state.join(LOG_PATH)).unwrap()
}

/// Removes the time at the start of each line.
fn without_times(text: &str) -> Vec<&str> {
    text.lines()
        .map(|line| line.split_once(' ').unwrap().1)
        .collect()
}

#[test]
fn a_line_has_level_target_run_message_and_fields() {
    let state = tempfile::tempdir().unwrap();
    let text = logged(state.path(), "debug", || {
        info!(count = 3, "before the run");
        let span = info_span!("run", run = "261115-214604-120b");
        span.in_scope(|| {
            warn!(host = %"a.example", why = "two words", "refused");
            debug!(empty = "", "line\nbreak \u{1b}[31m");
        });
        info!("after the run");
    });
    assert_eq!(
        without_times(&text),
        [
            "INFO  ralph::diagnostics_log::tests before the run count=3",
            "WARN  ralph::diagnostics_log::tests run=261115-214604-120b refused host=a.example why=\"two words\"",
            "DEBUG ralph::diagnostics_log::tests run=261115-214604-120b line⏎break \\u{1b}[31m empty=\"\"",
            "INFO  ralph::diagnostics_log::tests after the run",
        ]
    );
    let time = text.split(' ').next().unwrap();
    time.parse::<jiff::Timestamp>().unwrap();
}

#[test]
fn secrets_are_redacted_in_messages_fields_and_spans() {
    let state = tempfile::tempdir().unwrap();
    let text = logged(state.path(), "info", || {
        let span = info_span!("run", run = "s3nt1nel-value");
        span.in_scope(|| info!(key = "s3nt1nel-value", "the key is s3nt1nel-value"));
        // Cut in the middle, the secret would no longer be recognized.
        info!("{}s3nt1nel-value", "x".repeat(MAX_LINE_BYTES - 70));
        info!("Authorization: Bearer abcdefghijklmnopqrstuvwxyz0123456789");
    });
    assert!(!text.contains("s3nt1"), "{text}");
    assert!(!text.contains("abcdefghijkl"), "{text}");
    assert!(
        text.contains("the key is [REDACTED:API_KEY] key=[REDACTED:API_KEY]"),
        "{text}"
    );
    assert!(text.lines().all(|line| line.len() <= MAX_LINE_BYTES));
}

#[test]
fn the_filter_decides_per_target() {
    let state = tempfile::tempdir().unwrap();
    let text = logged(state.path(), "ralph_gate=debug,warn", || {
        info!("too low");
        warn!("high enough");
        debug!(target: "ralph_gate::audit", "named");
        warn!(target: "hyper_util", "a library");
    });
    assert_eq!(
        without_times(&text),
        [
            "WARN  ralph::diagnostics_log::tests high enough",
            "DEBUG ralph_gate::audit named",
        ]
    );
}
