//! A local registry with one image, sufficient for a Docker Engine to pull from.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ralph_core::id::Digest;
use ralph_core::image::ImageName;
use ralph_guest::best_effort;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

const MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";

/// The registry. Dropping it stops it, as if the network were down.
pub(crate) struct FakeRegistry {
    pub(crate) image: ImageName,
    content: Arc<RegistryContent>,
    server: JoinHandle<()>,
}

#[derive(Default)]
struct RegistryContent {
    /// Content type and bytes, by path suffix.
    blobs: Mutex<BTreeMap<String, (&'static str, Vec<u8>)>>,
    requests: AtomicUsize,
}

impl FakeRegistry {
    /// Starts with one version of the image.
    pub(crate) async fn start(repository: &str, architecture: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let content = Arc::new(RegistryContent::default());
        let shared = Arc::clone(&content);
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&shared)));
            }
        });
        let image = ImageName::parse(&format!("127.0.0.1:{port}/{repository}:1")).unwrap();
        let registry = Self {
            image,
            content,
            server,
        };
        registry.publish("first", architecture);
        registry
    }

    /// Replaces the published version and returns its digest.
    pub(crate) fn publish(&self, content: &str, architecture: &str) -> String {
        // Unique content, because the Docker Engine deduplicates equal images.
        let content = &format!("{} {content}", self.image);
        let mut layer = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        layer
            .append_data(&mut header, "content", content.as_bytes())
            .unwrap();
        let layer = layer.into_inner().unwrap();
        let config = json!({
            "architecture": architecture, "os": "linux", "config": {},
            "rootfs": {"type": "layers", "diff_ids": [digest(&layer)]},
        });
        let config = config.to_string().into_bytes();
        let blob = |kind: &str, bytes: &[u8]| json!({"mediaType": kind, "size": bytes.len(), "digest": digest(bytes)});
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST,
            "config": blob("application/vnd.docker.container.image.v1+json", &config),
            "layers": [blob("application/vnd.docker.image.rootfs.diff.tar.gzip", &layer)],
        });
        let manifest = manifest.to_string().into_bytes();
        let name = digest(&manifest);
        let mut blobs = self.content.blobs.lock().unwrap();
        for (path, kind, bytes) in [
            ("/v2/".to_owned(), "application/json", b"{}".to_vec()),
            ("/manifests/1".to_owned(), MANIFEST, manifest.clone()),
            (format!("/manifests/{name}"), MANIFEST, manifest),
            (
                format!("/blobs/{}", digest(&config)),
                "application/octet-stream",
                config,
            ),
            (
                format!("/blobs/{}", digest(&layer)),
                "application/octet-stream",
                layer,
            ),
        ] {
            blobs.insert(path, (kind, bytes));
        }
        name
    }

    /// Returns the number of requests to `/v2/`, which start every pull.
    pub(crate) fn request_count(&self) -> usize {
        self.content.requests.load(Ordering::SeqCst)
    }
}

impl Drop for FakeRegistry {
    fn drop(&mut self) {
        self.server.abort();
    }
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", Digest::compute(bytes).as_str())
}

async fn serve(mut stream: TcpStream, content: Arc<RegistryContent>) {
    let mut request = vec![0; 8192];
    let length = stream.read(&mut request).await.unwrap_or(0);
    let request = String::from_utf8_lossy(&request[..length]).into_owned();
    let mut parts = request.split(' ');
    let (method, path) = (
        parts.next().unwrap_or_default(),
        parts.next().unwrap_or_default(),
    );
    if path.ends_with("/v2/") {
        content.requests.fetch_add(1, Ordering::SeqCst);
    }
    let blob = {
        let blobs = content.blobs.lock().unwrap();
        blobs
            .iter()
            .find(|(end, _)| path.ends_with(end.as_str()))
            .map(|(_, blob)| blob.clone())
    };
    let (status, kind, bytes) = match blob {
        Some((kind, bytes)) => ("200 OK", kind, bytes),
        None => ("404 Not Found", "text/plain", Vec::new()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
         Docker-Content-Digest: {}\r\nDocker-Distribution-Api-Version: registry/2.0\r\nConnection: close\r\n\r\n",
        bytes.len(),
        digest(&bytes)
    );
    // The client may have disconnected.
    best_effort(stream.write_all(head.as_bytes()).await);
    if method != "HEAD" {
        best_effort(stream.write_all(&bytes).await);
    }
}
