//! Set-up: dependencies are installed before the work and before each check, and once per lockfile.

use std::fs;

use ralph_test::{BASE_IMAGE, skip_without_docker};
use serde_json::Value;

use crate::project::{Project, actions, claiming, commit, finish, run, work, write};

/// Installs a dependency into an ignored directory, the home directory and a cache, and counts how
/// often it ran on this machine.
const INSTALL: &str = "mkdir -p deps \"$npm_config_cache\" && cp requirements.txt deps/ \
                       && touch \"$HOME/installed\" \"$npm_config_cache/installed\" && echo installed";

/// A check that needs everything that set-up leaves behind.
const NEEDS: &str = "test -e deps/requirements.txt && test -e \"$HOME/installed\" && test -e \"$npm_config_cache/installed\"";

fn project(replies: &[Value]) -> Project {
    let project = Project::new()
        .set("setup_command", &format!("'{INSTALL}'"))
        .set("verify_commands", &format!("['{NEEDS}']"))
        .script(replies);
    project.commit("requirements.txt", "one\n");
    project.commit(".gitignore", "deps/\n");
    project
}

/// Returns whether each set-up was copied from an earlier one.
fn cached(project: &Project) -> Vec<Value> {
    project.event_values("setup_finished", "cached")
}

#[test]
fn dependencies_are_installed_once_for_the_work_and_all_checks() {
    let project = project(&[claiming(&["M1.1", "M1.2"], &work())]);
    let ended = project.run().expect(0);
    assert!(
        ended.combined().contains("set-up `mkdir -p deps"),
        "{}",
        ended.combined()
    );
    let all = cached(&project);
    assert_eq!(all[0], false);
    assert!(
        all.len() > 3 && all[1..].iter().all(|cached| cached == true),
        "{all:?}"
    );
    assert_eq!(project.show()["status"], "succeeded");
    let branch = project.show()["branch"].as_str().unwrap().to_owned();
    let delivered = project.git(&["ls-tree", "-r", "--name-only", &branch]);
    assert!(!delivered.contains("deps/"), "{delivered}");
    project.audit();

    // Another run of the repository shares the result of the base commit.
    project.write_script(&[claiming(&["M1.1", "M1.2"], &work())]);
    project.run_with(&["--new"]).expect(0);
    assert!(cached(&project).iter().all(|cached| cached == true));

    let report = project.ralph(&["gc", "--json"]).expect(0);
    let report: Value = serde_json::from_str(&report.stdout).unwrap();
    assert!(report["setup_bytes"].as_u64() > Some(0), "{report}");
}

#[test]
fn a_changed_lockfile_runs_set_up_again_and_a_damaged_result_is_not_used() {
    let change = actions(&[
        write("requirements.txt", "one\ntwo\n"),
        run("cat deps/requirements.txt"),
    ]);
    let check = actions(&[run("grep two deps/requirements.txt"), commit("Two")]);
    let project = project(&[change, check, claiming(&["M1.1", "M1.2"], &work())]);
    project.run().expect(0);
    assert_eq!(project.results(2)[0], "ran 0");
    let digests = project.event_values("setup_finished", "digest");
    assert_eq!(cached(&project)[..2], [false, false], "{digests:?}");
    assert_ne!(digests[0], digests[1]);
    // The clean rooms of the changed commit share one result of their own.
    let rooms = cached(&project)[2..].to_vec();
    assert_eq!(
        rooms.iter().filter(|cached| **cached == false).count(),
        1,
        "{rooms:?}"
    );

    for entry in fs::read_dir(project.home().join("setup")).unwrap() {
        fs::write(entry.unwrap().path(), "damaged").unwrap();
    }
    project.write_script(&[claiming(&["M1.1", "M1.2"], &work())]);
    project.run_with(&["--new"]).expect(0);
    assert_eq!(cached(&project)[0], false);
}

#[test]
fn a_failing_set_up_pauses_and_a_resumed_run_tries_again() {
    let project = Project::new()
        .set(
            "setup_command",
            "'echo no such package; test -e /tmp/never-there/x'",
        )
        .script(&[finish()]);
    let ended = project.run();
    assert_ne!(ended.code, 0);
    let shown = project.show();
    assert_eq!(shown["status"], "paused", "{shown}");
    let text = ended.combined();
    assert!(text.contains("failed: exit 1: no such package"), "{text}");
    assert!(text.contains("correct `setup_command`"), "{text}");
    project.ralph(&["resume"]);
    assert_eq!(project.events("setup_finished").len(), 2);
}

#[test]
fn a_set_up_that_a_commit_breaks_is_a_red_check_that_the_model_sees() {
    let broken = claiming(
        &["M1.1", "M1.2"],
        &[
            work(),
            vec![
                write("install.sh", "echo broken; exit 3\n"),
                run("git add -A"),
                commit("B"),
            ],
        ]
        .concat(),
    );
    let project = Project::new()
        .set("setup_command", "'sh install.sh'")
        .set("lockfiles", "[install.sh]")
        .set("max_iterations", "2")
        .script(&[broken, finish()]);
    project.commit("install.sh", "true\n");
    assert_ne!(project.run().code, 0);
    let errors = fs::read_to_string(project.run_dir().join("files/errors.log")).unwrap();
    assert!(
        errors.contains("set-up `sh install.sh` failed, so the check did not run"),
        "{errors}"
    );
    assert!(errors.contains("broken"), "{errors}");
}

#[test]
fn committed_files_that_set_up_changes_are_reported_and_restored_for_checks() {
    let project = Project::new()
        .set("setup_command", "'echo changed >> requirements.txt'")
        .set(
            "verify_commands",
            "['test \"$(cat requirements.txt)\" = one']",
        )
        .script(&[claiming(
            &["M1.1", "M1.2"],
            &[vec![run("git checkout requirements.txt")], work()].concat(),
        )]);
    project.commit("requirements.txt", "one\n");
    let ended = project.run().expect(0);
    let changed = project.event_values("setup_finished", "changed");
    assert!(
        changed
            .iter()
            .all(|changed| changed[0] == "requirements.txt"),
        "{changed:?}"
    );
    let notice = "set-up changed committed files: requirements.txt";
    assert!(ended.combined().contains(notice), "{}", ended.combined());
}

#[test]
fn dependencies_are_installed_in_containers() {
    if skip_without_docker() {
        return;
    }
    let project = project(&[claiming(&["M1.1", "M1.2"], &work())])
        .set("sandbox_provider", "docker")
        .set("sandbox_image", BASE_IMAGE);
    let ended = project.run();
    let all = cached(&project);
    project.remove_docker_objects();
    ended.expect(0);
    assert!(
        all[0] == false && all[1..].iter().all(|cached| cached == true),
        "{all:?}"
    );
}

#[test]
fn the_plan_shows_the_command_its_files_and_the_registries() {
    let project = Project::new()
        .set("sandbox_provider", "docker")
        .set("sandbox_image", BASE_IMAGE);
    project.commit("package-lock.json", "{}\n");
    project.commit("package.json", "{}\n");
    project.commit("go.sum", "\n");
    fs::write(
        project.repo().join("ralph.toml"),
        "[sandbox]\nsetup_command = \"npm ci\"\n",
    )
    .unwrap();
    project.configure(
        "ralph.toml",
        "[sandbox.registries]\nnpm = [\"registry.example.com\"]\n",
    );
    let shown = project.ralph(&["run", "--dry-run"]).expect(0).combined();
    for expected in [
        "npm ci · ralph.toml",
        "again when these change: go.sum, package-lock.json, package.json",
        "reachable for npm: registry.example.com (sandbox.registries.npm)",
        "reachable for go: no registry is known",
        "no registry is known for `go`, so set-up runs without one; add `go = ",
    ] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    fs::write(
        project.repo().join("ralph.toml"),
        "[sandbox]\nsetup_command = \"npm ci\"\nlockfiles = [\"no.lock\"]\n",
    )
    .unwrap();
    let refused = project.ralph(&["run", "--dry-run"]).expect(2).combined();
    assert!(
        refused.contains("lockfile `no.lock` does not exist"),
        "{refused}"
    );
}
