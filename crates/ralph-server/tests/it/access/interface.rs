//! Tests of the described interface: its routes, and that all of them need a credential.

use http_body_util::Full;
use hyper::Method;
use serde_json::Value;
use snapbox::{assert_data_eq, file};

use crate::support::TestServer;

/// The names of fields that could contain a command line.
const COMMAND_WORDS: [&str; 8] = [
    "command", "cmd", "shell", "script", "exec", "argv", "args", "program",
];

/// The fields with such a name that contain no command line: the id of a command of the contract.
const KNOWN_FIELDS: [&str; 1] = ["command_id"];

fn description() -> Value {
    serde_json::to_value(ralph_server::openapi()).unwrap()
}

/// Returns the method, the path and the description of each operation.
fn operations(description: &Value) -> Vec<(Method, String, Value)> {
    let mut operations = Vec::new();
    for (path, item) in description["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let method = Method::from_bytes(method.to_uppercase().as_bytes());
            operations.push((method.unwrap(), path.clone(), operation.clone()));
        }
    }
    operations
}

/// Returns the names of the properties of a schema and of all schemas in it.
fn property_names(description: &Value, schema: &Value, names: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::String(reference)) = fields.get("$ref") {
                let pointer = reference.trim_start_matches('#');
                let target = description.pointer(pointer).unwrap();
                let name = format!("<{pointer}>");
                if !names.contains(&name) {
                    names.push(name);
                    property_names(description, target, names);
                }
            }
            if let Some(Value::Object(properties)) = fields.get("properties") {
                names.extend(properties.keys().cloned());
            }
            for value in fields.values() {
                property_names(description, value, names);
            }
        }
        Value::Array(values) => {
            for value in values {
                property_names(description, value, names);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn the_list_of_routes_is_reviewed() {
    let mut routes: Vec<String> = operations(&description())
        .iter()
        .map(|(method, path, _)| format!("{method} {path}\n"))
        .collect();
    routes.sort();
    assert_data_eq!(routes.concat(), file!["routes.txt"]);
}

#[test]
fn no_request_contains_a_command_line() {
    let description = description();
    let mut found = Vec::new();
    for (method, path, operation) in operations(&description) {
        let mut names = Vec::new();
        property_names(&description, &operation["requestBody"], &mut names);
        for parameter in operation["parameters"].as_array().unwrap_or(&Vec::new()) {
            names.push(parameter["name"].as_str().unwrap().to_owned());
        }
        for name in names {
            let is_command = COMMAND_WORDS.iter().any(|word| {
                let mut parts = name.split(|c: char| !c.is_ascii_alphanumeric());
                parts.any(|part| part.eq_ignore_ascii_case(word))
            });
            if is_command && !name.starts_with('<') && !KNOWN_FIELDS.contains(&&*name) {
                found.push(format!("{method} {path}: {name}"));
            }
        }
    }
    assert_eq!(found, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_but_the_health_needs_a_credential() {
    let server = TestServer::start().await;
    for (method, path, operation) in operations(&description()) {
        let path = path.replace(['{', '}'], "x");
        let bare = server.bare_request(method.clone(), &path);
        let bare = server.send(bare.body(Full::default()).unwrap()).await;
        if path == "/health" {
            assert_eq!(operation["security"], serde_json::json!([]));
            bare.expect(200);
            continue;
        }
        assert_eq!(bare.status, 401, "{method} {path}");
        let wrong = server.bare_request(method.clone(), &path);
        let wrong = wrong.header("authorization", "Bearer wrong");
        let wrong = server.send(wrong.body(Full::default()).unwrap()).await;
        assert!(
            matches!(wrong.status.as_u16(), 401 | 429),
            "{method} {path}"
        );
        let responses = operation["responses"].as_object().unwrap();
        assert!(responses.contains_key("401"), "{method} {path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_description_is_served_and_complete() {
    let server = TestServer::start().await;
    let document = server.get("/api/v1/openapi.json").await.expect(200);
    assert_eq!(document.json(), description());
    assert!(
        document.json()["openapi"]
            .as_str()
            .unwrap()
            .starts_with("3.1")
    );
    for (method, path, operation) in operations(&description()) {
        let name = format!("{method} {path}");
        assert!(operation["tags"].is_array(), "{name} has no tag");
        assert!(operation["operationId"].is_string(), "{name} has no id");
        let summary = operation["summary"].as_str().unwrap_or_default();
        assert!(!summary.is_empty(), "{name} has no summary");
        for (status, response) in operation["responses"].as_object().unwrap() {
            if status.starts_with(['4', '5']) {
                let content = &response["content"]["application/problem+json"];
                assert_eq!(
                    content["schema"]["$ref"], "#/components/schemas/Problem",
                    "{name}"
                );
            }
        }
    }
}
