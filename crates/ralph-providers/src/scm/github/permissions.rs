//! Compares the permissions of a credential with those that ralph needs.

use std::collections::BTreeMap;

use serde::Serialize;

use super::operations::ReadableResource;

/// The access to a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GrantedAccess {
    /// No access.
    None,
    /// Read access.
    Read,
    /// Read access; GitHub does not disclose whether it includes writing.
    #[serde(rename = "read, write unknown")]
    AtLeastRead,
    /// Read and write access.
    Write,
}

impl GrantedAccess {
    /// Returns the name for the user.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Read => "read",
            Self::AtLeastRead => "read, write unknown",
            Self::Write => "write",
        }
    }
}

/// A permission that ralph needs, and the access that the credential has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PermissionCheck {
    /// GitHub's name, such as `pull_requests`.
    pub name: &'static str,
    pub needs: GrantedAccess,
    pub granted: GrantedAccess,
    /// Whether ralph works without it, except for some tasks.
    pub is_optional: bool,
    /// The purpose.
    pub used_for: &'static str,
}

impl PermissionCheck {
    /// Returns whether the access certainly does not suffice.
    pub fn is_missing(&self) -> bool {
        self.granted < self.needs && self.granted != GrantedAccess::AtLeastRead
    }

    /// Returns whether it is unknown whether the access suffices.
    pub fn is_unknown(&self) -> bool {
        self.granted < self.needs && self.granted == GrantedAccess::AtLeastRead
    }
}

/// The needed permissions: name, access, purpose.
const NEEDED: [(&str, GrantedAccess, &str); 7] = [
    ("metadata", GrantedAccess::Read, "find the repository"),
    ("contents", GrantedAccess::Write, "push branches"),
    ("pull_requests", GrantedAccess::Write, "open pull requests"),
    (
        "issues",
        GrantedAccess::Write,
        "label and comment on issues",
    ),
    ("checks", GrantedAccess::Read, "read the results of CI"),
    ("statuses", GrantedAccess::Write, "set commit statuses"),
    (
        WORKFLOWS,
        GrantedAccess::Write,
        "push changes of `.github/workflows`, for tasks with `allow_workflow_changes`",
    ),
];

const WORKFLOWS: &str = "workflows";

/// Returns the resource whose reading shows a permission.
pub fn probe_of(name: &str) -> Option<ReadableResource> {
    match name {
        "contents" => Some(ReadableResource::Contents),
        "pull_requests" => Some(ReadableResource::PullRequests),
        "issues" => Some(ReadableResource::Issues),
        "checks" => Some(ReadableResource::Checks),
        "statuses" => Some(ReadableResource::Statuses),
        _ => None,
    }
}

/// Returns the names of the needed permissions.
pub fn needed_names() -> impl Iterator<Item = &'static str> {
    NEEDED.into_iter().map(|(name, _, _)| name)
}

/// Compares with the access that `granted` returns for a name.
pub fn compare(granted: impl Fn(&str) -> GrantedAccess) -> Vec<PermissionCheck> {
    let check = |(name, needs, used_for)| PermissionCheck {
        name,
        needs,
        granted: granted(name),
        is_optional: name == WORKFLOWS,
        used_for,
    };
    NEEDED.into_iter().map(check).collect()
}

/// Returns the access of an App's installation.
pub fn access_of_installation(permissions: &BTreeMap<String, String>, name: &str) -> GrantedAccess {
    match permissions.get(name).map(String::as_str) {
        Some("write" | "admin") => GrantedAccess::Write,
        Some("read") => GrantedAccess::Read,
        Some(_) | None => GrantedAccess::None,
    }
}

/// Returns the access of a classic token with these scopes. The repository was found, so its
/// metadata can be read.
pub fn access_of_scopes(scopes: &[String], is_private: bool, name: &str) -> GrantedAccess {
    let has = |scope: &str| scopes.iter().any(|known| known == scope);
    let has_repo = has("repo") || (has("public_repo") && !is_private);
    match name {
        WORKFLOWS if has("workflow") => GrantedAccess::Write,
        WORKFLOWS => GrantedAccess::None,
        "statuses" if has("repo:status") => GrantedAccess::Write,
        _ if has_repo => GrantedAccess::Write,
        // A public repository is readable without a scope.
        _ if !is_private || name == "metadata" => GrantedAccess::Read,
        _ => GrantedAccess::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(scopes: &[&str], is_private: bool) -> Vec<&'static str> {
        let scopes: Vec<String> = scopes.iter().map(ToString::to_string).collect();
        let checks = compare(|name| access_of_scopes(&scopes, is_private, name));
        let missing = checks.iter().filter(|check| check.is_missing());
        missing.map(|check| check.name).collect()
    }

    #[test]
    fn scopes_are_compared_with_the_needed_permissions() {
        let nothing = missing(&["repo", "workflow"], true);
        assert_eq!(nothing, [""; 0]);
        assert_eq!(missing(&["repo"], true), ["workflows"]);
        assert_eq!(missing(&["public_repo"], false), ["workflows"]);
        let writes = ["contents", "pull_requests", "issues"];
        assert_eq!(missing(&["repo:status", "workflow"], false), writes);
        let all = [&writes[..], &["checks", "statuses", "workflows"]].concat();
        assert_eq!(missing(&["public_repo"], true), all);
    }

    #[test]
    fn an_unknown_access_is_not_missing() {
        let checks = compare(|_| GrantedAccess::AtLeastRead);
        assert!(checks.iter().all(|check| !check.is_missing()));
        let unknown = checks.iter().filter(|check| check.is_unknown());
        assert_eq!(unknown.count(), 5);
    }
}
