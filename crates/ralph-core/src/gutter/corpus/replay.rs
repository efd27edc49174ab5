//! Converts a trace into the facts that the engine would have collected.

use std::collections::{BTreeMap, BTreeSet};

use super::super::{
    CodeChange, FailureFacts, FileState, IterationFacts, IterationWindow, OutputProblems,
    TestFacts, signature,
};
use super::syntax::{RunTrace, TraceStep};
use crate::id::Digest;
use crate::ports::ExecStatus;
use crate::verdict::{self, CheckResult, Verdict};

type ReplayFiles = BTreeMap<String, String>;

#[derive(Default)]
struct ReplayRepository {
    committed: ReplayFiles,
    files: ReplayFiles,
    boxes: usize,
}

/// Returns the window after each measured iteration.
pub(super) fn windows(trace: &RunTrace) -> Vec<IterationWindow> {
    let mut repository = ReplayRepository::default();
    let mut window = IterationWindow::default();
    let mut windows = Vec::new();
    for (number, steps) in trace.iterations() {
        if let Some(facts) = repository.iterate(number, &steps, &window) {
            window.push(facts);
            windows.push(window.clone());
        }
    }
    windows
}

impl ReplayRepository {
    fn iterate(
        &mut self,
        number: u32,
        steps: &[TraceStep],
        window: &IterationWindow,
    ) -> Option<IterationFacts> {
        let (start, before) = (self.committed.clone(), self.files.clone());
        let mut facts = IterationFacts {
            iteration: number,
            committed: Some(false),
            ..IterationFacts::default()
        };
        for step in steps {
            match step.verb.as_str() {
                "write" => drop(self.files.insert(step.object.clone(), step.text.clone())),
                "append" => self
                    .files
                    .entry(step.object.clone())
                    .or_default()
                    .push_str(&step.text),
                "delete" => drop(self.files.remove(&step.object)),
                "generate" => self.generate(&step.object, number),
                "read" => facts.commands += step.object.parse::<u32>().expect("a number"),
                "run" | "test" => replay_command(step, &mut facts),
                "commit" => {
                    if self.committed != self.files {
                        facts.committed = Some(true);
                    }
                    self.committed = self.files.clone();
                }
                "tick" => self.boxes += 1,
                "outage" => return None,
                "lost" => {
                    self.files = self.committed.clone();
                    return None;
                }
                other => panic!("unknown step: {other}"),
            }
        }
        facts.boxes_ticked = self.boxes;
        facts.tree = content_id(&format!("{:?}", self.files));
        facts.changed_lines = differences(&before, &self.files)
            .iter()
            .map(|(_, removed, added)| (removed.len() + added.len()) as u64)
            .sum();
        facts.files = file_states(&before, &self.files);
        let diff = diff(&start, &self.files);
        facts.diff_lines = differences(&start, &self.files)
            .iter()
            .map(|(_, removed, added)| (removed.len() + added.len()) as u64)
            .sum();
        facts.code = facts
            .has_changes()
            .then(|| CodeChange::from_diff(diff.as_bytes(), window));
        Some(facts)
    }

    /// Writes a large file that differs in every line.
    fn generate(&mut self, path: &str, number: u32) {
        let lines: Vec<String> = (0..300)
            .map(|line| format!("entry_{line} = hash_{}\n", (line + 1) * (number + 3) * 7919))
            .collect();
        self.files.insert(path.to_owned(), lines.concat());
    }
}

fn replay_command(step: &TraceStep, facts: &mut IterationFacts) {
    let (command, code) = step
        .object
        .rsplit_once(" => ")
        .expect("a command and its exit code");
    let code: i32 = code.parse().expect("an exit code");
    let mut check = CheckResult {
        name: "test_command".into(),
        command: command.to_owned(),
        ended: ExecStatus::Exited(code),
        duration_ms: 1,
        tests: verdict::count_tests(&format!("{}{}", step.text, step.stderr)),
        failure: None,
        problems: OutputProblems::default(),
    };
    let is_test = step.verb == "test";
    let has_failed = if is_test {
        !check.is_green()
    } else {
        code != 0
    };
    if has_failed {
        let signature = signature(command, code, &step.stderr, &step.text);
        let problems = OutputProblems::find(&step.stderr, &step.text);
        let failure = FailureFacts::new(signature.clone(), command, &format!("exit {code}"));
        IterationFacts::add_failure(&mut facts.failures, failure.with_problems(problems));
        check.failure = Some(signature);
    }
    if is_test {
        facts.tests = Some(TestFacts {
            green: verdict::judge(std::slice::from_ref(&check)) == Verdict::Green,
            count: check.tests,
        });
    } else {
        facts.commands += 1;
    }
}

fn content_id(content: &str) -> String {
    Digest::compute(content.as_bytes())
        .as_str()
        .chars()
        .take(16)
        .collect()
}

fn paths(before: &ReplayFiles, after: &ReplayFiles) -> BTreeSet<String> {
    let differs = |path: &&String| before.get(*path) != after.get(*path);
    before
        .keys()
        .chain(after.keys())
        .filter(differs)
        .cloned()
        .collect()
}

fn file_states(before: &ReplayFiles, after: &ReplayFiles) -> Vec<FileState> {
    let states = paths(before, after).into_iter().map(|path| FileState {
        after: after.get(&path).map(|content| content_id(content)),
        path,
    });
    states.take(IterationFacts::MAX_FILES).collect()
}

/// Returns the removed and the added lines of every file that differs.
fn differences(
    before: &ReplayFiles,
    after: &ReplayFiles,
) -> Vec<(String, Vec<String>, Vec<String>)> {
    let lines = |files: &ReplayFiles, path: &str| -> Vec<String> {
        let content = files.get(path).map(String::as_str).unwrap_or_default();
        content.lines().map(str::to_owned).collect()
    };
    paths(before, after)
        .into_iter()
        .map(|path| {
            let (old, new) = (lines(before, &path), lines(after, &path));
            let kept = common_lines(&old, &new);
            (path, lines_without(&old, &kept), lines_without(&new, &kept))
        })
        .collect()
}

/// Returns a longest common subsequence of two lists of lines.
fn common_lines(old: &[String], new: &[String]) -> Vec<String> {
    let mut lengths = vec![vec![0_u32; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            lengths[i][j] = if old[i] == new[j] {
                lengths[i + 1][j + 1] + 1
            } else {
                lengths[i + 1][j].max(lengths[i][j + 1])
            };
        }
    }
    let (mut i, mut j, mut kept) = (0, 0, Vec::new());
    while i < old.len() && j < new.len() {
        if old[i] == new[j] {
            kept.push(old[i].clone());
            (i, j) = (i + 1, j + 1);
        } else if lengths[i + 1][j] >= lengths[i][j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    kept
}

fn lines_without(lines: &[String], kept: &[String]) -> Vec<String> {
    let mut kept = kept.iter().peekable();
    let is_new = |line: &&String| kept.next_if(|kept| kept == line).is_none();
    lines.iter().filter(is_new).cloned().collect()
}

fn diff(before: &ReplayFiles, after: &ReplayFiles) -> String {
    let mut text = String::new();
    for (path, removed, added) in differences(before, after) {
        let head =
            format!("diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n");
        text.push_str(&head);
        for (sign, lines) in [('-', removed), ('+', added)] {
            for line in lines {
                text.push(sign);
                text.push_str(&line);
                text.push('\n');
            }
        }
    }
    text
}
