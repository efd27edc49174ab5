//! The one door for replies.

use serde_json::{Map, Value};

use super::error::ReplyError;
use super::find::{self, AnswerShape};
use super::kind::Response;
use super::schema;

/// The answer of an iteration.
const RESPONSE: AnswerShape = AnswerShape {
    key: "actions",
    effective_keys: &["actions", "claims"],
};

/// Reads a model's reply: all of it follows the contract, or nothing is executed.
pub fn parse(reply: &str) -> Result<Response, ReplyError> {
    let found = find::find(reply, RESPONSE)?;
    let checked = schema::check(&found.object).map_err(ReplyError::Schema)?;
    Ok(Response {
        summary: checked.summary,
        actions: checked.actions,
        claims: checked.claims,
        repaired: found.repaired,
    })
}

/// Finds the object with this key in a reply that is no response of an iteration, with the same repairs.
pub(crate) fn find_object(
    reply: &str,
    key: &'static str,
) -> Result<Map<String, Value>, ReplyError> {
    let kind = AnswerShape {
        key,
        effective_keys: &[],
    };
    find::find(reply, kind).map(|found| found.object)
}
