//! How a corruption is planted and looked for.

use serde_json::{Value, json};

use crate::audit::tests::world::{Entry, World, failed};

/// A planted corruption.
pub(super) struct Case {
    name: &'static str,
    plant: fn(&mut World),
    check: &'static str,
    names: &'static str,
}

/// Says what is broken, how, which check must see it, and what its finding must contain.
pub(super) const fn case(
    check: &'static str,
    name: &'static str,
    names: &'static str,
    plant: fn(&mut World),
) -> Case {
    Case {
        name,
        plant,
        check,
        names,
    }
}

/// Plants each corruption in a run of its own; no other check than the expected one may fail.
pub(super) fn see(cases: &[Case]) {
    for Case {
        name,
        plant,
        check,
        names,
    } in cases
    {
        let mut world = World::succeeded();
        plant(&mut world);
        let audit = world.audit();
        let render = audit.render();
        assert_eq!(failed(&audit), [*check], "{name}:\n{render}");
        let found = audit
            .checks
            .iter()
            .find(|found| found.id == *check)
            .unwrap();
        let named = found.findings.iter().any(|finding| finding.contains(names));
        assert!(named, "{name}: `{names}` is not in\n{render}");
    }
}

/// Puts a copy of a record, changed, behind another one.
pub(super) fn insert_after(world: &mut World, place: usize, event: Value) {
    world.retell(|entries| {
        let before = entries[place].clone();
        entries.insert(place + 1, Entry { event, ..before });
    });
}

pub(super) fn remove(world: &mut World, kind: &str, nth: usize) {
    let place = world.place(kind, nth);
    world.retell(|entries| drop(entries.remove(place)));
}

/// Makes a person stop the run before it is verified.
pub(super) fn stop(world: &mut World) {
    let place = world.place("verify_started", 1);
    world.retell(|entries| {
        entries.truncate(place);
        entries[place - 1].event = json!({"type": "status_changed", "status": "stopped"});
    });
}
