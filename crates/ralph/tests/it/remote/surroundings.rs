//! Other pull requests of the repository, stacked branches and reviews.

use ralph_test::git;

use super::{BRANCH, RemoteProject};
use crate::project::{Project, actions, claiming, commit, control, finish, write};

/// Half of the work and a pause; the other half.
fn two_halves() -> [serde_json::Value; 2] {
    let first = [
        write("a.txt", "one\n"),
        commit("Make one"),
        control("pause", "which way?"),
    ];
    let second = [write("b.txt", "two\n"), commit("Make two")];
    [
        claiming(&["M1.1"], &first),
        claiming(&["M1.1", "M1.2"], &second),
    ]
}

#[test]
fn an_overlap_is_reported_and_pauses_if_the_settings_say_so() {
    for pauses in [false, true] {
        let remote = RemoteProject::new().change(|project| project.script(&[finish()]));
        let settings = "[ci]\ngrace = \"0s\"\n[overlap]\naction = \"pause\"\n";
        if pauses {
            remote.project.configure("ralph.toml", settings);
        }
        git(&remote.bare(), &["branch", "other", "main"]);
        for file in ["a.txt", "b.txt", "c.txt"] {
            remote.commit_as("Ada", "other", file);
        }
        remote
            .github
            .with_app(|app| app.add_pull("Other", "other", "main", &[]));
        remote.run().expect(if pauses { 11 } else { 0 });
        let project = &remote.project;
        assert_eq!(project.events("overlap_found").len(), 1);
        if pauses {
            let shown = project.show();
            let reason = shown["reason"].to_string();
            assert!(reason.contains("pull request 1 changes 2 of"), "{shown}");
            project.ralph(&["resume", "last"]).expect(0);
        }
        assert_eq!(project.events("overlap_found").len(), 1);
        let body = remote.github.with_app(|app| app.issue(2).body.clone());
        assert!(
            body.contains("overlap: pull request 1 changes 2 of"),
            "{body}"
        );
        project.audit();
    }
}

#[test]
fn a_run_on_the_branch_of_another_run_is_stacked() {
    let project = Project::new().set("base_branch", "ralph/base");
    project.git(&["branch", "ralph/base", "main"]);
    let remote = RemoteProject::with(project).change(|project| project.script(&two_halves()));
    // It changes the same file, and is no overlap.
    remote.commit_as("Ada", "ralph/base", "a.txt");
    remote
        .github
        .with_app(|app| app.add_pull("Base", "ralph/base", "main", &[]));
    remote.run().expect(11);
    let pulls = remote.github.with_app(|app| app.pulls());
    let facts = pulls[1].pull.as_ref().unwrap();
    assert_eq!(
        (facts.head.as_str(), facts.base.as_str()),
        (BRANCH, "ralph/base")
    );
    remote.github.with_app(|app| app.merge(1));
    remote.project.ralph(&["resume", "last"]).expect(0);
    assert_eq!(remote.project.events("overlap_found").len(), 0);
    let closed = remote.project.event_values("base_pull_closed", "state");
    assert_eq!(closed, ["merged"]);
    let body = remote.github.with_app(|app| app.issue(2).body.clone());
    let notice = "pull request 1 of the base branch `ralph/base` was merged";
    assert!(body.contains(notice), "{body}");
}

#[test]
fn requested_changes_reach_the_model() {
    let [first, second] = two_halves();
    let answer = actions(&[write("a.txt", "\tone\n"), commit("Use tabs")]);
    let third = claiming(
        &["M1.1", "M1.2"],
        &[write("c.txt", "three\n"), commit("Add c")],
    );
    let remote =
        RemoteProject::new().change(|project| project.script(&[first, second, answer, third]));
    let settings = "[ci]\ngrace = \"0s\"\n[reviews]\nrespond = true\n";
    remote.project.configure("ralph.toml", settings);
    remote.run().expect(11);
    remote.github.with_app(|app| {
        let comments = [("a.txt", 1, "Indent this.")];
        app.add_review(1, "ann", "CHANGES_REQUESTED", "Use tabs.", &comments)
    });
    remote.project.ralph(&["resume", "last"]).expect(0);
    let project = &remote.project;
    assert_eq!(project.events("reviews_received").len(), 1);
    let errors = project.file("errors.log");
    assert!(errors.contains("`ann` requests changes"), "{errors}");
    assert!(errors.contains("Indent this."), "{errors}");
    assert!(project.prompt(3).contains("Use tabs."), "the next prompt");
    let file = git(&remote.bare(), &["show", &format!("{BRANCH}:a.txt")]);
    assert!(file.contains("one"), "{file}");
    project.audit();
}
