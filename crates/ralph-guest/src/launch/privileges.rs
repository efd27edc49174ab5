//! Drops the privileges that could undo a mount namespace.

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

use super::start::{LaunchStepResult, in_step};
use crate::best_effort;

/// With any of these, a root process could unmount a hiding mount, enter the mount namespace of
/// another process, or access files without their paths.
const DROPPED_CAPABILITIES: [CapabilitySet; 9] = [
    CapabilitySet::SYS_ADMIN,
    CapabilitySet::SYS_PTRACE,
    CapabilitySet::DAC_READ_SEARCH,
    CapabilitySet::SYS_MODULE,
    CapabilitySet::SYS_RAWIO,
    CapabilitySet::MKNOD,
    CapabilitySet::BPF,
    CapabilitySet::PERFMON,
    CapabilitySet::CHECKPOINT_RESTORE,
];

/// Drops the capabilities for the command and everything it starts. A command of an unprivileged
/// user has none after it is executed; a root command keeps those in the bounding set.
pub(super) fn drop_capabilities() -> LaunchStepResult<()> {
    for capability in DROPPED_CAPABILITIES {
        // The kernel refuses capabilities that it does not know and those that are already dropped.
        best_effort(remove_capability_from_bounding_set(capability));
    }
    // The ambient set cannot exceed the inheritable one, which is emptied below in any case.
    best_effort(clear_ambient_capability_set());
    let current = in_step("read its capabilities", capabilities(None))?;
    let reduced = CapabilitySets {
        inheritable: CapabilitySet::empty(),
        ..current
    };
    in_step(
        "drop inheritable capabilities",
        set_capabilities(None, reduced),
    )?;
    in_step("disable setuid programs", set_no_new_privs(true))
}
