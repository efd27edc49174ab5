//! The one door for replies.

use super::error::ReplyError;
use super::kind::Response;
use super::{repair, schema};

/// Reads a model's reply: all of it follows the contract, or nothing is executed.
pub fn parse(reply: &str) -> Result<Response, ReplyError> {
    let found = repair::find(reply)?;
    let checked = schema::check(&found.object).map_err(ReplyError::Schema)?;
    Ok(Response {
        summary: checked.summary,
        actions: checked.actions,
        claims: checked.claims,
        repaired: found.repaired,
    })
}
