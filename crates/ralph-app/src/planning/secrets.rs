//! Finds secrets in the plan and the task file of a run before it starts.
//!
//! The journal is redacted and a resumed run reads its plan from there, and the task file is copied
//! into the sandbox and into the saved state. So neither may contain a secret.

use ralph_core::plan::RunPlan;
use ralph_core::secret::{Redactor, Unsearchable};
use serde_json::Value;

use crate::error::{AppError, ErrorKind};

/// The fields of a plan that are only displayed.
const DISPLAY_ONLY_FIELDS: [&str; 3] = ["title", "test_command", "suggested"];

/// Rejects a task file that contains a known secret.
pub(crate) fn refuse_in_task(text: &str, redactor: &Redactor) -> Result<(), AppError> {
    let Some(name) = redactor.find_known(text.as_bytes()) else {
        return Ok(());
    };
    Err(AppError::new(
        ErrorKind::TaskRejected,
        "the task file is rejected",
        format!("it contains the value of `{name}`"),
        "remove the value; the text of a task reaches the sandbox, the prompts and the saved state",
    ))
}

/// Rejects a plan that would contain a placeholder when it is read from the journal.
pub(crate) fn refuse_in_plan(plan: &RunPlan, redactor: &Redactor) -> Result<(), AppError> {
    let differs = |text: &str| *redactor.redact(text) != *text;
    let Some((field, text)) = find_field(plan, &differs) else {
        return Ok(());
    };
    let why = match redactor.find_known(text.as_bytes()) {
        Some(name) => format!("`{field}` of its plan contains the value of `{name}`"),
        None => format!("`{field}` of its plan contains something that looks like a secret"),
    };
    let fix = "choose another value: the journal stores no secret, so the run could not be resumed";
    Err(AppError::usage("cannot start the run", why, fix))
}

/// Rejects a plan that was redacted when it was stored.
pub(crate) fn refuse_redacted_plan(plan: &RunPlan) -> Result<(), AppError> {
    let is_redacted = |text: &str| text.contains("[REDACTED");
    let Some((field, _)) = find_field(plan, &is_redacted) else {
        return Ok(());
    };
    Err(AppError::runtime(
        format!("cannot resume run `{}`", plan.run),
        format!("`{field}` of its plan was redacted when it was stored"),
        "start the task again with `ralph run`",
    ))
}

/// Returns the first field of a plan that affects the run and whose text meets a condition, with
/// the text.
fn find_field(plan: &RunPlan, is_wrong: &dyn Fn(&str) -> bool) -> Option<(String, String)> {
    let value = serde_json::to_value(plan).expect("a plan is valid JSON");
    find_in_value("plan", &value, is_wrong)
}

fn find_in_value(
    field: &str,
    value: &Value,
    is_wrong: &dyn Fn(&str) -> bool,
) -> Option<(String, String)> {
    match value {
        Value::String(text) if is_wrong(text) => Some((field.to_owned(), text.clone())),
        Value::Array(items) => items
            .iter()
            .find_map(|item| find_in_value(field, item, is_wrong)),
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, _)| !DISPLAY_ONLY_FIELDS.contains(&name.as_str()))
            .find_map(|(name, item)| find_in_value(name, item, is_wrong)),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// Returns a warning that names the variables whose values are not redacted.
pub(crate) fn unredacted_warning(redactor: &Redactor) -> Option<String> {
    let unsearchable = redactor.unsearchable();
    let names: Vec<String> = unsearchable
        .iter()
        .map(|(name, _)| format!("`{name}`"))
        .collect();
    let is_all = |why: Unsearchable| unsearchable.iter().all(|(_, other)| *other == why);
    let why = match [Unsearchable::Short, Unsearchable::Common]
        .into_iter()
        .find(|why| is_all(*why))
    {
        Some(why) => why.to_string(),
        None => "too short or too common to search for".to_owned(),
    };
    match names.as_slice() {
        [] => None,
        [name] => Some(format!("{name} is not redacted: its value is {why}")),
        [first @ .., last] => Some(format!(
            "{} and {last} are not redacted: their values are {why}",
            first.join(", ")
        )),
    }
}

#[cfg(test)]
mod tests {
    use ralph_core::secret::Secret;

    use super::*;

    fn redactor(secrets: &[(&str, &str)]) -> Redactor {
        let secret = |(name, value): &(&str, &str)| {
            let value = (*value).to_owned();
            ((*name).to_owned(), Secret::new(value))
        };
        Redactor::new(secrets.iter().map(secret).collect())
    }

    #[test]
    fn one_warning_names_every_variable_that_is_not_redacted() {
        for (secrets, expected) in [
            (&[("A", "s3nt1nel-9")][..], None),
            (
                &[("POSTGRES_PASSWORD", "postgres"), ("A", "s3nt1nel-9")],
                Some("`POSTGRES_PASSWORD` is not redacted: its value is too common to search for"),
            ),
            (
                &[("A", "short"), ("B", "tiny")],
                Some("`A` and `B` are not redacted: their values are too short to search for"),
            ),
            (
                &[("A", "short"), ("B", "postgres"), ("C", "password")],
                Some(
                    "`A`, `B` and `C` are not redacted: their values are too short or too common to \
                     search for",
                ),
            ),
        ] {
            assert_eq!(unredacted_warning(&redactor(secrets)).as_deref(), expected);
        }
    }

    #[test]
    fn a_task_with_a_known_secret_is_refused_by_its_name() {
        let redactor = redactor(&[("API_KEY", "s3nt1nel-9")]);
        assert_eq!(refuse_in_task("verify: curl x", &redactor), Ok(()));
        let refused = refuse_in_task("verify: curl -u s3nt1nel-9", &redactor).unwrap_err();
        assert_eq!(refused.why, "it contains the value of `API_KEY`");
        assert_eq!(refused.kind, ErrorKind::TaskRejected);
    }

    #[test]
    fn only_executed_plan_fields_are_checked() {
        let value = serde_json::json!({
            "title": "s3nt1nel-9", "branch": "ralph/x", "container": {"image": "x:s3nt1nel-9"},
        });
        let redactor = redactor(&[("API_KEY", "s3nt1nel-9")]);
        let is_wrong = |text: &str| redactor.find_known(text.as_bytes()).is_some();
        let found = find_in_value("plan", &value, &is_wrong);
        assert_eq!(found, Some(("image".into(), "x:s3nt1nel-9".into())));
    }
}
