//! Which runs a list contains.

use std::collections::BTreeSet;

use ralph_app::AppError;
use ralph_app::runs::{DAMAGED, INTERRUPTED, NEEDS_UPGRADE};
use serde_json::Value;

/// The statuses of a run in a list.
const STATUSES: [&str; 16] = [
    "created",
    "preparing",
    "running",
    "paused",
    "waiting_quota",
    "waiting_provider",
    "waiting_ci",
    "waiting_host",
    "verifying",
    "succeeded",
    "failed",
    "stopped",
    "sandbox_lost",
    INTERRUPTED,
    DAMAGED,
    NEEDS_UPGRADE,
];
/// The statuses of a run that does not continue without the user.
const ATTENTION: [&str; 5] = [
    "paused",
    "sandbox_lost",
    INTERRUPTED,
    DAMAGED,
    NEEDS_UPGRADE,
];

/// Which runs a list contains.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RunFilter {
    /// Only runs with one of these statuses; none means all.
    statuses: Option<BTreeSet<&'static str>>,
    /// Only runs whose id, task, title, branch or repository contains this text; in lower case.
    text: Option<String>,
    /// Only runs of this repository.
    repo: Option<String>,
}

impl RunFilter {
    /// Keeps only runs with one of these statuses, separated by commas.
    pub(crate) fn with_statuses(mut self, names: &str) -> Result<Self, AppError> {
        let mut statuses = BTreeSet::new();
        for name in names.split(',') {
            let known = STATUSES.into_iter().find(|status| *status == name);
            let known = known.ok_or_else(|| {
                let fix = format!("use {}", STATUSES.join(", "));
                AppError::usage(format!("unknown status `{name}`"), "", fix)
            })?;
            statuses.insert(known);
        }
        self.restrict(&statuses);
        Ok(self)
    }

    /// Keeps only runs that wait for the user, or only the others.
    #[must_use]
    pub(crate) fn with_attention(mut self, needs_attention: bool) -> Self {
        let statuses = STATUSES
            .into_iter()
            .filter(|status| ATTENTION.contains(status) == needs_attention);
        self.restrict(&statuses.collect());
        self
    }

    /// Keeps only runs whose id, task, title, branch or repository contains a text in any case.
    #[must_use]
    pub(crate) fn with_text(mut self, text: &str) -> Self {
        self.text = Some(text.to_lowercase());
        self
    }

    /// Keeps only runs of a repository, by its path or address.
    #[must_use]
    pub(crate) fn with_repo(mut self, repo: &str) -> Self {
        self.repo = Some(repo.to_owned());
        self
    }

    fn restrict(&mut self, statuses: &BTreeSet<&'static str>) {
        self.statuses = Some(match self.statuses.take() {
            Some(known) => known.intersection(statuses).copied().collect(),
            None => statuses.clone(),
        });
    }

    /// Returns whether a list contains a run, described by its JSON, its repository and its search text.
    pub(super) fn matches(&self, details: &Value, repo: &str, search_text: &str) -> bool {
        let status = details["status"].as_str().unwrap_or_default();
        let statuses = self.statuses.as_ref();
        statuses.is_none_or(|statuses| statuses.contains(status))
            && self.repo.as_deref().is_none_or(|wanted| wanted == repo)
            && self
                .text
                .as_deref()
                .is_none_or(|text| search_text.contains(text))
    }

    /// Returns the statuses as a text in which each is between commas; empty means all.
    pub(super) fn status_list(&self) -> String {
        self.statuses.as_ref().map_or_else(String::new, |statuses| {
            let names: Vec<&str> = statuses.iter().copied().collect();
            format!(",{},", names.join(","))
        })
    }

    /// Returns the pattern that the search text of a run matches.
    pub(super) fn text_pattern(&self) -> String {
        let text = self.text.as_deref().unwrap_or_default();
        let escaped = text
            .replace('\\', "\\\\")
            .replace('%', "\\%")
            .replace('_', "\\_");
        format!("%{escaped}%")
    }

    /// Returns the wanted repository; empty means all.
    pub(super) fn repo(&self) -> &str {
        self.repo.as_deref().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_combined_with_attention() {
        let filter = RunFilter::default();
        assert_eq!(filter.status_list(), "");
        let filter = filter.with_statuses("paused,running,damaged").unwrap();
        assert_eq!(filter.status_list(), ",damaged,paused,running,");
        let waiting = filter.clone().with_attention(true);
        assert_eq!(waiting.status_list(), ",damaged,paused,");
        assert_eq!(filter.with_attention(false).status_list(), ",running,");
        let none = RunFilter::default()
            .with_statuses("running")
            .unwrap()
            .with_attention(true);
        assert_eq!(none.status_list(), ",,");
        let error = RunFilter::default().with_statuses("runing").unwrap_err();
        assert_eq!(error.what, "unknown status `runing`");
    }

    #[test]
    fn a_text_is_searched_literally() {
        let filter = RunFilter::default().with_text("50%_A\\b");
        assert_eq!(filter.text_pattern(), "%50\\%\\_a\\\\b%");
        assert_eq!(RunFilter::default().text_pattern(), "%%");
    }
}
