//! Protection from commands that run as the user, and their resource limits.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ralph_core::ports::{
    Exec, ExecStatus, MemoryLimit, Sandbox, SandboxProvider as _, SandboxSpec, StateHiding,
};
use ralph_providers::sandbox::{LocalLimits, LocalProvider};
use tempfile::TempDir;

use super::fixture::{TEST_TIMEOUT, run, sh};

/// Set in a process that runs one test under other conditions.
const RERUN_VARIABLE: &str = "RALPH_TEST_AGAIN";

/// A state directory with a run whose contract a command tries to change.
struct GuardedState {
    directory: TempDir,
}

impl GuardedState {
    /// Creates one outside `/tmp`, as users have it.
    fn new() -> Self {
        Self::within(Path::new(env!("CARGO_TARGET_TMPDIR")))
    }

    fn within(parent: &Path) -> Self {
        let directory = TempDir::new_in(parent).unwrap();
        fs::create_dir_all(directory.path().join("runs/r1/commands")).unwrap();
        fs::write(directory.path().join("runs/r1/ralph_task.md"), "max: 1\n").unwrap();
        Self { directory }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().canonicalize().unwrap()
    }

    fn provider(&self) -> LocalProvider {
        LocalProvider::new(
            self.path().join("sandboxes"),
            std::env::var_os("PATH").unwrap(),
        )
        .hiding(self.path())
    }

    /// Tries to access the contract in every way, and asserts that none works.
    async fn assert_hidden(&self, sandbox: &dyn Sandbox) {
        let state = self.path();
        let task = state.join("runs/r1/ralph_task.md");
        let (state, task) = (state.display(), task.display());
        for line in [
            format!("cat {task}"),
            format!("sed -i s/1/9/ {task}"),
            format!("echo 'max: 9' > {task}"),
            format!("echo '{{}}' > {state}/runs/r1/commands/1.json"),
            "cat ../../../runs/r1/ralph_task.md".to_owned(),
            "cd ../../.. && cat runs/r1/ralph_task.md".to_owned(),
            format!("cat /proc/{}/root{task}", std::process::id()),
            format!("cat /proc/{}/cwd/../../{task}", std::process::id()),
            format!("ln -s {task} link && cat link"),
            format!("ln {task} hard && cat hard"),
            format!("umount {state}; umount -l {state}; cat {task}"),
            format!("unshare -m sh -c 'umount -l {state}; cat {task}'"),
            format!("unshare -rm sh -c 'umount -l {state}; cat {task}'"),
            format!("nsenter -t {} -m cat {task}", std::process::id()),
        ] {
            let (outcome, output) = run(sandbox, Exec::shell(&line, TEST_TIMEOUT)).await;
            assert!(!outcome.ended.is_success(), "`{line}` worked: {output:?}");
            assert!(
                !output.stdout_text().contains("max"),
                "`{line}`: {output:?}"
            );
        }
        // Below a private `/tmp` this creates a new directory, not the host's.
        let line = format!("mkdir -p {state}/runs/r2 && touch {state}/runs/r2/x");
        run(sandbox, Exec::shell(line, TEST_TIMEOUT)).await;
        let kept = fs::read_to_string(self.path().join("runs/r1/ralph_task.md")).unwrap();
        assert_eq!(kept, "max: 1\n");
        assert_eq!(fs::read_dir(self.path().join("runs")).unwrap().count(), 1);
        let mailbox = self.path().join("runs/r1/commands");
        assert_eq!(fs::read_dir(mailbox).unwrap().count(), 0);
    }
}

/// Returns whether this process runs the test under the conditions of `wrapper`. If not, it starts
/// a process that does; once that has passed, the test is over.
fn rerun_under(test: &str, wrapper: &[&str]) -> bool {
    if std::env::var_os(RERUN_VARIABLE).is_some() {
        return true;
    }
    let output = Command::new(wrapper[0])
        .args(&wrapper[1..])
        .arg(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(RERUN_VARIABLE, "yes")
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}");
    assert!(
        printed.contains("1 passed"),
        "no test is named `{test}`: {printed}"
    );
    false
}

/// Runs as an ordinary user without supplementary groups.
const AS_NOBODY: [&str; 4] = [
    "setpriv",
    "--reuid=65534",
    "--regid=65534",
    "--clear-groups",
];
/// Simulates a machine without user namespaces and without the privilege to mount.
const WITHOUT_NAMESPACES: [&str; 6] = [
    "unshare",
    "--user",
    "--map-root-user",
    "sh",
    "-c",
    "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-sys_admin --inh-caps=-all \"$0\" \"$@\"",
];

#[tokio::test]
async fn the_state_directory_is_out_of_reach() {
    let state = GuardedState::new();
    let provider = state.provider();
    let confinement = provider.confinement().unwrap();
    assert_eq!(
        confinement.state,
        StateHiding::MountNamespace,
        "{confinement:?}"
    );
    let sandbox = provider.create(&SandboxSpec::default()).await.unwrap();
    state.assert_hidden(&*sandbox).await;
    // Only the path to the sandbox is visible in the state directory.
    let line = format!("cd {} && find . -maxdepth 2", state.path().display());
    let expected = format!(".\n./sandboxes\n./sandboxes/{}\n", sandbox.id());
    assert_eq!(sh(&*sandbox, &line).await, expected);
    let line = "pwd; echo x > file; cat file; ls \"$HOME\" \"$TMPDIR\" >/dev/null && echo fine";
    let repo = state
        .path()
        .join("sandboxes")
        .join(&sandbox.id().0)
        .join("repo");
    assert_eq!(
        sh(&*sandbox, line).await,
        format!("{}\nx\nfine\n", repo.display())
    );
    sandbox.remove().await.unwrap();
}

#[tokio::test]
async fn the_state_directory_of_an_ordinary_user_is_out_of_reach() {
    let test =
        "sandbox_local::confinement::the_state_directory_of_an_ordinary_user_is_out_of_reach";
    if rustix::process::geteuid().is_root() && !rerun_under(test, &AS_NOBODY) {
        return;
    }
    let state = GuardedState::within(Path::new("/tmp"));
    let provider = state.provider();
    let confinement = provider.confinement().unwrap();
    assert_eq!(
        confinement.state,
        StateHiding::MountNamespace,
        "{confinement:?}"
    );
    assert_eq!(confinement.processes, Some(512));
    let sandbox = provider.create(&SandboxSpec::default()).await.unwrap();
    state.assert_hidden(&*sandbox).await;
    let own = rustix::process::geteuid().as_raw().to_string();
    assert_eq!(sh(&*sandbox, "id -u").await.trim(), own);
    sandbox.remove().await.unwrap();
}

#[tokio::test]
async fn without_namespaces_landlock_protects_the_state_directory() {
    let test =
        "sandbox_local::confinement::without_namespaces_landlock_protects_the_state_directory";
    if !rerun_under(test, &WITHOUT_NAMESPACES) {
        return;
    }
    let state = GuardedState::new();
    let provider = state.provider();
    let confinement = provider.confinement().unwrap();
    assert_eq!(confinement.state, StateHiding::Landlock, "{confinement:?}");
    assert!(!confinement.private_tmp);
    let sandbox = provider.create(&SandboxSpec::default()).await.unwrap();
    state.assert_hidden(&*sandbox).await;
    let line = "echo x > file; cat file; mktemp >/dev/null && touch /tmp/ralph-$$ && rm /tmp/ralph-$$ && echo fine";
    assert_eq!(sh(&*sandbox, line).await, "x\nfine\n");
    let missing = sandbox
        .exec(
            Exec::argv(["no-such-program-here"], TEST_TIMEOUT),
            None,
            &mut ralph_test::CollectedOutput::default(),
        )
        .await;
    let missing = missing.unwrap_err().to_string();
    assert_eq!(
        missing,
        "cannot start `no-such-program-here`: No such file or directory (os error 2)"
    );
    sandbox.remove().await.unwrap();
}

#[tokio::test]
async fn a_command_cannot_signal_or_trace_ralph() {
    let state = GuardedState::new();
    let provider = state.provider();
    assert!(provider.confinement().unwrap().signals);
    let sandbox = provider.create(&SandboxSpec::default()).await.unwrap();
    let line = format!(
        "kill -0 {0} && echo reached; kill -9 {0}; kill -9 $PPID; kill -TERM -1; sleep 0.1 & kill $!; echo alive",
        std::process::id()
    );
    assert_eq!(sh(&*sandbox, &line).await, "alive\n");
}

#[tokio::test]
async fn each_sandbox_has_a_tmp_of_its_own() {
    let state = GuardedState::new();
    let provider = state.provider();
    let (one, other) = (
        provider.create(&SandboxSpec::default()).await.unwrap(),
        provider.create(&SandboxSpec::default()).await.unwrap(),
    );
    let host = tempfile::NamedTempFile::new_in("/tmp").unwrap();
    let seen = format!(
        "test -e {} && echo host; ls /tmp /var/tmp",
        host.path().display()
    );
    sh(
        &*one,
        "echo mine > /tmp/ralph-note; echo mine > /var/tmp/ralph-note-2",
    )
    .await;
    let listed = sh(&*one, &seen).await;
    assert!(
        listed.contains("ralph-note\n") && listed.contains("ralph-note-2"),
        "{listed}"
    );
    assert!(!listed.contains("host"), "{listed}");
    let listed = sh(&*other, &seen).await;
    assert!(
        !listed.contains("ralph-note") && !listed.contains("host"),
        "{listed}"
    );
    assert!(!Path::new("/tmp/ralph-note").exists());
    // Files in `/tmp` outlive a command: they belong to the sandbox.
    assert_eq!(sh(&*one, "cat \"$TMPDIR/ralph-note\"").await, "mine\n");
}

#[tokio::test]
async fn programs_below_tmp_are_still_found() {
    let state = GuardedState::within(Path::new("/tmp"));
    let tools = TempDir::new_in("/tmp").unwrap();
    std::os::unix::fs::symlink("/bin/echo", tools.path().join("shout")).unwrap();
    let path = format!("{}:/usr/bin:/bin", tools.path().display());
    let provider = LocalProvider::new(state.path().join("sandboxes"), path).hiding(state.path());
    let sandbox = provider.create(&SandboxSpec::default()).await.unwrap();
    assert_eq!(sh(&*sandbox, "shout loud").await, "loud\n");
    state.assert_hidden(&*sandbox).await;
}

/// Returns a provider with low limits.
fn small_provider(state: &GuardedState) -> LocalProvider {
    state.provider().with_limits(LocalLimits {
        memory: 256 << 20,
        processes: 40,
    })
}

#[tokio::test]
async fn a_fork_bomb_is_limited_and_ends_with_its_command() {
    let state = GuardedState::new();
    let provider = small_provider(&state);
    let confinement = provider.confinement().unwrap();
    assert_eq!(confinement.processes, Some(40), "{confinement:?}");
    let sandbox = provider.create(&SandboxSpec::default()).await.unwrap();
    // The shell itself forks once, while it still can, and then becomes the command that is killed.
    let bomb = Exec::shell(
        "bomb() { bomb | bomb & }; (bomb) & exec sleep 600",
        Duration::from_secs(5),
    );
    let (outcome, _) = run(&*sandbox, bomb).await;
    assert_eq!(outcome.ended, ExecStatus::TimedOut);
    assert!(outcome.process_limit);
    assert_eq!(sh(&*sandbox, "echo alive").await, "alive\n");
    sandbox.remove().await.unwrap();
}

#[tokio::test]
async fn memory_that_runs_out_is_reported() {
    let state = GuardedState::new();
    let provider = small_provider(&state);
    let limit = provider.confinement().unwrap().memory;
    assert_eq!(limit, Some(MemoryLimit::Sandbox(256 << 20)));
    let sandbox = provider.create(&SandboxSpec::default()).await.unwrap();
    let hungry = Exec::shell("head -c 1G /dev/zero | tail -c 900M | wc -c", TEST_TIMEOUT);
    let (outcome, _) = run(&*sandbox, hungry).await;
    assert_eq!(outcome.ended, ExecStatus::OutOfMemory);
    assert_eq!(sh(&*sandbox, "echo alive").await, "alive\n");
}

#[tokio::test]
async fn an_ordinary_user_has_limits_without_control_groups() {
    let test = "sandbox_local::confinement::an_ordinary_user_has_limits_without_control_groups";
    if rustix::process::geteuid().is_root() && !rerun_under(test, &AS_NOBODY) {
        return;
    }
    let state = GuardedState::within(Path::new("/tmp"));
    let provider = small_provider(&state);
    let confinement = provider.confinement().unwrap();
    if confinement.memory == Some(MemoryLimit::Sandbox(256 << 20)) {
        // Control groups are delegated to this user, so their limits apply.
        return;
    }
    assert_eq!(confinement.memory, Some(MemoryLimit::Process(256 << 20)));
    assert_eq!(confinement.processes, Some(40));
    let sandbox = provider.create(&SandboxSpec::default()).await.unwrap();
    let crowd = "i=0; while [ $i -lt 100 ]; do sleep 20 & i=$((i+1)); done; echo all started";
    let (outcome, output) = run(&*sandbox, Exec::shell(crowd, TEST_TIMEOUT)).await;
    assert!(!outcome.ended.is_success(), "{output:?}");
    assert!(!output.stdout_text().contains("all started"), "{output:?}");
    // Each command is counted separately from the user's other processes.
    assert_eq!(
        sh(&*sandbox, "sleep 0 & sleep 0 & wait; echo alive").await,
        "alive\n"
    );
    let hungry = "head -c 1G /dev/zero | tail -c 900M | wc -c";
    assert_eq!(sh(&*sandbox, hungry).await.trim(), "0");
    sandbox.remove().await.unwrap();
}

#[tokio::test]
async fn a_command_cannot_leave_its_control_group() {
    let state = GuardedState::new();
    let provider = small_provider(&state);
    let sandbox = provider.create(&SandboxSpec::default()).await.unwrap();
    let line = "groups() { grep ralph- /proc/$$/cgroup; }; before=$(groups)
        for file in $(find /sys/fs/cgroup/pids /sys/fs/cgroup/memory /sys/fs/cgroup -maxdepth 1 -name cgroup.procs)
        do echo $$ > $file; done 2>/dev/null
        test -n \"$before\" && test \"$before\" = \"$(groups)\" && echo stayed";
    assert_eq!(sh(&*sandbox, line).await, "stayed\n");
    sandbox.remove().await.unwrap();
}

#[tokio::test]
async fn control_groups_are_removed_with_their_sandbox() {
    let state = GuardedState::new();
    let provider = small_provider(&state);
    let sandbox = provider.create(&SandboxSpec::default()).await.unwrap();
    let id = sandbox.id().clone();
    let group = sh(&*sandbox, "cat /proc/self/cgroup").await;
    assert!(group.contains(&format!("ralph-{id}-")), "{group}");
    sandbox.remove().await.unwrap();
    drop(sandbox);
    let left = Command::new("find")
        .args(["/sys/fs/cgroup", "-name", &format!("ralph-{id}-*")])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(left.stdout).unwrap(), "");
}
