//! `GET /openapi.json`: the description of the interface, with what all operations have in common.

use std::sync::LazyLock;

use axum::http::header;
use axum::response::IntoResponse;
use utoipa::OpenApi;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::path::Operation;
use utoipa::openapi::schema::{AnyOfBuilder, Components, ComponentsBuilder, Schema};
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::{OpenApi as OpenApiDocument, Ref, RefOr, Response, ResponseBuilder};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::context::ServerContext;
use crate::problem::Problem;

/// The description of the interface without its paths, which the routers add.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "ralph",
        description = "Runs of ralph: start, watch, steer and inspect them."
    ),
    components(schemas(Problem))
)]
struct ApiDescription;

/// The errors of every operation: status code and meaning.
const COMMON_ERRORS: [(&str, &str); 10] = [
    ("400", "The request cannot be understood."),
    ("401", "The request has no valid token or session."),
    (
        "403",
        "The origin is foreign, the header `X-Ralph-Csrf` is missing, or the caller or the mode does not permit it.",
    ),
    ("408", "The body did not arrive in time."),
    ("413", "The body is too large."),
    ("415", "The body has another content type."),
    ("421", "The `Host` header does not name this server."),
    ("429", "Too many attempts to sign in failed."),
    ("431", "The headers are too large."),
    ("500", "The request failed."),
];

/// The JSON of the description.
static DOCUMENT: LazyLock<Result<String, serde_json::Error>> =
    LazyLock::new(|| super::openapi().to_pretty_json());

pub(super) fn routes() -> OpenApiRouter<ServerContext> {
    OpenApiRouter::new().routes(routes!(document))
}

/// Returns the description of this interface.
#[utoipa::path(
    get,
    path = "/openapi.json",
    tag = "server",
    responses((status = 200, description = "An OpenAPI document.", body = serde_json::Value))
)]
async fn document() -> Result<impl IntoResponse, Problem> {
    match &*DOCUMENT {
        Ok(document) => Ok((
            [(header::CONTENT_TYPE, "application/json")],
            document.as_str(),
        )),
        Err(error) => Err(Problem::new(
            axum::http::StatusCode::INTERNAL_SERVER_ERROR,
            "failed",
            error.to_string(),
        )),
    }
}

/// Returns the description without paths.
pub(super) fn base() -> OpenApiDocument {
    ApiDescription::openapi()
}

/// Adds the ways to sign in and the common errors.
pub(super) fn complete(mut document: OpenApiDocument) -> OpenApiDocument {
    let components = document.components.take();
    let components = components.unwrap_or_else(|| ComponentsBuilder::new().build());
    let mut components = components;
    let token = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some(
            "The token of programs, from `server.json` or `RALPH_TOKEN`.",
        ))
        .build();
    components.add_security_scheme("token", SecurityScheme::Http(token));
    let cookie = ApiKeyValue::with_description(
        "ralph_session",
        "The session of a browser. Requests that change something also need the header `X-Ralph-Csrf`.",
    );
    let cookie = SecurityScheme::ApiKey(ApiKey::Cookie(cookie));
    components.add_security_scheme("session", cookie);
    accept_several_matches(&mut components, "ListedRun");
    document.components = Some(components);
    for (path, item) in &mut document.paths.paths {
        let operations = [
            ("get", &mut item.get),
            ("put", &mut item.put),
            ("post", &mut item.post),
            ("delete", &mut item.delete),
            ("patch", &mut item.patch),
            ("head", &mut item.head),
        ];
        for (method, operation) in operations {
            if let Some(operation) = operation {
                operation.operation_id = Some(operation_id(method, path));
                complete_operation(path, operation);
            }
        }
    }
    document
}

/// Lets a value match several schemas of a union: the details of a run contain its summary.
fn accept_several_matches(components: &mut Components, name: &str) {
    if let Some(RefOr::T(schema)) = components.schemas.get_mut(name)
        && let Schema::OneOf(union) = schema
    {
        let description = union.description.take();
        let items = std::mem::take(&mut union.items).into_iter();
        let any = items.fold(AnyOfBuilder::new(), AnyOfBuilder::item);
        *schema = Schema::AnyOf(any.description(description).build());
    }
}

/// Returns the name of an operation for generated clients, such as `get_runs_id_diff`. The names of the
/// functions are not unique.
fn operation_id(method: &str, path: &str) -> String {
    let path = path.strip_prefix("/api/v1").unwrap_or(path);
    let words = path
        .split(|character: char| !character.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty());
    let words: Vec<&str> = std::iter::once(method).chain(words).collect();
    words.join("_")
}

fn complete_operation(path: &str, operation: &mut Operation) {
    let responses = &mut operation.responses.responses;
    for (status, meaning) in COMMON_ERRORS {
        let is_sign_in = matches!(status, "401" | "429");
        if path == "/health" && is_sign_in {
            continue;
        }
        let response = responses.entry(status.to_owned());
        response.or_insert_with(|| RefOr::T(problem_response(meaning)));
    }
    for (status, response) in responses.iter_mut() {
        let is_error = status.starts_with(['4', '5']);
        if let (true, RefOr::T(response)) = (is_error, response) {
            *response = problem_response(&response.description);
        }
    }
    operation.security = Some(if path == "/health" {
        Vec::new()
    } else {
        let none: [&str; 0] = [];
        ["token", "session"]
            .map(|name| SecurityRequirement::new(name, none))
            .into()
    });
}

/// Returns an error response: all have the same content.
fn problem_response(meaning: &str) -> Response {
    let schema = Ref::from_schema_name("Problem");
    let content = ContentBuilder::new().schema(Some(schema)).build();
    ResponseBuilder::new()
        .description(meaning)
        .content("application/problem+json", content)
        .build()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    /// Returns the references of a document that name no component.
    fn broken_references(value: &Value, document: &Value, broken: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                for (key, value) in fields {
                    match value.as_str() {
                        Some(reference) if key == "$ref" => {
                            let pointer = reference.trim_start_matches('#');
                            if document.pointer(pointer).is_none() {
                                broken.push(reference.to_owned());
                            }
                        }
                        Some(_) | None => broken_references(value, document, broken),
                    }
                }
            }
            Value::Array(values) => {
                for value in values {
                    broken_references(value, document, broken);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    #[test]
    fn names_of_operations_are_unique() {
        let document = serde_json::to_value(crate::openapi()).unwrap();
        let mut names = Vec::new();
        for item in document["paths"].as_object().unwrap().values() {
            for operation in item.as_object().unwrap().values() {
                names.extend(operation["operationId"].as_str().map(str::to_owned));
            }
        }
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!((names.len(), count > 60), (count, true));
    }

    #[test]
    fn every_reference_names_a_component() {
        let document = serde_json::to_value(crate::openapi()).unwrap();
        let mut broken = Vec::new();
        broken_references(&document, &document, &mut broken);
        assert_eq!(broken, Vec::<String>::new());
    }
}
