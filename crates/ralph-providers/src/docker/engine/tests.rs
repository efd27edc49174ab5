//! Tests the connection against a fake Docker Engine with canned responses.

use std::path::Path;

use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixListener;
use tokio::task::JoinHandle;

use super::*;

/// A fake Docker Engine on its own socket: each request path with this suffix gets this response.
struct FakeDockerEngine {
    directory: TempDir,
    server: JoinHandle<()>,
}

impl FakeDockerEngine {
    fn with_responses(responses: &'static [(&'static str, u16, &'static str)]) -> Self {
        let directory = TempDir::new().unwrap();
        let listener = UnixListener::bind(directory.path().join("docker.sock")).unwrap();
        let server = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = vec![0; 4096];
                let length = stream.read(&mut request).await.unwrap_or(0);
                let request = String::from_utf8_lossy(&request[..length]).into_owned();
                let path = request.split(' ').nth(1).unwrap_or_default();
                let Some((_, status, body)) =
                    responses.iter().find(|(end, ..)| path.ends_with(end))
                else {
                    // A silent engine keeps the connection open.
                    tokio::time::sleep(Duration::from_secs(30)).await;
                    continue;
                };
                let response = format!(
                    "HTTP/1.1 {status} x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                    body.len()
                );
                stream.write_all(response.as_bytes()).await.unwrap();
            }
        });
        Self { directory, server }
    }

    fn host(&self) -> String {
        format!(
            "unix://{}",
            self.directory.path().join("docker.sock").display()
        )
    }
}

impl Drop for FakeDockerEngine {
    fn drop(&mut self) {
        self.server.abort();
    }
}

fn problem(error: &DockerError, directory: &Path) -> (String, String) {
    let problem = error.problem();
    let directory_text = directory.display().to_string();
    let what = problem.what.replace(&directory_text, "[DIR]");
    // Error numbers differ between systems.
    let what = what.split(" (os error ").next().unwrap_or(&what);
    (what.to_owned(), problem.fix)
}

const VERSION: (&str, u16, &str) = ("/version", 200, r#"{"ApiVersion":"1.41"}"#);

#[tokio::test]
async fn an_engine_reports_its_info() {
    let fake = FakeDockerEngine::with_responses(&[
        VERSION,
        ("/info", 200, r#"{"OSType":"linux","NCPU":3,"MemTotal":5}"#),
    ]);
    let engine = DockerEngine::connect(Some(&fake.host())).await.unwrap();
    let info = engine.info().await.unwrap();
    assert_eq!(
        (info.api_version.as_str(), info.cpus, info.memory),
        ("1.41", 3, 5)
    );
    assert!(info.is_local_socket);
}

#[tokio::test]
async fn an_engine_that_is_too_old_is_rejected() {
    let fake = FakeDockerEngine::with_responses(&[("/version", 200, r#"{"ApiVersion":"1.40"}"#)]);
    let error = DockerEngine::connect(Some(&fake.host())).await.unwrap_err();
    assert_eq!(
        problem(&error, fake.directory.path()),
        (
            "the Docker Engine is too old: it supports API 1.40, but at least 1.41 is needed"
                .to_owned(),
            "install Docker Engine 20.10 or newer".to_owned()
        )
    );
}

#[tokio::test]
async fn an_engine_with_windows_containers_is_rejected() {
    let fake =
        FakeDockerEngine::with_responses(&[VERSION, ("/info", 200, r#"{"OSType":"windows"}"#)]);
    let engine = DockerEngine::connect(Some(&fake.host())).await.unwrap();
    let error = engine.info().await.unwrap_err();
    assert_eq!(
        problem(&error, fake.directory.path()),
        (
            "the Docker Engine cannot be used: it runs `windows` containers, but `linux` is needed"
                .to_owned(),
            "switch Docker to Linux containers".to_owned()
        )
    );
}

#[tokio::test]
async fn a_missing_socket() {
    let directory = TempDir::new().unwrap();
    let host = format!("unix://{}/none.sock", directory.path().display());
    let error = DockerEngine::connect(Some(&host)).await.unwrap_err();
    assert_eq!(
        problem(&error, directory.path()),
        (
            "no Docker Engine is running here: socket `[DIR]/none.sock` does not exist".to_owned(),
            "start Docker, or set `DOCKER_HOST` to the endpoint that `docker context inspect` shows"
                .to_owned()
        )
    );
}

#[tokio::test]
async fn a_socket_without_a_listener() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("left.sock");
    drop(UnixListener::bind(&path).unwrap());
    let error = DockerEngine::connect(Some(&format!("unix://{}", path.display())))
        .await
        .unwrap_err();
    assert_eq!(
        problem(&error, directory.path()),
        (
            "no Docker Engine answers at `unix://[DIR]/left.sock`: Connection refused".to_owned(),
            "start Docker, or correct `DOCKER_HOST`".to_owned()
        )
    );
}

#[tokio::test]
async fn a_silent_engine_times_out() {
    let fake = FakeDockerEngine::with_responses(&[]);
    let error = DockerEngine::connect_within(Some(&fake.host()), Duration::from_millis(50))
        .await
        .unwrap_err();
    assert!(matches!(error, DockerError::Timeout { .. }), "{error}");
}

#[tokio::test]
async fn a_missing_image_is_named() {
    let fake = FakeDockerEngine::with_responses(&[
        VERSION,
        (
            "/images/none:1/json",
            404,
            r#"{"message":"No such image: none:1"}"#,
        ),
    ]);
    let engine = DockerEngine::connect(Some(&fake.host())).await.unwrap();
    let error = engine
        .call(
            "inspect image `none:1`",
            engine.api().inspect_image("none:1"),
        )
        .await
        .unwrap_err();
    assert_eq!(
        problem(&error, fake.directory.path()),
        (
            "there is no image `none:1`".to_owned(),
            "build it with `ralph image build`, or get it with `ralph image pull`".to_owned()
        )
    );
}

#[tokio::test]
async fn a_full_disk_is_reported_with_its_directory() {
    let fake = FakeDockerEngine::with_responses(&[
        VERSION,
        (
            "/images/x/json",
            500,
            r#"{"message":"write /y: no space left on device"}"#,
        ),
        (
            "/info",
            200,
            r#"{"OSType":"linux","DockerRootDir":"/data/docker"}"#,
        ),
    ]);
    let engine = DockerEngine::connect(Some(&fake.host())).await.unwrap();
    let error = engine
        .call("build image `x`", engine.api().inspect_image("x"))
        .await
        .unwrap_err();
    assert_eq!(
        problem(&error, fake.directory.path()),
        (
            "cannot build image `x`: no space left in `/data/docker`, where the Docker Engine keeps its data"
                .to_owned(),
            "free disk space with `docker system prune`, which removes everything that no container uses".to_owned()
        )
    );
}

#[tokio::test]
async fn other_failures_carry_the_engines_message() {
    let fake = FakeDockerEngine::with_responses(&[
        VERSION,
        ("/images/x/json", 500, r#"{"message":"layer is damaged"}"#),
    ]);
    let engine = DockerEngine::connect(Some(&fake.host())).await.unwrap();
    let error = engine
        .call("inspect image `x`", engine.api().inspect_image("x"))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot inspect image `x`: layer is damaged"
    );
}

#[test]
fn a_forbidden_socket_names_the_group_to_join() {
    let error = DockerError::PermissionDenied {
        path: "/var/run/docker.sock".into(),
        group: Some("docker".to_owned()),
    };
    assert_eq!(
        problem(&error, Path::new("/none")),
        (
            "you may not use the Docker Engine's socket `/var/run/docker.sock`: permission denied"
                .to_owned(),
            "join the group `docker` with `sudo usermod -aG docker \"$USER\"` and log in again"
                .to_owned()
        )
    );
}
