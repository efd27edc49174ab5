//! Applies the rules to one value.

use serde_json::Value;

use super::rules::{TrustRule, rule};
use super::{TrustAuthority, TrustBound, TrustFile};

/// Returns the authority that a value in a repository's file needs, given the value in force
/// without that file. Only the user may set a key without a rule.
pub fn judge(
    file: TrustFile,
    key: &str,
    value: &Value,
    in_force: Option<&Value>,
) -> (TrustAuthority, Option<&'static TrustRule>) {
    let Some(rule) = rule(file, key, Some(&value_text(value))) else {
        return (TrustAuthority::UserOnly, None);
    };
    if in_force.is_some_and(|in_force| allows_no_more(rule.bound, value, in_force)) {
        return (TrustAuthority::Harmless, Some(rule));
    }
    (rule.authority, Some(rule))
}

/// Returns whether a sandbox provider isolates less than another.
pub fn is_weaker_sandbox(name: &str, than: &str) -> bool {
    let (name, than) = (Value::from(name), Value::from(than));
    let (authority, _) = judge(TrustFile::Task, "sandbox_provider", &name, Some(&than));
    authority != TrustAuthority::Harmless
}

fn allows_no_more(bound: TrustBound, value: &Value, in_force: &Value) -> bool {
    if value == in_force {
        return true;
    }
    match bound {
        TrustBound::Same => false,
        // A name that is not in the order may allow more.
        TrustBound::Order(order) => {
            let position = |value: &Value| order.iter().position(|name| *name == value_text(value));
            match (position(value), position(in_force)) {
                (Some(value), Some(in_force)) => value <= in_force,
                (Some(_) | None, _) => false,
            }
        }
        TrustBound::AtMost => is_at_most(value, in_force),
        TrustBound::Limit => {
            let unlimited = |value: &Value| value.as_f64() == Some(0.0);
            unlimited(in_force) || !unlimited(value) && is_at_most(value, in_force)
        }
        TrustBound::Within => match (value.as_array(), in_force.as_array()) {
            (Some(items), Some(known)) => items.iter().all(|item| known.contains(item)),
            (Some(_) | None, _) => false,
        },
    }
}

/// Compares two numbers; false if one of the values is not a number.
fn is_at_most(value: &Value, in_force: &Value) -> bool {
    match (value.as_f64(), in_force.as_f64()) {
        (Some(value), Some(in_force)) => value <= in_force,
        (Some(_) | None, _) => false,
    }
}

/// Formats a value for the rules and messages.
pub(super) fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    }
}
