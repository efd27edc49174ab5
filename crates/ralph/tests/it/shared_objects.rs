//! The objects that runs of one repository share in the state directory.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::project::{Project, actions, control, finish};

/// Returns the entries of `repos` with an extension.
fn shared(project: &Project, extension: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(project.home().join("repos")) else {
        return Vec::new();
    };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.extension() == Some(extension.as_ref()))
        .collect()
}

fn mirror(project: &Project) -> PathBuf {
    let mut found = shared(project, "git");
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

/// Returns the number of packed and loose objects of a repository, without borrowed ones.
fn own_objects(project: &Project, repo: &Path) -> u64 {
    let counted = project.git_in(repo, &["count-objects", "--verbose"]);
    let numbers = counted.lines().filter_map(|line| {
        let (key, value) = line.split_once(": ")?;
        matches!(key, "count" | "in-pack").then(|| value.parse::<u64>().unwrap())
    });
    numbers.sum()
}

fn pausing() -> [Value; 2] {
    [actions(&[control("pause", "which way?")]), finish()]
}

#[test]
fn runs_of_one_repository_store_its_history_once() {
    let project = Project::new().script(&[finish()]);
    for number in 0..20 {
        project.commit("base.txt", &format!("base {number}\n"));
    }
    project.run().expect(0);
    let first = project.run_dir();
    assert_eq!(own_objects(&project, &mirror(&project)), 63);
    let own = own_objects(&project, &first.join("repo.git"));
    assert!(own < 40, "{own}");
    project.audit();
    project.write_script(&[finish()]);
    project.run_with(&["--new"]).expect(0);
    assert_ne!(project.run_dir(), first);
    assert_eq!(own_objects(&project, &mirror(&project)), 63);
    project.audit();

    let listed = project.ralph(&["gc"]).expect(0).stdout;
    assert!(listed.contains("shared objects"), "{listed}");
    assert!(listed.contains("kept: 2 runs of `"), "{listed}");
    project.ralph(&["rm", "last"]).expect(0);
    let refs = project.git_in(&mirror(&project), &["for-each-ref", "refs/runs/"]);
    assert_eq!(refs.lines().count(), 1, "{refs}");
    project.audit();
    let removed = project.ralph(&["rm", "last"]).expect(0).stdout;
    assert!(removed.contains("removed shared objects"), "{removed}");
    let left: Vec<_> = fs::read_dir(project.home().join("repos"))
        .unwrap()
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn work_trees_of_one_repository_share_its_objects() {
    let project = Project::new().script(&[finish()]);
    let tree = project.path("tree").display().to_string();
    project.git(&["worktree", "add", "--quiet", &tree, "-b", "side"]);
    project.run().expect(0);
    project.run_with(&["--new", "--repo", &tree]).expect(0);
    let refs = project.git_in(&mirror(&project), &["for-each-ref", "refs/runs/"]);
    assert_eq!(refs.lines().count(), 2, "{refs}");
    project.audit();
}

#[test]
fn old_runs_are_collected_with_their_shared_objects() {
    let project = Project::new().script(&[finish()]);
    project.run().expect(0);
    let gc = |flags: &[&str]| {
        let args = [&["gc", "--older-than", "0s", "--json"], flags].concat();
        serde_json::from_str::<Value>(&project.ralph(&args).expect(0).stdout).unwrap()
    };
    let report = gc(&[]);
    let entry = &report["shared"][0];
    assert_eq!(entry["removed"], true, "{report}");
    assert_eq!(entry["runs"].as_array().unwrap().len(), 1);
    assert!(entry["bytes"].as_u64().unwrap() > 0);
    assert!(mirror(&project).exists());
    gc(&["--yes"]);
    assert!(shared(&project, "git").is_empty());
    // The directory of a run may also be deleted by hand.
    project.write_script(&[finish()]);
    project.run_with(&["--new"]).expect(0);
    fs::remove_dir_all(project.run_dir()).unwrap();
    gc(&["--yes"]);
    assert!(shared(&project, "git").is_empty());
}

#[test]
fn a_moved_state_directory_works() {
    let project = Project::new().script(&pausing());
    project.run().expect(11);
    let moved = project.path("moved");
    fs::rename(project.home(), &moved).unwrap();
    let project = project.env("RALPH_HOME", moved.to_string_lossy());
    project.ralph(&["resume", "last"]).expect(0);
    assert_eq!(project.delivered(), ["a.txt", "b.txt"]);
}

type MirrorDamage = fn(&Path);

const DAMAGES: [(&str, MirrorDamage); 4] = [
    ("all of it", |mirror| fs::remove_dir_all(mirror).unwrap()),
    ("its objects", |mirror| {
        fs::remove_dir_all(mirror.join("objects")).unwrap();
    }),
    ("its packs", |mirror| {
        for entry in fs::read_dir(mirror.join("objects/pack")).unwrap() {
            let path = entry.unwrap().path();
            fs::remove_file(&path).unwrap();
            fs::write(&path, "").unwrap();
        }
    }),
    ("its refs", |mirror| {
        for run in fs::read_dir(mirror.join("refs/runs")).unwrap() {
            fs::write(run.unwrap().path().join("base"), "").unwrap();
        }
        fs::remove_dir_all(mirror.join("objects")).unwrap();
    }),
];

#[test]
fn damaged_shared_objects_are_fetched_again() {
    for (what, damage) in DAMAGES {
        let project = Project::new().script(&pausing());
        project.run().expect(11);
        damage(&mirror(&project));
        let resumed = project.ralph(&["resume", "last"]).expect(0);
        let notice = "share were damaged or missing; they were fetched again";
        assert!(
            resumed.stdout.contains(notice),
            "{what}: {}",
            resumed.stdout
        );
        assert!(!project.run_dir().join("recovered").exists(), "{what}");
        assert_eq!(project.delivered(), ["a.txt", "b.txt"], "{what}");
        assert!(shared(&project, "new").is_empty(), "{what}");
        project.audit();
    }
}

/// The next run rebuilds a mirror that git no longer opens; other runs still find their objects.
#[test]
fn a_mirror_without_a_head_is_rebuilt_by_the_next_run() {
    let project = Project::new().script(&pausing());
    project.run().expect(11);
    let first = project.run_dir();
    let first = first.file_name().unwrap().to_str().unwrap();
    fs::write(mirror(&project).join("HEAD"), "").unwrap();
    project.commit("base.txt", "newer\n");
    project.write_script(&[finish()]);
    project.run_with(&["--new"]).expect(0);
    project.git_in(&mirror(&project), &["fsck", "--full"]);
    project.audit();
    project.ralph(&["resume", first]).expect(0);
}

/// Rewrites the history of the user's repository, so that it lacks the base of every run.
fn forget_history(project: &Project) {
    project.git(&["checkout", "--quiet", "--orphan", "other"]);
    project.git(&["commit", "--quiet", "--allow-empty", "--message", "other"]);
    project.git(&["branch", "--force", "main", "other"]);
    project.git(&["reflog", "expire", "--expire=now", "--all"]);
    project.git(&["gc", "--quiet", "--prune=now"]);
}

#[test]
fn without_the_users_repository_the_base_comes_from_the_sandbox_or_the_run_stops() {
    for has_sandbox in [true, false] {
        let project = Project::new().script(&pausing());
        project.commit("base.txt", "rewritten later\n");
        project.run().expect(11);
        forget_history(&project);
        fs::remove_dir_all(mirror(&project)).unwrap();
        if !has_sandbox {
            fs::remove_dir_all(project.sandbox()).unwrap();
        }
        let resumed = project.ralph(&["resume", "last"]);
        if has_sandbox {
            assert_eq!(resumed.code, 0, "{resumed:?}");
            assert!(own_objects(&project, &project.run_dir().join("repo.git")) > 6);
        } else {
            assert_eq!(resumed.code, 11, "{resumed:?}");
            assert_eq!(project.show()["status"], "paused");
            assert!(project.run_dir().join("repo.git").exists());
        }
    }
}

/// Runs of a version without shared objects have them in their own repository.
#[test]
fn a_run_with_a_complete_repository_of_its_own_continues_without_a_mirror() {
    let project = Project::new().script(&pausing());
    project.run().expect(11);
    let repo = project.run_dir().join("repo.git");
    project.git_in(&repo, &["repack", "-a", "-d", "--quiet"]);
    fs::remove_file(repo.join("objects/info/alternates")).unwrap();
    fs::remove_dir_all(project.home().join("repos")).unwrap();
    project.ralph(&["resume", "last"]).expect(0);
    assert!(shared(&project, "git").is_empty());
    assert_eq!(project.delivered(), ["a.txt", "b.txt"]);
    project.audit();
    let removed = project.ralph(&["rm", "last"]).expect(0).stdout;
    assert!(!removed.contains("shared"), "{removed}");
}

fn copy(from: &Path, to: &Path) {
    let copied = std::process::Command::new("cp")
        .args(["-a".as_ref(), from, to])
        .status();
    assert!(copied.unwrap().success());
}

fn shared_bytes(project: &Project) -> u64 {
    let report = project.ralph(&["gc", "--json"]).expect(0).stdout;
    let report: Value = serde_json::from_str(&report).unwrap();
    report["shared"][0]["bytes"].as_u64().unwrap()
}

/// A crash between the two renames of a rebuild leaves no mirror under its own name.
#[test]
fn a_rebuild_that_was_interrupted_between_its_renames_is_completed() {
    for is_new_complete in [true, false] {
        let project = Project::new().script(&pausing());
        project.commit("base.txt", "rewritten later\n");
        project.run().expect(11);
        forget_history(&project);
        fs::remove_dir_all(project.sandbox()).unwrap();
        let mirror = mirror(&project);
        let damaged = mirror.with_extension("damaged");
        fs::rename(&mirror, &damaged).unwrap();
        if is_new_complete {
            copy(&damaged, &mirror.with_extension("new"));
            fs::remove_dir_all(damaged.join("objects")).unwrap();
        }
        assert!(shared_bytes(&project) > 0);
        let resumed = project.ralph(&["resume", "last"]);
        assert_eq!(resumed.code, 0, "{is_new_complete}: {resumed:?}");
        project.audit();
    }
}

/// A damaged mirror with the last copy of a base outlives the next rebuild.
#[test]
fn a_rebuild_keeps_the_bases_of_an_earlier_damaged_mirror() {
    let project = Project::new().script(&pausing());
    project.commit("base.txt", "rewritten later\n");
    project.run().expect(11);
    let first = project.run_dir();
    let first = first.file_name().unwrap().to_str().unwrap().to_owned();
    fs::remove_dir_all(project.sandbox()).unwrap();
    forget_history(&project);
    let mirror = mirror(&project);
    let bytes = shared_bytes(&project);
    copy(&mirror, &mirror.with_extension("damaged"));
    assert!(shared_bytes(&project) > bytes);
    let reference = format!("refs/runs/{first}/base");
    project.git_in(&mirror, &["update-ref", "-d", &reference]);
    project.git_in(&mirror, &["gc", "--quiet", "--prune=now"]);
    fs::write(mirror.join("HEAD"), "").unwrap();
    project.write_script(&[finish()]);
    project.run_with(&["--new"]).expect(0);
    let refs = project.git_in(
        &mirror,
        &["for-each-ref", "--format=%(refname)", "refs/runs/"],
    );
    assert!(refs.contains(&reference), "{refs}");
    project.write_script(&pausing());
    project.ralph(&["resume", &first]).expect(0);
}
