//! Reviews of a pull request.

use ralph_core::ports::{HostError, PullReview, ReviewVerdict};
use serde::Deserialize;

use super::host::GitHubHost;

/// The size limit of a review's text, in bytes.
const MAX_TEXT_BYTES: usize = 16 << 10;

#[derive(Deserialize)]
struct GitHubReview {
    id: u64,
    user: Option<ReviewAuthor>,
    state: String,
    body: Option<String>,
    commit_id: Option<String>,
    author_association: Option<String>,
}

#[derive(Deserialize)]
struct ReviewAuthor {
    login: String,
}

#[derive(Deserialize)]
struct ReviewComment {
    pull_request_review_id: Option<u64>,
    path: String,
    line: Option<u64>,
    original_line: Option<u64>,
    body: String,
}

impl ReviewComment {
    fn describe(&self) -> String {
        let body = self.body.trim();
        match self.line.or(self.original_line) {
            Some(line) => format!("{}:{line}: {body}", self.path),
            None => format!("{}: {body}", self.path),
        }
    }
}

impl GitHubHost {
    /// Returns the submitted reviews of a pull request with their comments, oldest first.
    pub(super) async fn list_reviews(&self, number: u64) -> Result<Vec<PullReview>, HostError> {
        let number = number.to_string();
        let url = self.client.repo_url(&["pulls", &number, "reviews"]);
        let reviews: Vec<GitHubReview> = self.client.list(url).await?;
        if reviews.is_empty() {
            return Ok(Vec::new());
        }
        let url = self.client.repo_url(&["pulls", &number, "comments"]);
        let comments: Vec<ReviewComment> = self.client.list(url).await?;
        let submitted = reviews.into_iter();
        Ok(submitted
            .filter_map(|review| convert(review, &comments))
            .collect())
    }
}

/// Returns whether an `author_association` belongs to an account that the owner of the repository
/// chose.
fn is_member(association: &str) -> bool {
    ["OWNER", "MEMBER", "COLLABORATOR"].contains(&association)
}

/// Converts a review to the port's type; `None` if it is not submitted.
fn convert(review: GitHubReview, comments: &[ReviewComment]) -> Option<PullReview> {
    let verdict = match review.state.as_str() {
        "APPROVED" => ReviewVerdict::Approved,
        "CHANGES_REQUESTED" => ReviewVerdict::ChangesRequested,
        "COMMENTED" => ReviewVerdict::Commented,
        "DISMISSED" => ReviewVerdict::Dismissed,
        _ => return None,
    };
    let body = review.body.unwrap_or_default();
    let body = Some(body.trim().to_owned()).filter(|body| !body.is_empty());
    let own = comments
        .iter()
        .filter(|comment| comment.pull_request_review_id == Some(review.id));
    let lines = body.into_iter().chain(own.map(ReviewComment::describe));
    let mut text = lines.collect::<Vec<_>>().join("\n");
    text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
    Some(PullReview {
        id: review.id,
        // The account of the author may be deleted.
        author: review.user.map_or("ghost".to_owned(), |user| user.login),
        is_member: review.author_association.as_deref().is_some_and(is_member),
        verdict,
        commit: review.commit_id,
        text,
    })
}
