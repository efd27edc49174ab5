//! Invariants regardless of the model: equal states yield equal prompts, and nothing relevant can
//! be changed from inside the sandbox.

use std::fs;

use serde_json::{Value, json};

use crate::project::{
    Project, actions, append, claiming, commit, commit_paths, control, finish, patch, run, work,
    write,
};

#[test]
fn the_same_state_gives_the_same_prompt() {
    let prompts: Vec<String> = (0..2)
        .map(|_| {
            let project = Project::new().script(&[finish()]);
            project.run().expect(0);
            project.audit();
            project.prompt(1)
        })
        .collect();
    assert_eq!(prompts[0], prompts[1]);
    // Two digits on both sides of a colon or a `T` are a time.
    let is_time = |text: &[u8]| matches!(text, [a, b, b':' | b'T', c, d] if [a, b, c, d].iter().all(|byte| byte.is_ascii_digit()));
    assert!(
        !prompts[0].as_bytes().windows(5).any(is_time),
        "{}",
        prompts[0]
    );
}

#[test]
fn a_resumed_iteration_is_asked_the_same() {
    let mut slow = finish();
    slow["delay_ms"] = 60_000.into();
    let project =
        Project::new().script(&[actions(&[write("c.txt", "three\n"), run("false")]), slow]);
    let live = project.start();
    live.wait_for_event("model_asked", 2);
    live.signal(rustix::process::Signal::INT);
    live.wait().expect(130);
    let first_prompt =
        fs::read_to_string(project.run_dir().join("iterations/2.open/prompt.md")).unwrap();
    project.write_script(&[actions(&[]), finish()]);
    project.ralph(&["resume", "last"]).expect(0);
    // The call with the lost reply is charged; nothing else differs.
    let without_tokens = |prompt: &str| -> Vec<String> {
        let lines = prompt
            .lines()
            .filter(|line| !line.starts_with("- tokens: "));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(
        without_tokens(&project.prompt(2)),
        without_tokens(&first_prompt)
    );
    assert_eq!(project.show()["iteration"], 2);
    project.audit();
}

/// Returns the paths that were reported as tampered in an iteration.
fn tampered(project: &Project, iteration: usize) -> Vec<String> {
    let mut paths: Vec<String> = project
        .events("tamper")
        .iter()
        .filter(|event| event["iteration"] == iteration)
        .map(|event| event["path"].as_str().unwrap().to_owned())
        .collect();
    paths.sort();
    paths.dedup();
    paths
}

/// Whether an iteration performs some work before its attack: six iterations without progress count
/// as circling.
#[derive(Clone, Copy)]
enum AttackSteps {
    None,
    Committed,
}

/// Runs each command in a separate iteration, then completes the task normally.
#[track_caller]
fn survive(attacks: &[(&str, &[&str])], steps: AttackSteps) -> Project {
    let attack = |(index, (command, _)): (usize, &(&str, &[&str]))| match steps {
        AttackSteps::None => actions(&[run(command)]),
        AttackSteps::Committed => actions(&[
            write("step.txt", &format!("{index}\n")),
            commit("One step"),
            run(command),
        ]),
    };
    let commands = attacks.iter().enumerate().map(attack);
    let script: Vec<Value> = commands.chain([finish()]).collect();
    let project = Project::new().set("max_iterations", "40").script(&script);
    project.run().expect(0);
    for (index, (command, paths)) in attacks.iter().enumerate() {
        assert_eq!(tampered(&project, index + 1), *paths, "{command}");
    }
    project.audit();
    project
}

#[test]
fn a_command_changes_no_file_of_the_run() {
    let project = survive(
        &[
            (
                "sed -i 's/max_iterations: .*/max_iterations: 999/' ralph_task.md",
                &["ralph_task.md"],
            ),
            ("ln -sf /etc/passwd ralph_task.md", &["ralph_task.md"]),
            (
                "rm ralph_task.md; mkdir -p ralph_task.md/x",
                &["ralph_task.md"],
            ),
            ("sed -i 's/\\[ \\]/[x]/' ralph_task.md", &["ralph_task.md"]),
            (": > .ralph/activity.log", &[".ralph/activity.log"]),
            ("echo forged >> .ralph/errors.log", &[".ralph/errors.log"]),
            (
                "ln -sf /etc/passwd .ralph/errors.log",
                &[".ralph/errors.log"],
            ),
            (
                "echo bad > .ralph/notes.md; echo bad > .ralph/guardrails.md",
                &[".ralph/guardrails.md", ".ralph/notes.md"],
            ),
            (
                "rm .ralph/progress.md; mkfifo .ralph/progress.md",
                &[".ralph/progress.md"],
            ),
            (
                "rm .ralph/diagnostics.md; mkdir .ralph/diagnostics.md",
                &[".ralph/diagnostics.md"],
            ),
        ],
        AttackSteps::Committed,
    );
    assert!(!project.file("errors.log").contains("forged"));
    assert!(project.file("activity.log").contains("iteration 1 starts"));
    // A budget that the model wrote into its copy never took effect.
    assert_eq!(project.events("contract_changed"), Vec::<Value>::new());
    assert!(project.prompt(3).contains("max_iterations: 40"));
    assert_eq!(project.delivered(), ["a.txt", "b.txt", "step.txt"]);
}

#[test]
fn a_command_changes_no_directory_of_the_run() {
    let before = fs::read("/etc/passwd").unwrap();
    let project = survive(
        &[
            ("rm -rf .ralph", &[".ralph"]),
            ("rm -rf .ralph; ln -s /etc .ralph", &[".ralph"]),
            ("rm -rf .ralph; echo no > .ralph", &[".ralph"]),
            (
                "mv .ralph elsewhere; ln -s elsewhere .ralph; rm -r elsewhere",
                &[".ralph"],
            ),
            (
                "rm -r .ralph/iterations; ln -s /tmp .ralph/iterations",
                &[".ralph/iterations"],
            ),
            (
                "mkdir -p .ralph/iterations/8; ln -s /etc/passwd .ralph/iterations/8/prompt.md",
                &[".ralph/iterations/8"],
            ),
            (
                "touch \".ralph/iterations/$(printf 'a\\nb')\" \".ralph/iterations/$(printf '\\377')\"",
                &[".ralph/iterations"],
            ),
            ("touch .ralph/iterations/x", &[".ralph/iterations/x"]),
            // Finished iterations are compared at the end.
            (
                "echo x > .ralph/iterations/1/prompt.md; rm .ralph/iterations/2/response.json",
                &[],
            ),
            ("ln -sf /etc/passwd .ralph/iterations/3/metrics.json", &[]),
        ],
        AttackSteps::Committed,
    );
    assert_eq!(
        tampered(&project, 11),
        [
            ".ralph/iterations/1/prompt.md",
            ".ralph/iterations/2/response.json",
            ".ralph/iterations/3/metrics.json",
        ]
    );
    assert_eq!(fs::read("/etc/passwd").unwrap(), before);
    assert_eq!(project.delivered(), ["a.txt", "b.txt", "step.txt"]);
}

#[test]
fn a_test_changes_no_file_of_the_run() {
    let project = Project::new();
    project.commit("t.sh", "true\n");
    let project = project.set("test_command", "sh t.sh").script(&[
        actions(&[write(
            "t.sh",
            "rm -rf .ralph; echo forged > ralph_task.md\n",
        )]),
        actions(&[write("t.sh", "true\n")]),
        finish(),
    ]);
    project.run().expect(0);
    assert_eq!(tampered(&project, 1), [".ralph", "ralph_task.md"]);
    assert_eq!(tampered(&project, 2), Vec::<String>::new());
    project.audit();
}

#[test]
fn a_command_cannot_mislead_git() {
    let attacks: &[(&str, &[&str])] = &[
        (
            "git config core.fsmonitor 'touch owned'; git config core.worktree /tmp",
            &[".git/config"],
        ),
        (
            "mkdir -p .git/hooks; printf '#!/bin/sh\\nexit 1\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/*",
            &[".git/hooks"],
        ),
        (
            "echo '*.txt filter=x' > .git/info/attributes; echo '*.txt' >> .git/info/exclude",
            &[".git/info/attributes", ".git/info/exclude"],
        ),
        ("git checkout -q -b other", &[".git"]),
        ("git checkout -q --detach", &[".git"]),
        ("echo 'ref: refs/heads/nowhere' > .git/HEAD", &[".git"]),
        ("rm .git/HEAD", &[".git"]),
        ("rm -rf .git", &[".git"]),
        ("rm -rf .git; echo 'gitdir: /nowhere' > .git", &[".git"]),
        ("rm -rf .git; ln -s /tmp .git", &[".git"]),
        ("rm -rf .git/objects; mkdir .git/objects", &[".git"]),
        ("printf garbage > .git/index", &[".git"]),
        ("rm -rf ../repo", &[".git", ".ralph", "ralph_task.md"]),
        ("git checkout -q -- base.txt", &[]),
        ("rm -rf ../scratch .git; ln -s /tmp ../scratch", &[".git"]),
    ];
    for attacks in attacks.chunks(5) {
        let project = survive(attacks, AttackSteps::None);
        assert_eq!(project.delivered(), ["a.txt", "b.txt"]);
        assert_eq!(project.git(&["status", "--porcelain"]), "?? ralph_task.md");
    }
}

#[test]
fn a_repository_around_the_state_directory_is_left_alone() {
    let project = Project::new();
    project.commit(".gitignore", "/.state\n");
    let project = project.env("RALPH_HOME", ".state").script(&[
        actions(&[run(
            "rm -rf .git; git add -A && git commit -qm stray; git checkout -qb stray",
        )]),
        finish(),
    ]);
    let before = project.git(&["rev-parse", "HEAD"]);
    project.run().expect(0);
    assert_eq!(project.git(&["rev-parse", "HEAD"]), before);
    assert_eq!(project.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    assert_eq!(
        project.git(&["branch", "--format=%(refname:short)"]),
        "main\nralph/task/make-two-files"
    );
}

#[test]
fn history_that_the_host_has_is_not_rewritten() {
    let more = claiming(&[], &[write("c.txt", "three\n"), commit("Three")]);
    let project = Project::new().set("max_iterations", "9").script(&[
        actions(&work()),
        actions(&[run("git commit -q --amend -m 'Another past'")]),
        actions(&[run("git reset -q --hard HEAD~1")]),
        actions(&[run("git checkout -q -- .")]),
        actions(&[run(
            "git checkout -q -b other && echo x > x.txt && git add x.txt && git commit -qm other",
        )]),
        more,
        claiming(&["M1.1", "M1.2"], &[]),
    ]);
    project.run().expect(0);
    let refused = project.event_values("import_refused", "why");
    assert_eq!(refused.len(), 2, "{refused:?}");
    assert!(
        refused[0].as_str().unwrap().contains("non-fast-forward"),
        "{refused:?}"
    );
    assert!(project.prompt(3).contains("the commits were not imported"));
    assert!(project.prompt(4).contains("the commits were not imported"));
    // Commits on another branch count if they descend from the run's.
    let subjects = project.git(&["log", "--format=%s", "main..ralph/task/make-two-files"]);
    assert_eq!(subjects, "Three\nother\nMake two files");
    project.audit();
}

#[test]
fn malformed_objects_are_not_imported() {
    let unsound = "tree=$(git cat-file tree HEAD: | LC_ALL=C sed 's/ base.txt/ .git/' \
        | git hash-object -t tree -w --stdin --literally) \
        && git update-ref HEAD $(git commit-tree $tree -p HEAD -m unsound)";
    let project = Project::new().script(&[actions(&[run(unsound)]), finish()]);
    project.run().expect(0);
    let refused = project.event_values("import_refused", "why");
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert!(
        refused[0].as_str().unwrap().contains("fsck error"),
        "{refused:?}"
    );
    assert_eq!(project.delivered(), ["a.txt", "b.txt"]);
    project.audit();
}

#[test]
fn actions_stay_in_the_work() {
    let outside = ["/etc/ralph-was-here", "../ralph-was-here"];
    let refused = [
        write("ralph_task.md", "---\nmax_iterations: 999\n---\n"),
        patch("ralph_task.md", "@@ -1,1 +1,1 @@\n----\n+--- x\n"),
        write(".git/config", "[core]\n"),
        write(".git/hooks/pre-commit", "exit 1\n"),
        write(".GIT/HEAD", "x\n"),
        patch(".git/HEAD", "@@ -1,1 +1,1 @@\n-x\n+y\n"),
        write(".ralph/activity.log", ""),
        append(".ralph/errors.log", "forged\n"),
        write(".ralph/guardrails.md", "none\n"),
        write(".ralph/iterations/1/prompt.md", "x"),
        append(".ralph/notes.md", "x"),
        write("x/ralph-was-here", "x"),
        write("y", "x"),
        write(".github/workflows/x.yml", "on: push\n"),
        commit_paths("No", &["ralph_task.md"]),
        commit_paths("No", &[":(top)*"]),
    ];
    let mut all = vec![run("ln -s /etc x; ln -s /etc/passwd y")];
    for cwd in ["x", "missing", "y", "base.txt"] {
        all.push(json!({"type": "run", "command": "touch ralph-was-here", "cwd": cwd}));
    }
    all.extend(refused.clone());
    let project = Project::new().set("on_action_error", "continue").script(&[
        actions(&all),
        // Paths outside the repository invalidate the whole reply, so none of it is executed.
        actions(&[write("c.txt", "c\n"), write(outside[0], "x")]),
        actions(&[json!({"type": "run", "command": "touch ralph-was-here", "cwd": "../.."})]),
        actions(&[run("rm x y")]),
        finish(),
    ]);
    project.run().expect(0);
    let mut expected = vec!["ran 0", "failed", "failed", "failed", "failed"];
    expected.extend(refused.iter().map(|_| "refused"));
    assert_eq!(project.results(1), expected);
    assert!(
        outside
            .iter()
            .all(|path| !std::path::Path::new(path).exists())
    );
    assert_eq!(project.events("reply_rejected").len(), 2);
    assert_eq!(project.delivered(), ["a.txt", "b.txt"]);
    project.audit();
}

#[test]
fn what_the_agent_may_write_is_in_the_next_prompt() {
    let project = Project::new().script(&[
        actions(&[
            append(".ralph/guardrails.md", "\n### sign: mind the gap\n"),
            write(".ralph/progress.md", "# Progress\nhalfway there\n"),
        ]),
        actions(&[run("echo '### sign: from a shell' >> .ralph/guardrails.md; echo nearly > .ralph/progress.md")]),
        finish(),
    ]);
    project.run().expect(0);
    let (second, third) = (project.prompt(2), project.prompt(3));
    assert!(second.contains("### sign: mind the gap") && second.contains("halfway there"));
    assert!(third.contains("mind the gap") && third.contains("from a shell"));
    assert!(third.contains("nearly") && !third.contains("halfway there"));
    assert_eq!(project.events("tamper"), Vec::<Value>::new());
    project.audit();
}

#[test]
fn the_runs_own_files_are_no_part_of_a_commit() {
    let project = Project::new().script(&[
        actions(&[run("git add -f ralph_task.md && git commit -qm task")]),
        actions(&[run("git add -f .ralph && git commit -qm state")]),
        actions(&[
            run("mv .ralph e; ln -s e .ralph"),
            commit("Link"),
            run("rm -r e"),
            commit("Gone"),
        ]),
        claiming(
            &["M1.1", "M1.2"],
            &[&work()[..], &[control("stop_success", "done")]].concat(),
        ),
    ]);
    project.run().expect(0);
    assert_eq!(project.events("import_refused").len(), 2);
    assert_eq!(project.delivered(), ["a.txt", "b.txt"]);
    project.audit();
}
