//! Pulls one image from its registry.

use std::collections::BTreeMap;
use std::time::Duration;

use bollard::errors::Error;
use bollard::models::CreateImageInfo;
use bollard::query_parameters::CreateImageOptionsBuilder;
use ralph_core::image::ImageName;

use super::error::ImageError;
use super::progress::{Progress, Watcher};
use super::stream;
use crate::docker::Engine;
use crate::docker::error::{is_full, said};

/// How long a registry may say nothing.
const PATIENCE: Duration = Duration::from_mins(2);

/// What is told when it says nothing for longer.
const SILENT: &str = "the registry does not answer";

/// Pulls an image. Dropping the future ends it.
pub(super) async fn pull(
    engine: &Engine,
    image: &ImageName,
    watcher: Watcher<'_>,
) -> Result<(), ImageError> {
    let doing = format!("pull image `{image}`");
    let options = CreateImageOptionsBuilder::new()
        .from_image(image.repository())
        // Never left out: without it the engine would pull every version there is.
        .tag(image.version())
        .build();
    let mut answer = Box::pin(engine.api().create_image(Some(options), None, None));
    let mut layers = Layers::default();
    let silent = |_| ImageError::Pull {
        image: image.clone(),
        why: SILENT.to_owned(),
    };
    while let Some(piece) = stream::next(&mut answer, &doing, PATIENCE)
        .await
        .map_err(silent)?
    {
        match piece {
            Ok(info) => layers.take(info).map(&mut *watcher),
            Err(error) => return Err(failure(engine, image, &doing, error).await),
        };
    }
    Ok(())
}

async fn failure(engine: &Engine, image: &ImageName, doing: &str, error: Error) -> ImageError {
    let words = said(&error);
    let is_refused = matches!(
        error,
        Error::DockerStreamError { .. } | Error::DockerResponseServerError { .. }
    );
    let why = if matches!(error, Error::RequestTimeoutError) {
        SILENT.to_owned()
    } else if is_refused && !is_full(&words) {
        words
    } else {
        return engine.failure(doing, error).await.into();
    };
    let image = image.clone();
    ImageError::Pull { image, why }
}

/// How much of each layer is here.
#[derive(Debug, Default)]
struct Layers {
    bytes: BTreeMap<String, (u64, u64)>,
}

impl Layers {
    /// Takes the next message; returns what can be told, if it changes anything.
    fn take(&mut self, info: CreateImageInfo) -> Option<Progress> {
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
        Some(Progress::Transfer {
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
        let mut layers = Layers::default();
        let mut told = Vec::new();
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
            told.extend(layers.take(serde_json::from_str(message).unwrap()));
        }
        let transfer = |(done, total)| Progress::Transfer { done, total };
        assert_eq!(
            told,
            [(10, 100), (11, 150), (101, 150), (150, 150)].map(transfer)
        );
    }
}
