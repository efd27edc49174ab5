//! Set-up: dependencies are installed before the work and before each check. A result serves only
//! sandboxes of the same commit.

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

/// Local sandboxes have different paths, so nothing is copied between them.
#[test]
fn dependencies_are_installed_in_every_local_sandbox() {
    let project = project(&[claiming(&["M1.1", "M1.2"], &work())]);
    let ended = project.run().expect(0);
    assert!(
        ended.combined().contains("set-up `mkdir -p deps"),
        "{}",
        ended.combined()
    );
    let all = cached(&project);
    assert!(
        all.len() > 3 && all.iter().all(|cached| cached == false),
        "{all:?}"
    );
    assert_eq!(project.show()["status"], "succeeded");
    let branch = project.show()["branch"].as_str().unwrap().to_owned();
    let delivered = project.git(&["ls-tree", "-r", "--name-only", &branch]);
    assert!(!delivered.contains("deps/"), "{delivered}");
    project.audit();
}

#[test]
fn a_changed_lockfile_runs_set_up_again() {
    let change = actions(&[
        write("requirements.txt", "one\ntwo\n"),
        run("cat deps/requirements.txt"),
    ]);
    let check = actions(&[run("grep two deps/requirements.txt"), commit("Two")]);
    let project = project(&[change, check, claiming(&["M1.1", "M1.2"], &work())]);
    project.run().expect(0);
    assert_eq!(project.results(2)[0], "ran 0");
    let digests = project.event_values("setup_finished", "digest");
    assert!(digests.iter().any(|digest| *digest != digests[0]));
}

/// A build of the base commit would hide a change of the sources.
#[test]
fn a_check_uses_the_build_of_its_own_commit() {
    let project = build_project();
    project.run().expect(0);
    assert_eq!(project.show()["status"], "succeeded");
}

/// Set-up builds an ignored file, and the check compares it with the source.
fn build_project() -> Project {
    let change = [
        vec![write("source.txt", "new\n"), run("git add -A")],
        vec![commit("New source")],
        work(),
    ];
    let project = Project::new()
        .set("setup_command", "'mkdir -p dist && cp source.txt dist/'")
        .set("verify_commands", "['cmp source.txt dist/source.txt']")
        .script(&[claiming(&["M1.1", "M1.2"], &change.concat())]);
    project.commit("source.txt", "old\n");
    project.commit(".gitignore", "dist/\n");
    project
}

/// Index flags that set-up writes would keep its changes through a reset.
#[test]
fn a_check_does_not_use_the_repository_that_set_up_wrote() {
    let hide = "git update-index --skip-worktree data.txt; echo hacked > data.txt";
    let project = Project::new()
        .set("setup_command", &format!("'{hide}'"))
        .set("verify_commands", "['test \"$(cat data.txt)\" = one']")
        .script(&[claiming(&["M1.1", "M1.2"], &work())]);
    project.commit("data.txt", "one\n");
    project.run().expect(0);
    let changed = project.event_values("setup_finished", "changed");
    let is_reported = |changed: &&Value| changed[0] == "data.txt";
    assert!(changed[1..].iter().all(|c| is_reported(&c)), "{changed:?}");
}

/// Fails at the first attempt in each sandbox, after the lockfile has changed.
const FLAKY: &str = "mkdir -p \"$npm_config_cache\"; grep -q two requirements.txt || exit 0; \
                     test -e \"$npm_config_cache/again\" && exit 0; touch \"$npm_config_cache/again\"; exit 7";

#[test]
fn a_set_up_that_fails_once_is_repeated() {
    let change = actions(&[write("requirements.txt", "two\n"), commit("Two")]);
    let project = Project::new()
        .set("setup_command", &format!("'{FLAKY}'"))
        .script(&[
            change,
            actions(&[run("true")]),
            claiming(&["M1.1", "M1.2"], &work()),
        ]);
    project.commit("requirements.txt", "one\n");
    project.run().expect(0);
    assert_eq!(project.show()["status"], "succeeded");
    let errors = project.file("errors.log");
    assert!(errors.contains("attempt 1 of 3"), "{errors}");
    assert!(!errors.contains("attempt 2 of 3"), "{errors}");
    assert!(!errors.contains("so the check did not run"), "{errors}");
}

/// The lockfile of the commit is installed in the work sandbox, so its content is not the reason.
#[test]
fn a_set_up_that_fails_only_in_clean_rooms_pauses() {
    let broken = [
        work(),
        vec![
            write("install.sh", "exit 3\n"),
            run("git add -A"),
            commit("B"),
        ],
    ];
    let project = Project::new()
        .set("setup_command", "'sh install.sh'")
        .script(&[claiming(&["M1.1", "M1.2"], &broken.concat())]);
    project.commit("install.sh", "true\n");
    assert_ne!(project.run().code, 0);
    let shown = project.show();
    assert_eq!(shown["status"], "paused", "{shown}");
    let text = shown.to_string();
    assert!(text.contains("failed twice in a clean room"), "{text}");
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
    // Nothing limits the registries of a local sandbox.
    assert!(!text.contains("sandbox.registries"), "{text}");
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

fn in_containers(project: Project) -> Project {
    project
        .set("sandbox_provider", "docker")
        .set("sandbox_image", BASE_IMAGE)
}

/// Removes the containers of a test, also after a failure.
struct ContainersGuard<'a>(&'a Project);

impl Drop for ContainersGuard<'_> {
    fn drop(&mut self) {
        self.0.remove_docker_objects();
    }
}

#[test]
fn containers_of_one_commit_share_a_result() {
    if skip_without_docker() {
        return;
    }
    let project = in_containers(project(&[claiming(&["M1.1", "M1.2"], &work())]));
    let _guard = ContainersGuard(&project);
    project.run().expect(0);
    let digest_of_work = project.event_values("setup_finished", "digest")[0].clone();
    let all = cached(&project);
    // The base commit, and the commit of the work.
    let installed = all.iter().filter(|cached| **cached == false).count();
    assert!(all[0] == false && all.len() > 3, "{all:?}");
    assert_eq!(installed, 2, "{all:?} {digest_of_work}");

    // Another run from the same base commit uses its result.
    project.write_script(&[claiming(&["M1.1", "M1.2"], &work())]);
    project.run_with(&["--new"]).expect(0);
    assert_eq!(cached(&project)[0], true);

    // A damaged result is not used.
    for entry in fs::read_dir(project.home().join("setup")).unwrap() {
        fs::write(entry.unwrap().path(), "damaged").unwrap();
    }
    project.write_script(&[claiming(&["M1.1", "M1.2"], &work())]);
    project.run_with(&["--new"]).expect(0);
    assert_eq!(cached(&project)[0], false);

    let listed = project.ralph(&["gc", "--setup", "--json"]).expect(0);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert!(listed["setup_bytes"].as_u64() > Some(0), "{listed}");
    assert_eq!(listed["removed_setup_bytes"], listed["setup_bytes"]);
    project.ralph(&["gc", "--setup", "--yes"]).expect(0);
    let left = fs::read_dir(project.home().join("setup")).unwrap().count();
    assert_eq!(left, 0);
}

#[test]
fn a_container_uses_the_build_of_its_own_commit() {
    if skip_without_docker() {
        return;
    }
    let project = in_containers(build_project());
    let _guard = ContainersGuard(&project);
    project.run().expect(0);
    assert_eq!(project.show()["status"], "succeeded");
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
