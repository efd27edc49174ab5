//! A disk that fails to store a journal record.

use super::resume_checks::{assert_same_result, for_each};
use crate::crash_stage::CrashStage;
use crate::strace::ReferenceTrace;
use crate::support::RalphOutput;

/// The kernel reports a failed sync only once; a second, successful one proves nothing. So the run
/// ends with an error and never reports a success that may not be on disk.
#[test]
fn a_failed_sync_of_the_journal_is_final() {
    let points = ReferenceTrace::get().last_syncs(8);
    for_each(&points, |point| {
        let stage = CrashStage::new();
        let output = RalphOutput::from(point.fail(&stage.start()));
        let case = format!("{point:?}: {output:?}");
        assert_eq!(output.code, 1, "{case}");
        let lines: Vec<&str> = output.stderr.lines().collect();
        assert_eq!(lines.len(), 1, "{case}");
        for part in [
            "ralph: cannot continue run `",
            "` — cannot append to `",
            "/journal.jsonl`: ",
            "— the disk reports an error: ",
        ] {
            assert!(lines[0].contains(part), "{case}");
        }
        assert!(!output.stdout.contains("succeeded"), "{case}");
        let shown = stage.shown().unwrap();
        assert_eq!(shown["status"], "interrupted", "{case}");
        assert_same_result(&stage, &case);
    });
}
