//! Pulls one image from its registry.

use std::collections::BTreeMap;
use std::time::Duration;

use bollard::errors::Error;
use bollard::models::CreateImageInfo;
use bollard::query_parameters::CreateImageOptionsBuilder;
use ralph_core::image::ImageName;

use super::error::ImageError;
use super::progress::{ImageProgress, ImageProgressSink};
use super::stream;
use crate::docker::DockerEngine;
use crate::docker::error::{mentions_full_disk, root_message};

/// Maximum time without data from the registry.
const PULL_IDLE_TIMEOUT: Duration = Duration::from_mins(2);

/// The error message after that time.
const REGISTRY_TIMEOUT_MESSAGE: &str = "the registry does not respond";

/// Pulls an image. Dropping the future cancels the pull.
pub(super) async fn pull(
    engine: &DockerEngine,
    image: &ImageName,
    watcher: ImageProgressSink<'_>,
) -> Result<(), ImageError> {
    let doing = format!("pull image `{image}`");
    let options = CreateImageOptionsBuilder::new()
        .from_image(image.repository())
        // Required: without a tag, the Docker Engine would pull every version.
        .tag(image.version())
        .build();
    let mut response = Box::pin(engine.api().create_image(Some(options), None, None));
    let mut layers = PullProgress::default();
    let timed_out = |_| ImageError::Pull {
        image: image.clone(),
        why: REGISTRY_TIMEOUT_MESSAGE.to_owned(),
    };
    while let Some(chunk) = stream::next_within(&mut response, &doing, PULL_IDLE_TIMEOUT)
        .await
        .map_err(timed_out)?
    {
        match chunk {
            Ok(info) => layers.update(info).map(&mut *watcher),
            Err(error) => return Err(classify_failure(engine, image, &doing, error).await),
        };
    }
    Ok(())
}

async fn classify_failure(
    engine: &DockerEngine,
    image: &ImageName,
    doing: &str,
    error: Error,
) -> ImageError {
    let message = root_message(&error);
    let is_rejected = matches!(
        error,
        Error::DockerStreamError { .. } | Error::DockerResponseServerError { .. }
    );
    let why = if matches!(error, Error::RequestTimeoutError) {
        REGISTRY_TIMEOUT_MESSAGE.to_owned()
    } else if is_rejected && !mentions_full_disk(&message) {
        message
    } else {
        return engine.classify_failure(doing, error).await.into();
    };
    let image = image.clone();
    ImageError::Pull { image, why }
}

/// Progress of each layer.
#[derive(Debug, Default)]
struct PullProgress {
    bytes: BTreeMap<String, (u64, u64)>,
}

impl PullProgress {
    /// Updates the progress and returns a report if anything changed.
    fn update(&mut self, info: CreateImageInfo) -> Option<ImageProgress> {
        let layer = info.id?;
        let (done, total) = self.bytes.get(&layer).copied().unwrap_or_default();
        let now = match info.status?.as_str() {
            "Downloading" => {
                let detail = info.progress_detail?;
                let count = |number: Option<i64>| u64::try_from(number.unwrap_or(0)).unwrap_or(0);
                (count(detail.current), count(detail.total).max(total))
            }
            "Download complete" | "Pull complete" => (total, total),
            _ => return None,
        };
        if now == (done, total) {
            return None;
        }
        self.bytes.insert(layer, now);
        let sum = |pick: fn(&(u64, u64)) -> u64| self.bytes.values().map(pick).sum();
        Some(ImageProgress::Transfer {
            done: sum(|layer| layer.0),
            total: sum(|layer| layer.1),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_added_up() {
        let mut layers = PullProgress::default();
        let mut reports = Vec::new();
        for message in [
            r#"{"status":"Pulling from library/x","id":"1"}"#,
            r#"{"status":"Pulling fs layer","id":"a","progressDetail":{}}"#,
            r#"{"status":"Downloading","id":"a","progressDetail":{"current":10,"total":100}}"#,
            r#"{"status":"Downloading","id":"b","progressDetail":{"current":1,"total":50}}"#,
            r#"{"status":"Downloading","id":"b","progressDetail":{"current":1,"total":50}}"#,
            r#"{"status":"Download complete","id":"a","progressDetail":{}}"#,
            r#"{"status":"Extracting","id":"a","progressDetail":{"current":5,"total":100}}"#,
            r#"{"status":"Already exists","id":"c","progressDetail":{}}"#,
            r#"{"status":"Pull complete","id":"b","progressDetail":{}}"#,
            r#"{"status":"Digest: sha256:1"}"#,
        ] {
            reports.extend(layers.update(serde_json::from_str(message).unwrap()));
        }
        let transfer = |(done, total)| ImageProgress::Transfer { done, total };
        assert_eq!(
            reports,
            [(10, 100), (11, 150), (101, 150), (150, 150)].map(transfer)
        );
    }
}
