//! The labels that a sandbox is found by.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use ralph_core::ports::{Labels, SandboxId, SandboxSpec};
use ralph_guest::command::Name;

use super::owner::Owner;

const ID_PREFIX: &str = "docker-";
const OBJECT_PREFIX: &str = "ralph-";

/// The label whose value is the sandbox's id.
pub(super) const SANDBOX: &str = "ralph.sandbox";
/// The label whose value is the state directory that the sandbox belongs to.
pub(super) const STATE: &str = "ralph.state";
const OWNER: &str = "ralph.owner";
const ENVIRONMENT: &str = "ralph.env";
const GIVEN: &str = "ralph.label.";

/// Returns a sandbox's id.
pub(super) fn id(name: Name) -> SandboxId {
    SandboxId(format!("{ID_PREFIX}{name}"))
}

/// Takes an id of this provider; any other text has no Docker sandbox.
pub(super) fn parse(id: &str) -> Option<Name> {
    Name::parse(id.strip_prefix(ID_PREFIX)?)
}

/// Returns what the container and the volume of a sandbox are called.
pub(super) fn object(name: Name) -> String {
    format!("{OBJECT_PREFIX}{name}")
}

/// What is known about a sandbox from its labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Marks {
    pub(super) labels: Labels,
    pub(super) env: BTreeMap<String, String>,
    pub(super) owner: Option<Owner>,
    pub(super) state: String,
}

impl Marks {
    /// Returns the marks of a new sandbox.
    pub(super) fn of(spec: &SandboxSpec, state: &Path) -> Self {
        Self {
            labels: spec.labels.clone(),
            env: spec.env.clone(),
            owner: Some(Owner::this()),
            state: state.to_string_lossy().into_owned(),
        }
    }

    /// Returns the marks of a container that this process makes for an old sandbox.
    pub(super) fn taken_over(self) -> Self {
        Self {
            owner: Some(Owner::this()),
            ..self
        }
    }

    /// Returns the labels of the container and the volume.
    pub(super) fn write(&self, name: Name) -> HashMap<String, String> {
        // Plain structures always have a form in JSON.
        let json = |value: Result<String, serde_json::Error>| value.unwrap_or_default();
        let mut labels: HashMap<String, String> = self
            .labels
            .iter()
            .map(|(key, value)| (format!("{GIVEN}{key}"), value.clone()))
            .collect();
        labels.insert(SANDBOX.into(), id(name).0);
        labels.insert(STATE.into(), self.state.clone());
        labels.insert(ENVIRONMENT.into(), json(serde_json::to_string(&self.env)));
        labels.insert(OWNER.into(), json(serde_json::to_string(&self.owner)));
        labels
    }

    /// Reads the labels of a volume; none if it is no sandbox's.
    pub(super) fn read(labels: &HashMap<String, String>) -> Option<(Name, Self)> {
        let name = parse(labels.get(SANDBOX)?)?;
        let json = |key| labels.get(key).map_or("null", String::as_str);
        let marks = Self {
            labels: labels
                .iter()
                .filter_map(|(key, value)| {
                    Some((key.strip_prefix(GIVEN)?.to_owned(), value.clone()))
                })
                .collect(),
            env: serde_json::from_str(json(ENVIRONMENT)).unwrap_or_default(),
            owner: serde_json::from_str(json(OWNER)).unwrap_or_default(),
            state: labels.get(STATE).cloned().unwrap_or_default(),
        };
        Some((name, marks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_survive_their_labels() {
        let spec = SandboxSpec {
            labels: [("run".to_owned(), "r 1 \"ü\"".to_owned())].into(),
            env: [("A".to_owned(), "b=c".to_owned())].into(),
        };
        let name = Name::parse("000000000001").unwrap();
        let marks = Marks::of(&spec, Path::new("/state"));
        let labels = marks.write(name);
        assert_eq!(Marks::read(&labels), Some((name, marks)));
        assert_eq!(labels[SANDBOX], "docker-000000000001");
        assert_eq!(Marks::read(&HashMap::new()), None);
        let foreign = HashMap::from([(SANDBOX.to_owned(), "../x".to_owned())]);
        assert_eq!(Marks::read(&foreign), None);
    }
}
