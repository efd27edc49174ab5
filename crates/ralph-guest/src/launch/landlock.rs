//! Landlock: permanent restrictions enforced by the kernel.

use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible as _, PathBeneath, Ruleset,
    RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError, Scope,
};
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};

use super::settings::LaunchSettings;
use super::start::{LaunchStepResult, in_step};
use crate::available;

/// The Landlock version whose file rights are denied, if the kernel supports them.
const FILE_RIGHTS: ABI = ABI::V5;
/// The maximum number of entries per directory that get a rule. Further entries are inaccessible.
const MAX_ENTRIES: usize = 10_000;

/// Prevents this process from signalling processes that it did not start.
pub(super) fn scope_signals() -> LaunchStepResult<()> {
    let restricted = signal_ruleset().and_then(RulesetCreated::restrict_self);
    in_step("scope signals", restricted.map(drop).map_err(ruleset_error))
}

/// Returns whether the kernel can scope signals.
pub(super) fn can_scope_signals() -> bool {
    signal_ruleset().is_ok()
}

/// Returns whether the kernel can deny access to files.
pub(super) fn can_restrict_files() -> bool {
    let required = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V1));
    required.and_then(Ruleset::create).is_ok()
}

fn signal_ruleset() -> Result<RulesetCreated, RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .scope(Scope::Signal)?
        .create()
}

/// Denies access to the hidden directories, except for the sandbox.
///
/// Landlock has no rule that denies a single directory, so everything else is allowed, entry by
/// entry along the path to each hidden directory. Nothing can be created directly in a directory on
/// that path. Listing directories stays allowed, because a rule for it would apply to everything
/// below.
pub(super) fn restrict_files(settings: &LaunchSettings) -> LaunchStepResult<()> {
    let hidden = in_step("find the state directory", settings.existing_hidden())?;
    let rights = AccessFs::from_all(FILE_RIGHTS) & !AccessFs::ReadDir;
    let restricted = Ruleset::default()
        .handle_access(rights)
        .and_then(Ruleset::create)
        .and_then(|ruleset| allow_except_hidden(ruleset, Path::new("/"), &hidden, rights))
        .and_then(|ruleset| allow(ruleset, &settings.sandbox, rights))
        .and_then(RulesetCreated::restrict_self);
    in_step(
        "deny access to the state directory",
        restricted.map(drop).map_err(ruleset_error),
    )
}

/// Allows everything in a directory except the hidden ones.
fn allow_except_hidden(
    mut ruleset: RulesetCreated,
    directory: &Path,
    hidden: &[PathBuf],
    rights: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    if hidden.iter().any(|hidden| directory.starts_with(hidden)) {
        return Ok(ruleset);
    }
    if !hidden.iter().any(|hidden| hidden.starts_with(directory)) {
        return allow(ruleset, directory, rights);
    }
    let Ok(entries) = std::fs::read_dir(directory) else {
        return Ok(ruleset);
    };
    // An entry that cannot be read gets no rule, so access to it is denied.
    for entry in entries.filter_map(available).take(MAX_ENTRIES) {
        ruleset = allow_except_hidden(ruleset, &entry.path(), hidden, rights)?;
    }
    Ok(ruleset)
}

/// Allows a file, or a directory with everything below. A link gets no rule: its target has one or
/// is hidden.
fn allow(
    ruleset: RulesetCreated,
    path: &Path,
    rights: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(file) = openat(CWD, path, flags, Mode::empty()) else {
        return Ok(ruleset);
    };
    let rights = match fstat(&file).map(|stat| FileType::from_raw_mode(stat.st_mode)) {
        Ok(FileType::Directory) => rights,
        Ok(FileType::Symlink) | Err(_) => return Ok(ruleset),
        Ok(_) => rights & AccessFs::from_file(FILE_RIGHTS),
    };
    ruleset.add_rule(PathBeneath::new(file, rights))
}

fn ruleset_error(error: RulesetError) -> io::Error {
    io::Error::other(error)
}
