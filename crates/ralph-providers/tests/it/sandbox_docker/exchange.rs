//! Files that a command swaps while the host uses them.

use std::time::Duration;

use ralph_core::ports::{Exec, SandboxError, WriteMode};
use ralph_test::skip_without_docker;

use super::fixture::{DockerTestEnv, TEST_TIMEOUT, repo, sh, try_run};

/// Time limit for an operation that has nothing to wait for.
const AT_ONCE: Duration = Duration::from_secs(5);

/// Swaps `file` and the parent of `d/file` for links, a pipe, a socket, a device and directories.
const EXCHANGER: &str = r#"
import os, socket, shutil
def gone(path):
    try: shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
    except OSError: pass
def plain(path): open(path, "w").write("inside\n")
def pipe(path): os.mkfifo(path)
def unix(path): socket.socket(socket.AF_UNIX).bind(path)
kinds = [plain, pipe, unix, os.mkdir] + [
    lambda path, target=target: os.symlink(target, path)
    for target in ["/etc/passwd", "/tmp/outside", "../../../../tmp/outside", "/proc/self/environ", "/dev/zero", "/proc/1/environ", "file", "/.ralph-link/x"]]
above = [os.mkdir] + [lambda path, target=target: os.symlink(target, path) for target in ["/tmp", "/", "..", "/proc/self", "d"]]
number = 0
while not os.path.exists("stop"):
    number += 1
    for path, choices in [("file", kinds), ("d", above)]:
        gone(path)
        try: choices[number % len(choices)](path)
        except OSError: pass
"#;

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table of cases in one sandbox")]
async fn nothing_is_read_or_written_outside_and_nothing_waits() {
    if skip_without_docker() {
        return;
    }
    let env = DockerTestEnv::new();
    let sandbox = env.sandbox().await;
    sh(
        &*sandbox,
        "echo kept > /tmp/outside; chmod 666 /tmp/outside; echo kept > /tmp/file",
    )
    .await;
    let exchange = try_run(
        &*sandbox,
        Exec::argv(["python3", "-c", EXCHANGER], TEST_TIMEOUT),
    );
    let host = async {
        let mut seen = [0; 4];
        for round in 0..400 {
            let path = repo(["file", "d/file"][round % 2]);
            let both = async {
                let read = sandbox.read(&path, 1000).await;
                let mode = [WriteMode::Replace, WriteMode::Append][round / 2 % 2];
                let written = sandbox.write(&path, b"inside\n", mode).await;
                let deleted = if round % 7 == 0 {
                    sandbox.delete(&path).await
                } else {
                    Ok(())
                };
                (read, written, deleted)
            };
            let (read, written, deleted) = tokio::time::timeout(AT_ONCE, both)
                .await
                .expect("nothing waits");
            match read {
                Ok(bytes) => {
                    let text = String::from_utf8(bytes).unwrap();
                    assert_eq!(text.replace("inside\n", ""), "", "round {round}");
                    seen[0] += 1;
                }
                Err(error) => count(&mut seen, error),
            }
            for done in [written, deleted] {
                match done {
                    Ok(()) => seen[0] += 1,
                    Err(error) => count(&mut seen, error),
                }
            }
        }
        sandbox
            .write(&repo("stop"), b"", WriteMode::Replace)
            .await
            .unwrap();
        seen
    };
    let (exchanged, seen) = tokio::join!(exchange, host);
    assert!(
        exchanged.0.unwrap().ended.is_success(),
        "{}",
        exchanged.1.stderr_text()
    );
    // All outcomes occurred: success, outside the sandbox, not a file, and obstructed.
    assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
    assert_eq!(
        sh(&*sandbox, "cat /tmp/outside /tmp/file; ls /tmp").await,
        "kept\nkept\nfile\noutside\n"
    );
    // A link may point outside the repository, but not outside the sandbox.
    let left = sh(&*sandbox, "rm -rf ./* && ls -A . .. | grep -vx file").await;
    assert_eq!(left, ".:\n\n..:\ncache\nhome\nrepo\nscratch\ntmp\n");
    env.finish().await;
}

/// Counts an error that a swapped file may cause; panics on any other.
fn count(seen: &mut [u32; 4], error: SandboxError) {
    let kind = match error {
        SandboxError::Escapes(_) => 1,
        SandboxError::NotRegular(_) => 2,
        SandboxError::NotFound(_) | SandboxError::Io { .. } => 3,
        other @ (SandboxError::Gone(_)
        | SandboxError::TooLarge { .. }
        | SandboxError::Spawn { .. }
        | SandboxError::Interrupted { .. }
        | SandboxError::Provider(_)) => panic!("{other:?}"),
    };
    seen[kind] += 1;
}
