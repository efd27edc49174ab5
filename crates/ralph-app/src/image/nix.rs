//! Builds images with nix.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::Command;

use super::ImageProgressSink;
use crate::app::App;
use crate::error::AppError;
use crate::providers::image::ImageProgress;

/// The flake that ships with ralph.
const FLAKE: &str = include_str!("../../../../flake.nix");

/// The limit of the path that nix prints, in bytes.
const MAX_PATH_BYTES: u64 = 64 * 1024;

/// Finds the nix program.
pub(crate) fn find_nix(app: &App) -> Option<PathBuf> {
    std::env::split_paths(app.environment().search_path()?)
        .map(|directory| directory.join("nix"))
        .find(|file| file.is_absolute() && file.is_file())
}

/// Builds the image and returns the file that contains it.
pub(crate) async fn build(
    program: &Path,
    app: &App,
    progress: ImageProgressSink<'_>,
) -> Result<PathBuf, AppError> {
    let failed = |why: String| {
        AppError::runtime(
            "cannot build the image with nix",
            why,
            "check the output of nix, or use `ralph image build --dockerfile`",
        )
    };
    // The directory persists, and so do the versions that nix chose the first time.
    let directory = app.state_dir()?.root().join("images/flake");
    std::fs::create_dir_all(&directory)
        .and_then(|()| std::fs::write(directory.join("flake.nix"), FLAKE))
        .map_err(|error| failed(format!("cannot write `{}`: {error}", directory.display())))?;
    progress(ImageProgress::Started(
        "building the image with nix".to_owned(),
    ));
    let mut child = build_command(program, &directory, app)
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let read_path = async {
        let mut text = String::new();
        if let Some(stdout) = stdout {
            stdout
                .take(MAX_PATH_BYTES)
                .read_to_string(&mut text)
                .await?;
        }
        Ok::<String, std::io::Error>(text)
    };
    let report_output = async {
        let mut last = None;
        if let Some(stderr) = stderr {
            let mut lines = BufReader::new(stderr).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                progress(ImageProgress::Output(line.clone()));
                last = Some(line).filter(|line| !line.trim().is_empty()).or(last);
            }
        }
        last
    };
    let (printed, last) = tokio::join!(read_path, report_output);
    let printed = printed.map_err(|error| failed(error.to_string()))?;
    let status = child
        .wait()
        .await
        .map_err(|error| failed(error.to_string()))?;
    if !status.success() {
        return Err(failed(last.unwrap_or_else(|| status.to_string())));
    }
    match printed.lines().next() {
        Some(path) if !path.is_empty() => Ok(PathBuf::from(path)),
        Some(_) | None => Err(failed("nix printed no path".to_owned())),
    }
}

/// Returns the command that builds the image and prints its path.
fn build_command(program: &Path, directory: &Path, app: &App) -> Command {
    let mut command = Command::new(program);
    command
        .args(["--extra-experimental-features", "nix-command flakes"])
        .arg("build")
        .arg(format!("path:{}#dockerImage", directory.display()))
        .args(["--no-link", "--print-out-paths", "--print-build-logs"])
        .env("PATH", app.search_path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}
