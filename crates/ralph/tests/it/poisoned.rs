//! A repository whose files contain a secret in every spelling: a model that reads, prints and
//! copies all of them cannot get it out of the sandbox.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::project::{Project, actions, commit, control, finish, run, write};

/// Contains characters that every encoding has to escape.
const SECRET: &str = "S3n/t1+n\"e&l k9%Zq'7$x<Yv>\\w";

fn json(text: &str) -> String {
    let quoted = serde_json::to_string(text).unwrap();
    quoted[1..quoted.len() - 1].to_owned()
}

fn percent(kept: &str, digits: fn(u8) -> String) -> String {
    bytes(|byte| {
        let is_kept = byte.is_ascii_alphanumeric() || kept.as_bytes().contains(&byte);
        if is_kept {
            char::from(byte).to_string()
        } else {
            digits(byte)
        }
    })
}

/// Encodes each byte of the secret.
fn bytes(write: impl Fn(u8) -> String) -> String {
    let mut text = String::new();
    for byte in SECRET.bytes() {
        text += &write(byte);
    }
    text
}

fn base64(bytes: &[u8], digits: &[u8; 64]) -> String {
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let byte = |index: usize| usize::from(group.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..=group.len() {
            text.push(char::from(digits[bits >> (18 - 6 * digit) & 63]));
        }
    }
    text
}

/// Inserts a separator between the characters of the secret.
fn between(what: &str) -> String {
    let mut text = String::new();
    for (index, c) in SECRET.chars().enumerate() {
        if index % 6 == 5 {
            text.push_str(what);
        }
        text.push(c);
    }
    text
}

/// Encodes each character of the secret.
fn each(write: impl Fn(char) -> String) -> String {
    let mut text = String::new();
    for c in SECRET.chars() {
        text += &write(c);
    }
    text
}

/// Returns the secret in more than thirty spellings.
fn spellings() -> Vec<String> {
    [encoded(), escaped(), interrupted()].concat()
}

fn encoded() -> Vec<String> {
    const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let upper = |byte: u8| format!("%{byte:02X}");
    let lower = |byte: u8| format!("%{byte:02x}");
    let shifted = |before: &str| {
        let text = base64(format!("{before}{SECRET}").as_bytes(), STANDARD);
        text[before.len() + 1..].to_owned()
    };
    vec![
        SECRET.to_owned(),
        base64(SECRET.as_bytes(), STANDARD),
        base64(SECRET.as_bytes(), URL_SAFE),
        shifted("x"),
        shifted("xy"),
        bytes(|byte| format!("{byte:02x}")),
        bytes(|byte| format!("{byte:02X}")),
        percent("", upper),
        percent("", lower),
        percent("-_.~", upper),
        percent("/", upper),
        percent("/", lower),
        percent("-_.~!'()*;/?:@&=+$,#", upper),
        percent("", upper).replace('%', "%25"),
        percent("", upper).replace("%20", "+"),
    ]
}

fn escaped() -> Vec<String> {
    let xml = SECRET
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let twice = json(&json(SECRET));
    vec![
        json(SECRET),
        json(SECRET).replace('/', "\\/"),
        json(&twice),
        twice,
        each(|c| format!("\\u{:04x}", u32::from(c))),
        each(|c| format!("\\\\u{:04X}", u32::from(c))),
        each(|c| format!("\\x{:02x}", u32::from(c))),
        each(|c| format!("\\{:03o}", u32::from(c))),
        each(|c| format!("&#{};", u32::from(c))),
        each(|c| format!("&#x{:x};", u32::from(c))),
        xml.replace('"', "&quot;").replace('\'', "&#39;"),
        xml.replace('&', "&amp;"),
        SECRET.replace('\'', r"'\''"),
    ]
}

fn interrupted() -> Vec<String> {
    vec![
        between("\u{1b}[01;31m\u{1b}[K"),
        between("\u{1b}[0m"),
        between("\u{1b}]8;;https://example.com\u{7}"),
        json(&between("\u{1b}[32m")),
        between("\u{9b}1m"),
        between("\u{200b}"),
        between("\u{2060}\u{feff}"),
        between("\u{ad}"),
    ]
}

fn poisoned() -> Project {
    let project = Project::new().env("SERVICE_TOKEN", SECRET);
    let mut all = String::new();
    for (index, spelling) in spellings().iter().enumerate() {
        // Writing to a String cannot fail.
        writeln!(all, "{index}: before {spelling} after").unwrap();
    }
    fs::create_dir(project.repo().join("forms")).unwrap();
    for (index, line) in all.lines().enumerate() {
        fs::write(
            project.repo().join(format!("forms/{index}.txt")),
            format!("{line}\n"),
        )
        .unwrap();
    }
    project.commit("forms/all.txt", &all);
    project.git(&["add", "--all", "forms"]);
    project.git(&["commit", "--quiet", "--message", "Poison"]);
    project
}

/// Returns the files that a run has left outside the repository and the sandbox.
fn stored(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let (path, name) = (entry.path(), entry.file_name());
        if name == "repo.git" || name == "sandboxes" {
            continue;
        }
        if path.is_dir() {
            found.extend(stored(&path));
        } else {
            found.push(path);
        }
    }
    found
}

#[track_caller]
fn assert_absent(what: &str, bytes: &[u8]) {
    for spelling in spellings() {
        for spelling in [json(&spelling), spelling] {
            let form = spelling.as_bytes();
            let is_there = bytes.windows(form.len()).any(|window| window == form);
            assert!(!is_there, "{spelling:?} is in {what}");
        }
    }
}

#[test]
fn nothing_of_a_poisoned_repository_leaves_the_sandbox() {
    assert!(spellings().len() >= 30);
    let project = poisoned().set("on_action_error", "continue").set("max_iterations", "9").script(&[
        actions(&[
            run("cat forms/*; cat forms/all.txt >&2; false"),
            run("cat forms/all.txt >> .ralph/progress.md; cat forms/all.txt >> .ralph/guardrails.md"),
            run("cat forms/all.txt; git log --patch | cat"),
        ]),
        actions(&[
            run("for f in forms/*; do cp \"$f\" \"copy-$(basename \"$f\")\"; done"),
            commit("Copy all of them"),
        ]),
        // Each of them alone is rejected, too.
        actions(&[
            run("rm -f copy-*; for f in forms/[0-9]*; do cp \"$f\" copy; git add copy; git commit -qm copy; done; git log --oneline | wc -l"),
        ]),
        actions(&[run("rm -f copy"), control("rotate", "all is read")]),
        finish(),
    ]);
    let ended = project.run().expect(0);
    assert_absent("the output", ended.combined().as_bytes());
    for file in stored(&project.home()) {
        assert_absent(&file.display().to_string(), &fs::read(&file).unwrap());
    }
    assert!(
        project
            .prompt(2)
            .contains("before [REDACTED:SERVICE_TOKEN]")
    );
    let refused = project.event_values("import_refused", "why");
    assert_eq!(refused.len(), 2, "{refused:?}");
    assert_eq!(project.delivered(), ["a.txt", "b.txt"]);
    let branch = project.show()["branch"].as_str().unwrap().to_owned();
    let pushed = project.git(&[
        "log",
        "--patch",
        "--text",
        "--format=raw",
        &format!("main..{branch}"),
    ]);
    assert_absent("the branch", pushed.as_bytes());
    assert_absent("the pull request", project.pull().to_string().as_bytes());
    for args in [
        &["show", "last"][..],
        &["logs", "last"],
        &["replay", "last"],
    ] {
        assert_absent(args[0], project.ralph(args).expect(0).combined().as_bytes());
    }
    project.audit();
}

#[test]
fn every_spelling_keeps_an_action_from_being_performed() {
    let written: Vec<_> = spellings()
        .iter()
        .map(|spelling| write("copy.txt", &format!("before {spelling} after\n")))
        .collect();
    let project = Project::new()
        .env("SERVICE_TOKEN", SECRET)
        .set("on_action_error", "continue");
    let project = project.script(&[
        actions(&written),
        actions(&[run("test ! -e copy.txt")]),
        finish(),
    ]);
    project.run().expect(0);
    assert_eq!(project.results(1), vec!["refused"; written.len()]);
    assert_eq!(project.results(2), ["ran 0"]);
}
