//! Measures how long the prompt of a late iteration takes: `cargo bench -p ralph-engine --bench
//! prompt`.
//!
//! Prints the milliseconds for iteration 1,000 of a run with small logs, and of one with a gigabyte
//! of logs. The logs are sparse files, so that they take no space on the disk.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use ralph_core::action;
use ralph_core::budget::{BudgetLimits, Spent};
use ralph_core::ports::ExecStatus;
use ralph_core::prompt::{self, GitSummary, LastOutput, LastTests, PromptSnapshot};
use ralph_core::secret::{Redactor, Secret};
use ralph_engine::durable;
use ralph_engine::store::{RunDir, StateDir};
use ralph_engine::workspace::HostFiles;

const ITERATION: u32 = 1000;
const ROUNDS: usize = 30;
const SMALL: u64 = 0;
const LARGE: u64 = 512 << 20;

#[expect(clippy::print_stdout, reason = "a bench prints its result")]
fn main() {
    let small = measure(SMALL);
    let large = measure(LARGE);
    println!("prompt of iteration {ITERATION}, small logs: {small:.3} ms");
    println!("prompt of iteration {ITERATION}, 1 GB of logs: {large:.3} ms");
    println!("the logs cost: {:.2} times as long", large / small);
}

/// Returns the best time in milliseconds with two logs of this size.
fn measure(size: u64) -> f64 {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let state =
        StateDir::open(directory.path().join("state")).expect("a state directory can be made");
    let run = ralph_core::id::RunId::new(jiff::Timestamp::UNIX_EPOCH, 1);
    let dir = state.run(&run);
    dir.create().expect("a run's directory can be made");
    fill(&dir, size);
    let secrets = (0..200).map(|number| {
        let value = format!("secret-value-{number:08}-{}", number * 7919);
        (format!("SECRET_{number}"), Secret::new(value))
    });
    let redactor = Redactor::new(secrets.collect());
    let files = HostFiles::open(&dir, redactor.clone()).expect("the files can be opened");
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        let started = Instant::now();
        let request = prompt::build(&snapshot(&files, &dir));
        let text = redactor.redact(&request.user);
        best = best.min(started.elapsed());
        assert!(text.len() > 50_000, "{}", text.len());
    }
    best.as_secs_f64() * 1000.0
}

/// Writes the files that a run has accumulated after a thousand iterations.
fn fill(dir: &RunDir, size: u64) {
    fs::create_dir_all(dir.iteration(ITERATION - 1)).expect("a directory can be made");
    let last = dir.iteration(ITERATION - 1).join("test_output.txt");
    for path in [dir.file("errors.log"), last] {
        log(&path, size);
    }
    for name in ["guardrails.md", "progress.md", "notes.md"] {
        let text = "- a line that somebody has found worth keeping\n".repeat(2000);
        fs::write(dir.file(name), text).expect("a file can be written");
    }
}

fn log(path: &Path, size: u64) {
    fs::create_dir_all(path.parent().expect("it is in a directory")).expect("it can be made");
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .expect("a log can be opened");
    file.set_len(size).expect("a hole can be made");
    for number in 0..3000 {
        writeln!(
            file,
            "\n2026-01-01T00:00:00Z iteration={number} test {number} failed: expected 1, found 2"
        )
        .expect("a log can be written");
    }
}

/// Collects the same input for a prompt as the engine does.
fn snapshot(files: &HostFiles, dir: &RunDir) -> PromptSnapshot {
    let last = ITERATION - 1;
    let output = dir.iteration(last).join("test_output.txt");
    let text = |name: &str| files.text(name).expect("a file can be read");
    PromptSnapshot {
        task: "# Task\n\n- [ ] M1.1 it is done\n".repeat(100),
        open_boxes: Vec::new(),
        guardrails: text("guardrails.md"),
        progress: text("progress.md"),
        notes: Some(text("notes.md")),
        errors_tail: files.errors_tail().expect("a log can be read"),
        git: GitSummary {
            branch: "ralph/task".into(),
            head: "0123456".into(),
            status: vec![" M src/lib.rs".into(); 100],
            status_total: 5000,
            diff_stat: " src/lib.rs | 2 +-\n".repeat(50),
            last_commits: vec!["0123456 Change something".into(); 10],
            diff_file: format!(".ralph/iterations/{last}/git_diff.patch"),
        },
        last_output: Some(LastOutput {
            tests: Some(LastTests {
                command: "make test".into(),
                ended: ExecStatus::Exited(1),
            }),
            output_tail: durable::tail(&output, 64 << 10).expect("a file can be read"),
            file: format!(".ralph/iterations/{last}/test_output.txt"),
        }),
        already_green: Vec::new(),
        refusals: vec!["the tests are red".into()],
        limits: BudgetLimits::default(),
        spent: Spent::default(),
        iteration: ITERATION,
        loop_scores: vec![0.1, 0.2, 0.3],
        circling: vec!["`make test` failed 3 times in the same way (exit 1)".into()],
        messages: Vec::new(),
        schema: action::SCHEMA_TEXT.to_owned(),
    }
}
