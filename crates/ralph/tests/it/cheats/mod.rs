//! Ways to fake a green verdict. None of them may end as an unqualified success: either the run
//! does not succeed, or its success carries a finding that every surface shows.

mod left_behind;
mod node;
mod python;
mod scripts;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::Value;

use crate::project::{Project, claiming, commit, run, write};

/// Number of concurrent runs.
const AT_A_TIME: usize = 4;

/// The expected outcome of a cheat.
#[derive(Clone, Copy)]
enum CheatOutcome {
    /// The run does not succeed, and a reason or rejection contains this text.
    NoSuccess(&'static str),
    /// The run succeeds with a finding of this kind.
    Finding(&'static str),
}
use CheatOutcome::{Finding, NoSuccess};

/// One way to fake a verdict.
struct Cheat {
    name: &'static str,
    /// The files of the base commit.
    base: &'static [(&'static str, &'static str)],
    /// The faked check: the test command and the verify command of the first box.
    check: &'static str,
    /// The verify command of the second box.
    second: &'static str,
    /// The files that the model writes.
    writes: &'static [(&'static str, &'static str)],
    /// A command that the model runs before its commit.
    runs: &'static str,
    expected: CheatOutcome,
}

/// Defaults shared by most cheats.
const CHEAT: Cheat = Cheat {
    name: "",
    base: &[],
    check: "true",
    second: "test -s done.txt",
    writes: &[],
    runs: "true",
    expected: NoSuccess(""),
};

impl Cheat {
    fn project(&self) -> Project {
        let body = format!(
            "# Task: T\n\n- [ ] M1.1 First\n  - verify: `{}`\n- [ ] M1.2 Second\n  - verify: `{}`\n",
            self.check, self.second
        );
        let project = Project::new()
            .set("max_iterations", "1")
            .set("test_command", &serde_json::to_string(self.check).unwrap())
            .body(&body);
        for (path, text) in self.base {
            project.commit(path, text);
            if text.starts_with("#!") {
                project.git(&["update-index", "--chmod=+x", path]);
                project.git(&["commit", "--quiet", "--amend", "--no-edit"]);
            }
        }
        let mut actions: Vec<Value> = vec![write("done.txt", "done\n")];
        actions.extend(self.writes.iter().map(|(path, text)| write(path, text)));
        actions.extend([run(self.runs), commit("Work")]);
        project.script(&[claiming(&["M1.1", "M1.2"], &actions)])
    }

    fn assert_caught(&self) {
        let name = self.name;
        let project = self.project();
        let ended = project.run();
        let shown = project.show();
        let findings = shown["findings"].as_array().cloned().unwrap_or_default();
        match self.expected {
            NoSuccess(why) => {
                assert_ne!(shown["status"], "succeeded", "{name}: {}", ended.stdout);
                assert!(
                    ended.combined().contains(why),
                    "{name}: no {why:?} in {}",
                    ended.combined()
                );
            }
            Finding(kind) => {
                assert_eq!(shown["status"], "succeeded", "{name}: {}", ended.combined());
                let found = findings.iter().find(|finding| finding["kind"] == kind);
                let found = found.unwrap_or_else(|| panic!("{name}: no {kind} in {findings:?}"));
                let text = found["text"].as_str().unwrap();
                let start: String = text.chars().take(40).collect();
                let body = project.pull()["body"].as_str().unwrap().to_owned();
                assert!(ended.stdout.contains(&start), "{name}: {}", ended.stdout);
                assert!(body.contains(&start), "{name}: {body}");
            }
        }
        project.audit();
    }
}

/// Runs cheats, a few at a time.
fn assert_all_caught(cheats: &[Cheat]) {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                while let Some(cheat) = cheats.get(next.fetch_add(1, Ordering::Relaxed)) {
                    cheat.assert_caught();
                }
            });
        }
    });
}

#[test]
fn there_are_at_least_forty_cheats() {
    let count = python::CHEATS.len()
        + python::PYTEST_CHEATS.len()
        + scripts::CHEATS.len()
        + node::CHEATS.len()
        + left_behind::CHEATS.len();
    assert!(count >= 40, "{count}");
}

/// Honest work in the same project raises no suspicion.
#[test]
fn honest_work_is_an_unqualified_success() {
    let honest = Cheat {
        base: python::BASE,
        check: python::UNITTEST,
        writes: &[("app.py", "def add(a, b):\n    return a + b\n")],
        ..CHEAT
    };
    let project = honest.project();
    let ended = project.run().expect(0);
    let shown = project.show();
    assert_eq!(shown.get("findings"), None, "{}", ended.stdout);
    project.audit();
}
