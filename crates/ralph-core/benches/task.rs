//! Measures parsing and checking of a task file: `cargo bench -p ralph-core --bench task`.
//!
//! Prints the milliseconds for the largest allowed file with the largest allowed number of
//! checkboxes.

use std::fmt::Write as _;
use std::time::Instant;

use ralph_core::lint;

const KIB: usize = 256;
const CHECKBOXES: usize = 1000;
const ROUNDS: usize = if cfg!(debug_assertions) { 2 } else { 20 };

#[expect(clippy::disallowed_methods, reason = "a bench measures time")]
#[expect(clippy::print_stdout, reason = "a bench prints its result")]
fn main() {
    let task = largest_task();
    let mut best = u128::MAX;
    let mut findings = 0;
    for _ in 0..ROUNDS {
        let started = Instant::now();
        findings = lint::check(task.as_bytes()).findings.len();
        best = best.min(started.elapsed().as_micros());
    }
    println!(
        "task of {} KiB with {CHECKBOXES} checkboxes: {}.{:03} ms, {findings} findings",
        task.len() / 1024,
        best / 1000,
        best % 1000
    );
}

/// Returns a valid task of the largest size, with a verification per checkbox and prose in between.
fn largest_task() -> String {
    let mut text = String::from(
        "---\ntask_id: \"large\"\nbase_branch: \"main\"\nmax_iterations: 30\nmax_wall_time_minutes: 120\n\
         max_tokens_total: 1000000\ntest_command: \"make test\"\n---\n\n# Task: Do a thousand things\n\n\
         ## Success criteria (checkboxes)\n",
    );
    for number in 0..CHECKBOXES {
        let (milestone, place) = (number / 50 + 1, number % 50 + 1);
        if place == 1 {
            write!(text, "\n### Milestone M{milestone} — Part {milestone}\n")
                .expect("writing to a string cannot fail");
        }
        write!(
            text,
            "- [ ] M{milestone}.{place} thing {number} is done\n  - verify: `make check-{number}`\n"
        )
        .expect("writing to a string cannot fail");
    }
    text.push_str("\n## Notes\n\n");
    let line = "Some *more* words about `things`, with a [link](https://example.com) and a list:\n\n- one\n- two\n\n";
    while text.len() + line.len() < KIB * 1024 {
        text.push_str(line);
    }
    text
}
