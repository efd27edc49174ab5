//! Plants corruptions and checks that they are detected.

use serde_json::{Value, json};

use crate::tests::fixture::{AuditFixture, AuditFixtureEntry, failed_checks};

/// A planted corruption.
pub(super) struct CorruptionCase {
    name: &'static str,
    plant: fn(&mut AuditFixture),
    check: &'static str,
    finding: &'static str,
}

/// Creates a case: the check that must fail, the name of the case, a part of the expected finding,
/// and the change.
pub(super) const fn corruption(
    check: &'static str,
    name: &'static str,
    finding: &'static str,
    plant: fn(&mut AuditFixture),
) -> CorruptionCase {
    CorruptionCase {
        name,
        plant,
        check,
        finding,
    }
}

/// Plants each corruption in a separate run; only the expected check may fail.
pub(super) fn assert_detected(cases: &[CorruptionCase]) {
    for CorruptionCase {
        name,
        plant,
        check,
        finding,
    } in cases
    {
        let mut fixture = AuditFixture::succeeded();
        plant(&mut fixture);
        let audit = fixture.audit();
        let render = audit.render();
        assert_eq!(failed_checks(&audit), [*check], "{name}:\n{render}");
        let found = audit
            .checks
            .iter()
            .find(|found| found.id == *check)
            .unwrap();
        let is_reported = found.findings.iter().any(|text| text.contains(finding));
        assert!(is_reported, "{name}: `{finding}` is not in\n{render}");
    }
}

/// Inserts a changed copy of a record after another one.
pub(super) fn insert_after(fixture: &mut AuditFixture, index: usize, event: Value) {
    fixture.edit_entries(|entries| {
        let before = entries[index].clone();
        entries.insert(index + 1, AuditFixtureEntry { event, ..before });
    });
}

pub(super) fn remove(fixture: &mut AuditFixture, kind: &str, nth: usize) {
    let index = fixture.entry_index(kind, nth);
    fixture.edit_entries(|entries| drop(entries.remove(index)));
}

/// Ends the run with a stop by the user before its verification.
pub(super) fn stop(fixture: &mut AuditFixture) {
    let index = fixture.entry_index("verify_started", 1);
    fixture.edit_entries(|entries| {
        entries.truncate(index);
        entries[index - 1].event = json!({"type": "status_changed", "status": "stopped"});
    });
}
