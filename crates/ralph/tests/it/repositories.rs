//! Realistic repositories and task files.

use std::fs;

use serde_json::{Value, json};

use crate::project::{Project, actions, claiming, commit, finish, run, work, write};

#[test]
fn uncommitted_changes_stay_where_they_are() {
    let project = Project::new();
    project.commit("other.txt", "committed\n");
    fs::write(project.repo().join("other.txt"), "not committed\n").unwrap();
    fs::write(project.repo().join("base.txt"), "staged\n").unwrap();
    project.git(&["add", "base.txt"]);
    fs::write(project.repo().join("new.txt"), "unknown\n").unwrap();
    let looks = run("cat other.txt base.txt; ls");
    let project = project.script(&[claiming(
        &["M1.1", "M1.2"],
        &[&[looks][..], &work()].concat(),
    )]);
    let before = project.git(&["status", "--porcelain"]);
    let ended = project.run().expect(0);
    let notice = "not part of this run: 2 uncommitted changes in `";
    assert!(ended.stdout.contains(notice), "{}", ended.stdout);
    assert!(
        project.event_values("notice", "message")[0]
            .as_str()
            .unwrap()
            .contains(notice)
    );
    let output = project.artifact(1, "test_output.txt");
    assert!(
        output.contains("committed\nbase\n")
            && !output.contains("not committed")
            && !output.contains("new.txt"),
        "{output}"
    );
    assert_eq!(project.git(&["status", "--porcelain"]), before);
    assert_eq!(project.delivered(), ["a.txt", "b.txt"]);
}

#[test]
fn the_task_file_may_be_elsewhere() {
    let project = Project::new().script(&[finish()]);
    let (task, repo) = (project.path("user/task.md"), project.repo());
    fs::rename(project.task(), &task).unwrap();
    let (task, repo) = (task.display().to_string(), repo.display().to_string());
    let ended = project.run_with(&[&task]).expect(2);
    assert!(
        ended.stderr.contains("name one with `--repo PATH`"),
        "{}",
        ended.stderr
    );
    project.run_with(&[&task, "--repo", &repo]).expect(0);
    assert_eq!(project.delivered(), ["a.txt", "b.txt"]);
    project.audit();
}

#[test]
fn a_bare_repository_works_like_any_other() {
    let project = Project::new().script(&[finish()]);
    let bare = project.path("bare.git").display().to_string();
    let repo = project.repo().display().to_string();
    project.git(&["clone", "--quiet", "--bare", &repo, &bare]);
    project.run_with(&["--repo", &bare]).expect(0);
    let files = project.git_in(
        &project.path("bare.git"),
        &["diff", "--name-only", "main", "ralph/task/make-two-files"],
    );
    assert_eq!(files, "a.txt\nb.txt");
    assert_eq!(
        project.git(&["branch", "--format=%(refname:short)"]),
        "main"
    );
    project.audit();
}

#[test]
fn a_subdirectory_and_a_work_tree_are_the_repository() {
    let project = Project::new().script(&[finish()]);
    fs::create_dir(project.repo().join("sub")).unwrap();
    let model = project.model();
    let ended = project
        .command(&["run", "--model", &model, "../ralph_task.md"])
        .current_dir(project.repo().join("sub"))
        .output()
        .unwrap();
    assert!(ended.status.success(), "{ended:?}");
    let tree = project.path("tree").display().to_string();
    project.git(&["worktree", "add", "--quiet", &tree, "-b", "side"]);
    project.run_with(&["--new", "--repo", &tree]).expect(0);
    assert_eq!(project.show()["branch"], "ralph/task/make-two-files-v2");
    project.audit();
}

#[test]
fn the_work_trees_of_a_repository_share_branches_and_runs() {
    let project = Project::new()
        .set("max_iterations", "1")
        .script(&[actions(&[run("true")])]);
    let tree = project.path("tree");
    let name = tree.display().to_string();
    project.git(&["worktree", "add", "--quiet", &name, "-b", "side"]);
    fs::copy(project.task(), tree.join("ralph_task.md")).unwrap();
    let model = project.model();
    let in_tree = |args: &[&str]| {
        let output = project.command(args).current_dir(&tree).output().unwrap();
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    };
    // The first run commits nothing, so it has no branch when the second one is planned.
    project.run().expect(10);
    let first = project.show()["id"].as_str().unwrap().to_owned();
    let shown = |run: &str| {
        let (_, shown) = in_tree(&["show", run, "--json"]);
        serde_json::from_str::<Value>(&shown).unwrap()
    };
    // Without a run of its own, the other work tree shows the run of the repository.
    assert_eq!(shown("last")["id"], first.as_str());
    assert_eq!(in_tree(&["run", "--model", &model]).0, Some(10));
    let second = shown("last");
    assert_ne!(second["id"], first.as_str());
    assert_eq!(second["branch"], "ralph/task/make-two-files-v2");
    // Each work tree prefers its own run, and both list all.
    assert_eq!(project.show()["id"], first.as_str());
    let listed = |text: &str| serde_json::from_str::<Vec<Value>>(text).unwrap().len();
    assert_eq!(listed(&in_tree(&["runs", "--json"]).1), 2);
    assert_eq!(
        listed(&project.ralph(&["runs", "--json"]).expect(0).stdout),
        2
    );
}

#[test]
fn a_tracked_task_file_and_state_are_not_changed_by_the_work() {
    let project = Project::new();
    project.commit("ralph_task.md", &project.task_text());
    project.commit(".ralph/notes.md", "tracked notes\n");
    project.commit(".ralph/old.txt", "tracked\n");
    let project = project.script(&[
        claiming(&["M1.1"], &[write("a.txt", "one\n"), commit("One")]),
        claiming(
            &["M1.2"],
            &[
                write("b.txt", "two\n"),
                run("git add -A; git status --short"),
                commit("Two"),
            ],
        ),
    ]);
    project.run().expect(0);
    assert_eq!(project.show()["iteration"], 2);
    assert!(project.prompt(2).contains("- [x] M1.1"));
    assert_eq!(project.delivered(), ["a.txt", "b.txt"]);
    assert_eq!(project.git(&["status", "--porcelain"]), "");
    assert_eq!(project.events("tamper"), Vec::<Value>::new());
    project.audit();
}

#[test]
fn each_run_has_a_branch_of_its_own() {
    let project = Project::new().script(&[finish()]);
    project.git(&["branch", "ralph/task/make-two-files-v2"]);
    let branches: Vec<Value> = (0..2)
        .map(|_| {
            project.run().expect(0);
            project.audit();
            project.show()["branch"].take()
        })
        .collect();
    assert_eq!(
        branches,
        ["ralph/task/make-two-files", "ralph/task/make-two-files-v3"]
    );
}

#[test]
fn a_branch_that_the_user_has_is_left_alone() {
    let branch = "ralph/task/make-two-files";
    let project = Project::new().script(&[
        actions(&work()),
        actions(&[
            run("while [ ! -e ../go ]; do sleep 0.05; done"),
            write("c.txt", "c\n"),
            commit("Three"),
        ]),
        claiming(&["M1.1", "M1.2"], &[]),
    ]);
    let live = project.start();
    live.wait_for_event("pushed", 1);
    project.git(&["checkout", "--quiet", branch]);
    fs::write(project.sandbox().join("../go"), "").unwrap();
    let ended = live.wait().expect(11);
    assert!(ended.stdout.contains("checked out"), "{}", ended.stdout);
    assert_eq!(project.git(&["status", "--porcelain"]), "?? ralph_task.md");
    let reason = project.show()["reason"].as_str().unwrap().to_owned();
    assert!(
        reason.contains(branch) && reason.contains("check out another branch there"),
        "{reason}"
    );
    project.git(&["checkout", "--quiet", "main"]);
    project.ralph(&["resume", "last"]).expect(0);
    assert_eq!(project.delivered(), ["a.txt", "b.txt", "c.txt"]);
    project.audit();
}

#[test]
fn a_branch_moved_by_another_process_is_not_overwritten() {
    let branch = "ralph/task/make-two-files";
    let project = Project::new().script(&[
        actions(&work()),
        claiming(
            &["M1.1", "M1.2"],
            &[
                run("while [ ! -e ../go ]; do sleep 0.05; done"),
                write("c.txt", "c\n"),
                commit("Three"),
            ],
        ),
    ]);
    let live = project.start();
    live.wait_for_event("pushed", 1);
    let tree = project.path("tree").display().to_string();
    project.git(&["worktree", "add", "--quiet", &tree, branch]);
    project.git_in(
        &project.path("tree"),
        &["commit", "--quiet", "--allow-empty", "--message", "Mine"],
    );
    project.git(&["worktree", "remove", &tree]);
    let mine = project.git(&["rev-parse", branch]);
    fs::write(project.sandbox().join("../go"), "").unwrap();
    live.wait().expect(11);
    let reason = project.show()["reason"].as_str().unwrap().to_owned();
    let expected =
        "branch `ralph/task/make-two-files` moved by user, 1 commit that ralph did not push — ";
    assert!(reason.starts_with(expected), "{reason}");
    assert_eq!(project.git(&["rev-parse", branch]), mine);
    project.audit();
}

#[test]
fn task_files_of_other_systems_are_read() {
    let project = Project::new().script(&[claiming(&["M1.1"], &work()), claiming(&["M1.2"], &[])]);
    let text = format!("\u{feff}{}", project.task_text().replace('\n', "\r\n"));
    fs::write(project.task(), &text).unwrap();
    project.run().expect(0);
    assert!(project.prompt(2).contains("- [x] M1.1 One is there"));
    assert_eq!(project.events("contract_changed"), Vec::<Value>::new());
    assert_eq!(project.events("tamper"), Vec::<Value>::new());
    assert_eq!(fs::read_to_string(project.task()).unwrap(), text);
    assert_eq!(
        project.pull()["title"],
        json!("[Ralph] Make two files: task")
    );
    project.audit();
}
