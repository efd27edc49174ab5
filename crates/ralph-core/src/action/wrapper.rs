//! Recognises objects that wrap a whole answer: tool calls, messages, objects with a single key.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// Keys for the arguments of a tool call.
const ARGUMENTS: [&str; 3] = ["arguments", "input", "parameters"];

/// Keys that contain the answer if the object has no other key.
const ONLY_KEYS: [&str; 6] = ["response", "reply", "answer", "output", "result", "json"];

/// Returns whether an object with these keys may contain an answer. Called before it is parsed.
pub(super) fn may_wrap_answer(keys: &BTreeSet<String>) -> bool {
    let mut known = ["function", "content"]
        .into_iter()
        .chain(ARGUMENTS)
        .chain(ONLY_KEYS);
    known.any(|key| keys.contains(key))
}

/// Returns the value that contains the answer.
///
/// An action is never a wrapper: the content of a `write` is a file, even if it resembles an
/// answer.
pub(super) fn wrapped_value(wrapper: &Map<String, Value>) -> Option<&Value> {
    if wrapper.get("name").is_some_and(Value::is_string) {
        let mut arguments = ARGUMENTS.into_iter().filter_map(|key| wrapper.get(key));
        return arguments.next().filter(|_| arguments.next().is_none());
    }
    if wrapper.get("role").is_some_and(|role| role == "assistant") {
        return wrapper.get("content");
    }
    if let Some(function @ Value::Object(_)) = wrapper.get("function") {
        return Some(function);
    }
    let (key, value) = wrapper.iter().next().filter(|_| wrapper.len() == 1)?;
    ONLY_KEYS.contains(&key.as_str()).then_some(value)
}
