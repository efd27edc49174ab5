//! The rights of a caller.

use serde::Serialize;
use utoipa::ToSchema;

/// The rights of a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AccessScope {
    /// Everything.
    Full,
    /// Only requests that change nothing.
    Read,
}
