//! No request of the interface has a place for a command, a program or its arguments.

use std::collections::BTreeSet;

use serde_json::Value;

/// The names of fields that could contain a command.
const SUSPICIOUS: [&str; 12] = [
    "args",
    "arguments",
    "argv",
    "bash",
    "cmd",
    "command",
    "commands",
    "exec",
    "program",
    "script",
    "setup_command",
    "shell",
];

/// Adds the names of all properties of a schema.
fn add_properties(
    schema: &Value,
    document: &Value,
    seen: &mut BTreeSet<String>,
    names: &mut BTreeSet<String>,
) {
    match schema {
        Value::Object(fields) => {
            if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
                if seen.insert(reference.to_owned()) {
                    let pointer = reference.trim_start_matches('#');
                    let target = document.pointer(pointer).unwrap();
                    add_properties(target, document, seen, names);
                }
                return;
            }
            if let Some(Value::Object(properties)) = fields.get("properties") {
                names.extend(properties.keys().cloned());
            }
            for value in fields.values() {
                add_properties(value, document, seen, names);
            }
        }
        Value::Array(values) => {
            for value in values {
                add_properties(value, document, seen, names);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn no_request_has_a_place_for_a_command() {
    let document = serde_json::to_value(ralph_server::openapi()).unwrap();
    let mut requests = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let mut names = BTreeSet::new();
            let mut seen = BTreeSet::new();
            add_properties(&operation["requestBody"], &document, &mut seen, &mut names);
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                names.insert(parameter["name"].as_str().unwrap().to_owned());
            }
            let found: Vec<&String> = names
                .iter()
                .filter(|name| SUSPICIOUS.contains(&name.as_str()))
                .collect();
            assert!(found.is_empty(), "{method} {path}: {found:?}");
            requests += usize::from(!names.is_empty());
        }
    }
    assert!(requests > 20, "{requests}");
}
