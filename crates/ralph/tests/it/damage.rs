//! A repository damaged by a command is restored from the host's, and the run continues.

use std::fs;
use std::time::{Duration, Instant};

use ralph_test::{BASE_IMAGE, skip_without_docker};
use serde_json::Value;

use crate::project::{
    Project, actions, claiming, commit, commit_paths, control, finish, run, work, write,
};

/// Number of damages between two commits: a run without any progress counts as circling.
const PAUSE: usize = 4;
const STEP: &str = "step.txt";

/// An iteration that only commits one new file.
fn commit_a_step(number: usize) -> Value {
    actions(&[
        write(STEP, &format!("{number}\n")),
        commit_paths("One step", &[STEP]),
    ])
}

/// A project with enough iterations; its Docker objects are removed on drop.
struct DamagedProject(Project);

impl DamagedProject {
    fn local() -> Self {
        Self(Project::new().set("max_iterations", "60"))
    }

    fn in_docker() -> Self {
        Self(
            Project::new()
                .set("max_iterations", "60")
                .set("sandbox_provider", "docker")
                .set("sandbox_image", BASE_IMAGE),
        )
    }

    /// Applies each damage in a separate iteration, after checking that the last one was repaired
    /// and the uncommitted file was preserved; then the task completes normally.
    #[track_caller]
    fn survive(&self, damages: &[&str]) {
        let mut script = Vec::new();
        let mut iterations = Vec::new();
        for (index, damage) in damages.iter().enumerate() {
            if index % PAUSE == PAUSE - 1 {
                script.push(commit_a_step(index));
            }
            let inspect = format!(
                "git status --porcelain && git log -1 --format=%s && test -s base.txt && \
                 test \"$(cat kept.txt 2>/dev/null || echo 0)\" = {index}"
            );
            let kept = write("kept.txt", &format!("{}\n", index + 1));
            script.push(actions(&[run(&inspect), kept, run(damage)]));
            iterations.push(script.len());
        }
        script.push(finish());
        self.0.write_script(&script);
        self.0.run().expect(0);
        for (iteration, damage) in iterations.into_iter().zip(damages) {
            let results = self.0.results(iteration as u64);
            assert_eq!(results[..2], ["ran 0", "done"], "before {damage}");
            let paths = self.tampered(iteration);
            assert!(
                paths.iter().any(|path| path.contains(".git")),
                "{damage}: {paths:?}"
            );
        }
        let mut delivered = self.0.delivered();
        delivered.retain(|path| path != STEP);
        assert_eq!(delivered, ["a.txt", "b.txt", "kept.txt"]);
        self.0.audit();
    }

    /// Returns the paths that were reported as tampered in an iteration.
    fn tampered(&self, iteration: usize) -> Vec<String> {
        let events = self.0.events("tamper").into_iter();
        events
            .filter(|event| event["iteration"] == iteration)
            .map(|event| event["path"].as_str().unwrap().to_owned())
            .collect()
    }
}

impl Drop for DamagedProject {
    fn drop(&mut self) {
        if self.0.task_text().contains(BASE_IMAGE) {
            self.0.remove_docker_objects();
        }
    }
}

const PERMISSIONS: [&str; 7] = [
    "chmod 000 .git",
    "chmod -R 000 .git",
    "chmod -R a-w .git; chmod 500 .git/objects",
    "chmod 000 .git/HEAD .git/config",
    "chmod 000 .git/index",
    "chmod 000 .git/refs .git/objects",
    "chmod 000 .git/objects/*",
];

const REPLACEMENTS: [&str; 11] = [
    "rm -rf .git",
    "rm -rf .git; touch .git",
    "rm -rf .git; mkdir .git",
    "rm -rf .git; mkfifo .git",
    "rm -rf .git; ln -s .git .git",
    "rm -rf .git; ln -s / .git",
    "mv .git ../home/aside; ln -s ../home/aside .git",
    "mv .git/objects ../tmp/objects; ln -s ../../tmp/objects .git/objects; git status",
    "mv .git/HEAD ../tmp/HEAD; ln -s ../../tmp/HEAD .git/HEAD; git status",
    "rm -rf .git; git init -q --bare ../home/other; echo 'gitdir: ../home/other' > .git",
    "rm -rf .git; git init -q",
];

const GARBAGE: [&str; 9] = [
    "head -c 4096 /dev/urandom > .git/HEAD",
    "head -c 4096 /dev/urandom > .git/index",
    "for f in $(find .git/refs -type f); do head -c 99 /dev/urandom > $f; done; rm -f .git/packed-refs",
    "rm -rf .git/refs",
    "rm -rf .git/objects",
    "find .git/objects -type f -exec sh -c 'chmod u+w $1; echo x > $1' sh {} \\;",
    "rm -rf .git/index; mkdir .git/index",
    "rm -rf .git/HEAD; mkdir .git/HEAD",
    "echo ref: refs/heads/nowhere > .git/HEAD",
];

const PIPES: [&str; 6] = [
    "rm .git/HEAD; mkfifo .git/HEAD",
    "rm -f .git/packed-refs; mkfifo .git/packed-refs",
    "mkdir -p .git/objects/info; mkfifo .git/objects/info/alternates; mkfifo .git/shallow",
    "mkfifo .gitattributes",
    "mkdir -p sub; mkfifo sub/.gitignore; touch sub/x",
    "rm -rf sub; mkdir sub; git init -q sub/inner; rm sub/inner/.git/HEAD; mkfifo sub/inner/.git/HEAD; echo '/sub/' > .git/info/exclude",
];

#[test]
fn a_sealed_repository_is_opened_again_in_docker() {
    if skip_without_docker() {
        return;
    }
    DamagedProject::in_docker().survive(&PERMISSIONS);
}

#[test]
fn a_replaced_repository_is_put_back() {
    DamagedProject::local().survive(&REPLACEMENTS);
}

#[test]
fn a_replaced_repository_is_put_back_in_docker() {
    if skip_without_docker() {
        return;
    }
    DamagedProject::in_docker().survive(&REPLACEMENTS);
}

#[test]
fn garbage_in_the_repository_is_replaced() {
    DamagedProject::local().survive(&GARBAGE);
}

#[test]
fn garbage_in_the_repository_is_replaced_in_docker() {
    if skip_without_docker() {
        return;
    }
    DamagedProject::in_docker().survive(&GARBAGE);
}

#[test]
fn git_never_waits_for_a_pipe() {
    DamagedProject::local().survive(&PIPES);
}

/// Removes the repository with all of its files; the previous commit must be restored.
#[track_caller]
fn survive_the_loss_of_all_files(damaged: &DamagedProject, losses: &[&str]) {
    let mut script = vec![actions(&[
        write("committed.txt", "x\n"),
        commit("Committed"),
    ])];
    let mut iterations = Vec::new();
    for (index, loss) in losses.iter().enumerate() {
        if index % PAUSE == PAUSE - 1 {
            script.push(commit_a_step(index));
        }
        let look = "git status --porcelain && test -s base.txt && test -s committed.txt";
        let loss = format!("({loss}) 2>/dev/null; true");
        script.push(actions(&[run(look), run(&loss)]));
        iterations.push(script.len());
    }
    script.push(finish());
    damaged.0.write_script(&script);
    damaged.0.run().expect(0);
    for (iteration, loss) in iterations.into_iter().zip(losses) {
        let results = damaged.0.results(iteration as u64);
        assert_eq!(results, ["ran 0", "ran 0"], "{loss}");
        let told = damaged.tampered(iteration);
        assert!(told.contains(&".git".to_owned()), "{loss}: {told:?}");
    }
    let mut delivered = damaged.0.delivered();
    delivered.retain(|path| path != STEP);
    assert_eq!(delivered, ["a.txt", "b.txt", "committed.txt"]);
    damaged.0.audit();
}

const LOSSES: [&str; 3] = [
    "find . -mindepth 1 -delete",
    "rm -rf ../repo",
    "rm -rf ./* ./.*; mkdir -p .git/objects; chmod -R 000 .",
];

#[test]
fn a_removed_work_tree_comes_back_with_the_last_commit() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("mine"), "mine").unwrap();
    let link = format!("rm -rf ../repo; ln -s {} ../repo", outside.path().display());
    let mut losses = LOSSES.to_vec();
    losses.extend([
        link.as_str(),
        "mv ../repo ../other; ln -s other ../repo",
        "rm -rf ../repo; ln -s repo ../repo",
        "rm -rf ../repo; touch ../repo",
        "rm -rf ../repo ../scratch; ln -s / ../repo; ln -s / ../scratch",
    ]);
    survive_the_loss_of_all_files(&DamagedProject::local(), &losses);
    let left: Vec<_> = fs::read_dir(outside.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["mine"]);
}

#[test]
fn a_removed_work_tree_comes_back_with_the_last_commit_in_docker() {
    if skip_without_docker() {
        return;
    }
    survive_the_loss_of_all_files(&DamagedProject::in_docker(), &LOSSES);
}

#[test]
fn a_commit_works_right_after_the_damage() {
    let damaged = DamagedProject::local();
    damaged.0.write_script(&[
        actions(&[
            write("c.txt", "three\n"),
            run("rm -rf .git/HEAD"),
            commit("Three"),
        ]),
        actions(&[
            write("d.txt", "four\n"),
            run("mkfifo .git/x; rm -rf .git; ln -s /tmp .git"),
            commit("Four"),
        ]),
        finish(),
    ]);
    damaged.0.run().expect(0);
    assert_eq!(damaged.0.results(1), ["done", "ran 0", "done"]);
    assert_eq!(damaged.0.results(2), ["done", "ran 0", "done"]);
    assert_eq!(damaged.0.delivered(), ["a.txt", "b.txt", "c.txt", "d.txt"]);
    damaged.0.audit();
}

#[test]
fn commits_lost_with_the_repository_are_reported_and_the_audit_passes() {
    let damaged = DamagedProject::local();
    damaged.0.write_script(&[
        actions(&[
            write("c.txt", "three\n"),
            commit("Three"),
            run("rm -rf .git"),
        ]),
        actions(&[commit("Three again"), run("git reset -q --hard HEAD~1")]),
        actions(&[
            write("d.txt", "four\n"),
            commit("Four"),
            run("git reset -q HEAD~1"),
            commit("Four again"),
        ]),
        finish(),
    ]);
    damaged.0.run().expect(0);
    let refused = damaged.0.event_values("import_refused", "why");
    assert_eq!(refused.len(), 3, "{refused:?}");
    assert!(
        refused[0]
            .as_str()
            .unwrap()
            .contains("is no longer on the branch")
    );
    assert!(damaged.0.prompt(2).contains("is no longer on the branch"));
    assert_eq!(damaged.0.delivered(), ["a.txt", "b.txt", "d.txt"]);
    damaged.0.audit();
}

#[test]
fn a_repository_that_is_damaged_during_a_pause_is_put_back() {
    let damaged = DamagedProject::local();
    let project = &damaged.0;
    project.write_script(&[
        actions(&[write("kept.txt", "x\n"), control("pause", "a question")]),
        finish(),
    ]);
    project.run().expect(11);
    fs::remove_dir_all(project.sandbox().join(".git")).unwrap();
    std::os::unix::fs::symlink("/etc", project.sandbox().join(".git")).unwrap();
    project.ralph(&["resume", "last"]).expect(0);
    assert_eq!(project.delivered(), ["a.txt", "b.txt", "kept.txt"]);
    project.audit();
}

#[test]
fn a_repository_that_the_tests_damage_is_put_back() {
    let project = Project::new();
    project.commit("t.sh", "true\n");
    let damaged = DamagedProject(
        project
            .set("test_command", "sh t.sh")
            .set("max_iterations", "9"),
    );
    damaged.0.write_script(&[
        actions(&[write("t.sh", "rm -rf .git; ln -s /nowhere .git\n")]),
        claiming(
            &["M1.1", "M1.2"],
            &[&[write("t.sh", "true\n")], &work()[..]].concat(),
        ),
    ]);
    damaged.0.run().expect(0);
    assert_eq!(damaged.0.delivered(), ["a.txt", "b.txt"]);
    damaged.0.audit();
}

/// Creates sparse files of 50 GB, one of them in place of an existing file, and continues working.
#[track_caller]
fn work_next_to_huge_files(damaged: &DamagedProject) {
    damaged.0.commit("empty.txt", "");
    damaged.0.commit(".gitignore", "/ignored.bin\n");
    let make = "truncate -s 50G big.bin ignored.bin empty.txt 'a *[b].bin'; mkdir -p deep; \
                truncate -s 50G deep/big.bin";
    damaged.0.write_script(&[
        actions(&[run(make), write("c.txt", "three\n"), commit("Three")]),
        actions(&[commit_paths("No", &["big.bin"])]),
        actions(&[commit("Nothing else")]),
        actions(&[
            run("truncate -s 50G deep/.gitignore; touch deep/y"),
            write("d.txt", "four\n"),
        ]),
        actions(&[
            write("deep/x.txt", "x\n"),
            commit_paths("Deep", &["deep", "d.txt"]),
        ]),
        actions(&[run("rm -rf .git")]),
        actions(&[run(
            "rm -f *.bin deep/big.bin; git checkout -q -- empty.txt",
        )]),
        finish(),
    ]);
    let started = Instant::now();
    damaged.0.run().expect(0);
    // Reading one of the files would take longer than this on any machine.
    let time = started.elapsed();
    assert!(time < Duration::from_secs(90), "{time:?}");
    let results: Vec<Vec<String>> = (1..=5).map(|n| damaged.0.results(n)).collect();
    let expected: [&[&str]; 5] = [
        &["ran 0", "done", "done"],
        &["failed"],
        &["failed"],
        &["ran 0", "done"],
        &["done", "done"],
    ];
    assert_eq!(results, expected);
    let errors = damaged.0.file("errors.log");
    let named = "not committed: larger than 20 MiB, the limit of a commit: ";
    assert_eq!(errors.matches(named).count(), 2, "{errors}");
    for name in ["`big.bin`", "`a *[b].bin`", "`deep/big.bin`", "`empty.txt`"] {
        assert!(errors.contains(name), "{name}: {errors}");
    }
    assert!(!errors.contains("ignored.bin"), "{errors}");
    assert!(damaged.0.prompt(2).contains("`big.bin`"));
    assert_eq!(damaged.tampered(4), ["deep/.gitignore"]);
    let delivered = ["a.txt", "b.txt", "c.txt", "d.txt", "deep/x.txt", "deep/y"];
    assert_eq!(damaged.0.delivered(), delivered);
    damaged.0.audit();
}

#[test]
fn huge_files_are_named_and_cost_no_time() {
    work_next_to_huge_files(&DamagedProject::local());
}

#[test]
fn huge_files_are_named_and_cost_no_time_in_docker() {
    if skip_without_docker() {
        return;
    }
    work_next_to_huge_files(&DamagedProject::in_docker());
}
