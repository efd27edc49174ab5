//! The ids of local sandboxes.

use ralph_core::ports::SandboxId;
use ralph_guest::command::SandboxName;

const PREFIX: &str = "local-";

/// Returns a sandbox's id, which is also the name of its directory.
pub(super) fn sandbox_id(name: SandboxName) -> SandboxId {
    SandboxId(format!("{PREFIX}{name}"))
}

/// Parses an id of this provider; returns `None` for any other text.
pub(super) fn parse_id(id: &str) -> Option<SandboxName> {
    SandboxName::parse(id.strip_prefix(PREFIX)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_prefix_and_a_name() {
        let name = SandboxName::parse("000000000001").unwrap();
        assert_eq!(sandbox_id(name).0, "local-000000000001");
        assert_eq!(parse_id("local-000000000001"), Some(name));
        for text in [
            "",
            "local-",
            "local-1",
            "local-../../../etc",
            "docker-000000000001",
        ] {
            assert_eq!(parse_id(text), None, "{text:?} was accepted");
        }
    }
}
