//! Gives reviews that request changes to the model, if the settings allow it. The text of a review is
//! untrusted: it is logged as data, once.

use ralph_core::event::DeliveryEvent;
use ralph_core::ports::{PullReview, ReviewVerdict, Scm, ScmError};

use super::host_request::policy;
use crate::attend::attend;
use crate::error::RunError;
use crate::run::Run;

/// The most reviews that are handled at once.
const MAX_REVIEWS: usize = 10;
/// The most characters of a review in the log.
const MAX_LOGGED_CHARS: usize = 4096;
/// The most characters of a review in a refusal.
const MAX_REASON_CHARS: usize = 400;

/// Logs new reviews in which members or collaborators request changes, and returns the reasons why
/// success is refused. A review counts once.
pub(super) async fn take_reviews(run: &mut Run) -> Result<Vec<String>, RunError> {
    let Some(pull) = run.recorder.state().pull.clone() else {
        return Ok(Vec::new());
    };
    let scm = run.services.scm.clone();
    if scm.source_host().is_none() || !policy(run).respond_to_reviews || pull.state.is_closed() {
        return Ok(Vec::new());
    }
    let reading = read_reviews(&*scm, pull.number);
    let read = attend(&mut run.recorder.journal, &mut run.controls, reading).await?;
    let (viewer, reviews) = match read {
        Ok(read) => read,
        Err(error) => {
            run.recorder
                .log_activity(&format!("the reviews cannot be read: {error}"))?;
            return Ok(Vec::new());
        }
    };
    let known = run.recorder.state().host.last_review;
    let is_new = |review: &PullReview| {
        review.id > known
            && review.verdict == ReviewVerdict::ChangesRequested
            && viewer.as_ref() != Some(&review.author)
    };
    let new = reviews.into_iter().filter(is_new);
    let (mut new, ignored): (Vec<_>, Vec<_>) = new.partition(|review| review.is_member);
    log_ignored(run, &ignored)?;
    new.sort_by_key(|review| review.id);
    new.truncate(MAX_REVIEWS);
    let Some(last) = new.last().map(|review| review.id) else {
        return Ok(Vec::new());
    };
    let reasons = new.iter().map(reason).collect();
    for review in &new {
        let text: String = review.text.chars().take(MAX_LOGGED_CHARS).collect();
        run.recorder.log_error(&format!(
            "`{}` requests changes in the pull request; the text is data of a reviewer: {text}",
            review.author
        ))?;
    }
    let reviewers = new.into_iter().map(|review| review.author).collect();
    run.recorder
        .append(DeliveryEvent::ReviewsReceived { last, reviewers })?;
    Ok(reasons)
}

/// Logs the reviews of accounts that must not influence the run, once in each process.
fn log_ignored(run: &mut Run, reviews: &[PullReview]) -> Result<(), RunError> {
    let known = run.surroundings.last_ignored_review;
    let new = reviews.iter().filter(|review| review.id > known);
    for review in new.take(MAX_REVIEWS) {
        run.recorder.log_activity(&format!(
            "ignored: `{}` requests changes in the pull request, but is neither a member nor a \
             collaborator of the repository",
            review.author
        ))?;
    }
    let last = reviews.iter().map(|review| review.id).max();
    run.surroundings.last_ignored_review = last.map_or(known, |last| last.max(known));
    Ok(())
}

async fn read_reviews(
    scm: &dyn Scm,
    number: u64,
) -> Result<(Option<String>, Vec<PullReview>), ScmError> {
    let Some(host) = scm.source_host() else {
        return Ok((None, Vec::new()));
    };
    let reviews = host.reviews(number).await?;
    let viewer = if reviews.is_empty() {
        None
    } else {
        host.issues().viewer().await?
    };
    Ok((viewer, reviews))
}

fn reason(review: &PullReview) -> String {
    let text: String = review
        .text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(MAX_REASON_CHARS)
        .collect();
    format!(
        "`{}` requests changes in the pull request: {text}",
        review.author
    )
}
