//! Branches whose commits exist by name but whose objects are missing.

use std::fs;
use std::path::{Path, PathBuf};

use super::case::{CorruptionCase, assert_detected, corruption};
use crate::tests::fixture::{AuditFixture, BRANCH, git};

/// Returns the file of an object.
fn object(repo: &Path, name: &str) -> PathBuf {
    let id = git(repo, &["rev-parse", name]);
    let (directory, file) = id.split_at(2);
    repo.join("objects").join(directory).join(file)
}

/// Empties a file, like a power failure between creating and writing it.
fn empty(file: &Path) {
    fs::remove_file(file).unwrap();
    fs::write(file, "").unwrap();
}

const DAMAGED_OBJECTS: &[CorruptionCase] = &[
    corruption(
        "DEL",
        "an empty commit in the user's repository",
        "origin.git`: error:",
        |fixture| empty(&object(&fixture.origin(), &fixture.commits[1])),
    ),
    corruption(
        "DEL",
        "a missing commit in the user's repository",
        "is not complete in `",
        |fixture| fs::remove_file(object(&fixture.origin(), &fixture.commits[0])).unwrap(),
    ),
];

#[test]
fn damaged_objects() {
    assert_detected(DAMAGED_OBJECTS);
}

/// Other checks also read the commits themselves.
#[test]
fn damaged_objects_of_the_run() {
    let fixture = AuditFixture::succeeded();
    empty(&object(&fixture.repo(), &fixture.commits[0]));
    let audit = fixture.audit();
    let found = audit.checks.iter().find(|check| check.id == "DEL").unwrap();
    let expected = "is not complete in repo.git: error:";
    assert!(found.findings[0].contains(expected), "{}", audit.render());
}

/// Later changes of the branch by the user are not damage.
#[test]
fn a_branch_that_was_deleted_is_not_damaged() {
    let fixture = AuditFixture::succeeded();
    let branch = format!("refs/heads/{BRANCH}");
    git(&fixture.origin(), &["update-ref", "-d", &branch]);
    let audit = fixture.audit();
    assert!(audit.is_green(), "{}", audit.render());
}

/// Moves the objects of the run's repository into a directory that it borrows from.
fn share_objects(fixture: &AuditFixture) -> PathBuf {
    let (repo, mirrors) = (fixture.repo(), fixture.state_dir().join("repos"));
    let mirror = mirrors.join("0123456789abcdef.git");
    fs::create_dir_all(&mirror).unwrap();
    fs::rename(repo.join("objects"), mirror.join("objects")).unwrap();
    fs::create_dir_all(repo.join("objects/info")).unwrap();
    let line = "../../../../repos/0123456789abcdef.git/objects\n";
    fs::write(repo.join("objects/info/alternates"), line).unwrap();
    mirror
}

#[test]
fn borrowed_objects_are_read_and_missing_ones_are_named() {
    let fixture = AuditFixture::succeeded();
    let mirror = share_objects(&fixture);
    let audit = fixture.audit();
    assert!(audit.is_green(), "{}", audit.render());
    fs::rename(&mirror, mirror.with_extension("gone")).unwrap();
    let audit = fixture.audit();
    for id in ["DEL", "I3"] {
        let check = audit.checks.iter().find(|check| check.id == id).unwrap();
        assert_eq!(
            check.findings,
            [
                "repo.git borrows objects from `repos/0123456789abcdef.git/objects` in the state directory, which does not exist"
            ],
            "{}",
            audit.render()
        );
    }
}
