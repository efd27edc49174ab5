//! Kills at reproducible system calls.

use super::resume_checks::{assert_same_result, find, for_each, kill_after};
use crate::crash_stage::CrashStage;
use crate::strace::{KillPoint, ReferenceTrace};
use crate::support::count_from_env;

#[test]
fn after_a_record_of_any_kind() {
    let places = [
        ("sandbox_created", "purpose", "work", 1),
        ("model_asked", "", "", 1),
        ("model_replied", "", "", 1),
        ("reply_rejected", "", "", 1),
        ("action_started", "action", "run", 1),
        ("action_finished", "action", "run", 1),
        ("action_started", "action", "patch", 1),
        ("action_started", "action", "write", 3),
        ("action_started", "action", "commit", 1),
        ("commits_imported", "", "", 1),
        ("push_started", "", "", 1),
        ("pushed", "", "", 1),
        ("pull_request_updated", "", "", 1),
        ("iteration_finished", "", "", 2),
        ("action_started", "action", "stop_success", 1),
        ("status_changed", "status", "verifying", 1),
        ("verify_started", "", "", 1),
        ("verify_finished", "", "", 1),
        ("iteration_finished", "", "", 6),
        ("sandbox_removed", "", "", 2),
    ];
    for_each(&places, |&(kind, key, value, nth)| {
        let stage = CrashStage::new();
        kill_after(&stage, find(kind, key, value, nth));
        assert_same_result(&stage, &format!("{kind} {value} {nth}"));
    });
}

/// `scripts/power-loss kills` tests all of them.
#[test]
fn between_two_records() {
    let points = ReferenceTrace::get().spread(count_from_env("RALPH_CRASH_POINTS", 7));
    for_each(&points, |point| {
        let stage = CrashStage::new();
        assert_eq!(point.kill(&stage.start()).code(), None, "{point:?}");
        assert_same_result(&stage, &format!("{point:?}"));
    });
}

/// A partial sandbox is found by its labels, or is only an unfinished record.
#[test]
fn while_a_sandbox_is_created() {
    let opened = find("status_changed", "status", "preparing", 1);
    let created = find("sandbox_created", "purpose", "work", 1);
    let points = ReferenceTrace::get().between_in(opened, created, "/sandboxes");
    assert!(points.len() >= 5, "{points:?}");
    for_each(&points, |point| {
        let stage = CrashStage::new();
        assert_eq!(point.kill(&stage.start()).code(), None, "{point:?}");
        let pruned = stage.run(&["prune-sandboxes", "--type", "local"]);
        assert_eq!(pruned.code, 0, "{point:?}: {pruned:?}");
        let left = std::fs::read_dir(stage.sandboxes()).into_iter().flatten();
        assert_eq!(left.count(), 0, "{point:?}: {pruned:?}");
        assert_same_result(&stage, &format!("{point:?}"));
    });
}

/// A new process has received no input yet: git treats end-of-file as valid input.
#[test]
fn while_a_commit_is_made() {
    let begun = find("action_started", "action", "commit", 2);
    let points = ReferenceTrace::get().between(begun, begun + 1, "pidfd_open");
    assert!(points.len() >= 4, "{points:?}");
    // Each process has a few; the first of each is enough.
    let points: Vec<KillPoint> = points.into_iter().step_by(2).collect();
    for_each(&points, |point| {
        let stage = CrashStage::new();
        assert_eq!(point.kill(&stage.start()).code(), None, "{point:?}");
        assert_same_result(&stage, &format!("{point:?}"));
    });
}

/// Resuming is as crash-safe as the run itself.
#[test]
fn again_and_again() {
    let write = find("action_started", "action", "write", 3);
    let commit = find("action_started", "action", "commit", 1);
    let verify = find("verify_started", "", "", 1);
    let finish = find("iteration_finished", "", "", 6);
    // The first syncs of a resumed run are those of opening the journal and of settling pending
    // actions.
    let cases = [
        (write, [("fdatasync", 1), ("fdatasync", 3)]),
        (commit, [("fdatasync", 3), ("pidfd_open", 9)]),
        // The seal of the journal takes two.
        (verify, [("fsync", 5), ("fdatasync", 8)]),
        (finish, [("fdatasync", 4), ("fdatasync", 2)]),
    ];
    for_each(&cases, |(index, kills)| {
        let stage = CrashStage::new();
        kill_after(&stage, *index);
        for (call, nth) in kills {
            let status = KillPoint::new(call, *nth).kill(&stage.resume());
            assert_eq!(status.code(), None, "{index}: {call} {nth}");
        }
        assert_same_result(&stage, &format!("{index}, {kills:?}"));
    });
}
