//! The evidence of a signal in words.

use std::fmt;

use super::signal::{Signal, Thrash};

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&match self {
            Self::RepeatedFailure { .. }
            | Self::Stagnation { .. }
            | Self::FileThrash { .. }
            | Self::Idle { .. } => repetition(self),
            Self::SameProblem { .. }
            | Self::Rewriting { .. }
            | Self::GrowingDiff { .. }
            | Self::Cycle { .. }
            | Self::Reformatting { .. }
            | Self::Reading { .. } => pattern(self),
            Self::NoProgress { .. }
            | Self::MovedOn { .. }
            | Self::RecentProgress { .. }
            | Self::TestsCloser { .. } => progress(self),
        })
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "`fmt` decides exhaustively which signals come here"
)]
fn repetition(signal: &Signal) -> String {
    match signal {
        Signal::RepeatedFailure {
            command,
            ended,
            iterations,
            ..
        } => {
            let (times, numbers) = (iterations.len(), numbers(iterations));
            format!(
                "`{command}` failed {times} times in the same way ({ended}) in iterations {numbers}"
            )
        }
        Signal::Stagnation {
            iterations,
            lines,
            enough,
        } => {
            let (numbers, lines) = (numbers(iterations), numbers(lines));
            format!(
                "fewer than {enough} lines changed in each of iterations {numbers} (lines: {lines})"
            )
        }
        Signal::FileThrash { files } => {
            let told: Vec<String> = files.iter().map(thrash).collect();
            format!("back and forth between two contents: {}", told.join(", "))
        }
        Signal::Idle { iterations } => {
            let numbers = numbers(iterations);
            format!("nothing was run and nothing changed in iterations {numbers}")
        }
        _ => String::new(),
    }
}

fn thrash(file: &Thrash) -> String {
    format!("`{}` (iterations {})", file.path, numbers(&file.iterations))
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "`fmt` decides exhaustively which signals come here"
)]
fn pattern(signal: &Signal) -> String {
    match signal {
        Signal::SameProblem {
            problem,
            iterations,
        } => {
            let (times, numbers) = (iterations.len(), numbers(iterations));
            format!("the same problem {times} times: `{problem}` (iterations {numbers})")
        }
        Signal::Rewriting {
            iterations,
            gone,
            of,
        } => {
            let shares = gone.iter().zip(of);
            let shares: Vec<String> = shares.map(|(gone, of)| format!("{gone} of {of}")).collect();
            format!(
                "iterations {} replaced the lines that the iteration before had written ({} sampled lines)",
                numbers(iterations),
                shares.join(", ")
            )
        }
        Signal::GrowingDiff { iterations, lines } => {
            let (numbers, lines) = (numbers(iterations), numbers(lines));
            format!(
                "the uncommitted diff grew in iterations {numbers} (lines: {lines}) while something failed"
            )
        }
        Signal::Cycle {
            period,
            files,
            iterations,
        } => {
            let names: Vec<String> = files.iter().map(|file| format!("`{file}`")).collect();
            let what = if names.is_empty() {
                "the repository".to_owned()
            } else {
                names.join(", ")
            };
            let numbers = numbers(iterations);
            format!("the same {period} states again: {what} (iterations {numbers})")
        }
        Signal::Reformatting { file, iterations } => {
            let numbers = numbers(iterations);
            format!("only the formatting changed in iterations {numbers}, such as in `{file}`")
        }
        Signal::Reading {
            iterations,
            commands,
        } => {
            let (numbers, commands) = (numbers(iterations), numbers(commands));
            format!("nothing changed in iterations {numbers}, though commands ran ({commands})")
        }
        _ => String::new(),
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "`fmt` decides exhaustively which signals come here"
)]
fn progress(signal: &Signal) -> String {
    match signal {
        Signal::NoProgress { iterations } => {
            let numbers = numbers(iterations);
            format!("no new box, no new commit and no better test result in iterations {numbers}")
        }
        Signal::MovedOn {
            problem,
            iterations,
        } => {
            let numbers = numbers(iterations);
            format!(
                "the same message hides other problems in iterations {numbers}, now `{problem}`"
            )
        }
        Signal::RecentProgress { iteration } => {
            format!("iteration {iteration} ticked a box or improved the tests")
        }
        Signal::TestsCloser {
            failed_before: Some(before),
            failed_now: Some(now),
            since,
        } => format!("getting closer: {now} tests fail, {before} did in iteration {since}"),
        Signal::TestsCloser { since, .. } => {
            format!("getting closer: the tests are green, in iteration {since} they were not")
        }
        _ => String::new(),
    }
}

fn numbers(of: &[impl ToString]) -> String {
    let texts: Vec<String> = of.iter().map(ToString::to_string).collect();
    texts.join(", ")
}
