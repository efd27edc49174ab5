//! Entry point for parsing replies.

use serde_json::{Map, Value};

use super::error::ReplyError;
use super::find::{self, AnswerShape};
use super::kind::Response;
use super::schema;

/// The reply of an iteration.
const RESPONSE: AnswerShape = AnswerShape {
    key: "actions",
    effective_keys: &["actions", "claims"],
};

/// Parses a model's reply. Any violation of the schema rejects the whole reply.
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

/// Finds the object with `key` in a reply of another kind, with the same repairs.
pub(crate) fn find_object(
    reply: &str,
    key: &'static str,
) -> Result<Map<String, Value>, ReplyError> {
    let shape = AnswerShape {
        key,
        effective_keys: &[],
    };
    find::find(reply, shape).map(|found| found.object)
}
