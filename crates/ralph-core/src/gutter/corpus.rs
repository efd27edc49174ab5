//! Replays traces of circling and honest runs through the production code.
//!
//! `cargo nextest run -p ralph-core -E 'test(gutter::corpus)' --success-output immediate` prints
//! the detection rate and the rate of false alarms.
//!
//! A trace starts with `=== name: circling from 2` or `=== name: honest`. `[2-5]` starts a block
//! for iterations 2 to 5. In a block, `write`, `append`, `delete` and `generate` change files,
//! `run` and `test` are commands with exit codes, `read` is a number of successful commands,
//! `commit` creates a commit and `tick` ticks a box; `lost` and `outage` end an iteration without
//! measuring it. Lines with `|` are file content or standard output, lines with `!` standard error.
//! `{n}` is the iteration number, `{r}` and `{s}` are pseudo-random numbers, `{m}` grows, `{c}`
//! shrinks, `<<a|b>>` alternates.

mod replay;
mod syntax;

use super::{GutterSettings, measure};

/// The most iterations between the start of circling and its detection.
const MAX_DETECTION_DELAY: u32 = 6;

struct DetectionRates {
    honest: usize,
    false_alarms: Vec<String>,
    circling: usize,
    missed: Vec<String>,
}

fn detection_rates(corpora: &[&str]) -> DetectionRates {
    let mut rates = DetectionRates {
        honest: 0,
        false_alarms: Vec::new(),
        circling: 0,
        missed: Vec::new(),
    };
    for trace in corpora.iter().flat_map(|text| syntax::parse(text)) {
        let mut first = None;
        let mut scores = Vec::new();
        for window in replay::windows(&trace) {
            let measured = measure(&window, GutterSettings::default());
            let iteration = window.last().map_or(0, |facts| facts.iteration);
            let signals: Vec<&str> = measured
                .signals
                .iter()
                .map(super::GutterSignal::name)
                .collect();
            scores.push(format!(
                "{iteration}: {} {}",
                measured.score,
                signals.join(" ")
            ));
            if measured.score.is_gutter() && !measured.progress {
                first.get_or_insert(iteration);
            }
        }
        let summary = format!("{} ({first:?})\n  {}", trace.name, scores.join("\n  "));
        match trace.circling_from {
            None => {
                rates.honest += 1;
                if first.is_some() {
                    rates.false_alarms.push(summary);
                }
            }
            Some(from) => {
                rates.circling += 1;
                match first {
                    Some(at) if at < from => rates.false_alarms.push(summary),
                    Some(at) if at < from + MAX_DETECTION_DELAY => {}
                    Some(_) | None => rates.missed.push(summary),
                }
            }
        }
    }
    rates
}

fn check(name: &str, corpora: &[&str], at_least: usize) {
    let rates = detection_rates(corpora);
    let detected = rates.circling - rates.missed.len();
    #[expect(clippy::print_stdout, reason = "the rates are the result of this test")]
    {
        println!(
            "{name}: false alarms: {} of {}",
            rates.false_alarms.len(),
            rates.honest
        );
        println!("{name}: detected: {detected} of {}", rates.circling);
        for trace in rates.false_alarms.iter().chain(&rates.missed) {
            println!("{trace}");
        }
    }
    assert!(rates.honest >= at_least && rates.circling >= at_least);
    assert!(rates.false_alarms.is_empty());
    assert!(
        detected * 100 >= rates.circling * 95,
        "{detected} of {}",
        rates.circling
    );
}

#[test]
fn circling_runs_are_detected_without_false_alarms() {
    let corpora = [
        include_str!("corpus/circling.trace"),
        include_str!("corpus/honest.trace"),
    ];
    check("corpus", &corpora, 30);
}

#[test]
fn held_out_circling_runs_are_detected_without_false_alarms() {
    let corpora = [
        include_str!("corpus/held_out_circling.trace"),
        include_str!("corpus/held_out_honest.trace"),
    ];
    check("held out", &corpora, 12);
}
