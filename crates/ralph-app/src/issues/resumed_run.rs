//! Keeps an issue up to date while `ralph resume` or another command continues its run.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use ralph_core::repo_address::RepoAddress;
use ralph_core::spec::IssueStatus;
use ralph_engine::store::RunDir;
use tokio::sync::watch;

use super::claim_record::ClaimRecord;
use super::comments::read_status_comment;
use super::records::IssueRecord;
use super::repository::IssueRepository;
use super::settle::record_result;
use super::write_back::IssueObserver;
use crate::app::App;
use crate::error::AppError;
use crate::runs::{ReadyRun, RunObserver};
use crate::scm::connect;

/// Adds an observer that writes the marks, the labels and the status comment to the issue of a run. A run without
/// an issue continues without one, and so does a run whose issue cannot be reached: the next `ralph issue` writes
/// the same.
pub async fn follow_issue(run: ReadyRun, app: &App) -> ReadyRun {
    match find_issue(&run, app).await {
        Ok(Some(observer)) => run.with_observer(Box::new(observer)),
        Ok(None) => run,
        Err(error) => {
            tracing::warn!(%error, "the issue of the run is not updated");
            run
        }
    }
}

async fn find_issue(run: &ReadyRun, app: &App) -> Result<Option<ResumedRunObserver>, AppError> {
    let plan = &run.journal().state().plan;
    let (Some(issue), Some(address)) = (&plan.issue, plan.remote_repository()) else {
        return Ok(None);
    };
    let directory = plan.settings.as_ref().map(|settings| &settings.directory);
    let app = match directory {
        Some(directory) => app.in_directory(Path::new(directory)),
        None => app.in_directory(app.environment().working_dir()),
    };
    let tracker = connect(&address, &app).await?.issues?;
    let source = RepoAddress::Remote(address.clone());
    let repository = IssueRepository::with_tracker((source, address), tracker, app).await?;
    let record = repository.records.load(issue.number)?;
    // A newer run of the same issue owns its labels.
    let Some(record) = record.filter(|record| record.run == plan.run) else {
        return Ok(None);
    };
    let comment = read_status_comment(&repository, issue.number).await?;
    let claim = ClaimRecord::new(comment.as_deref(), Some(record.run.clone()));
    repository.records.store_claim(issue.number, &claim)?;
    repository
        .set_status(issue.number, IssueStatus::InProgress)
        .await?;
    Ok(Some(ResumedRunObserver {
        repository: Arc::new(repository),
        record,
    }))
}

/// Writes to the issue after each iteration and at the end of the process's work.
struct ResumedRunObserver {
    repository: Arc<IssueRepository>,
    record: IssueRecord,
}

#[async_trait]
impl RunObserver for ResumedRunObserver {
    async fn follow(self: Box<Self>, dir: RunDir, latest: watch::Receiver<u64>) {
        let number = self.record.issue;
        let observer = IssueObserver {
            repository: self.repository.clone(),
            record: self.record,
        };
        Box::new(observer).follow(dir.clone(), latest).await;
        let repository = &self.repository;
        let recorded = async {
            match repository.records.load(number)? {
                Some(mut record) => record_result(repository, &dir, &mut record).await.map(drop),
                None => Ok(()),
            }
        };
        if let Err(error) = recorded.await {
            tracing::warn!(%error, "the result is not written to the issue");
        }
    }
}
