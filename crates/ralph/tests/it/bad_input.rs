//! Invalid input is rejected in one line that names the problem, its cause and the fix.

use std::fs;

use snapbox::{assert_data_eq, str};

use crate::project::{Project, ProjectOutput, actions, finish, run};
use crate::tmpfs_mount::TmpfsMount;

fn ready() -> Project {
    Project::new().script(&[finish()])
}

/// Asserts the exit code, a single line of this pattern, and that no run was created. `[..]`
/// matches anything.
#[track_caller]
fn assert_refused(project: &Project, ended: ProjectOutput, code: i32, line: &str) {
    let ended = ended.expect(code);
    assert_eq!(ended.stdout, "");
    let lines: Vec<&str> = ended
        .stderr
        .lines()
        .filter(|line| line.starts_with("ralph: "))
        .collect();
    let [message] = lines[..] else {
        panic!("not one line: {}", ended.stderr);
    };
    assert_eq!(ended.stderr.lines().last(), Some(message));
    assert_eq!(message.split(" — ").count(), 3, "{message}");
    snapbox::assert_data_eq!(message, format!("ralph: {line}"));
    assert!(!project.home().join("runs").exists());
}

#[test]
fn an_invalid_command_line_is_rejected() {
    let project = ready();
    let user = project.path("user").display().to_string();
    for (args, line) in [
        (
            &["--repo", "/nowhere"][..],
            "there is no git repository at `/nowhere` — no such directory — name one with `--repo PATH`, or create one with `git init`",
        ),
        (
            &["--repo", &user],
            "there is no git repository at `[..]/user` — git rev-parse failed: fatal: not a git repository (or any [..] — name one with `--repo PATH`, or create one with `git init`",
        ),
        (
            &["--repo", "https://me:pass@example.org/x.git"],
            "`example.org/x.git` is not the address of a repository — it contains a user name or password — [..]",
        ),
        (
            &["--sandbox", "nope"],
            "sandbox `nope` is not available — this version supports local, docker — use `docker`, which runs commands in containers, or `local`, which does not isolate them",
        ),
        (
            &["--sandbox", "dockre"],
            "sandbox `dockre` is not available — this version supports local, docker — did you mean `docker`?",
        ),
        (
            &["--nope"],
            "unexpected option `--nope` — `ralph run` does not accept it — see `ralph run --help`",
        ),
        (
            &["nope.md"],
            "cannot read the task file `nope.md` — No such file or directory (os error 2) — name another file, or create one with `ralph init`",
        ),
        (
            &["."],
            "cannot read the task file `.` — it is a directory, not a regular file — name another file, or create one with `ralph init`",
        ),
    ] {
        assert_refused(&project, project.run_with(args), 2, line);
    }
    for (args, line) in [
        (
            &["--profile", "nope"][..],
            "there is no model profile `nope` — the built-in profiles are [..] — use one of these, or add it to `config/models.yaml`",
        ),
        (
            &["--model", "gpt"],
            "model `gpt` is not available — `gpt` has no provider prefix, such as `openai/gpt` — name it like `zai/glm-4.7`, or give its profile an `api_base` in config/models.yaml",
        ),
        (
            &["--model", "scripted:no.jsonl"],
            "cannot use the model `scripted:[..]/no.jsonl` — cannot read script `[..]/no.jsonl`: No such file or directory (os error 2) — correct the script",
        ),
    ] {
        assert_refused(&project, project.ralph(&[&["run"], args].concat()), 2, line);
    }
}

#[test]
fn a_script_that_cannot_be_used_is_refused() {
    let project = ready();
    for (script, why) in [
        (
            "{\"reply\": \"x\"}\n\n{\"replay\": 1}\n",
            "script `[..]`, line 3: column 9: unknown field `replay`, expected one of `reply`, `usage`, `delay_ms`, `error`, `when`",
        ),
        (
            "# nothing\n",
            "script `[..]` is empty: it needs at least one line with `reply` or `error`",
        ),
    ] {
        fs::write(project.path("replies.jsonl"), script).unwrap();
        let line = format!("cannot use the model `scripted:[..]` — {why} — correct the script");
        assert_refused(&project, project.run(), 2, &line);
    }
}

#[test]
fn a_secret_on_the_command_line_is_not_repeated() {
    let token = format!("ghp_{}", "Canary9x4".repeat(4));
    let project = ready().env("GITHUB_PAT", &token);
    let ended = project.run_with(&["--sandbox", &token]);
    assert_refused(
        &project,
        ended,
        2,
        "sandbox `[REDACTED:GITHUB_PAT]` is not available — [..] — [..]",
    );
}

/// Asserts that the linter rejects a task file.
#[track_caller]
fn assert_task_refused(project: &Project, why: &str) {
    let line = format!(
        "the task file `ralph_task.md` is rejected — {why}; check with `ralph lint ralph_task.md`"
    );
    assert_refused(project, project.run(), 12, &line);
}

#[test]
fn a_task_file_that_cannot_be_read_is_refused() {
    let project = ready();
    for (text, why) in [
        (
            &b""[..],
            "the task file is empty — create one with `ralph init`",
        ),
        (
            b"---\ntask_id: [a\nmax: 3\n---\n",
            "line 3, column 4: the front matter is not valid YAML: [..] — indent with spaces, and put quotes around a string that contains `: ` or ` #`",
        ),
        (
            b"---\ntask_id: a\n",
            "line 1: the front matter that starts here has no closing `---` — add a line `---` below the last setting",
        ),
        (
            b"---\xff\xfe",
            "line 1: the task file is not UTF-8 text — save the file as UTF-8",
        ),
    ] {
        fs::write(project.task(), text).unwrap();
        assert_task_refused(&project, why);
    }
}

#[test]
fn a_task_file_that_breaks_the_rules_is_refused() {
    assert_task_refused(
        &ready().set("max_iteration", "3"),
        "line 9, column 1: unknown key `max_iteration` — did you mean `max_iterations`?",
    );
    assert_task_refused(
        &ready().set("max_iterations", "many"),
        "line 8, column 17: `max_iterations` is `many`, expected a whole number — write it in digits, without quotes",
    );
    let project = ready()
        .without("max_iterations")
        .without("max_wall_time_minutes")
        .without("max_tokens_total");
    // All missing items are reported together.
    let stderr = project.run().stderr;
    for code in [
        "missing-max-iterations",
        "missing-max-wall-time-minutes",
        "missing-cost-or-token-budget",
    ] {
        assert!(stderr.contains(&format!("error[{code}]")), "{stderr}");
    }
    assert_task_refused(
        &project,
        "line 6: `max_iterations` is missing — add the line `max_iterations: 30` to the front matter",
    );
}

#[test]
fn a_repository_that_cannot_be_used_is_refused() {
    let project = ready().env("PATH", "/nowhere");
    let refused = project.run().expect(1).stderr;
    assert_data_eq!(
        refused,
        str![[r"
ralph: git cannot be used — cannot run git: No such file or directory (os error 2) — install git and make sure it is on PATH
ralph: sandbox `local` cannot be used — no directory in `PATH` contains `sh` — add the directory of `sh`, usually `/bin`, to `PATH`

"]]
    );
    let project = ready().without("base_branch");
    project.git(&["checkout", "--quiet", "--detach"]);
    assert_refused(
        &project,
        project.run(),
        1,
        "no branch is checked out in `[..]/repo` — the work needs a branch to start from — check one out, or set `base_branch` in the task file",
    );
    project.git(&["checkout", "--quiet", "main"]);
    project.git(&["update-ref", "-d", "HEAD"]);
    assert_refused(
        &project,
        project.run(),
        1,
        "repository `[..]/repo` has no commits — there is nothing to start from — create a first commit",
    );
    let project = ready().set("base_branch", "develop");
    assert_refused(
        &project,
        project.run(),
        1,
        "there is no branch `develop` in `[..]/repo` — the work needs a branch to start from — correct `base_branch` in the task file, or create the branch",
    );
    let project = ready();
    project.commit("more.txt", "more\n");
    let origin = format!("file://{}", project.repo().display());
    project.git_in(
        &project.path("user"),
        &["clone", "--quiet", "--depth=1", &origin, "shallow"],
    );
    let shallow = project.path("user/shallow").display().to_string();
    assert_refused(
        &project,
        project.run_with(&["--repo", &shallow]),
        1,
        "repository `[..]/shallow` cannot be used — it is a shallow clone, so its history cannot be copied — complete it with `git fetch --unshallow`",
    );
}

#[test]
fn a_state_directory_that_cannot_be_used_is_refused() {
    let project = ready();
    fs::write(project.home(), "mine\n").unwrap();
    assert_refused(
        &project,
        project.run(),
        1,
        "cannot create `[..]/home` — File exists (os error 17) — move the existing entry away, or set `RALPH_HOME` to another directory",
    );
    assert_eq!(fs::read_to_string(project.home()).unwrap(), "mine\n");
    let project = ready().without_env("RALPH_HOME").without_env("HOME");
    assert_refused(
        &project,
        project.run(),
        1,
        "the location of the state directory is unknown — neither RALPH_HOME nor HOME is set — set RALPH_HOME to a directory that you can write to",
    );
    let project = ready();
    let Some(_mounted) = TmpfsMount::at(&project.home(), "ro") else {
        return;
    };
    assert_refused(
        &project,
        project.run(),
        1,
        "cannot [..] `[..]/home` — Read-only file system (os error 30) — make the directory writable, or set `RALPH_HOME` to a writable one",
    );
}

#[test]
fn a_full_disk_loses_nothing() {
    let mut filled = 0;
    // So small that it fills up while the run is created, prepared, worked on, delivered, verified.
    for pages in [2, 8, 20, 35, 44, 53, 71, 77, 80, 92] {
        let fill = run("head -c 30000 /dev/zero > big.bin; true");
        let project = Project::new().script(&[actions(&[fill]), finish()]);
        let size = format!("size={}k", pages * 4);
        let Some(disk) = TmpfsMount::at(&project.home(), &size) else {
            return;
        };
        let ended = project.run();
        let both = ended.combined();
        assert!([0, 1, 11].contains(&ended.code), "{pages} pages: {both}");
        assert!(!both.contains("panicked at"), "{both}");
        if ended.code != 0 {
            filled += 1;
            // The warning about the small disk is a notice, marked with `»`.
            let is_error = |line: &&str| line.contains(" — ") && !line.contains('»');
            let errors: Vec<&str> = both.lines().filter(is_error).collect();
            assert_eq!(errors.len(), 1, "{pages} pages: {both}");
            assert!(errors[0].contains("ralph resume"), "{both}");
            disk.remount("size=16m");
            project.run_with(&["--resume"]).expect(0);
        }
        assert_eq!(
            project.delivered(),
            ["a.txt", "b.txt", "big.bin"],
            "{pages} pages"
        );
        project.audit();
    }
    assert!(filled > 7, "only {filled} disks were too small");
}
