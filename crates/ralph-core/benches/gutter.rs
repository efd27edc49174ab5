//! Measures the time to detect circling: `cargo bench -p ralph-core --bench gutter`.
//!
//! Prints the milliseconds for the largest stored output of a failed command, for a diff of 8 MiB,
//! and for a full window.

use std::fmt::Write as _;
use std::time::Instant;

use ralph_core::gutter::{
    self, CodeChange, FailureFacts, FileState, GutterSettings, IterationFacts, IterationWindow,
    OutputProblems,
};

const ROUNDS: usize = if cfg!(debug_assertions) { 2 } else { 20 };

fn main() {
    let output = output();
    let diff = diff();
    let window = window(&output);
    report("failed command with 1 MiB of output", || {
        let signature = gutter::signature("make", 2, &output, &output);
        usize::from(signature.as_str().is_empty())
            + OutputProblems::find(&output, &output).kept.len()
    });
    report("diff of 8 MiB", || {
        CodeChange::from_diff(&diff, &window).written.len()
    });
    report("window of ten iterations", || {
        gutter::measure(&window, GutterSettings::default())
            .signals
            .len()
    });
}

#[expect(clippy::disallowed_methods, reason = "a bench measures time")]
#[expect(clippy::print_stdout, reason = "a bench prints its result")]
fn report(name: &str, mut work: impl FnMut() -> usize) {
    let mut best = u128::MAX;
    let mut result = 0;
    for _ in 0..ROUNDS {
        let started = Instant::now();
        result = work();
        best = best.min(started.elapsed().as_micros());
    }
    println!(
        "{name}: {}.{:03} ms, {result} found",
        best / 1000,
        best % 1000
    );
}

fn output() -> String {
    let mut text = String::new();
    let mut number = 0;
    while text.len() < 1 << 20 {
        number += 1;
        write!(
            text,
            "[{number}/99999] Compiling unit_{number} in 0.{number}s at 0x7f{number:08x}\n\
             src/unit_{number}.c:{number}:3: error: 'field_{number}' undeclared (first use in this function)\n\
             2026-11-18T10:00:00.{number}Z worker {number}: connection to 127.0.0.1:{} refused\n",
            40_000 + number % 9999
        )
        .expect("writing to a string cannot fail");
    }
    text
}

fn diff() -> Vec<u8> {
    let mut text = String::new();
    let mut number = 0;
    while text.len() < 8 << 20 {
        if number % 1000 == 0 {
            write!(
                text,
                "diff --git a/f{number}.rs b/f{number}.rs\n@@ -1 +1 @@\n"
            )
            .expect("writing to a string cannot fail");
        }
        number += 1;
        write!(
            text,
            "-let old_{number} = {number};\n+let new_{number} = {number} + 1;\n"
        )
        .expect("writing to a string cannot fail");
    }
    text.into_bytes()
}

/// Returns a full window with the largest possible facts in every iteration.
fn window(output: &str) -> IterationWindow {
    let mut window = IterationWindow::default();
    for iteration in 1..=10_u32 {
        let failures = (0..IterationFacts::MAX_FAILURES).map(|number| {
            let command = format!("make {number}");
            let signature = gutter::signature(&command, 2, "failed", "");
            FailureFacts::new(signature, &command, "exit 2")
                .with_problems(OutputProblems::find(output, ""))
        });
        let files = (0..IterationFacts::MAX_FILES).map(|number| FileState {
            path: format!("src/{number}.rs"),
            after: Some(format!("{iteration}")),
        });
        window.push(IterationFacts {
            iteration,
            commands: 9,
            changed_lines: 99,
            files: files.collect(),
            failures: failures.collect(),
            committed: Some(false),
            ..IterationFacts::default()
        });
    }
    window
}
