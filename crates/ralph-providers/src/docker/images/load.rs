//! Loads images from a file, as `docker load` does.

use std::io;
use std::path::Path;
use std::time::Duration;

use bollard::body_try_stream;
use bollard::query_parameters::ImportImageOptionsBuilder;
use bytes::Bytes;
use futures_util::stream as streams;
use ralph_core::image::ImageName;
use ralph_guest::available;
use tokio::fs::File;
use tokio::io::AsyncReadExt as _;

use super::build_output::BuildOutput;
use super::error::ImageError;
use super::progress::{ImageProgress, ImageProgressSink};
use super::stream;
use crate::docker::DockerEngine;

/// Maximum time without a response: the Docker Engine unpacks the whole archive first.
const LOAD_IDLE_TIMEOUT: Duration = Duration::from_mins(10);

/// Chunk size for reading the file.
const CHUNK_BYTES: usize = 256 * 1024;

/// Loads an archive, compressed or not, and returns its images.
pub(super) async fn load(
    engine: &DockerEngine,
    path: &Path,
    watcher: ImageProgressSink<'_>,
) -> Result<Vec<ImageName>, ImageError> {
    let doing = format!("load images from `{}`", path.display());
    watcher(ImageProgress::Started(format!(
        "loading `{}`",
        path.display()
    )));
    let file = File::open(path).await.map_err(|source| ImageError::Read {
        path: path.display().to_string(),
        source,
    })?;
    let body = body_try_stream(streams::try_unfold(file, read_chunk));
    let api = engine.api().clone().with_timeout(LOAD_IDLE_TIMEOUT);
    let options = ImportImageOptionsBuilder::new().quiet(true).build();
    let mut response = Box::pin(api.import_image(options, body, None));
    let mut lines = BuildOutput::default();
    let mut progress = Vec::new();
    while let Some(next) = stream::next_within(&mut response, &doing, LOAD_IDLE_TIMEOUT).await? {
        match next {
            Ok(info) => progress.extend(lines.push(&info.stream.unwrap_or_default())),
            Err(error) => return Err(engine.classify_failure(&doing, error).await.into()),
        }
    }
    progress.extend(lines.flush());
    let loaded = progress.iter().filter_map(loaded_image).collect();
    progress.into_iter().for_each(watcher);
    Ok(loaded)
}

async fn read_chunk(mut file: File) -> io::Result<Option<(Bytes, File)>> {
    let mut bytes = vec![0; CHUNK_BYTES];
    let length = file.read(&mut bytes).await?;
    bytes.truncate(length);
    Ok((length > 0).then(|| (Bytes::from(bytes), file)))
}

/// Parses `Loaded image: name:tag` and `Loaded image ID: sha256:…`.
fn loaded_image(progress: &ImageProgress) -> Option<ImageName> {
    let ImageProgress::Output(line) = progress else {
        return None;
    };
    let name = line
        .strip_prefix("Loaded image: ")
        .or_else(|| line.strip_prefix("Loaded image ID: "))?;
    available(ImageName::parse(name.trim()))
}
