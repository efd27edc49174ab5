//! Describes the evidence of each signal for display.

use std::fmt;

use super::signal::{GutterSignal, ThrashedFile};

impl fmt::Display for GutterSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&match self {
            Self::RepeatedFailure { .. }
            | Self::Stagnation { .. }
            | Self::FileThrash { .. }
            | Self::Idle { .. } => describe_repetition(self),
            Self::SameProblem { .. }
            | Self::Rewriting { .. }
            | Self::GrowingDiff { .. }
            | Self::Cycle { .. }
            | Self::Reformatting { .. }
            | Self::Reading { .. } => describe_pattern(self),
            Self::NoProgress { .. }
            | Self::MovedOn { .. }
            | Self::RecentProgress { .. }
            | Self::TestsCloser { .. } => describe_progress(self),
        })
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "`fmt` matches exhaustively and passes only these signals"
)]
fn describe_repetition(signal: &GutterSignal) -> String {
    match signal {
        GutterSignal::RepeatedFailure {
            command,
            ended,
            iterations,
            ..
        } => {
            let (times, numbers) = (iterations.len(), join_numbers(iterations));
            format!(
                "`{command}` failed {times} times in the same way ({ended}) in iterations {numbers}"
            )
        }
        GutterSignal::Stagnation {
            iterations,
            lines,
            enough,
        } => {
            let (numbers, lines) = (join_numbers(iterations), join_numbers(lines));
            format!(
                "fewer than {enough} lines changed in each of iterations {numbers} (lines: {lines})"
            )
        }
        GutterSignal::FileThrash { files } => {
            let described: Vec<String> = files.iter().map(describe_thrash).collect();
            format!("alternating between two versions: {}", described.join(", "))
        }
        GutterSignal::Idle { iterations } => {
            let numbers = join_numbers(iterations);
            format!("no command ran and no file changed in iterations {numbers}")
        }
        _ => String::new(),
    }
}

fn describe_thrash(file: &ThrashedFile) -> String {
    format!(
        "`{}` (iterations {})",
        file.path,
        join_numbers(&file.iterations)
    )
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "`fmt` matches exhaustively and passes only these signals"
)]
fn describe_pattern(signal: &GutterSignal) -> String {
    match signal {
        GutterSignal::SameProblem {
            problem,
            iterations,
        } => {
            let (times, numbers) = (iterations.len(), join_numbers(iterations));
            format!("the same problem {times} times: `{problem}` (iterations {numbers})")
        }
        GutterSignal::Rewriting {
            iterations,
            gone,
            of,
        } => {
            let shares = gone.iter().zip(of);
            let shares: Vec<String> = shares.map(|(gone, of)| format!("{gone} of {of}")).collect();
            format!(
                "iterations {} replaced the lines that the previous iteration had written ({} sampled lines)",
                join_numbers(iterations),
                shares.join(", ")
            )
        }
        GutterSignal::GrowingDiff { iterations, lines } => {
            let (numbers, lines) = (join_numbers(iterations), join_numbers(lines));
            format!(
                "the uncommitted diff grew in iterations {numbers} (lines: {lines}) while failures continued"
            )
        }
        GutterSignal::Cycle {
            period,
            files,
            iterations,
        } => {
            let names: Vec<String> = files.iter().map(|file| format!("`{file}`")).collect();
            let subject = if names.is_empty() {
                "the repository".to_owned()
            } else {
                names.join(", ")
            };
            let numbers = join_numbers(iterations);
            format!("cycling through {period} states: {subject} (iterations {numbers})")
        }
        GutterSignal::Reformatting { file, iterations } => {
            let numbers = join_numbers(iterations);
            format!("only the formatting changed in iterations {numbers}, for example in `{file}`")
        }
        GutterSignal::Reading {
            iterations,
            commands,
        } => {
            let (numbers, commands) = (join_numbers(iterations), join_numbers(commands));
            format!(
                "commands ran but no file changed in iterations {numbers} ({commands} commands)"
            )
        }
        _ => String::new(),
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "`fmt` matches exhaustively and passes only these signals"
)]
fn describe_progress(signal: &GutterSignal) -> String {
    match signal {
        GutterSignal::NoProgress { iterations } => {
            let numbers = join_numbers(iterations);
            format!("no new box, no new commit and no better test result in iterations {numbers}")
        }
        GutterSignal::MovedOn {
            problem,
            iterations,
        } => {
            let numbers = join_numbers(iterations);
            format!(
                "the failure looks the same in iterations {numbers} but its problems change; now `{problem}`"
            )
        }
        GutterSignal::RecentProgress { iteration } => {
            format!("iteration {iteration} ticked a box or improved the tests")
        }
        GutterSignal::TestsCloser {
            failed_before: Some(before),
            failed_now: Some(now),
            since,
        } => format!("getting closer: {now} tests fail, down from {before} in iteration {since}"),
        GutterSignal::TestsCloser { since, .. } => {
            format!("getting closer: the tests pass, unlike in iteration {since}")
        }
        _ => String::new(),
    }
}

fn join_numbers(numbers: &[impl ToString]) -> String {
    let texts: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    texts.join(", ")
}
