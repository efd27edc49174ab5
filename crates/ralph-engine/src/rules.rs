//! Contents that no commit of a run may have: a secret, the run's own files, and the trailers of
//! ralph's commits.

use std::collections::BTreeSet;

use ralph_core::action::RunnerTrailer;
use ralph_core::id::CommitId;
use ralph_core::secret::{Redactor, TokenShapes};

use crate::git::{History, OwnFiles};

/// The most bytes that are searched for secrets.
pub(crate) const MAX_SEARCHED: u64 = 64 << 20;

/// Returns why commits must not be imported or pushed, if so. `history` is none if it is too large.
pub(crate) fn refuse_commits(
    redactor: &Redactor,
    history: Option<&History>,
    known: &CommitId,
    own: OwnFiles,
) -> Option<String> {
    let redactor = &redactor.with_shapes(TokenShapes::Issued);
    let Some(history) = history else {
        return Some(format!(
            "the changes since {} are larger than {} MiB, too large to search for secrets",
            known.short(),
            MAX_SEARCHED >> 20
        ));
    };
    let commits = [
        (&history.metadata, "a commit message"),
        (&history.objects, "a header of a commit"),
    ];
    for (bytes, name) in commits {
        if contains_secret(redactor, bytes) {
            return Some(format!(
                "{name} has something that looks like a secret; commit without it"
            ));
        }
    }
    refuse_patches(redactor, &history.patches, own)
}

/// Returns why new commits must not be imported, if one has a trailer that only ralph's own commits
/// have. `action_marks` contains the trailer values of the commit actions in the open iteration;
/// each may occur once, because a command may have amended the commit of an action.
pub(crate) fn refuse_reserved_trailers(
    history: &History,
    run: &str,
    action_marks: &BTreeSet<String>,
) -> Option<String> {
    let mut seen = BTreeSet::new();
    for commit in &history.commits {
        let is_action = |trailer: &RunnerTrailer| matches!(trailer, RunnerTrailer::Action(_));
        let has_action = commit.trailers.iter().any(is_action);
        let forged = commit.trailers.iter().find(|trailer| match trailer {
            RunnerTrailer::Action(action) => !action_marks.contains(action) || !seen.insert(action),
            RunnerTrailer::Run(named) => named != run || !has_action,
        });
        if let Some(forged) = forged {
            return Some(format!(
                "commit {} has the line `{forged}`, which is reserved for ralph's own commits; commit the files again without it",
                commit.id.short()
            ));
        }
    }
    None
}

fn refuse_patches(redactor: &Redactor, patches: &[u8], own: OwnFiles) -> Option<String> {
    let secret = |file: &str, text: &[u8]| {
        contains_secret(redactor, text)
            .then(|| format!("`{file}` adds something that looks like a secret; commit without it"))
    };
    let mut file = "";
    // Adjacent lines are searched together, because a private key has many.
    let mut added = Vec::new();
    for line in patches.split(|byte| *byte == b'\n') {
        if let Some(text) = line.strip_prefix(b"+") {
            added.extend_from_slice(text);
            added.push(b'\n');
            continue;
        }
        if let Some(why) = secret(file, &added) {
            return Some(why);
        }
        added.clear();
        // Lines of files start with `+`, `-` or a space, so this line is git's own.
        if let Some(names) = line.strip_prefix(b"diff --git ") {
            file = first_name(names);
            if own == OwnFiles::Excluded && is_run_file(file) {
                return Some(format!(
                    "`{file}` belongs to the runner and is not part of the work; leave it out of commits"
                ));
            }
        }
        if !line.starts_with(b" ") && !line.starts_with(b"-") {
            let why = secret(file, line);
            if why.is_some() {
                return why;
            }
        }
    }
    secret(file, &added)
}

fn contains_secret(redactor: &Redactor, bytes: &[u8]) -> bool {
    *redactor.redact_bytes(bytes) != *bytes
}

/// Returns the first of the two names that git puts above a patch, without the `a/`.
fn first_name(names: &[u8]) -> &str {
    let names = std::str::from_utf8(names).unwrap_or("");
    let names = names.trim_start_matches('"').trim_start_matches("a/");
    names
        .split_once(" b/")
        .or_else(|| names.split_once("\" \"b/"))
        .map_or(names, |(first, _)| first)
}

fn is_run_file(file: &str) -> bool {
    file == "ralph_task.md" || file == ".ralph" || file.starts_with(".ralph/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(words: &str, patches: &str) -> Option<String> {
        let history = History {
            metadata: words.into(),
            patches: patches.into(),
            ..History::default()
        };
        let known = CommitId::parse(&"a".repeat(40)).unwrap();
        refuse_commits(
            &Redactor::default(),
            Some(&history),
            &known,
            OwnFiles::Excluded,
        )
    }

    fn patch(name: &str, lines: &str) -> String {
        format!("diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n{lines}")
    }

    #[test]
    fn secrets_and_own_files_are_refused() {
        // Concatenated here, so that no scanner reports this file as a leak.
        let token = format!("ghp_{}", "a1".repeat(18));
        let kind = "PRIVATE KEY";
        let key = format!("+-----BEGIN {kind}-----\n{}\n", "MIIEog1B".repeat(8));
        let secret = "`src/a b.rs` adds something that looks like a secret; commit without it";
        let own = |file: &str| {
            format!(
                "`{file}` belongs to the runner and is not part of the work; leave it out of commits"
            )
        };
        for (words, patches, expected) in [
            ("a message\n", patch("src/a b.rs", "+x\n"), None),
            (
                "",
                patch("src/a b.rs", &format!("+{token}\n")),
                Some(secret.to_owned()),
            ),
            (
                "",
                patch("src/a b.rs", &format!("-{token}\n {token}\n")),
                None,
            ),
            (
                "",
                patch("src/a b.rs", &key.replace('\n', "\n+")),
                Some(secret.to_owned()),
            ),
            (
                &*format!("a message\n{token}\n"),
                String::new(),
                Some(
                    "a commit message has something that looks like a secret; commit without it"
                        .into(),
                ),
            ),
            (
                "",
                patch("ralph_task.md", "-x\n"),
                Some(own("ralph_task.md")),
            ),
            (
                "",
                patch(".ralph/notes.md", "+x\n"),
                Some(own(".ralph/notes.md")),
            ),
            ("", patch(".ralph", "+x\n"), Some(own(".ralph"))),
            (
                "",
                patch("docs/ralph_task.md", "+diff --git a/.ralph b/.ralph\n"),
                None,
            ),
            (
                "",
                "diff --git \"a/.ralph/\\303\" \"b/.ralph/\\303\"\n+x\n".into(),
                Some(own(".ralph/\\303")),
            ),
        ] {
            assert_eq!(refusal(words, &patches), expected, "{patches}");
        }
    }

    #[test]
    fn a_header_that_git_does_not_show_is_searched() {
        let token = format!("ghp_{}", "a1".repeat(18));
        let history = History {
            objects: format!("tree x\nx-note {token}\n\n    a message\n").into(),
            ..History::default()
        };
        let known = CommitId::parse(&"a".repeat(40)).unwrap();
        let redactor = Redactor::default();
        assert_eq!(
            refuse_commits(&redactor, Some(&history), &known, OwnFiles::Excluded).as_deref(),
            Some("a header of a commit has something that looks like a secret; commit without it")
        );
    }
    #[test]
    fn reserved_trailers_are_refused_except_once_per_commit_action() {
        let commit = |trailers: &[RunnerTrailer]| crate::git::Commit {
            id: CommitId::parse(&"b".repeat(40)).unwrap(),
            parents: Vec::new(),
            subject: "One".into(),
            trailers: trailers.to_vec(),
        };
        let action = |value: &str| RunnerTrailer::Action(value.into());
        let of_run = |value: &str| RunnerTrailer::Run(value.into());
        let own = [of_run("r"), action("r/2/1")];
        let action_marks = BTreeSet::from(["r/2/1".to_owned()]);
        let refusal_of = |commits: Vec<crate::git::Commit>| {
            let history = History {
                commits,
                ..History::default()
            };
            refuse_reserved_trailers(&history, "r", &action_marks)
        };
        assert_eq!(refusal_of(vec![commit(&[]), commit(&own)]), None);
        for (commits, forged) in [
            (vec![commit(&own), commit(&own)], "Ralph-Action: r/2/1"),
            (vec![commit(&[action("r/2/0")])], "Ralph-Action: r/2/0"),
            (vec![commit(&[action("x/2/1")])], "Ralph-Action: x/2/1"),
            (
                vec![commit(&[of_run("x"), action("r/2/1")])],
                "Ralph-Run: x",
            ),
            (vec![commit(&[of_run("r")])], "Ralph-Run: r"),
        ] {
            let why = refusal_of(commits).unwrap();
            assert!(why.contains(&format!("has the line `{forged}`, ")), "{why}");
        }
    }
}
