//! Where a command runs.

use ralph_core::path::SandboxPath;
use ralph_core::ports::SandboxError;

use super::ground::{Ground, repo, shell};

pub(super) async fn commands_run_where_they_are_told(ground: &Ground<'_>) {
    ground
        .sh("mkdir -p a/b; echo deep > a/b/here; echo top > here; ln -s a/b inside")
        .await;
    for (cwd, expected) in [
        (SandboxPath::repo(), "top\n"),
        (repo("a/b"), "deep\n"),
        (repo("inside"), "deep\n"),
    ] {
        let (_, output) = ground.exec(shell("cat here").in_dir(cwd)).await;
        assert_eq!(output.stdout_text(), expected);
    }
    let (_, output) = ground
        .exec(shell("ls -A").in_dir(SandboxPath::scratch()))
        .await;
    assert_eq!(output.stdout_text(), "");
}

pub(super) async fn a_missing_directory_is_not_entered(ground: &Ground<'_>) {
    let refusal = ground.refuse(shell("true").in_dir(repo("nowhere"))).await;
    assert!(
        matches!(&refusal, SandboxError::NotFound(path) if path == "repo/nowhere"),
        "{refusal:?}"
    );
    ground.write("file", b"").await;
    let refusal = ground.refuse(shell("true").in_dir(repo("file"))).await;
    assert!(refusal.to_string().contains("repo/file"), "{refusal:?}");
}

pub(super) async fn a_link_outside_is_not_entered(ground: &Ground<'_>) {
    ground
        .sh("ln -s /etc absolute; ln -s ../../.. above; mkdir d; ln -s /etc d/link")
        .await;
    for path in ["absolute", "above", "d/link"] {
        let refusal = ground.refuse(shell("pwd").in_dir(repo(path))).await;
        assert!(
            matches!(&refusal, SandboxError::Escapes(_)),
            "{path}: {refusal:?}"
        );
    }
}
