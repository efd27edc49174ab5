//! Git 2.30 and later work; older versions are rejected, on the host and in sandboxes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::Value;

use crate::project::{Project, actions, claiming, finish, write};

/// Simulates git 2.30 on top of a newer git: unknown variables have no effect, and unknown options
/// are errors.
const AS_2_30: &str = r#"
unset GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM GIT_CONFIG_COUNT GIT_NO_LAZY_FETCH GIT_ATTR_SOURCE
words="$*"
case " $words " in *" worktree list "*" -z "*) echo "error: unknown switch 'z'" >&2; exit 129;; esac
for word; do case $word in
  --version) echo 'git version 2.30.2'; exit;;
  --geometric*|--write-midx*|--cruft*|--expire-to*|--path-format*|--write-tree|--merge-base=*|--batch-command*) unknown=$word;;
  --refetch|--also-filter*|--source=*|--attr-source*|--ref-format*|--show-ref-format|--porcelain=v3) unknown=$word;;
  --filter=auto|--stdin-packs|--no-lazy-fetch|--negotiate-only|--object-only|--trailer*|--exclude-hidden*) unknown=$word;;
  --diff-merges=remerge|--remerge-diff|--no-optional-locks-x|--keep-pseudo) unknown=$word;;
esac; done
if [ -n "$unknown" ]; then echo "error: unknown option \`$unknown'" >&2; exit 129; fi
"#;

/// Puts a `git` wrapper first on `PATH`: these shell lines, then the real git.
fn with_git(project: Project, lines: &str) -> Project {
    let path = std::env::var_os("PATH").unwrap();
    let real = std::env::split_paths(&path)
        .map(|directory| directory.join("git"))
        .find(|file| file.is_file())
        .unwrap();
    let bin: PathBuf = project.path("bin");
    fs::create_dir(&bin).unwrap();
    let text = format!("#!/bin/sh\n{lines}\nexec {} \"$@\"\n", real.display());
    fs::write(bin.join("git"), text).unwrap();
    fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), path.to_str().unwrap());
    project.env("PATH", path)
}

#[test]
fn a_run_succeeds_with_git_2_30() {
    // Enough imports to trigger a repack.
    let mut script: Vec<Value> = (0..17)
        .map(|number| {
            let text = format!("{number}\n");
            actions(&[write("n.txt", &text), crate::project::commit("Count")])
        })
        .collect();
    script.push(finish());
    let project = Project::new().set("max_iterations", "20").script(&script);
    let project = with_git(project, AS_2_30);
    fs::write(
        project.path("user/.gitconfig"),
        "[core]\n\thooksPath = /nowhere\n[user]\n\tname = somebody\n",
    )
    .unwrap();
    project.run().expect(0);
    let packs = fs::read_dir(project.run_dir().join("repo.git/objects/pack")).unwrap();
    let packs = packs.filter(|entry| {
        let path = entry.as_ref().unwrap().path();
        path.extension().is_some_and(|end| end == "pack")
    });
    assert!(packs.count() < 16);
    assert_eq!(project.delivered(), ["a.txt", "b.txt", "n.txt"]);
    let authors = project.git(&["log", "--format=%an", "main..ralph/task/make-two-files"]);
    assert!(authors.lines().all(|author| author == "ralph"), "{authors}");
    // A checked-out branch is found without `git worktree list -z`.
    let tree = project.path("tree").display().to_string();
    project.git(&[
        "worktree",
        "add",
        "--quiet",
        &tree,
        "-b",
        "ralph/task/other",
    ]);
    project
        .ralph(&["preflight", "--model", &project.model()])
        .expect(0);
    project.audit();
}

#[test]
fn a_branch_in_a_work_tree_is_found_with_git_2_30() {
    let project = Project::new().script(&[claiming(&["M1.1", "M1.2"], &crate::project::work())]);
    let project = with_git(project, AS_2_30);
    let branch = "ralph/task/make-two-files";
    let hook = project.repo().join(".git/hooks/post-receive");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, "#!/bin/sh\ntouch hook-ran\n").unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    project.run().expect(0);
    assert_eq!(
        project
            .git(&["rev-parse", "--verify", "--quiet", branch])
            .len(),
        40
    );
    // Ralph's own configuration was in effect in the target repository of the push.
    assert!(!project.repo().join(".git/hook-ran").exists());
}

#[test]
fn an_older_git_is_refused_before_there_is_a_run() {
    let lines = "if [ \"$*\" = --version ] || case \"$*\" in *' --version') true;; *) false;; esac; then echo 'git version 2.25.1'; exit; fi";
    let project = with_git(Project::new().script(&[finish()]), lines);
    let line = "ralph: git 2.25.1 is too old — ralph needs git 2.30 or newer — upgrade git\n";
    let ended = project.run().expect(1);
    assert_eq!(ended.stderr, line);
    let demo = project.path("demo").display().to_string();
    let ended = project.ralph(&["demo", "--dir", &demo]).expect(1);
    assert_eq!(ended.stderr, line);
    assert!(!project.home().join("runs").exists());
    let output = project.ralph(&["preflight"]).expect(1);
    assert!(
        output.stdout.contains("git 2.25.1 is too old"),
        "{}",
        output.stdout
    );
}

#[test]
fn an_older_git_in_the_sandbox_stops_the_preparation() {
    let lines =
        "case \"$PWD $*\" in */sandboxes/*' --version') echo 'git version 2.25.1'; exit;; esac";
    let project = with_git(Project::new().script(&[finish()]), lines);
    project.run().expect(11);
    assert_eq!(
        project.show()["reason"],
        "sandbox `local` has git 2.25.1, and ralph needs git 2.30 or newer — install or upgrade git, then `ralph resume`"
    );
    // With a supported git the same run continues.
    fs::remove_file(project.path("bin/git")).unwrap();
    project.ralph(&["resume", "last"]).expect(0);
    project.audit();
}
