//! Finds and lists runs without reading their journals.

use std::sync::Arc;

use ralph_app::runs::{RunDetails, RunSummary};
use ralph_app::{App, AppError};
use serde_json::Value;

/// The index of all runs of a state directory; clones share it.
#[derive(Debug, Clone)]
pub(crate) struct RunIndex {
    app: Arc<App>,
}

/// Which runs a list contains.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RunFilter {
    /// Only runs with one of these statuses; empty means all.
    pub(crate) statuses: Vec<String>,
    /// Only runs whose id, task, title or repository contains this text.
    pub(crate) text: Option<String>,
    /// Only runs of this repository.
    pub(crate) repo: Option<String>,
}

/// A part of a list, newest first.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RunPage {
    /// The details of each run: the JSON of `ralph show`.
    pub(crate) runs: Vec<Value>,
    /// Continues the list; none at its end.
    pub(crate) next: Option<String>,
}

impl RunIndex {
    pub(crate) fn new(app: Arc<App>) -> Self {
        Self { app }
    }

    /// Lists runs, newest first, from a cursor of an earlier page.
    pub(crate) async fn list(
        &self,
        filter: &RunFilter,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<RunPage, AppError> {
        let state = self.app.state_dir()?;
        let ids = state.runs()?;
        let is_after = |id: &str| cursor.is_none_or(|cursor| id < cursor);
        let mut page = RunPage {
            runs: Vec::new(),
            next: None,
        };
        for id in ids.iter().rev().filter(|id| is_after(id.as_str())) {
            if page.runs.len() == limit {
                break;
            }
            let dir = state.run(id);
            let value = match dir.state() {
                Ok(state) => serde_json::to_value(RunDetails::from_state(&dir, &state)),
                Err(_) => serde_json::to_value(RunSummary::read(id, &dir)),
            };
            let Ok(value) = value else { continue };
            if filter.matches(&value) {
                page.next = Some(id.to_string());
                page.runs.push(value);
            }
        }
        if page.runs.len() < limit {
            page.next = None;
        }
        Ok(page)
    }
}

impl RunFilter {
    fn matches(&self, run: &Value) -> bool {
        let field = |name: &str| run[name].as_str().unwrap_or_default();
        let has_status = self.statuses.is_empty()
            || self.statuses.iter().any(|status| status == field("status"));
        let has_repo = self
            .repo
            .as_deref()
            .is_none_or(|repo| repo == field("repo"));
        let has_text = self.text.as_deref().is_none_or(|text| {
            ["id", "task_id", "title", "repo"]
                .iter()
                .any(|name| field(name).contains(text))
        });
        has_status && has_repo && has_text
    }
}
