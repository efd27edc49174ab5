//! Unusual repositories: a run succeeds in them, or is rejected before it is created.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::project::{Project, claiming, finish, run, work};

/// A kind of repository: its name, and the commands that create it. They run in the project's
/// directory, `repo` has one commit, and the task starts from `odd` if that exists.
type RepositoryKind<'a> = (&'a str, &'a str);

/// Creates a repository with shell commands, and returns its path.
fn create_repository(project: &Project, lines: &str) -> PathBuf {
    let script = format!(
        "set -e; export HOME=$PWD/user GIT_CONFIG_NOSYSTEM=1; \
         git() {{ command git -c user.name=u -c user.email=u@localhost \"$@\"; }}; {lines}"
    );
    let made = std::process::Command::new("sh")
        .args(["-c", &script])
        .current_dir(project.path(""))
        .output()
        .unwrap();
    assert!(made.status.success(), "{lines}: {made:?}");
    let odd = project.path("odd");
    if odd.exists() { odd } else { project.repo() }
}

fn run_in(project: &Project, repo: &Path) -> crate::project::ProjectOutput {
    let repo = repo.display().to_string();
    project.run_with(&["--repo", &repo])
}

const WORKING: [RepositoryKind<'_>; 12] = [
    (
        "sha256",
        "git init -q -b main --object-format=sha256 odd; cp repo/base.txt odd; cd odd; git add .; git commit -qm base",
    ),
    (
        "partial, with all objects",
        "git -C repo config uploadpack.allowFilter true; git clone -q --filter=blob:none file://$PWD/repo odd",
    ),
    ("alternates", "git clone -q --shared repo odd"),
    (
        "a .git file",
        "git init -q -b main --separate-git-dir $PWD/apart odd; cp repo/base.txt odd; cd odd; git add .; git commit -qm base",
    ),
    (
        "replaced commits",
        "cd repo; echo 2 > two; git add two; git commit -qm 2; git replace --graft HEAD",
    ),
    (
        "a split index, fsmonitor, an untracked cache",
        "cd repo; git update-index --split-index; git config core.fsmonitor .git/trap; git config core.untrackedCache true; \
         printf '#!/bin/sh\\ntouch sprung\\n' > .git/trap; chmod +x .git/trap",
    ),
    (
        "a sparse checkout",
        "cd repo; mkdir d; echo x > d/x; git add d; git commit -qm d; git sparse-checkout init --cone; git sparse-checkout set none",
    ),
    (
        "odd names",
        "cd repo; for name in \"$(printf 'caf\\351.txt')\" \"$(printf 'new\\nline')\" 'quo\"te' '-dash' \"$(printf 'a\\tb')\" \
         'back\\slash' ':(top)x' F f; do echo x > \"./$name\"; done; \
         long=$(printf 'd%.0s' $(seq 200)); mkdir -p $long/$long/$long/$long; echo x > $long/$long/$long/$long/f; \
         git add -A . ':!ralph_task.md'; git commit -qm odd",
    ),
    (
        "messages and branches that are not UTF-8",
        "cd repo; git -c i18n.commitEncoding=ISO-8859-1 commit -q --allow-empty -m \"$(printf 'caf\\351')\"; \
         git commit -q --allow-empty -m \"$(printf 'bad \\377')\" 2>/dev/null; git branch \"$(printf 'br\\351')\"",
    ),
    (
        "many branches",
        "cd repo; id=$(git rev-parse HEAD); seq 5000 | sed \"s|.*|create refs/heads/x/& $id|\" | git update-ref --stdin",
    ),
    (
        "line ends that the attributes change",
        "cd repo; printf 'a\\r\\n' > crlf.txt; git add crlf.txt; git commit -qm crlf; echo '* text=auto' > .gitattributes; \
         git add .gitattributes; git commit -qm attributes",
    ),
    (
        "a linked work tree",
        "cd repo; git worktree add -q ../odd -b side",
    ),
];

#[test]
fn a_run_succeeds_in_repositories_of_these_kinds() {
    for (kind, lines) in WORKING {
        let project = Project::new().script(&[finish()]);
        let repo = create_repository(&project, lines);
        let ended = run_in(&project, &repo);
        assert_eq!(ended.code, 0, "{kind}: {}", ended.combined());
        let branch = project.show()["branch"].as_str().unwrap().to_owned();
        let changed = project.git_in(&repo, &["diff", "--name-only", &format!("main..{branch}")]);
        assert_eq!(changed, "a.txt\nb.txt", "{kind}");
        assert!(!repo.join("sprung").exists(), "{kind}");
        project.audit();
    }
}

#[test]
fn files_with_odd_names_are_changed_and_committed() {
    let change = "for file in caf* new* quo* ./-dash; do echo y >> \"$file\"; done; \
        mkdir tests; echo 'def test_a(): assert 1' > \"$(printf 'tests/test_\\351.py')\"; \
        printf x > \"$(printf 'un\\377known')\"";
    let script = claiming(&["M1.1", "M1.2"], &[&[run(change)][..], &work()].concat());
    let project = Project::new().script(&[script]);
    create_repository(&project, WORKING[7].1);
    project.run().expect(0);
    let changed = project.git(&["diff", "--name-only", "main..ralph/task/make-two-files"]);
    assert_eq!(changed.lines().count(), 8, "{changed}");
    project.audit();
}

#[test]
fn tests_with_odd_names_are_inspected_like_others() {
    let lines = "cd repo; mkdir tests; printf 'def test_a():\\n    assert 1 == 1\\n' > \"$(printf 'tests/test_\\351.py')\"; \
        git add tests; git commit -qm test";
    let weaken =
        "for file in tests/test_*; do printf 'def test_a():\\n    pass\\n' > \"$file\"; done";
    let script = claiming(&["M1.1", "M1.2"], &[&[run(weaken)][..], &work()].concat());
    let project = Project::new().script(&[script]);
    create_repository(&project, lines);
    project.run().expect(0);
    let kinds: Vec<Value> = project.show()["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["kind"].clone())
        .collect();
    assert!(kinds.contains(&"weakened_test".into()), "{kinds:?}");
    project.audit();
}

/// A rejected kind: its name, the commands that create it, the reason, and the fix.
type RefusedRepository<'a> = (&'a str, &'a str, &'a str, &'a str);

const REFUSED: [RefusedRepository<'_>; 5] = [
    (
        "partial",
        "cd repo; echo old > big; git add big; git commit -qm 2; echo new > big; git add big; git commit -qm 3; \
         git config uploadpack.allowFilter true; cd ..; git clone -q --filter=blob:none file://$PWD/repo odd; mv repo gone; mkdir repo; cp gone/ralph_task.md repo",
        "it is a partial clone that lacks 1 object of `main`",
        "fetch them with `git fetch --refetch --no-filter`, or clone it without `--filter`",
    ),
    (
        "shallow",
        "cd repo; echo 2 > two; git add two; git commit -qm 2; cd ..; git clone -q --depth=1 file://$PWD/repo odd",
        "it is a shallow clone, so its history cannot be copied",
        "complete it with `git fetch --unshallow`",
    ),
    (
        "grafts",
        "cd repo; echo 2 > two; git add two; git commit -qm 2; git rev-parse HEAD > .git/info/grafts",
        "`info/grafts` changes its history, which a copy would not have",
        "convert the grafts with `git replace --convert-graft-file`, or remove the file",
    ),
    (
        "an unknown extension",
        "cd repo; git config core.repositoryformatversion 1; git config extensions.fromthefuture 1",
        "this git does not know its format: git rev-parse failed: fatal: unknown repository extension",
        "upgrade git",
    ),
    (
        "a damaged configuration",
        "echo '[core' >> repo/.git/config",
        "git rev-parse failed: fatal: bad config line ",
        "run `git status` there and correct what git reports",
    ),
];

#[test]
fn other_repositories_are_refused_with_advice() {
    for (kind, lines, why, fix) in REFUSED {
        let project = Project::new().script(&[finish()]);
        let repo = create_repository(&project, lines);
        let ended = run_in(&project, &repo);
        assert_eq!(ended.code, 1, "{kind}: {}", ended.combined());
        let start = format!(
            "ralph: repository `{}` cannot be used — {why}",
            repo.display()
        );
        assert!(ended.stderr.starts_with(&start), "{kind}: {}", ended.stderr);
        assert!(
            ended.stderr.ends_with(&format!(" — {fix}\n")),
            "{kind}: {}",
            ended.stderr
        );
        assert!(!project.home().join("runs").exists(), "{kind}");
    }
}

#[test]
fn a_repository_of_another_user_is_refused_until_the_user_allows_it() {
    let project = Project::new().script(&[finish()]);
    let real = std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .map(|directory| directory.join("git"))
        .find(|file| file.is_file())
        .unwrap();
    // Git's own switch for its tests of this check.
    let bin = project.path("bin");
    fs::create_dir(&bin).unwrap();
    let text = format!(
        "#!/bin/sh\ncase $PWD in {}*) export GIT_TEST_ASSUME_DIFFERENT_OWNER=1;; esac\nexec {} \"$@\"\n",
        project.repo().display(),
        real.display()
    );
    fs::write(bin.join("git"), text).unwrap();
    fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var_os("PATH").unwrap().into_string().unwrap();
    let project = project.env("PATH", format!("{}:{path}", bin.display()));
    let repo = project.repo().display().to_string();
    let ended = project.run().expect(1);
    assert_eq!(
        ended.stderr,
        format!(
            "ralph: repository `{repo}` cannot be used — it belongs to another user, and git does not open such \
             repositories unless you allow it — if you trust it: `git config --global --add safe.directory '{repo}'`\n"
        )
    );
    assert!(!project.home().join("runs").exists());
    project.git_in(
        &project.path("user"),
        &["config", "--global", "--add", "safe.directory", &repo],
    );
    project.run().expect(0);
    assert_eq!(project.delivered(), ["a.txt", "b.txt"]);
}

#[test]
fn names_that_are_not_utf8_are_refused() {
    let project = Project::new().without("base_branch").script(&[finish()]);
    create_repository(
        &project,
        "cd repo; git checkout -q -b \"$(printf 'br\\351')\"",
    );
    let ended = project.run().expect(1);
    let line = "cannot be used — its name is not UTF-8 — check out another branch, or set `base_branch` in the task file\n";
    assert!(ended.stderr.ends_with(line), "{}", ended.stderr);

    let project = Project::new().script(&[finish()]);
    let odd = project.path("").join(OsStr::from_bytes(b"r\xe9"));
    fs::rename(project.repo(), &odd).unwrap();
    let task = odd.join("ralph_task.md");
    let model = project.model();
    fs::create_dir(project.repo()).unwrap();
    let ended = project
        .command(&["run", "--model", &model])
        .current_dir(&odd)
        .arg(&task)
        .output()
        .unwrap();
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    let stderr = String::from_utf8_lossy(&ended.stderr);
    assert!(
        stderr.ends_with(" cannot be used — its path is not UTF-8 — move it to a path that is\n"),
        "{stderr}"
    );
    assert!(!project.home().join("runs").exists());
}

#[test]
fn the_plan_says_what_a_sandbox_does_not_have() {
    let lines = "git init -q -b main lib; cd lib; git commit -q --allow-empty -m x; cd ../repo; \
        git -c protocol.file.allow=always submodule --quiet add ../lib vendor/lib; \
        printf '*.bin filter=lfs diff=lfs merge=lfs -text\\n' > .gitattributes; \
        mkdir keys; printf '*.key filter=git-crypt\\n' > keys/.gitattributes; \
        printf 'version https://git-lfs.github.com/spec/v1\\n' > a.bin; \
        git add .gitattributes keys a.bin; git commit -qm more; \
        git config filter.lfs.required true; git config filter.lfs.smudge false; \
        git config --global filter.lfs.required true; git config --global filter.lfs.clean false";
    let script = claiming(
        &["M1.1", "M1.2"],
        &[&[run("cat a.bin; ls -a vendor/lib")][..], &work()].concat(),
    );
    let project = Project::new().script(&[script]);
    create_repository(&project, lines);
    let planned = project.ralph(&["run", "--dry-run", "--model", &project.model()]);
    let planned = planned.expect(0).stdout;
    project.run().expect(0);
    let notices = project.event_values("notice", "message");
    for notice in [
        "submodules are not checked out in the sandbox, their directories are empty there: `vendor/lib`",
        "files in Git LFS are pointer files in the sandbox: their contents are not part of a commit",
        "git filters from `.gitattributes` are not applied in the sandbox, where files are as committed: `git-crypt`",
    ] {
        assert!(planned.contains(&format!("note: {notice}")), "{planned}");
        assert!(notices.contains(&notice.into()), "{notices:?}");
    }
    let output = project.artifact(1, "test_output.txt");
    assert!(output.contains("version https://git-lfs"), "{output}");
    assert_eq!(project.delivered(), ["a.txt", "b.txt"]);
    project.audit();
}
