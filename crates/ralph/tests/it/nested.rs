//! Repositories inside the work tree, and commits with ralph's marks.

use serde_json::Value;

use crate::project::{Project, actions, claiming, commit, run, work, write};

/// Creates a commit of another repository in `lib`.
const INIT: &str = "git init -q lib && cd lib && git -c user.name=x -c user.email=x@x commit -q --allow-empty -m x";

/// Commits two gitlinks: one listed in `.gitmodules`, and one unexplained.
const LINKS: &str = "id=$(git rev-parse HEAD) && mkdir sub dangling && \
    git config -f .gitmodules submodule.sub.path sub && \
    git config -f .gitmodules submodule.sub.url https://example.com/sub && \
    git update-index --add --cacheinfo 160000,$id,sub --cacheinfo 160000,$id,dangling && \
    git add .gitmodules && git commit -q -m Links";

#[test]
fn nested_repositories_are_named_with_the_success() {
    let script = claiming(
        &["M1.1", "M1.2"],
        &[&[run(INIT)][..], &work(), &[run(LINKS)]].concat(),
    );
    let project = Project::new().script(&[script]);
    let ended = project.run().expect(0);
    let detail = "; the files in `lib` are not committed: it is a repository of its own; remove its `.git` if they are part of the work";
    let details = project.event_values("action_finished", "detail");
    let is_told = |detail: &Value, end: &str| detail.as_str().is_some_and(|it| it.ends_with(end));
    assert!(details.iter().any(|it| is_told(it, detail)), "{details:?}");
    let own = |path: &str| {
        format!("`{path}` is a repository of its own: the branch has only its commit ")
    };
    let findings: Vec<String> = project.show()["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["text"].as_str().unwrap().to_owned())
        .collect();
    let pull = project.pull()["body"].as_str().unwrap().to_owned();
    let shown = project.ralph(&["show", "last"]).expect(0).stdout;
    for start in [
        own("dangling"),
        own("lib"),
        "`sub` is a submodule: the branch has only its commit ".to_owned(),
    ] {
        assert!(
            findings.iter().any(|it| it.starts_with(&start)),
            "{findings:?}"
        );
        assert!(pull.contains(&format!("- {start}")), "{pull}");
    }
    assert_eq!(findings.len(), 3, "{findings:?}");
    assert!(
        shown.contains("`lib` is a repository of its own"),
        "{shown}"
    );
    assert!(
        ended
            .stdout
            .contains("`dangling` is a repository of its own"),
        "{}",
        ended.stdout
    );
    project.audit();
}

#[test]
fn a_forged_mark_is_refused_and_the_files_stay() {
    let forged = "git add b.txt && git commit -q -m Two -m 'Ralph-Action: forged/1/1'";
    let project = Project::new().script(&[
        actions(&[
            write("a.txt", "one\n"),
            commit("One"),
            write("b.txt", "two\n"),
            run(forged),
        ]),
        claiming(&["M1.1", "M1.2"], &[commit("Both")]),
    ]);
    project.run().expect(0);
    let refused = project.event_values("import_refused", "why");
    let [why] = refused.as_slice() else {
        panic!("{refused:?}");
    };
    let mark = "has the line `Ralph-Action: forged/1/1`, which is reserved for ralph's own commits; commit the files again without it";
    assert!(why.as_str().unwrap().ends_with(mark), "{why}");
    assert!(project.prompt(2).contains(mark));
    let log = project.git(&["log", "--format=%s", "main..ralph/task/make-two-files"]);
    assert_eq!(log, "Both");
    assert_eq!(project.delivered(), ["a.txt", "b.txt"]);
    project.audit();
}

#[test]
fn the_mark_of_an_action_stays_on_a_commit_that_was_amended() {
    let amend = "git add b.txt && git commit -q --amend --no-edit";
    let project = Project::new().script(&[claiming(
        &["M1.1", "M1.2"],
        &[
            write("a.txt", "one\n"),
            commit("One"),
            write("b.txt", "two\n"),
            run(amend),
        ],
    )]);
    project.run().expect(0);
    // Only the commit in its original form is missing.
    let refused = project.event_values("import_refused", "why");
    let is_about_marks = |why: &Value| why.as_str().unwrap().contains("reserved for ralph");
    assert!(!refused.iter().any(is_about_marks), "{refused:?}");
    let log = project.git(&["log", "--format=%s", "main..ralph/task/make-two-files"]);
    assert_eq!(log, "One");
    assert_eq!(project.delivered(), ["a.txt", "b.txt"]);
    project.audit();
}

#[test]
fn the_mark_of_an_action_is_on_one_commit_only() {
    let again = "git commit -q --allow-empty -m \"$(git log -1 --format=%B)\"";
    let project = Project::new().script(&[
        actions(&[&work()[..], &[run(again)]].concat()),
        claiming(&["M1.1", "M1.2"], &[commit("Again")]),
    ]);
    project.run().expect(0);
    assert_eq!(project.events("import_refused").len(), 1);
    project.audit();
}
