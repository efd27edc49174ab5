//! Working directories of commands.

use ralph_core::path::SandboxPath;
use ralph_core::ports::SandboxError;

use super::contract_sandbox::{ContractSandbox, repo_path, shell};

pub(super) async fn commands_run_in_their_working_directory(fixture: &ContractSandbox<'_>) {
    fixture
        .sh("mkdir -p a/b; echo deep > a/b/here; echo top > here; ln -s a/b inside")
        .await;
    for (cwd, expected) in [
        (SandboxPath::repo(), "top\n"),
        (repo_path("a/b"), "deep\n"),
        (repo_path("inside"), "deep\n"),
    ] {
        let (_, output) = fixture.exec(shell("cat here").in_dir(cwd)).await;
        assert_eq!(output.stdout_text(), expected);
    }
    let (_, output) = fixture
        .exec(shell("ls -A").in_dir(SandboxPath::scratch()))
        .await;
    assert_eq!(output.stdout_text(), "");
}

pub(super) async fn a_missing_directory_is_not_entered(fixture: &ContractSandbox<'_>) {
    let error = fixture
        .exec_error(shell("true").in_dir(repo_path("nowhere")))
        .await;
    assert!(
        matches!(&error, SandboxError::NotFound(path) if path == "repo/nowhere"),
        "{error:?}"
    );
    fixture.write("file", b"").await;
    let error = fixture
        .exec_error(shell("true").in_dir(repo_path("file")))
        .await;
    assert!(error.to_string().contains("repo/file"), "{error:?}");
}

pub(super) async fn a_link_outside_is_not_entered(fixture: &ContractSandbox<'_>) {
    fixture
        .sh("ln -s /etc absolute; ln -s ../../.. above; mkdir d; ln -s /etc d/link")
        .await;
    for path in ["absolute", "above", "d/link"] {
        let error = fixture
            .exec_error(shell("pwd").in_dir(repo_path(path)))
            .await;
        assert!(
            matches!(&error, SandboxError::Escapes(_)),
            "{path}: {error:?}"
        );
    }
}

/// The directories of the sandbox are real and usable after a command replaced or removed them.
pub(super) async fn directories_are_restored_after_every_command(fixture: &ContractSandbox<'_>) {
    for line in [
        "chmod 000 .",
        "cd ..; rm -rf repo scratch \"$HOME\" \"$TMPDIR\"",
        "cd ..; rm -rf repo && ln -s /etc repo",
        "cd ..; mv repo other && ln -s other repo",
        "cd ..; rm -rf repo && ln -s repo repo",
        "cd ..; rm -rf repo && echo file > repo",
        "cd ..; rm -rf repo && mkfifo repo",
        "cd ..; rm -rf scratch && ln -s /tmp scratch",
    ] {
        let line = format!("({line}) 2>/dev/null; true");
        fixture.sh(&line).await;
        // File operations first, because they must restore the directory as well.
        let listed = fixture.sandbox.list(&SandboxPath::repo()).await;
        let names: Vec<String> = listed
            .unwrap_or_else(|error| panic!("{line}: {error}"))
            .into_iter()
            .map(|entry| entry.name)
            .collect();
        assert!(!names.contains(&"passwd".to_owned()), "{line}: {names:?}");
        fixture.sh(&line).await;
        fixture.write("file", b"written").await;
        assert_eq!(fixture.sh("cat file").await, "written", "{line}");
        fixture.sh(&line).await;
        let kinds = fixture
            .sh("cd ..; for d in repo scratch; do [ -d $d ] && [ ! -L $d ] && echo $d; done")
            .await;
        assert_eq!(kinds, "repo\nscratch\n", "{line}");
        assert_eq!(
            fixture.sh("touch file ../scratch/x && echo usable").await,
            "usable\n"
        );
    }
}
