//! Pairs of outputs of equal and of different failures.
//!
//! `cargo nextest run -p ralph-core -E 'test(gutter::pairs)' --success-output immediate` prints
//! both error rates.

use super::signature;

/// Pairs of outputs of the same failure.
const EQUAL_FAILURES: &[(&str, &str)] = &[
    // Sandbox directories and temporary files.
    (
        "/home/u/.local/state/ralph/sandboxes/local-000000000001/tmp/x: No such file",
        "/home/u/.local/state/ralph/sandboxes/local-00000000000a/tmp/y: No such file",
    ),
    (
        "cannot open '/srv/state/sandboxes/local-1a2b/home/.cache/pip'",
        "cannot open '/srv/state/sandboxes/local-9f00/home/.cache/pip'",
    ),
    (
        "/var/ralph/sandboxes/local-77/repo/src/a.c:3: error: x",
        "/var/ralph/sandboxes/local-78/repo/src/a.c:3: error: x",
    ),
    (
        "/workspace/tmp/tmp.abcDEF1234/out.o: file format not recognized",
        "/workspace/tmp/tmp.Zz91xyQQ00/out.o: file format not recognized",
    ),
    (
        "FileNotFoundError: '/tmp/tmpk3j2h1_x/config.json'",
        "FileNotFoundError: '/tmp/tmpa_81bb2q/config.json'",
    ),
    (
        "/tmp/pytest-of-root/pytest-12/test_save0/db.sqlite locked",
        "/tmp/pytest-of-root/pytest-13/test_save0/db.sqlite locked",
    ),
    ("wrote build/tmpx8d_k2lq.log", "wrote build/tmp0aa1zz_y.log"),
    (
        "cache dir .tmpAb12Cd is gone",
        "cache dir .tmpZz99Qq is gone",
    ),
    (
        "A complete log of this run can be found in: /root/.npm/_logs/2026-11-18T10_00_00_123Z-debug-0.log",
        "A complete log of this run can be found in: /root/.npm/_logs/2026-11-18T11_32_10_004Z-debug-0.log",
    ),
    // Threads, processes, addresses.
    (
        "thread 'main' (12345) panicked at src/main.rs:4:5:\nboom",
        "thread 'main' (22981) panicked at src/main.rs:4:5:\nboom",
    ),
    ("worker died on ThreadId(7)", "worker died on ThreadId(12)"),
    (
        "thread 'tokio-rt' (99) panicked",
        "thread 'tokio-rt' (100) panicked",
    ),
    (
        "panic: nil map\ngoroutine 18 [running]:\nmain.f(0xc000012345)\n\tmain.go:9 +0x1d",
        "panic: nil map\ngoroutine 34 [running]:\nmain.f(0xc0000aabb0)\n\tmain.go:9 +0x1d",
    ),
    (
        "created by main.start in goroutine 1",
        "created by main.start in goroutine 51",
    ),
    (
        "TypeError: <app.Repo object at 0x7f3a1c2d5e80> is not callable",
        "TypeError: <app.Repo object at 0x7fe00a1b2c90> is not callable",
    ),
    (
        "(node:1234) UnhandledPromiseRejectionWarning: Error: x",
        "(node:99812) UnhandledPromiseRejectionWarning: Error: x",
    ),
    (
        "==4711== Invalid read of size 4",
        "==815== Invalid read of size 4",
    ),
    (
        "Exception in thread Thread-3 (serve):",
        "Exception in thread Thread-11 (serve):",
    ),
    (
        "[pool-1-thread-3] ERROR Boot - no bean",
        "[pool-2-thread-14] ERROR Boot - no bean",
    ),
    (
        "[ForkPoolWorker-2] task failed",
        "[ForkPoolWorker-7] task failed",
    ),
    ("killed process 4021 (jest)", "killed process 31 (jest)"),
    ("stat: inode 1839201 vanished", "stat: inode 99182 vanished"),
    (
        "sshd[812]: connection reset",
        "sshd[90211]: connection reset",
    ),
    // Automatically assigned ports.
    (
        "connect ECONNREFUSED 127.0.0.1:43521",
        "connect ECONNREFUSED 127.0.0.1:60112",
    ),
    (
        "listening on localhost:49152 failed",
        "listening on localhost:61999 failed",
    ),
    (
        "bind: address already in use [::1]:38011",
        "bind: address already in use [::1]:52001",
    ),
    (
        "server did not answer on port 43521",
        "server did not answer on port 40007",
    ),
    (
        "EADDRINUSE: address already in use :::45001",
        "EADDRINUSE: address already in use :::45777",
    ),
    // Times.
    (
        "Nov 18 10:00:01 host app[123]: cannot start",
        "Nov 19 23:11:59 host app[9]: cannot start",
    ),
    (
        "2026/11/18 10:00:00 listen tcp: bad address",
        "2026/11/19 01:02:03 listen tcp: bad address",
    ),
    (
        "E1118 10:00:00.123456 1234 file.cc:12] Check failed",
        "E1119 22:31:07.000001 77 file.cc:12] Check failed",
    ),
    (
        "Wed Nov 18 10:00:00 2026 build failed",
        "Thu Nov 19 09:09:09 2026 build failed",
    ),
    (
        "Wed, 18 Nov 2026 10:00:00 GMT: 500",
        "Thu, 19 Nov 2026 11:00:00 GMT: 500",
    ),
    ("[1763459200.123] fatal: x", "[1763469999.9] fatal: x"),
    (
        "ts=1763459200123 level=error msg=x",
        "ts=1763459999001 level=error msg=x",
    ),
    (
        "127.0.0.1 - - [18/Nov/2026:10:00:00 +0000] 500",
        "127.0.0.1 - - [18/Nov/2026:10:07:31 +0000] 500",
    ),
    (
        "11/18/2026, 10:00:00 AM - error TS2304",
        "11/18/2026, 3:17:55 PM - error TS2304",
    ),
    ("20261118T100000Z failed", "20261118T121314Z failed"),
    // Workers and progress.
    (
        "[gw3] FAILED tests/test_a.py::test_x",
        "[gw0] FAILED tests/test_a.py::test_x",
    ),
    (
        "worker 3: Segmentation fault",
        "worker 11: Segmentation fault",
    ),
    (
        "[ 45%] Building CXX object a.o\nerror: x",
        "[ 50%] Building CXX object a.o\nerror: x",
    ),
    (
        "[12/340] Compiling a.cc\nfailed",
        "[13/341] Compiling a.cc\nfailed",
    ),
    (
        "tests/test_a.py ..F   [ 30%]",
        "tests/test_a.py ..F   [ 31%]",
    ),
    (
        " 3/40 Test #3: parse ....***Failed 0.01 sec",
        "13/40 Test #3: parse ....***Failed 1.25 sec",
    ),
    (
        "Downloading numpy 45% 3.2 MB/s\nerror: hash mismatch",
        "Downloading numpy 97% 11.8 MB/s\nerror: hash mismatch",
    ),
    (
        " 42%|####      | 42/100 [00:03<00:04, 13.2it/s]\nValueError: bad",
        " 43%|####      | 43/100 [00:03<00:04, 12.9it/s]\nValueError: bad",
    ),
    // Durations.
    (
        "Finished in 1m 3.2s with errors",
        "Finished in 58.7s with errors",
    ),
    ("1 failed in 0.03s", "1 failed in 12.41s"),
    ("✕ adds numbers (12 ms)", "✕ adds numbers (3 ms)"),
    ("elapsed 00:01:02", "elapsed 00:11:42"),
    ("job took PT1.5S", "job took PT2M0.25S"),
    ("step took 1.2e-3 s", "step took 4.7e-3 s"),
    (
        "FAIL [   0.023s] core parse::empty",
        "FAIL [  11.402s] core parse::empty",
    ),
    (
        "==================== 1 failed in 0.03s ====================",
        "=================== 1 failed in 10.03s ===================",
    ),
    (
        "ok  \tpkg/a\t0.012s\nFAIL\tpkg/b\t1.912s",
        "ok  \tpkg/a\t0.501s\nFAIL\tpkg/b\t0.2s",
    ),
    (
        "Time: 00:00.012, Memory: 6.00 MB\nThere was 1 failure",
        "Time: 00:01.734, Memory: 8.25 MB\nThere was 1 failure",
    ),
    ("real\t0m1.203s\nboom", "real\t0m11.9s\nboom"),
    (
        "<testcase name=\"a\" time=\"0.003\"><failure/>",
        "<testcase name=\"a\" time=\"1.251\"><failure/>",
    ),
    // Random values.
    (
        "Randomized with seed 1234\nexpected nil",
        "Randomized with seed 60221\nexpected nil",
    ),
    (
        "Using --randomly-seed=3920011\nFAILED t.py::a",
        "Using --randomly-seed=11\nFAILED t.py::a",
    ),
    ("random seed: 0xdeadbeef1\nx", "random seed: 0x1234\nx"),
    (
        "PYTHONHASHSEED=3812 pytest failed",
        "PYTHONHASHSEED=9 pytest failed",
    ),
    (
        "Seed:        -1839201\nTests: 1 failed",
        "Seed:        99182011\nTests: 1 failed",
    ),
    (
        "-test.shuffle 1763459200123456789\n--- FAIL: TestA",
        "-test.shuffle 42\n--- FAIL: TestA",
    ),
    (
        "missing keys: {'b', 'a', 'c'}",
        "missing keys: {'c', 'a', 'b'}",
    ),
    (
        "request 6fa459ea-ee8a-3ca4-894e-db77e160355e failed",
        "request 1b4e28ba-2fa1-11d2-883f-0016d3cca427 failed",
    ),
    (
        "container 3f4e8a9b12cd exited 1",
        "container 90ab12cd34ef exited 1",
    ),
    ("HEAD is now at 3f4e8a9 fix", "HEAD is now at 1234567 fix"),
    (
        "target/debug/deps/ralph-0a1b2c3d4e5f6071: no such file",
        "target/debug/deps/ralph-ffeeddccbbaa9901: no such file",
    ),
    // The order of lines.
    (
        "test a ... FAILED\ntest b ... FAILED\ntest c ... ok",
        "test c ... ok\ntest b ... FAILED\ntest a ... FAILED",
    ),
    (
        "ERR one\n    at f\nERR two\n    at g",
        "ERR two\n    at g\nERR one\n    at f",
    ),
    ("\u{1b}[31merror\u{1b}[0m: x\r\n", "error: x\n"),
];

/// Pairs of outputs of different failures.
const DIFFERENT_FAILURES: &[(&str, &str)] = &[
    ("timeout after 5s", "timeout after 30s"),
    (
        "Error: Timeout of 2000ms exceeded",
        "Error: Timeout of 5000ms exceeded",
    ),
    (
        "thrown: Exceeded timeout of 5000 ms for a test",
        "thrown: Exceeded timeout of 10000 ms for a test",
    ),
    ("Test timed out in 5000ms.", "Test timed out in 20000ms."),
    ("30s timeout expired", "60s timeout expired"),
    (
        "context deadline exceeded after 10s",
        "context deadline exceeded after 20s",
    ),
    ("expected 5s, got 10s", "expected 5s, got 20s"),
    (
        "dial tcp 10.0.0.1: no route to host",
        "dial tcp 10.0.0.2: no route to host",
    ),
    (
        "connect ECONNREFUSED 192.168.1.5:5432",
        "connect ECONNREFUSED 192.168.1.6:5432",
    ),
    (
        "connect ECONNREFUSED 127.0.0.1:5432",
        "connect ECONNREFUSED 127.0.0.1:6379",
    ),
    (
        "bind localhost:80: permission denied",
        "bind localhost:443: permission denied",
    ),
    (
        "nothing listens on port 3000",
        "nothing listens on port 8080",
    ),
    ("expected 3 got 4", "expected 3 got 5"),
    ("3 tests failed", "4 tests failed"),
    (
        "FAILED tests/test_a.py::test_add[12]",
        "FAILED tests/test_a.py::test_add[34]",
    ),
    ("--- FAIL: TestCase12", "--- FAIL: TestCase13"),
    ("test parse_v2 ... FAILED", "test parse_v3 ... FAILED"),
    ("items[10]: must be a number", "items[11]: must be a number"),
    ("src/a.rs:12:34: error", "src/a.rs:13:34: error"),
    ("src/a.rs:12:34: error", "src/b.rs:12:34: error"),
    (
        "error[E0308]: mismatched types",
        "error[E0382]: mismatched types",
    ),
    (
        "error TS2304: Cannot find name 'a'.",
        "error TS2304: Cannot find name 'b'.",
    ),
    ("HTTP status 500", "HTTP status 404"),
    (
        "expected 1234567, got 7654321",
        "expected 1234567, got 7654322",
    ),
    (
        "Expected:\n  3\nReceived:\n  4",
        "Expected:\n  4\nReceived:\n  3",
    ),
    ("Expected:\n3\nReceived:\n4", "Expected:\n4\nReceived:\n3"),
    ("left: 1\nright: 2", "left: 2\nright: 1"),
    ("needs node >= 18", "needs node >= 20"),
    ("file larger than 5 MB", "file larger than 10 MB"),
    ("line 10: syntax error", "line 11: syntax error"),
    (
        "ModuleNotFoundError: No module named 'yaml'",
        "ModuleNotFoundError: No module named 'toml'",
    ),
    ("undefined: parseA", "undefined: parseB"),
    ("exit status 1", "exit status 2"),
    ("coverage 79% is below 80%", "coverage 61% is below 80%"),
    ("3/10 tests passed", "4/10 tests passed"),
    (
        "/tmp/x/src/a.c: undefined reference",
        "/tmp/x/src/b.c: undefined reference",
    ),
    ("index 7 out of range", "index 8 out of range"),
    ("missing keys: {'a', 'b'}", "missing keys: {'a', 'c'}"),
    (
        "retry 3 of 3 failed for users.json",
        "retry 3 of 3 failed for orders.json",
    ),
    (
        "row 1042 violates the constraint",
        "row 1043 violates the constraint",
    ),
];

#[test]
fn equal_failures_share_a_signature_and_different_ones_do_not() {
    let signatures = |text: &str| [signature("t", 1, text, ""), signature("t", 1, "", text)];
    let is_equal = |(one, other): &&(&str, &str)| signatures(one) == signatures(other);
    let is_merged = |(one, other): &&(&str, &str)| {
        signatures(one)
            .iter()
            .zip(&signatures(other))
            .any(|(one, other)| one == other)
    };
    let missed: Vec<_> = EQUAL_FAILURES
        .iter()
        .filter(|pair| !is_equal(pair))
        .collect();
    let merged: Vec<_> = DIFFERENT_FAILURES.iter().filter(is_merged).collect();
    #[expect(clippy::print_stdout, reason = "the rates are the result of this test")]
    {
        println!(
            "equal failures not recognised: {} of {}",
            missed.len(),
            EQUAL_FAILURES.len()
        );
        println!(
            "different failures merged: {} of {}",
            merged.len(),
            DIFFERENT_FAILURES.len()
        );
    }
    assert!(EQUAL_FAILURES.len() >= 48 && DIFFERENT_FAILURES.len() >= 30);
    let explain = |pair: &&(&str, &str)| {
        [
            super::normalisation_rules::normalise(pair.0),
            super::normalisation_rules::normalise(pair.1),
        ]
    };
    assert!(
        missed.is_empty(),
        "{:#?}",
        missed.iter().map(explain).collect::<Vec<_>>()
    );
    assert!(merged.is_empty(), "{merged:#?}");
}

#[test]
fn a_random_seed_in_the_command_is_ignored() {
    let with = |seed: u32| signature(&format!("pytest -p randomly --seed {seed}"), 1, "x", "");
    assert_eq!(with(7), with(4711));
    assert_ne!(
        signature("timeout 30s make", 1, "x", ""),
        signature("timeout 60s make", 1, "x", "")
    );
}
