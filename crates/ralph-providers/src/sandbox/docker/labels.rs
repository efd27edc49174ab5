//! The labels that identify a sandbox.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use ralph_core::ports::{Labels, SandboxId, SandboxSpec};
use ralph_guest::command::SandboxName;
use serde::de::DeserializeOwned;

use crate::logged::logged;
use crate::owner_process::OwnerProcess;

const ID_PREFIX: &str = "docker-";
const OBJECT_PREFIX: &str = "ralph-";

/// Contains the sandbox's id.
pub(super) const SANDBOX_LABEL: &str = "ralph.sandbox";
/// Contains the state directory of the sandbox.
pub(super) const STATE_LABEL: &str = "ralph.state";
const OWNER_LABEL: &str = "ralph.owner";
const ENVIRONMENT_LABEL: &str = "ralph.env";
const USER_LABEL_PREFIX: &str = "ralph.label.";

/// Returns a sandbox's id.
pub(super) fn sandbox_id(name: SandboxName) -> SandboxId {
    SandboxId(format!("{ID_PREFIX}{name}"))
}

/// Parses an id of this provider; returns `None` for any other text.
pub(super) fn parse_id(id: &str) -> Option<SandboxName> {
    SandboxName::parse(id.strip_prefix(ID_PREFIX)?)
}

/// Returns the name of a sandbox's container and volume.
pub(super) fn object_name(name: SandboxName) -> String {
    format!("{OBJECT_PREFIX}{name}")
}

/// The metadata of a sandbox, stored in labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SandboxLabels {
    pub(super) labels: Labels,
    pub(super) env: BTreeMap<String, String>,
    pub(super) owner: Option<OwnerProcess>,
    pub(super) state: String,
}

impl SandboxLabels {
    /// Returns the labels of a new sandbox.
    pub(super) fn from_spec(spec: &SandboxSpec, state: &Path) -> Self {
        Self {
            labels: spec.labels.clone(),
            env: spec.env.clone(),
            owner: Some(OwnerProcess::current()),
            state: state.to_string_lossy().into_owned(),
        }
    }

    /// Returns the labels of a container that this process creates for an existing sandbox.
    pub(super) fn with_current_owner(self) -> Self {
        Self {
            owner: Some(OwnerProcess::current()),
            ..self
        }
    }

    /// Converts to Docker labels of the container and the volume.
    pub(super) fn to_docker(&self, name: SandboxName) -> HashMap<String, String> {
        let json = |value: Result<String, serde_json::Error>| {
            value.expect("a plain structure is valid JSON")
        };
        let mut labels: HashMap<String, String> = self
            .labels
            .iter()
            .map(|(key, value)| (format!("{USER_LABEL_PREFIX}{key}"), value.clone()))
            .collect();
        labels.insert(SANDBOX_LABEL.into(), sandbox_id(name).0);
        labels.insert(STATE_LABEL.into(), self.state.clone());
        labels.insert(
            ENVIRONMENT_LABEL.into(),
            json(serde_json::to_string(&self.env)),
        );
        labels.insert(OWNER_LABEL.into(), json(serde_json::to_string(&self.owner)));
        labels
    }

    /// Parses the labels of a volume or container; `None` if it does not belong to a sandbox.
    pub(super) fn from_docker(labels: &HashMap<String, String>) -> Option<(SandboxName, Self)> {
        let name = parse_id(labels.get(SANDBOX_LABEL)?)?;
        let parsed = Self {
            labels: labels
                .iter()
                .filter_map(|(key, value)| {
                    Some((
                        key.strip_prefix(USER_LABEL_PREFIX)?.to_owned(),
                        value.clone(),
                    ))
                })
                .collect(),
            env: parse_label(ENVIRONMENT_LABEL, labels).unwrap_or_default(),
            owner: parse_label(OWNER_LABEL, labels).unwrap_or_default(),
            state: labels.get(STATE_LABEL).cloned().unwrap_or_default(),
        };
        Some((name, parsed))
    }
}

/// Returns the value of a label with JSON. A sandbox with a damaged one can still be removed.
fn parse_label<T: DeserializeOwned>(key: &str, labels: &HashMap<String, String>) -> Option<T> {
    let value = serde_json::from_str(labels.get(key)?);
    logged("read a label of a sandbox", value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_round_trip() {
        let spec = SandboxSpec {
            labels: [("run".to_owned(), "r 1 \"ü\"".to_owned())].into(),
            env: [("A".to_owned(), "b=c".to_owned())].into(),
        };
        let name = SandboxName::parse("000000000001").unwrap();
        let original = SandboxLabels::from_spec(&spec, Path::new("/state"));
        let labels = original.to_docker(name);
        assert_eq!(SandboxLabels::from_docker(&labels), Some((name, original)));
        assert_eq!(labels[SANDBOX_LABEL], "docker-000000000001");
        assert_eq!(SandboxLabels::from_docker(&HashMap::new()), None);
        let foreign = HashMap::from([(SANDBOX_LABEL.to_owned(), "../x".to_owned())]);
        assert_eq!(SandboxLabels::from_docker(&foreign), None);
    }
}
