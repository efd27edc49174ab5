//! A secret of the environment never appears in stored, shown or delivered data, even if the model
//! knows and repeats it.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::project::{
    Project, ProjectOutput, actions, append, commit, commit_paths, control, finish, run, work,
    write,
};

/// Secrets in common formats; assembled at run time, so that secret scanners ignore them.
struct SecretCanaries {
    key: String,
    token: String,
    lines: Vec<String>,
}

impl SecretCanaries {
    fn new() -> Self {
        Self {
            key: format!("zai{}", ".Canary7Key".repeat(3)),
            token: format!("ghp_{}", "Canary9x4".repeat(4)),
            lines: (1..4)
                .map(|n| format!("{n}Canary+Line/{}", "Qz7k".repeat(12)))
                .collect(),
        }
    }

    fn pem(&self) -> String {
        let kind = "RSA PRIVATE KEY";
        format!(
            "-----BEGIN {kind}-----\n{}\n-----END {kind}-----\n",
            self.lines.join("\n")
        )
    }

    fn project(&self) -> Project {
        Project::new()
            .env("ZAI_API_KEY", &self.key)
            .env("GITHUB_PAT", &self.token)
            .env("GITHUB_APP_PRIVATE_KEY_PEM", self.pem())
    }

    /// Returns the secrets contained in these bytes.
    fn found(&self, bytes: &[u8]) -> Vec<String> {
        let has = |needle: &str| {
            bytes
                .windows(needle.len())
                .any(|window| window == needle.as_bytes())
        };
        [&self.key, &self.token]
            .into_iter()
            .chain(&self.lines)
            .filter(|needle| has(needle))
            .cloned()
            .collect()
    }

    #[track_caller]
    fn assert_absent_from(&self, what: &str, bytes: &[u8]) {
        assert_eq!(self.found(bytes), Vec::<String>::new(), "in {what}");
    }

    /// Searches all files of a project, except those matched by `skip`.
    #[track_caller]
    fn assert_absent(
        &self,
        project: &Project,
        ended: &ProjectOutput,
        skip: &dyn Fn(&Path) -> bool,
    ) {
        self.assert_absent_from("the output", ended.combined().as_bytes());
        for root in [project.home(), project.repo()] {
            for file in files(&root) {
                if !skip(&file) {
                    self.assert_absent_from(
                        &file.display().to_string(),
                        file.to_string_lossy().as_bytes(),
                    );
                    self.assert_absent_from(&file.display().to_string(), &fs::read(&file).unwrap());
                }
            }
        }
        for repository in [project.repo(), project.run_dir().join("repo.git")] {
            let objects = Command::new("git")
                .args(["cat-file", "--batch-all-objects", "--batch"])
                .current_dir(&repository)
                .output()
                .unwrap();
            assert!(objects.status.success() && !objects.stdout.is_empty());
            self.assert_absent_from(&repository.display().to_string(), &objects.stdout);
        }
    }
}

fn files(root: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root).unwrap().map(Result::unwrap) {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            found.extend(files(&entry.path()));
        } else if kind.is_file() {
            found.push(entry.path());
        }
    }
    found
}

#[test]
fn a_secret_of_the_environment_goes_nowhere() {
    let canaries = SecretCanaries::new();
    let look = "env; cat /proc/self/environ | tr '\\0' '\\n'; cat .git/config";
    let project = canaries
        .project()
        .script(&[actions(&[run(look), run("false")]), finish()]);
    let ended = project.run().expect(0);
    assert!(
        project
            .artifact(1, "test_output.txt")
            .contains("RALPH_SANDBOX=")
    );
    canaries.assert_absent(&project, &ended, &|_| false);
    for name in ["ZAI_API_KEY", "GITHUB_PAT", "GITHUB_APP"] {
        assert!(!project.artifact(1, "test_output.txt").contains(name));
    }
    for args in [
        &["show", "last"][..],
        &["logs", "last"],
        &["replay", "last"],
        &["audit", "last"],
    ] {
        canaries.assert_absent_from(args[0], project.ralph(args).expect(0).combined().as_bytes());
    }
}

/// Returns a shell word that expands to a secret only in the sandbox.
fn spelled(secret: &str) -> String {
    let (head, tail) = secret.split_at(7);
    format!("\"$(printf %s%s {head} {tail})\"")
}

#[test]
fn a_secret_in_a_reply_is_not_repeated() {
    let canaries = SecretCanaries::new();
    let (key, token, pem) = (&canaries.key, &canaries.token, canaries.pem());
    let mut telling = actions(&[
        run(&format!(
            "echo {key}; echo '{pem}' >&2; printf %s {token} | base64"
        )),
        write("leak.txt", &format!("{key}\n{pem}")),
        append(".ralph/guardrails.md", &format!("\n### sign: {token}\n")),
        write(".ralph/progress.md", &format!("# Progress\n{key}\n")),
        run(&format!(
            "echo '### sign: '{} >> .ralph/guardrails.md; echo {}; echo '### sign: after it' >> .ralph/guardrails.md",
            spelled(token),
            spelled(key)
        )),
        commit_paths(&format!("Say {token}"), &[&format!("{key}.txt")]),
    ]);
    telling["reply"]["summary"] = format!("I know {key}, {token} and {pem}").into();
    let mut broken = actions(&[]);
    broken["reply"] = format!("{{\"actions\": {token}").into();
    let project = canaries
        .project()
        .set("on_action_error", "continue")
        .script(&[
            telling,
            broken,
            actions(&[run("test ! -e leak.txt"), control("rotate", token)]),
            actions(&[
                append(".ralph/guardrails.md", "### sign: later\n"),
                control("pause", &format!("is {key} right?")),
            ]),
            finish(),
        ]);
    let paused = project.run().expect(11);
    let in_sandbox = |path: &Path| {
        path.components()
            .any(|part| part.as_os_str() == "sandboxes")
    };
    canaries.assert_absent(&project, &paused, &in_sandbox);
    let reason = project.show()["reason"].as_str().unwrap().to_owned();
    assert_eq!(reason, "the model asks: is [REDACTED:ZAI_API_KEY] right?");
    assert_eq!(
        project.results(1),
        [
            "refused", "refused", "refused", "refused", "ran 0", "refused"
        ]
    );
    assert_eq!(project.events("tamper"), Vec::<serde_json::Value>::new());
    let guardrails = project.file("guardrails.md");
    assert!(
        guardrails.contains("### sign: [REDACTED:GITHUB_PAT]"),
        "{guardrails}"
    );
    assert!(guardrails.contains("### sign: after it") && guardrails.contains("### sign: later"));
    let ended = project.ralph(&["resume", "last"]).expect(0);
    // The sandbox is removed together with the model's files.
    canaries.assert_absent(&project, &ended, &|_| false);
    project.audit();
}

/// Returns a command that creates a commit with a custom header, which no git command shows.
fn with_header(word: &str) -> String {
    format!(
        "note={word}; git commit -q --allow-empty -m Fine && \
         id=$(git cat-file commit HEAD | sed \"/^committer/a x-note $note\" | git hash-object -t commit -w --stdin) && \
         git reset -q --soft \"$id\" && git cat-file commit HEAD | grep -c x-note"
    )
}

#[test]
fn a_branch_with_a_secret_is_not_delivered() {
    let canaries = SecretCanaries::new();
    let (key, token) = (&canaries.key, &canaries.token);
    // An action with a secret is rejected, so the model has to assemble it in the sandbox.
    let (key, token) = (spelled(key), spelled(token));
    let mut sneaky = work();
    sneaky.insert(0, run(&format!("echo {key} > leak.txt")));
    let project = canaries.project().set("max_iterations", "12").script(&[
        actions(&sneaky),
        // Added by one commit and removed by the next: still on the branch.
        actions(&[commit("Leak"), run("rm leak.txt"), commit("No leak")]),
        actions(&[run(&format!("git commit -q --allow-empty -m {token}"))]),
        actions(&[run(&format!("echo x > {token}.txt")), commit("A name")]),
        actions(&[
            run(&format!(
                "rm -f *_*.txt ghp_*; printf 'a\\0%s' {key} > binary"
            )),
            commit("Binary"),
        ]),
        actions(&[
            run("rm -f binary leak.txt ghp_*; git status --short"),
            run(&with_header(&token)),
        ]),
        actions(&[run(&with_header(
            "\"$(printf %s%s AKIA Q7Q7Q7Q7Q7Q7Q7Q7)\"",
        ))]),
        finish(),
    ]);
    let ended = project.run().expect(0);
    let refused = project.event_values("import_refused", "why");
    let reasons: Vec<&str> = refused.iter().map(|why| why.as_str().unwrap()).collect();
    assert_eq!(
        reasons,
        [
            "`leak.txt` adds something that looks like a secret; commit without it",
            "`leak.txt` adds something that looks like a secret; commit without it",
            "a commit message has something that looks like a secret; commit without it",
            "`[REDACTED:GITHUB_PAT].txt` adds something that looks like a secret; commit without it",
            "`binary` adds something that looks like a secret; commit without it",
            "a header of a commit has something that looks like a secret; commit without it",
            "a header of a commit has something that looks like a secret; commit without it",
        ]
    );
    assert!(
        project
            .prompt(2)
            .contains("adds something that looks like a secret")
    );
    assert_eq!(project.delivered(), ["a.txt", "b.txt"]);
    canaries.assert_absent(&project, &ended, &|_| false);
    project.audit();
}
