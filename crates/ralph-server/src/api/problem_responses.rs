//! The descriptions of the problems that groups of routes respond with. Those of all routes are added in
//! `openapi_document`.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use utoipa::IntoResponses;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::{Ref, RefOr, Response, ResponseBuilder};

/// The problems of a route that reads a run.
pub(crate) struct ReadProblems;

/// The problems of a route that sends a command to a run.
pub(crate) struct CommandProblems;

/// The problems of a route that replaces a file.
pub(crate) struct WriteProblems;

impl IntoResponses for ReadProblems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        describe(&[
            (StatusCode::FORBIDDEN, "The request is not permitted."),
            (StatusCode::NOT_FOUND, "There is no such run or part of it."),
            (
                StatusCode::CONFLICT,
                "The state of the run does not permit it.",
            ),
            (StatusCode::UNPROCESSABLE_ENTITY, "A value is not usable."),
        ])
    }
}

impl IntoResponses for CommandProblems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let mut responses = ReadProblems::responses();
        responses.extend(describe(&[
            (
                StatusCode::FORBIDDEN,
                "The mode of the run forbids the command; `allowed` lists the others.",
            ),
            (
                StatusCode::CONFLICT,
                "The status of the run does not permit the command; `allowed` lists the others.",
            ),
            (
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "The body has another content type.",
            ),
        ]));
        responses
    }
}

impl IntoResponses for WriteProblems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let mut responses = CommandProblems::responses();
        responses.extend(describe(&[
            (
                StatusCode::PRECONDITION_FAILED,
                "The file changed since `If-Match`; `diff` has the difference to the given text.",
            ),
            (
                StatusCode::PRECONDITION_REQUIRED,
                "The request has neither `If-Match` nor `If-None-Match: *`.",
            ),
        ]));
        responses
    }
}

fn describe(problems: &[(StatusCode, &str)]) -> BTreeMap<String, RefOr<Response>> {
    let response = |(status, description): &(StatusCode, &str)| {
        let schema = Ref::from_schema_name("Problem");
        let content = ContentBuilder::new().schema(Some(schema)).build();
        let response = ResponseBuilder::new()
            .description(*description)
            .content("application/problem+json", content)
            .build();
        (status.as_u16().to_string(), RefOr::T(response))
    };
    problems.iter().map(response).collect()
}
