//! The isolation of a sandbox, tested from inside: by a command, and by root.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{ErrorKind, Write as _};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use ralph_core::ports::{Exec, Sandbox};
use ralph_test::skip_without_docker;

use super::fixture::{DockerTestEnv, TEST_TIMEOUT, object_name, root_sh, run, sh};

const PROBE: &str = include_str!("isolation/probe.py");

/// A service on every address of this machine, which must be unreachable from inside.
struct HostService {
    listener: TcpListener,
    arguments: Vec<String>,
}

impl HostService {
    fn new() -> Self {
        let listener = TcpListener::bind("[::]:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let mut arguments = vec![listener.local_addr().unwrap().port().to_string()];
        arguments.extend(addresses());
        Self {
            listener,
            arguments,
        }
    }

    fn assert_no_connection(&self) {
        let accepted = self.listener.accept().map_err(|error| error.kind());
        assert_eq!(accepted.map(drop), Err(ErrorKind::WouldBlock));
    }
}

/// Returns the addresses of this machine, including that of the Docker bridge.
fn addresses() -> BTreeSet<String> {
    let table = fs::read_to_string("/proc/net/fib_trie").unwrap();
    let mut found = BTreeSet::new();
    let mut last = "";
    for line in table.lines() {
        if line.contains("host LOCAL") && !last.starts_with("127.") {
            found.insert(last.to_owned());
        }
        last = line.rsplit(' ').next().unwrap_or_default();
    }
    // A kernel without IPv6 has no such table.
    let table =
        ralph_guest::available(fs::read_to_string("/proc/net/if_inet6")).unwrap_or_default();
    for line in table.lines().filter(|line| !line.ends_with(" lo")) {
        let digits = line.split(' ').next().unwrap();
        let groups: Vec<&str> = (0..8).map(|n| &digits[4 * n..4 * n + 4]).collect();
        found.insert(groups.join(":"));
    }
    assert!(found.iter().any(|address| address.contains('.')), "{table}");
    found
}

async fn probed_by_a_command(sandbox: &dyn Sandbox, arguments: &[String]) -> String {
    let argv = [
        ["python3", "-"].map(String::from).to_vec(),
        arguments.to_vec(),
    ]
    .concat();
    let (_, output) = run(sandbox, Exec::argv(argv, TEST_TIMEOUT).with_stdin(PROBE)).await;
    assert_eq!(output.stderr_text(), "");
    output.stdout_text()
}

fn probed_by_root(sandbox: &dyn Sandbox, arguments: &[String]) -> String {
    let container = object_name(sandbox.id());
    let mut docker = Command::new("docker")
        .args(["exec", "--interactive", "--user", "0", &container])
        .args(["python3", "-"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    docker
        .stdin
        .take()
        .unwrap()
        .write_all(PROBE.as_bytes())
        .unwrap();
    let output = docker.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    String::from_utf8(output.stdout).unwrap()
}

/// The expected results for a command and for root, unless a test states otherwise.
const EXPECTED: &str = "interfaces: lo
routes: 0
name: no answer
names come from: nameserver 127.0.0.1
connect: nothing
connect v6: nothing
datagrams: nothing
broadcast: ENETUNREACH
raw socket: EPERM
packet socket: EAFNOSUPPORT
vsock: EAFNOSUPPORT
new interface: EPERM
new route: EPERM
new address: EPERM
new network: EPERM
new user namespace: EPERM
new mounts: EPERM
another namespace: EPERM
mount: EPERM
mount writable: EPERM
unmount: EPERM
chroot: EPERM
device: EPERM
devices: fd full mqueue null ptmx pts random shm stderr stdin stdout tty urandom zero
host mounts: /.ralph-guest ro, /.ralph-link ro, /etc/hostname ro, /etc/hosts ro, /etc/resolv.conf ro, /workspace rw
sockets: none
link directory: EACCES
link file: EACCES
guest's program: EROFS
kernel settings: EROFS
helper of the kernel: EROFS
trace the first process: EPERM
see the first process: nothing
time: EPERM
host name: EPERM
rights: EPERM
";

/// Asserts that the lines are those of `EXPECTED`, except for the `changed` ones.
fn assert_isolation(found: &str, changed: &[(&str, &str)]) {
    let read = |text: &str| -> BTreeMap<String, String> {
        text.lines()
            .filter_map(|line| line.split_once(": "))
            .map(|(name, end)| (name.to_owned(), end.to_owned()))
            .collect()
    };
    let mut expected = read(EXPECTED);
    expected.extend(read(
        &changed.iter().fold(String::new(), |text, (name, end)| {
            text + name + ": " + end + "\n"
        }),
    ));
    let mut found = read(found);
    // Kernels report limits differently; all of them reject writes.
    assert_eq!(found.remove("own limits").as_deref(), Some("EROFS"));
    let differing: Vec<_> = found
        .iter()
        .filter(|(name, end)| expected.get(*name) != Some(end))
        .collect();
    assert_eq!(differing, []);
    assert_eq!(found.len(), expected.len());
}

#[tokio::test]
async fn nothing_inside_reaches_the_host() {
    if skip_without_docker() {
        return;
    }
    let env = DockerTestEnv::new();
    let sandbox = env.sandbox().await;
    let outside = HostService::new();
    let by_command = probed_by_a_command(&*sandbox, &outside.arguments).await;
    assert_isolation(
        &by_command,
        &[
            ("kill the first process", "EPERM"),
            (
                "environment",
                "CARGO_HOME GIT_CEILING_DIRECTORIES GIT_CONFIG_NOSYSTEM GIT_TERMINAL_PROMPT GOCACHE GOMODCACHE HOME LANG LOGNAME PATH PIP_CACHE_DIR RALPH_COMMAND RALPH_SANDBOX TERM TMPDIR USER npm_config_cache",
            ),
        ],
    );
    let by_root = probed_by_root(&*sandbox, &outside.arguments);
    assert_isolation(
        &by_root,
        &[
            // The kernel does not deliver this signal to it.
            ("kill the first process", "ok"),
            ("link directory", "nothing"),
            ("link file", "EROFS"),
            ("environment", "HOME HOSTNAME LC_CTYPE PATH"),
        ],
    );
    outside.assert_no_connection();
    assert_eq!(sh(&*sandbox, "echo alive").await, "alive\n");
    env.finish().await;
}

#[tokio::test]
async fn sandboxes_do_not_see_each_other() {
    if skip_without_docker() {
        return;
    }
    let env = DockerTestEnv::new();
    let (one, other) = (env.sandbox().await, env.sandbox().await);
    let serve = r#"import socket, time
for family, address in [(socket.AF_INET, ("0.0.0.0", 4141)), (socket.AF_UNIX, "\0ralph-test")]:
    s = socket.socket(family); s.bind(address); s.listen()
    globals()[address] = s
open("ready", "w").close()
while True: time.sleep(1)"#;
    let connect = r#"import socket, os
for family, address in [(socket.AF_INET, ("127.0.0.1", 4141)), (socket.AF_UNIX, "\0ralph-test")]:
    try: socket.socket(family).connect(address); print("reached")
    except ConnectionRefusedError: print("refused")
print([p for p in os.listdir("/proc") if p.isdigit() and int(p) not in (1, os.getpid())])"#;
    let mut output = ralph_test::CollectedOutput::default();
    let served = one.exec(
        Exec::argv(["python3", "-c", serve], TEST_TIMEOUT),
        None,
        &mut output,
    );
    let connected = async {
        while one.read(&super::fixture::repo("ready"), 1).await.is_err() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        run(
            &*other,
            Exec::argv(["python3", "-c", connect], TEST_TIMEOUT),
        )
        .await
        .1
    };
    let seen = tokio::select! {
        outcome = served => panic!("{outcome:?}"),
        seen = connected => seen,
    };
    assert_eq!(seen.stdout_text(), "refused\nrefused\n[]\n");
    env.finish().await;
}

#[tokio::test]
async fn no_process_inside_can_impersonate_the_guest() {
    if skip_without_docker() {
        return;
    }
    // A command has no handle of either transport between guest and host.
    for env in [DockerTestEnv::new(), DockerTestEnv::attached()] {
        let sandbox = env.sandbox().await;
        let line = "ls -l /proc/self/fd | sed 's/.* -> //' | grep -v '^/proc\\|^total'";
        let descriptors = sh(&*sandbox, line).await;
        let kinds: Vec<&str> = descriptors
            .lines()
            .map(|line| line.split(':').next().unwrap())
            .collect();
        assert_eq!(kinds, ["/dev/null", "pipe", "pipe"], "{descriptors}");
        for descriptor in ["0", "1", "3", "5"] {
            let line =
                format!("(echo forged > /proc/1/fd/{descriptor}) 2>/dev/null || echo refused");
            assert_eq!(sh(&*sandbox, &line).await, "refused\n");
        }
        let listening = root_sh(
            &env,
            &*sandbox,
            "cat /proc/net/unix | tail -n +2 | grep -c 00010000 || true",
        );
        assert_eq!(listening, "0");
        env.finish().await;
    }
}

#[tokio::test]
async fn nothing_of_this_machine_is_in_the_environment() {
    if skip_without_docker() {
        return;
    }
    let env = DockerTestEnv::new();
    let sandbox = env.sandbox().await;
    let seen = sh(&*sandbox, "env; cat /proc/*/environ 2>/dev/null; cat /etc/hosts /etc/hostname /proc/sys/kernel/hostname").await;
    for (name, value) in std::env::vars() {
        let is_distinctive =
            value.len() > 3 && !["PATH", "LANG", "HOME", "USER"].contains(&name.as_str());
        assert!(!is_distinctive || !seen.contains(&value), "{name}");
    }
    let own = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    assert!(own.trim().len() < 4 || !seen.contains(own.trim()), "{seen}");
    assert!(seen.contains("127.0.0.1\tlocalhost"), "{seen}");
    env.finish().await;
}
