//! The labels of issues: which issues are specifications, and their status.

use serde::{Deserialize, Serialize};

/// The most characters of a label's name.
const MAX_CHARS: usize = 50;

/// The names of the labels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct IssueLabels {
    /// Issues without it are never touched.
    pub spec: String,
    pub ready: String,
    pub in_progress: String,
    pub done: String,
    pub needs_attention: String,
    pub blocked: String,
}

impl Default for IssueLabels {
    fn default() -> Self {
        Self {
            spec: "spec".into(),
            ready: "status:ready".into(),
            in_progress: "status:in-progress".into(),
            done: "status:done".into(),
            needs_attention: "status:needs-attention".into(),
            blocked: "status:blocked".into(),
        }
    }
}

/// The status of an issue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IssueStatus {
    /// It can be claimed.
    Ready,
    /// A process works on it.
    InProgress,
    /// All steps are done and verified.
    Done,
    /// It waits for a human.
    NeedsAttention,
    /// It waits for other issues.
    Blocked,
}

/// The reason why names of labels are rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LabelNameError {
    #[error(
        "the label `{name}` must have 1 to {MAX_CHARS} characters without a comma or a control character"
    )]
    Invalid { name: String },
    #[error("two labels have the name `{name}`")]
    Duplicate { name: String },
}

impl IssueStatus {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Ready,
        Self::InProgress,
        Self::Done,
        Self::NeedsAttention,
        Self::Blocked,
    ];
}

impl IssueLabels {
    /// Returns the label of a status.
    pub fn status(&self, status: IssueStatus) -> &str {
        match status {
            IssueStatus::Ready => &self.ready,
            IssueStatus::InProgress => &self.in_progress,
            IssueStatus::Done => &self.done,
            IssueStatus::NeedsAttention => &self.needs_attention,
            IssueStatus::Blocked => &self.blocked,
        }
    }

    /// Returns the status of an issue with these labels. Hosts compare names without case. An issue with several
    /// is what a crash between two changes left: it is ready if it can be claimed, and otherwise the most final
    /// one counts.
    pub fn find_status(&self, labels: &[String]) -> Option<IssueStatus> {
        let order = [
            IssueStatus::Ready,
            IssueStatus::Done,
            IssueStatus::NeedsAttention,
            IssueStatus::Blocked,
            IssueStatus::InProgress,
        ];
        order
            .into_iter()
            .find(|status| has_label(labels, self.status(*status)))
    }

    /// Returns whether an issue with these labels has a status.
    pub fn has_status(&self, labels: &[String], status: IssueStatus) -> bool {
        has_label(labels, self.status(status))
    }

    /// Returns whether an issue with these labels is a specification.
    pub fn is_spec(&self, labels: &[String]) -> bool {
        has_label(labels, &self.spec)
    }

    /// Rejects names that a host rejects, and equal ones.
    pub fn check(&self) -> Result<(), LabelNameError> {
        let statuses = IssueStatus::ALL.map(|status| self.status(status));
        let mut seen: Vec<String> = Vec::new();
        for name in std::iter::once(self.spec.as_str()).chain(statuses) {
            let count = name.chars().count();
            let is_valid = (1..=MAX_CHARS).contains(&count)
                && name.trim() == name
                && !name.contains(|c: char| c.is_control() || c == ',');
            if !is_valid {
                return Err(LabelNameError::Invalid {
                    name: name.to_owned(),
                });
            }
            let lower = name.to_lowercase();
            if seen.contains(&lower) {
                return Err(LabelNameError::Duplicate {
                    name: name.to_owned(),
                });
            }
            seen.push(lower);
        }
        Ok(())
    }
}

/// Returns whether a list contains a label.
fn has_label(labels: &[String], name: &str) -> bool {
    labels
        .iter()
        .any(|label| label.to_lowercase() == name.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_valid_and_different() {
        let with = |name: &str| IssueLabels {
            spec: name.to_owned(),
            ..IssueLabels::default()
        };
        assert_eq!(IssueLabels::default().check(), Ok(()));
        for name in ["", " a", "a,b", "a\n", &"x".repeat(51)] {
            assert!(
                matches!(with(name).check(), Err(LabelNameError::Invalid { .. })),
                "{name:?}"
            );
        }
        let duplicate = LabelNameError::Duplicate {
            name: "status:ready".into(),
        };
        assert_eq!(with("STATUS:Ready").check(), Err(duplicate));
    }

    #[test]
    fn a_crash_between_two_labels_leaves_a_usable_status() {
        let names = IssueLabels::default();
        for (labels, expected) in [
            (&["spec"][..], None),
            (&["spec", "Status:Ready"], Some(IssueStatus::Ready)),
            (
                &["status:in-progress", "status:ready"],
                Some(IssueStatus::Ready),
            ),
            (
                &["status:in-progress", "status:done"],
                Some(IssueStatus::Done),
            ),
            (&["status:in-progress"], Some(IssueStatus::InProgress)),
            (
                &["status:blocked", "status:needs-attention"],
                Some(IssueStatus::NeedsAttention),
            ),
        ] {
            let labels: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
            assert_eq!(names.find_status(&labels), expected, "{labels:?}");
        }
    }
}
