//! Which branches may be pushed, and to which repositories.

use super::*;

#[tokio::test]
async fn a_checked_out_branch_is_not_pushed() {
    let fixture = ScmFixture::new();
    git(&fixture.repo(), &["branch", "free"]);
    git(
        &fixture.repo(),
        &["worktree", "add", "-q", "-b", "feature/x", "../tree"],
    );
    git(
        &fixture.repo(),
        &["worktree", "add", "-q", "--detach", "../detached"],
    );
    git(fixture.root(), &["init", "-q", "-b", "trunk", "unborn"]);
    git(
        fixture.root(),
        &["clone", "-q", "--bare", "repo", "bare.git"],
    );
    git(
        &fixture.root().join("bare.git"),
        &["worktree", "add", "-q", "../bare-tree", "free"],
    );
    let cases = [
        ("repo", "main", Some("P/repo")),
        ("repo", "feature/x", Some("P/tree")),
        ("repo", "free", None),
        ("repo", "new", None),
        ("repo", "x", None),
        ("tree", "main", Some("P/repo")),
        ("unborn", "trunk", Some("P/unborn")),
        ("unborn", "main", None),
        ("bare.git", "main", None),
        ("bare.git", "free", Some("P/bare-tree")),
    ];
    for (repo, branch, worktree) in cases {
        let result = fixture
            .scm_at(&fixture.root().join(repo), MORNING)
            .check_push(branch)
            .await;
        let expected = worktree.map(|at| format!("branch `{branch}` is checked out in `{at}`"));
        let seen = result.err().map(|error| fixture.redact_paths(&error));
        assert_eq!(seen, expected, "{repo} {branch}");
    }
}

#[tokio::test]
async fn a_path_without_a_repository_is_rejected() {
    let fixture = ScmFixture::new();
    // Inside a repository, but not a repository itself.
    let inside = fixture.repo().join("inside");
    std::fs::create_dir(&inside).unwrap();
    let error = fixture.scm_at(&inside, MORNING).check_push("x").await;
    let error = fixture.redact_paths(&error.unwrap_err());
    let start = "cannot list the worktrees of `P/repo/inside`: git ended with exit status: 128: fatal: not a git repository";
    assert!(error.starts_with(start), "{error}");

    let clock: Arc<dyn Clock> = TestClock::at(MORNING);
    let missing = Path::new("/no/such/repo");
    let error = LocalScm::new(
        &fixture.records(),
        missing,
        git_program(),
        Arc::clone(&clock),
    );
    assert_eq!(
        error.err().unwrap().to_string(),
        "cannot use repository `/no/such/repo`: No such file or directory (os error 2)"
    );
    let no_git = GitProgram {
        program: fixture.root().join("no-git"),
        path: "/nowhere".into(),
        config: "/dev/null".into(),
    };
    let scm = LocalScm::new(&fixture.records(), &fixture.repo(), no_git, clock).unwrap();
    assert_eq!(
        fixture.redact_paths(&scm.check_push("x").await.unwrap_err()),
        "cannot list the worktrees of `P/repo`: No such file or directory (os error 2)"
    );
}
