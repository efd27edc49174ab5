//! A review of the proposals of a repository as JSON.

use ralph_core::trust::TrustProposal;
use serde::Serialize;
use utoipa::ToSchema;

use super::review::TrustReview;

/// A review as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct TrustReviewReport {
    /// The root of the repository.
    pub repository: String,
    /// The values that wait for an approval.
    pub pending: Vec<TrustProposalEntry>,
    pub approved: Vec<TrustProposalEntry>,
    /// Values that only the user's configuration may set.
    pub not_allowed: Vec<UserOnlyEntry>,
}

/// A value of a repository's file that needs an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct TrustProposalEntry {
    pub file: String,
    pub key: String,
    pub value: String,
    /// The effect of the value.
    pub allows: String,
    /// The values of the key that were approved earlier.
    pub approved_before: Vec<String>,
}

/// A value of a repository's file that only the user's configuration may set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct UserOnlyEntry {
    pub file: String,
    pub key: String,
    pub value: String,
    pub allows: String,
    /// The file of the user that may set it.
    pub user_file: Option<String>,
}

impl TrustReviewReport {
    /// Describes a review.
    pub fn new(review: &TrustReview) -> Self {
        let entry = |proposal: &TrustProposal| {
            let before = review.previously_approved(proposal).into_iter();
            TrustProposalEntry {
                file: proposal.file.clone(),
                key: proposal.key.clone(),
                value: proposal.value.clone(),
                allows: proposal.allows.clone(),
                approved_before: before.map(str::to_owned).collect(),
            }
        };
        let not_allowed = review.overreach.iter().map(|value| UserOnlyEntry {
            file: value.file.clone(),
            key: value.key.clone(),
            value: value.value.clone(),
            allows: value.allows.clone(),
            user_file: value.user_file.map(str::to_owned),
        });
        Self {
            repository: review.repository().to_owned(),
            pending: review.pending.iter().map(entry).collect(),
            approved: review.approved.iter().map(entry).collect(),
            not_allowed: not_allowed.collect(),
        }
    }
}
