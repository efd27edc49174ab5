//! Changes that a command applies to itself and to its directories, and their effect on the next
//! one.

use std::time::Duration;

use ralph_core::path::SandboxPath;
use ralph_core::ports::{Exec, ExecStatus, SandboxError, WriteMode};
use ralph_test::skip_without_docker;

use super::fixture::{DockerTestEnv, TEST_TIMEOUT, repo, run, sh, try_run};

/// Must work regardless of earlier commands.
const WORKS: &str = r#"echo x > file && mkdir -p a/b && mktemp >/dev/null && cd "$HOME" && echo x > y && cd ../scratch && echo x > z && echo works"#;

#[tokio::test]
async fn changes_to_the_working_environment_end_with_the_command() {
    if skip_without_docker() {
        return;
    }
    let env = DockerTestEnv::new();
    let sandbox = env.sandbox().await;
    for line in [
        "ulimit -f 0; ulimit -n 3; ulimit -u 1; ulimit -v 1; true",
        "umask 777; touch sealed; mkdir sealed-directory",
        "chmod 000 .",
        "chmod 000 . ../scratch \"$HOME\" \"$TMPDIR\"",
        "chmod 555 \"$HOME\" \"$TMPDIR\" .",
        "rm -rf ../repo ../scratch \"$HOME\" \"$TMPDIR\" 2>/dev/null; true",
        "rm -rf ./* \"$HOME\"/* \"$TMPDIR\"/*; cd /; true",
        "mkdir inner; cd inner; rmdir ../inner",
        "setfacl -m u::0 . 2>/dev/null; chmod 6777 . \"$HOME\"",
    ] {
        let (outcome, _) = run(&*sandbox, Exec::shell(line, TEST_TIMEOUT)).await;
        assert!(
            matches!(outcome.ended, ExecStatus::Exited(_)),
            "{line}: {outcome:?}"
        );
        let written = sandbox
            .write(&repo("written"), b"by the host", WriteMode::Replace)
            .await;
        assert!(written.is_ok(), "{line}: {written:?}");
        let read = sandbox.read(&repo("written"), 100).await;
        assert_eq!(read.unwrap(), b"by the host", "{line}");
        assert_eq!(sh(&*sandbox, WORKS).await, "works\n", "after {line}");
        sh(&*sandbox, "cat written >/dev/null; rm -rf ./*").await;
    }
    env.finish().await;
}

#[tokio::test]
async fn directories_cannot_be_exchanged() {
    if skip_without_docker() {
        return;
    }
    let env = DockerTestEnv::new();
    let sandbox = env.sandbox().await;
    // The directories belong to the command, but their parent does not.
    let line = r#"for d in repo scratch home tmp; do
        (rmdir /workspace/$d; mv /workspace/$d /workspace/other; ln -s /etc /workspace/$d; mkfifo /workspace/x) 2>/dev/null && echo "exchanged $d"
        done; ls /workspace"#;
    assert_eq!(
        sh(&*sandbox, line).await,
        "cache\nhome\nrepo\nscratch\ntmp\n"
    );
    env.finish().await;
}

#[tokio::test]
async fn a_directory_that_cannot_be_entered_is_named() {
    if skip_without_docker() {
        return;
    }
    let env = DockerTestEnv::new();
    let sandbox = env.sandbox().await;
    sh(&*sandbox, "mkdir -p sealed/inner loop; chmod 000 sealed; ln -s loop2 loop1; ln -s loop1 loop2; ln -s / root; touch file; mkfifo pipe").await;
    let mut errors = Vec::new();
    for directory in [
        "sealed", "loop1", "root", "root/etc", "file", "pipe", "none",
    ] {
        let exec = Exec::shell("true", TEST_TIMEOUT).in_dir(repo(directory));
        let (outcome, _) = try_run(&*sandbox, exec).await;
        errors.push(outcome.unwrap_err().to_string());
    }
    assert_eq!(
        errors,
        [
            "cannot enter `repo/sealed`: Permission denied (os error 13)",
            "cannot enter `repo/loop1`: Too many levels of symbolic links (os error 40)",
            "path `repo/root` leads outside the sandbox",
            "path `repo/root/etc` leads outside the sandbox",
            "cannot enter `repo/file`: Not a directory (os error 20)",
            "cannot enter `repo/pipe`: Not a directory (os error 20)",
            "`repo/none` does not exist",
        ]
    );
    env.finish().await;
}

#[tokio::test]
async fn every_exit_status_is_reported_exactly() {
    if skip_without_docker() {
        return;
    }
    let env = DockerTestEnv::new();
    let sandbox = env.sandbox().await;
    sh(
        &*sandbox,
        "echo x > plain; printf '#!/nowhere/sh\\n' > broken; chmod 755 broken; mkdir dir",
    )
    .await;
    for (line, ended) in [
        ("./plain", ExecStatus::Exited(126)),
        ("./dir", ExecStatus::Exited(126)),
        ("no-such-program", ExecStatus::Exited(127)),
        ("./none", ExecStatus::Exited(127)),
        ("./broken", ExecStatus::Exited(127)),
        ("exit 126", ExecStatus::Exited(126)),
        ("exit 130", ExecStatus::Exited(130)),
        ("exec sh -c 'kill -9 $$'", ExecStatus::Signalled(9)),
        ("sh -c 'kill -9 $$'; exit $?", ExecStatus::Exited(137)),
        ("kill -TERM $$", ExecStatus::Signalled(15)),
        ("kill -SEGV $$", ExecStatus::Signalled(11)),
        ("kill -34 $$", ExecStatus::Signalled(34)),
        ("if", ExecStatus::Exited(2)),
    ] {
        let (outcome, _) = run(&*sandbox, Exec::shell(line, TEST_TIMEOUT)).await;
        assert_eq!(outcome.ended, ended, "{line}");
    }
    for (program, expected) in [
        (
            "./plain",
            "cannot start `./plain`: Permission denied (os error 13)",
        ),
        (
            "./broken",
            "cannot start `./broken`: No such file or directory (os error 2)",
        ),
        (
            "",
            "cannot start ``: No such file or directory (os error 2)",
        ),
        (
            "a\0b",
            "cannot start `a\0b`: nul byte found in provided data",
        ),
    ] {
        let (outcome, _) = try_run(&*sandbox, Exec::argv([program], TEST_TIMEOUT)).await;
        assert_eq!(outcome.unwrap_err().to_string(), expected);
    }
    env.finish().await;
}

#[tokio::test]
async fn nothing_is_too_large_to_be_refused() {
    if skip_without_docker() {
        return;
    }
    let env = DockerTestEnv::new();
    let sandbox = env.sandbox().await;
    // Many arguments, such as a list of files.
    let files: Vec<String> = (0..20_000)
        .map(|number| format!("directory/file-{number}"))
        .collect();
    let argv = [vec!["printf".to_owned(), "%s\n".to_owned()], files].concat();
    let (outcome, _) = run(&*sandbox, Exec::argv(argv, TEST_TIMEOUT)).await;
    assert_eq!(
        (outcome.ended, outcome.stdout_bytes),
        (ExecStatus::Exited(0), 408_890)
    );
    // Larger than the system accepts.
    for size in [200 << 10, 3 << 20, 40 << 20] {
        let exec = Exec::argv(["true".to_owned(), "x".repeat(size)], TEST_TIMEOUT);
        let (outcome, _) = try_run(&*sandbox, exec).await;
        let error = outcome.unwrap_err().to_string();
        assert_eq!(
            error, "cannot start `true`: Argument list too long (os error 7)",
            "{size}"
        );
    }
    // An infinite timeout never expires; in particular, not immediately.
    for timeout in [Duration::MAX, Duration::from_secs(1 << 40)] {
        let (outcome, _) = run(&*sandbox, Exec::shell("exit 4", timeout)).await;
        assert_eq!(outcome.ended, ExecStatus::Exited(4));
    }
    let (outcome, _) = run(&*sandbox, Exec::shell("sleep 60", Duration::ZERO)).await;
    assert_eq!(outcome.ended, ExecStatus::TimedOut);
    let large = sandbox.read(&SandboxPath::repo(), 1).await;
    assert!(
        matches!(large, Err(SandboxError::NotRegular(_))),
        "{large:?}"
    );
    env.finish().await;
}
