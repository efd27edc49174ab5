//! The one door for replies.

use serde_json::{Map, Value};

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

/// Finds the object in a reply that is no response of an iteration, with the same repairs.
pub(crate) fn find_object(reply: &str) -> Result<Map<String, Value>, ReplyError> {
    repair::find(reply).map(|found| found.object)
}
