//! Working directories of commands.

use ralph_core::path::SandboxPath;
use ralph_core::ports::SandboxError;

use super::contract_sandbox::{ContractSandbox, repo_path, shell};

pub(super) async fn commands_run_where_they_are_told(ground: &ContractSandbox<'_>) {
    ground
        .sh("mkdir -p a/b; echo deep > a/b/here; echo top > here; ln -s a/b inside")
        .await;
    for (cwd, expected) in [
        (SandboxPath::repo(), "top\n"),
        (repo_path("a/b"), "deep\n"),
        (repo_path("inside"), "deep\n"),
    ] {
        let (_, output) = ground.exec(shell("cat here").in_dir(cwd)).await;
        assert_eq!(output.stdout_text(), expected);
    }
    let (_, output) = ground
        .exec(shell("ls -A").in_dir(SandboxPath::scratch()))
        .await;
    assert_eq!(output.stdout_text(), "");
}

pub(super) async fn a_missing_directory_is_not_entered(ground: &ContractSandbox<'_>) {
    let refusal = ground
        .exec_error(shell("true").in_dir(repo_path("nowhere")))
        .await;
    assert!(
        matches!(&refusal, SandboxError::NotFound(path) if path == "repo/nowhere"),
        "{refusal:?}"
    );
    ground.write("file", b"").await;
    let refusal = ground
        .exec_error(shell("true").in_dir(repo_path("file")))
        .await;
    assert!(refusal.to_string().contains("repo/file"), "{refusal:?}");
}

pub(super) async fn a_link_outside_is_not_entered(ground: &ContractSandbox<'_>) {
    ground
        .sh("ln -s /etc absolute; ln -s ../../.. above; mkdir d; ln -s /etc d/link")
        .await;
    for path in ["absolute", "above", "d/link"] {
        let refusal = ground
            .exec_error(shell("pwd").in_dir(repo_path(path)))
            .await;
        assert!(
            matches!(&refusal, SandboxError::Escapes(_)),
            "{path}: {refusal:?}"
        );
    }
}

/// The directories of the sandbox are real and usable after a command replaced or removed them.
pub(super) async fn the_repository_is_a_directory_whatever_happens(ground: &ContractSandbox<'_>) {
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
        ground.sh(&line).await;
        // File operations first, because they must restore the directory as well.
        let listed = ground.sandbox.list(&SandboxPath::repo()).await;
        let names: Vec<String> = listed
            .unwrap_or_else(|error| panic!("{line}: {error}"))
            .into_iter()
            .map(|entry| entry.name)
            .collect();
        assert!(!names.contains(&"passwd".to_owned()), "{line}: {names:?}");
        ground.sh(&line).await;
        ground.write("file", b"written").await;
        assert_eq!(ground.sh("cat file").await, "written", "{line}");
        ground.sh(&line).await;
        let kinds = ground
            .sh("cd ..; for d in repo scratch; do [ -d $d ] && [ ! -L $d ] && echo $d; done")
            .await;
        assert_eq!(kinds, "repo\nscratch\n", "{line}");
        assert_eq!(
            ground.sh("touch file ../scratch/x && echo usable").await,
            "usable\n"
        );
    }
}
