//! Builds the prompt for a second attempt after a reply that could not be parsed.

use super::cap;
use super::excerpt::excerpt;
use super::writer::PromptWriter;
use crate::ports::ModelRequest;

/// Builds the prompt that asks for a corrected reply: the first prompt again, since calls are
/// stateless, then both ends of the bad reply and its errors. The result is never larger than
/// [`MAX_REPAIR_BYTES`](super::MAX_REPAIR_BYTES) if `first` comes from [`build`](super::build()).
pub fn build_repair(first: &ModelRequest, bad_reply: &str, errors: &str) -> ModelRequest {
    let mut page = PromptWriter::default();
    page.heading("The reply to this prompt could not be read");
    page.paragraph("None of it was performed. The reply was:");
    let file = "response.json";
    page.quote(file, &excerpt(bad_reply, &cap::BAD_REPLY, file));
    page.paragraph("What is wrong with it:");
    let full = ".ralph/errors.log";
    page.quote(
        "reply errors",
        &excerpt(errors, &cap::BAD_REPLY_ERRORS, full),
    );
    page.paragraph("Reply now with the corrected JSON object only: the same intent, in the form of part 10, and nothing else.");
    ModelRequest {
        system: first.system.clone(),
        user: format!("{}\n{}", first.user, page.finish()),
        schema: first.schema,
        max_output_tokens: first.max_output_tokens,
    }
}
