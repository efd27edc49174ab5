//! The proposals of a repository's files and the user's approvals.
//!
//! - [`TrustReview`] sorts the proposals, [`review_run`] collects those that a run would use.
//! - [`refusal_error`] is the error of a run without an approval.

mod approval;
mod report;
mod review;

pub use approval::{approve_host, is_origin, proposal_text, refusal_error, review_run};
pub use report::{TrustProposalEntry, TrustReviewReport, UserOnlyEntry};
pub use review::{ReviewScope, TrustReview, unapproved_image};
