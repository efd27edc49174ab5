//! What a user does after a run: looks at its changes, merges or discards them, and cleans up.

use std::fs;

use serde_json::{Value, json};

use crate::project::{Project, actions, commit, control, finish, write};

/// A project whose run succeeded in one iteration.
fn succeeded() -> Project {
    let project = Project::new().script(&[finish()]);
    project.run().expect(0);
    project
}

fn branch(project: &Project) -> String {
    project.show()["branch"].as_str().unwrap().to_owned()
}

fn record_state(project: &Project) -> Value {
    project.pull()["state"].clone()
}

#[test]
fn the_last_lines_of_a_run_name_its_branch_and_the_next_commands() {
    let project = Project::new().script(&[finish()]);
    let run = project.run().expect(0);
    let id = project.show()["id"].as_str().unwrap().to_owned();
    for text in [
        format!("branch `{}` at ", branch(&project)),
        format!("`ralph diff {id}` shows the changes"),
        format!("`ralph merge {id}` merges them into `main`"),
        format!("`ralph pr {id}` shows the pull request"),
    ] {
        assert!(run.stdout.contains(&text), "{text}\n{}", run.stdout);
    }
}

#[test]
fn the_changes_of_a_run_and_of_an_iteration_are_patches() {
    let project = Project::new().script(&[
        actions(&[write("a.txt", "one\n")]),
        actions(&[write("b.txt", "two\n")]),
        actions(&[write("c.txt", "x\ny\n"), write("b.txt", "2\n")]),
        finish(),
    ]);
    project.run().expect(0);
    let diff = project.ralph(&["diff"]).expect(0).stdout;
    assert!(diff.contains("diff --git a/a.txt b/a.txt\n"), "{diff}");
    fs::write(project.path("all.patch"), &diff).unwrap();
    project.git(&[
        "apply",
        "--check",
        project.path("all.patch").to_str().unwrap(),
    ]);

    // Every iteration has its own changes only, although nothing was committed before.
    let own = |number: &str| {
        let args = ["diff", "last", "--iteration", number, "--stat"];
        project.ralph(&args).expect(0).stdout
    };
    assert_eq!(own("1"), "  a.txt · +1 −0\n1 file · +1 −0\n");
    assert_eq!(own("2"), "  b.txt · +1 −0\n1 file · +1 −0\n");
    assert_eq!(
        own("3"),
        "  b.txt · +1 −1\n  c.txt · +2 −0\n2 files · +3 −1\n"
    );
    let metrics = project.event_values("iteration_finished", "metrics");
    assert_eq!(
        metrics[1]["diff"],
        json!({"files": 1, "added": 1, "removed": 0})
    );
    let patch = project.artifact(2, "git_diff.patch");
    assert!(patch.contains("+++ b/b.txt\n"), "{patch}");
    assert!(!patch.contains("a.txt"), "{patch}");
    project.audit();

    let missing = project
        .ralph(&["diff", "last", "--iteration", "9"])
        .expect(2);
    assert!(
        missing
            .stderr
            .contains("has no iteration 9 — it has the iterations 1 to 4"),
        "{}",
        missing.stderr
    );
}

#[test]
fn an_iteration_without_changes_has_an_empty_diff_although_files_are_uncommitted() {
    let project = Project::new().script(&[
        actions(&[write("a.txt", "one\n")]),
        actions(&[crate::project::run("true")]),
        finish(),
    ]);
    project.run().expect(0);
    assert_eq!(project.artifact(2, "git_diff.patch"), "");
    let empty = project
        .ralph(&["diff", "last", "--iteration", "2"])
        .expect(0);
    assert_eq!(empty.stdout, "");
    assert!(
        empty.stderr.contains("iteration 2 changed nothing"),
        "{}",
        empty.stderr
    );
    // The last iteration commits a file that an earlier one wrote.
    let patch = project.artifact(3, "git_diff.patch");
    assert!(!patch.contains("a.txt"), "{patch}");
}

#[test]
fn an_iteration_is_shown_with_its_files_and_cut_where_they_are_long() {
    let long = "line\n".repeat(5_000);
    let project = Project::new().script(&[
        actions(&[write("long.txt", &long), crate::project::run("seq 2000")]),
        finish(),
    ]);
    project.run().expect(0);
    let shown = project
        .ralph(&["show", "last", "--iteration", "1"])
        .expect(0)
        .stdout;
    for text in [
        "── prompt",
        "── reply",
        "attempt 1 · scripted:",
        "1. write long.txt · done",
        "2. run seq 2000 · exit 0",
        "── test output",
        "+++ b/long.txt",
        "… cut; all of it is in ",
    ] {
        assert!(shown.contains(text), "{text}\n{shown}");
    }
    let patch = project.run_dir().join("iterations/1/git_diff.patch");
    assert!(
        shown.contains(&format!("all of it is in {}", patch.display())),
        "{shown}"
    );
    assert!(shown.lines().count() < 1_200, "{}", shown.lines().count());

    let args = ["show", "last", "--iteration", "1", "--json"];
    let report: Value = serde_json::from_str(&project.ralph(&args).expect(0).stdout).unwrap();
    assert_eq!(report["iteration"], 1);
    assert_eq!(report["open"], false);
    assert_eq!(report["diff"]["cut"], false);
    assert!(report["prompt"]["text"].as_str().unwrap().contains("M1.1"));
    let none = project
        .ralph(&["show", "last", "--iteration", "0"])
        .expect(2);
    assert!(
        none.stderr.contains("has no iteration 0"),
        "{}",
        none.stderr
    );
}

#[test]
fn a_pull_request_is_printed_with_its_text() {
    let project = succeeded();
    let shown = project.ralph(&["pr"]).expect(0).stdout;
    assert!(
        shown.starts_with("[Ralph] Make two files: task #1 (open)\n"),
        "{shown}"
    );
    assert!(shown.contains("- [x] M1.1 One is there"), "{shown}");
    assert!(!shown.contains("<!--"), "{shown}");
    let json = project.ralph(&["pr", "last", "--json"]).expect(0).stdout;
    let report: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(report["state"], "open");
    assert_eq!(report["base"], "main");
    assert_eq!(report["head"], branch(&project).as_str());

    let without = Project::new()
        .set("pr", "{enabled: false}")
        .script(&[finish()]);
    without.run().expect(0);
    let none = without.ralph(&["pr"]).expect(1);
    assert!(
        none.stderr.contains("has no pull request"),
        "{}",
        none.stderr
    );
}

#[test]
fn a_verified_run_is_merged_by_a_fast_forward_of_the_working_tree() {
    let project = succeeded();
    let merged = project.ralph(&["merge"]).expect(0).stdout;
    assert!(merged.contains("pull request #1 is merged"), "{merged}");
    assert_eq!(
        fs::read_to_string(project.repo().join("a.txt")).unwrap(),
        "one\n"
    );
    assert_eq!(
        project.git(&["status", "--porcelain", "--untracked-files=no"]),
        ""
    );
    assert_eq!(
        project.git(&["rev-parse", "main"]),
        project.git(&["rev-parse", &branch(&project)])
    );
    assert_eq!(record_state(&project), "merged");
    assert_eq!(project.show()["pr"]["state"], "merged");
    project.audit();
    let again = project.ralph(&["merge"]).expect(0).stdout;
    assert!(again.contains("`main` already contains"), "{again}");
}

#[test]
fn a_branch_that_is_not_checked_out_is_merged_too() {
    let project = succeeded();
    project.git(&["switch", "--quiet", "--create", "other"]);
    project.commit("mine.txt", "mine\n");
    project.ralph(&["merge"]).expect(0);
    assert_eq!(project.git(&["show", "main:a.txt"]), "one");
    assert_eq!(project.git(&["branch", "--show-current"]), "other");
    assert!(!project.repo().join("a.txt").exists());
    project.audit();
}

#[test]
fn diverged_branches_are_joined_by_a_merge_commit_of_the_user() {
    let project = succeeded();
    project.git(&["config", "user.name", "Jo"]);
    project.git(&["config", "user.email", "jo@example.com"]);
    project.commit("mine.txt", "mine\n");
    // A change that the merge does not touch stays.
    fs::write(project.repo().join("base.txt"), "edited\n").unwrap();
    let json = project.ralph(&["merge", "last", "--json"]).expect(0).stdout;
    let report: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(report["kind"], "merge_commit");
    let log = project.git(&["log", "-1", "--format=%an %p %s"]);
    assert!(
        log.starts_with("Jo ") && log.contains("Merge branch '"),
        "{log}"
    );
    assert!(log.split(' ').count() > 3, "{log}");
    assert_eq!(
        fs::read_to_string(project.repo().join("base.txt")).unwrap(),
        "edited\n"
    );
    assert!(project.repo().join("a.txt").exists() && project.repo().join("mine.txt").exists());
    project.audit();
}

#[test]
fn a_merge_never_overwrites_local_changes_and_never_leaves_conflicts() {
    let project = succeeded();
    let before = project.git(&["rev-parse", "main"]);
    fs::write(project.repo().join("a.txt"), "my own\n").unwrap();
    let refused = project.ralph(&["merge"]).expect(1);
    assert!(
        refused.stderr.contains("nothing was changed"),
        "{}",
        refused.stderr
    );
    assert_eq!(
        fs::read_to_string(project.repo().join("a.txt")).unwrap(),
        "my own\n"
    );
    assert_eq!(project.git(&["rev-parse", "main"]), before);

    project.commit("a.txt", "my own\n");
    let mine = project.git(&["rev-parse", "main"]);
    let conflict = project.ralph(&["merge"]).expect(1);
    assert!(
        conflict.stderr.contains("both changed a.txt"),
        "{}",
        conflict.stderr
    );
    assert_eq!(project.git(&["rev-parse", "main"]), mine);
    assert_eq!(
        project.git(&["status", "--porcelain", "--untracked-files=no"]),
        ""
    );
    assert_eq!(record_state(&project), "open");
    project.audit();
}

#[test]
fn an_unverified_run_is_merged_only_on_request() {
    let project = Project::new()
        .set("max_iterations", "1")
        .script(&[actions(&[write("a.txt", "one\n"), commit("Make one file")])]);
    project.run().expect(10);
    let refused = project.ralph(&["merge"]).expect(1);
    assert!(
        refused.stderr.contains("is not verified") && refused.stderr.contains("--unverified"),
        "{}",
        refused.stderr
    );
    project.ralph(&["merge", "last", "--unverified"]).expect(0);
    assert!(project.repo().join("a.txt").exists());

    // A commit of the user on top of the verified one is not verified.
    let project = succeeded();
    let name = branch(&project);
    project.git(&["switch", "--quiet", &name]);
    project.commit("more.txt", "more\n");
    project.git(&["switch", "--quiet", "main"]);
    let refused = project.ralph(&["merge"]).expect(1);
    assert!(
        refused.stderr.contains("but the branch is at"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_pull_request_whose_branch_was_merged_by_hand_is_merged() {
    let project = succeeded();
    assert_eq!(project.show()["pr"]["state"], "open");
    project.git(&[
        "merge",
        "--quiet",
        "--no-ff",
        "-m",
        "by hand",
        &branch(&project),
    ]);
    let shown = project.ralph(&["show", "last"]).expect(0).stdout;
    assert!(shown.contains("#1 (merged)"), "{shown}");
    assert_eq!(record_state(&project), "merged");
    assert_eq!(
        project
            .event_values("pull_request_updated", "pull")
            .last()
            .unwrap()["state"],
        "merged"
    );
    project.audit();
}

#[test]
fn a_squashed_or_rebased_pull_request_is_merged() {
    for is_squashed in [true, false] {
        let project = succeeded();
        project.commit("elsewhere.txt", "a change on the base branch\n");
        let branch = branch(&project);
        if is_squashed {
            project.git(&["merge", "--quiet", "--squash", &branch]);
            project.git(&["commit", "--quiet", "--message", "squashed"]);
        } else {
            let base = project.git(&["merge-base", "main", &branch]);
            let commits = format!("{}..{branch}", base.trim());
            project.git(&["cherry-pick", &commits]);
        }
        let shown = project.ralph(&["pr"]).expect(0).stdout;
        assert!(shown.contains("merged"), "{shown}");
        assert_eq!(record_state(&project), "merged");
        // There is nothing left to merge.
        let main = project.git(&["rev-parse", "main"]);
        project.ralph(&["merge"]).expect(0);
        assert_eq!(project.git(&["rev-parse", "main"]), main);
        project.audit();
    }
}

#[test]
fn a_merged_pull_request_stays_merged_when_the_run_is_discarded() {
    for is_merged_by_ralph in [true, false] {
        let project = succeeded();
        let branch = branch(&project);
        if is_merged_by_ralph {
            project.ralph(&["merge"]).expect(0);
        } else {
            project.git(&["merge", "--quiet", "--squash", &branch]);
            project.git(&["commit", "--quiet", "--message", "squashed"]);
        }
        let discarded = project.ralph(&["discard", "--yes"]).expect(0).stdout;
        assert!(discarded.contains(&format!("removed branch `{branch}`")));
        assert!(!discarded.contains("closed"), "{discarded}");
        assert_eq!(record_state(&project), "merged");
        assert_eq!(project.show()["pr"]["state"], "merged");
        project.audit();
    }
}

#[test]
fn a_discarded_run_loses_branch_and_sandbox_and_keeps_its_files() {
    let project = Project::new()
        .set("max_iterations", "1")
        .script(&[actions(&[write("a.txt", "one\n"), commit("Make one file")])]);
    let failed = project.run().expect(10);
    assert!(
        failed.stdout.contains("is kept for inspection"),
        "{}",
        failed.stdout
    );
    let sandbox = project.sandbox();
    assert!(sandbox.exists());
    let name = branch(&project);
    let unanswered = project.ralph(&["discard"]).expect(2);
    assert!(
        unanswered.stderr.contains("use `--yes`"),
        "{}",
        unanswered.stderr
    );
    assert!(sandbox.exists());

    project.git(&["switch", "--quiet", &name]);
    let checked_out = project.ralph(&["discard", "--yes"]).expect(1);
    assert!(
        checked_out.stderr.contains("it is checked out in"),
        "{}",
        checked_out.stderr
    );
    project.git(&["switch", "--quiet", "main"]);

    let discarded = project.ralph(&["discard", "--yes"]).expect(0).stdout;
    assert!(
        discarded.contains(&format!("branch `{name}`")),
        "{discarded}"
    );
    assert!(!sandbox.exists());
    assert_eq!(project.git(&["branch", "--list", &name]), "");
    assert_eq!(record_state(&project), "closed");
    assert!(project.ralph(&["diff"]).expect(0).stdout.contains("+one"));
    project.audit();
    project.ralph(&["discard", "--yes"]).expect(0);
    let refused = project
        .ralph(&["continue", "last", "--max-iterations", "5"])
        .expect(1);
    assert!(
        refused.stderr.contains("it was discarded"),
        "{}",
        refused.stderr
    );
    let refused = project.ralph(&["merge", "last", "--unverified"]).expect(1);
    assert!(
        refused.stderr.contains("the run was discarded"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_paused_run_is_stopped_before_it_is_discarded() {
    let project = Project::new().script(&[actions(&[
        write("a.txt", "one\n"),
        commit("Make one file"),
        control("pause", "which way?"),
    ])]);
    project.run().expect(11);
    project.ralph(&["discard", "--yes"]).expect(0);
    assert_eq!(project.show()["status"], "stopped");
    project.audit();
}

#[test]
fn a_finished_run_is_removed_and_an_unfinished_one_only_by_force() {
    let project = Project::new().script(&[actions(&[control("pause", "which way?")])]);
    project.run().expect(11);
    let refused = project.ralph(&["rm", "last"]).expect(1);
    assert!(
        refused.stderr.contains("it is `paused` and not finished"),
        "{}",
        refused.stderr
    );
    let sandbox = project.sandbox();
    let dir = project.run_dir();
    project.ralph(&["rm", "last", "--force"]).expect(0);
    assert!(!dir.exists() && !sandbox.exists());
    let none = project.ralph(&["rm", "last"]);
    assert_ne!(none.code, 0);
    assert!(
        none.stderr.contains("there are no runs yet"),
        "{}",
        none.stderr
    );

    let project = succeeded();
    let removed = project.ralph(&["rm", "last"]).expect(0).stdout;
    assert!(removed.starts_with("removed run "), "{removed}");
    let left: Vec<_> = fs::read_dir(project.home().join("runs")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn old_runs_are_listed_and_removed_only_with_yes() {
    let project = succeeded();
    let dir = project.run_dir();
    let listed = project.ralph(&["gc"]).expect(0).stdout;
    assert!(
        listed.contains("kept: its last change is less than"),
        "{listed}"
    );
    let listed = project
        .ralph(&["gc", "--older-than", "0s"])
        .expect(0)
        .stdout;
    assert!(listed.contains("would be removed"), "{listed}");
    assert!(dir.exists());
    let json = project
        .ralph(&["gc", "--older-than", "0s", "--json"])
        .expect(0)
        .stdout;
    let report: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(report["dry_run"], true);
    assert_eq!(report["runs"][0]["verdict"], "remove");
    assert!(report["runs"][0]["bytes"].as_u64().unwrap() > 0);
    let removed = project
        .ralph(&["gc", "--older-than", "0s", "--yes"])
        .expect(0)
        .stdout;
    assert!(removed.contains("removed"), "{removed}");
    assert!(!dir.exists());
    project.ralph(&["gc", "--older-than", "soon"]).expect(2);
}
