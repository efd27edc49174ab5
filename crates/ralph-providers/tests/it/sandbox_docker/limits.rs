//! Resource limits of a container, as reported by the Docker Engine and as observed inside.

use std::collections::BTreeMap;

use ralph_core::ports::{Exec, ExecStatus};
use ralph_providers::sandbox::DockerLimits;
use ralph_test::skip_without_docker;
use serde_json::{Value, json};

use super::fixture::{DockerTestEnv, TEST_TIMEOUT, inspect, run, sh};

const MEBIBYTE: u64 = 1 << 20;

/// The capability bounding set of the container's first process: change file owners, access the
/// whole workspace, send signals, change user.
const CAPABILITIES: &str = "00000000000000eb";

fn small_limits() -> DockerTestEnv {
    DockerTestEnv::with_settings(|settings| {
        settings.limits = DockerLimits {
            cpus: Some(0.5),
            memory: Some(256 * MEBIBYTE),
            processes: 40,
            ..DockerLimits::default()
        };
    })
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table of cases in one sandbox")]
async fn the_engine_reports_the_limits_of_a_container() {
    if skip_without_docker() {
        return;
    }
    let env = small_limits();
    let sandbox = env.sandbox().await;
    let inspected = inspect(&env, sandbox.id());
    let host = &inspected["HostConfig"];
    let values: Vec<&Value> = [
        "NetworkMode",
        "Memory",
        "MemorySwap",
        "NanoCpus",
        "PidsLimit",
        "Privileged",
        "ReadonlyRootfs",
        "IpcMode",
        "PidMode",
        "UTSMode",
        "UsernsMode",
        "AutoRemove",
        "CapDrop",
        "ShmSize",
        "Dns",
        "DnsSearch",
    ]
    .map(|name| &host[name])
    .into();
    let expected = json!([
        "none",
        256 * MEBIBYTE,
        256 * MEBIBYTE,
        500_000_000,
        40,
        false,
        true,
        "private",
        "",
        "",
        "",
        false,
        ["ALL"],
        32 * MEBIBYTE,
        ["127.0.0.1"],
        ["."],
    ]);
    assert_eq!(json!(values), expected);
    // Engines write a capability with or without its prefix.
    let added = host["CapAdd"].to_string().replace("CAP_", "");
    let expected = r#"["CHOWN","DAC_OVERRIDE","FOWNER","KILL","SETGID","SETUID"]"#;
    assert_eq!(added, expected);
    for nothing in [
        "Binds",
        "Devices",
        "DeviceRequests",
        "GroupAdd",
        "Links",
        "VolumesFrom",
        "PortBindings",
    ] {
        let empty = [Value::Null, json!([]), json!({})].contains(&host[nothing]);
        assert!(empty, "{nothing}: {}", host[nothing]);
    }
    let security = host["SecurityOpt"].as_array().unwrap();
    assert_eq!(security.len(), 2, "{security:?}");
    assert_eq!(security[0], "no-new-privileges");
    assert!(security[1].as_str().unwrap().starts_with("seccomp={"));
    assert_eq!(inspected["Config"]["User"], "0:0");
    // Otherwise the Docker Engine would run the image's health check as root.
    assert_eq!(inspected["Config"]["Healthcheck"]["Test"], json!(["NONE"]));
    env.finish().await;
}

#[tokio::test]
async fn a_command_feels_its_limits() {
    if skip_without_docker() {
        return;
    }
    let env = small_limits();
    let sandbox = env.sandbox().await;

    // Half a second of CPU time per second of wall-clock time.
    let busy = "import time
end = time.monotonic() + 1
while time.monotonic() < end: pass
print(time.process_time())";
    let (_, output) = run(&*sandbox, Exec::argv(["python3", "-c", busy], TEST_TIMEOUT)).await;
    let used: f64 = output.stdout_text().trim().parse().unwrap();
    assert!(used < 0.75, "{used} s of a processor");

    let crowd = "import os, time
started = 0
try:
    while started < 100:
        if os.fork() == 0: time.sleep(60)
        started += 1
except BlockingIOError: pass
print(started)";
    let (outcome, output) = run(
        &*sandbox,
        Exec::argv(["python3", "-c", crowd], TEST_TIMEOUT),
    )
    .await;
    let started: u32 = output.stdout_text().trim().parse().unwrap();
    assert!((30..40).contains(&started), "{started} processes");
    assert!(outcome.process_limit, "{outcome:?}");

    let hungry = "x = b'x' * (300 << 20)";
    let (outcome, _) = run(
        &*sandbox,
        Exec::argv(["python3", "-c", hungry], TEST_TIMEOUT),
    )
    .await;
    assert_eq!(outcome.ended, ExecStatus::OutOfMemory);

    // Files in memory cannot exhaust it.
    let line = "head -c 1G /dev/zero > /tmp/x; head -c 1G /dev/zero > /var/tmp/x; head -c 1G /dev/zero > /dev/shm/x
        rm -f /tmp/x /var/tmp/x /dev/shm/x; echo done";
    let (outcome, output) = run(&*sandbox, Exec::shell(line, TEST_TIMEOUT)).await;
    let result = (outcome.ended, output.stdout_text());
    assert_eq!(result, (ExecStatus::Exited(0), "done\n".to_owned()));
    assert_eq!(output.stderr_text().matches("No space left").count(), 3);
    env.finish().await;
}

#[tokio::test]
async fn a_command_has_no_rights() {
    if skip_without_docker() {
        return;
    }
    let env = DockerTestEnv::new();
    let sandbox = env.sandbox().await;
    let status = sh(&*sandbox, "cat /proc/self/status").await;
    let fields: BTreeMap<&str, &str> = status
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name, value.trim()))
        .collect();
    let none = "0000000000000000";
    for (name, value) in [
        ("Uid", "10001\t10001\t10001\t10001"),
        ("Gid", "10001\t10001\t10001\t10001"),
        ("Groups", ""),
        ("CapInh", none),
        ("CapPrm", none),
        ("CapEff", none),
        ("CapBnd", CAPABILITIES),
        ("CapAmb", none),
        ("NoNewPrivs", "1"),
        ("Seccomp", "2"),
        // The first process can have neither blocked nor ignored a signal.
        ("SigBlk", none),
        ("SigIgn", none),
    ] {
        assert_eq!(fields[name], value, "{name}");
    }

    let line = r#"for f in /x /etc/x /usr/bin/x /root/x /workspace/x /.ralph-guest/x /.ralph-link/x /run/x /sys/x; do
            (echo x > "$f") 2>&1 | sed 's/.*: //' ; done | sort | uniq -c | sed 's/^ *//'
        for f in "$HOME" "$TMPDIR" /tmp /var/tmp /dev/shm ../scratch .; do
            printf '#!/bin/sh\necho "ran"\n' > "$f/tool" && chmod 755 "$f/tool" && "$f/tool" || echo "not in $f"; done"#;
    let (_, output) = run(&*sandbox, Exec::shell(line, TEST_TIMEOUT)).await;
    // Shared memory is not executable; all other writable directories are.
    assert_eq!(
        output.stdout_text(),
        "4 Permission denied\n5 Read-only file system\nran\nran\nran\nran\nnot in /dev/shm\nran\nran\n"
    );

    // Setuid programs grant no privileges.
    let line = "cp /bin/sh ./shell && chmod 4755 shell && ./shell -p -c 'id -u'; su -c 'id -u' 2>/dev/null; \
        mount -t tmpfs x /tmp 2>/dev/null; passwd -d root 2>/dev/null; echo end";
    assert_eq!(sh(&*sandbox, line).await, "10001\nend\n");
    env.finish().await;
}
