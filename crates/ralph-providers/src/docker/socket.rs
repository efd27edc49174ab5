//! Determines the group that may access a socket, for error messages.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use ralph_core::parse_value;
use ralph_guest::available;

/// Returns the name of the group that owns a socket, or its number if it has no name.
pub(super) fn owning_group(path: &Path) -> Option<String> {
    let gid = available(std::fs::metadata(path))?.gid();
    // If the file cannot be read, the group is shown by its number.
    let groups = available(std::fs::read_to_string("/etc/group")).unwrap_or_default();
    Some(group_name(gid, &groups).map_or_else(|| gid.to_string(), str::to_owned))
}

/// Finds a group's name in the text of `/etc/group`.
fn group_name(gid: u32, groups: &str) -> Option<&str> {
    groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        let number: u32 = parse_value(fields.nth(1)?)?;
        (number == gid && !name.is_empty()).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_found_by_its_number() {
        let groups = "root:x:0:\n# note\nbroken\ndocker:x:998:ann,bob\nother:x:9980:\n";
        assert_eq!(group_name(998, groups), Some("docker"));
        assert_eq!(group_name(7, groups), None);
    }

    #[test]
    fn a_missing_socket_has_no_group() {
        assert_eq!(owning_group(Path::new("/nowhere/docker.sock")), None);
    }
}
