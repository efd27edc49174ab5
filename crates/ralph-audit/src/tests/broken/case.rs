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

/// Creates a case: the broken part, the change, the check that must fail, and the text of its
/// finding.
pub(super) const fn corruption(
    check: &'static str,
    name: &'static str,
    names: &'static str,
    plant: fn(&mut AuditFixture),
) -> CorruptionCase {
    CorruptionCase {
        name,
        plant,
        check,
        finding: names,
    }
}

/// Plants each corruption in a separate run; only the expected check may fail.
pub(super) fn assert_detected(cases: &[CorruptionCase]) {
    for CorruptionCase {
        name,
        plant,
        check,
        finding: names,
    } in cases
    {
        let mut world = AuditFixture::succeeded();
        plant(&mut world);
        let audit = world.audit();
        let render = audit.render();
        assert_eq!(failed_checks(&audit), [*check], "{name}:\n{render}");
        let found = audit
            .checks
            .iter()
            .find(|found| found.id == *check)
            .unwrap();
        let named = found.findings.iter().any(|finding| finding.contains(names));
        assert!(named, "{name}: `{names}` is not in\n{render}");
    }
}

/// Inserts a changed copy of a record after another one.
pub(super) fn insert_after(world: &mut AuditFixture, place: usize, event: Value) {
    world.edit_entries(|entries| {
        let before = entries[place].clone();
        entries.insert(place + 1, AuditFixtureEntry { event, ..before });
    });
}

pub(super) fn remove(world: &mut AuditFixture, kind: &str, nth: usize) {
    let place = world.entry_index(kind, nth);
    world.edit_entries(|entries| drop(entries.remove(place)));
}

/// Lets the user stop the run before it is verified.
pub(super) fn stop(world: &mut AuditFixture) {
    let place = world.entry_index("verify_started", 1);
    world.edit_entries(|entries| {
        entries.truncate(place);
        entries[place - 1].event = json!({"type": "status_changed", "status": "stopped"});
    });
}
