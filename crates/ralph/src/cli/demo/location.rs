//! The directory of a demo: its projects and a state directory, apart from that of the user.

use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use ralph_app::AppError;
use ralph_app::config::Environment;

/// The directory of a demo, which did not exist or was empty.
#[derive(Debug, Clone)]
pub(super) struct DemoLocation {
    root: String,
}

impl DemoLocation {
    /// Returns the directory of the command line, or a new temporary one that only the user can read.
    pub(super) fn prepare(
        dir: Option<PathBuf>,
        environment: &Environment,
        now: Timestamp,
    ) -> Result<Self, AppError> {
        let root = match dir {
            Some(dir) => environment.working_dir().join(dir),
            None => std::env::temp_dir().join(format!("ralph-demo-{}", now.as_microsecond())),
        };
        let occupied = fs::read_dir(&root).is_ok_and(|mut entries| entries.next().is_some());
        if occupied {
            return Err(AppError::usage(
                format!("cannot create the demo in `{}`", root.display()),
                "the directory is not empty",
                "name another with `--dir`",
            ));
        }
        let created = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&root);
        created.map_err(|error| {
            AppError::runtime(
                format!("cannot create `{}`", root.display()),
                error.to_string(),
                "name a directory with `--dir`",
            )
        })?;
        let root = root.into_os_string().into_string().map_err(|name| {
            AppError::usage(
                format!("cannot create the demo in `{}`", Path::new(&name).display()),
                "its path is not UTF-8",
                "name another with `--dir`",
            )
        })?;
        Ok(Self { root })
    }

    /// Returns the path of the directory.
    pub(super) fn root(&self) -> &str {
        &self.root
    }

    /// Returns the state directory.
    pub(super) fn state(&self) -> String {
        format!("{}/state", self.root)
    }

    /// Returns the repository of a project.
    pub(super) fn repository(&self, project: &str) -> PathBuf {
        Path::new(&self.root).join(project)
    }

    /// Returns the name of the model of a project: its script.
    pub(super) fn model(&self, project: &str) -> String {
        format!("scripted:{}/{project}.jsonl", self.root)
    }

    /// Writes the script of the model of a project.
    pub(super) fn write_script(&self, project: &str, replies: &str) -> Result<(), AppError> {
        let path = Path::new(&self.root).join(format!("{project}.jsonl"));
        write(&path, replies)
    }
}

/// Writes a file, and its directory if necessary.
pub(super) fn write(path: &Path, text: &str) -> Result<(), AppError> {
    let parent = path.parent().unwrap_or(path);
    fs::create_dir_all(parent)
        .and_then(|()| fs::write(path, text))
        .map_err(|error| {
            AppError::runtime(
                format!("cannot write `{}`", path.display()),
                error.to_string(),
                "name a writable directory with `--dir`",
            )
        })
}
