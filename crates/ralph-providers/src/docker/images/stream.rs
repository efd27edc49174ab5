//! Reads streamed responses.

use std::time::Duration;

use bollard::errors::Error;
use futures_util::{Stream, StreamExt as _};

use crate::docker::DockerError;

/// Returns the next chunk of a response, or an error after `limit` without data.
pub(super) async fn next_within<T>(
    response: &mut (impl Stream<Item = Result<T, Error>> + Unpin),
    doing: &str,
    limit: Duration,
) -> Result<Option<Result<T, Error>>, DockerError> {
    tokio::time::timeout(limit, response.next())
        .await
        .map_err(|_| DockerError::Timeout {
            doing: doing.to_owned(),
            limit,
        })
}
