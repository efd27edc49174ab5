//! The task of one sentence, stored in the state directory and ready to run.

use std::path::{Path, PathBuf};
use std::{fs, io};

use ralph_core::ecosystem::TestCommand;
use ralph_core::id::Digest;
use ralph_core::task::{NewTask, TaskFile};
use ralph_engine::durable::{self, StoreError};

use super::inspection::{detect_nearest, new_text, parse_sentence};
use super::sandbox_status::SandboxStatus;
use super::worker_choice::worker_for_request;
use crate::app::App;
use crate::error::AppError;
use crate::planning::{RunRequest, local_path, top_level};

/// The most stored files for the same sentence with other contents.
const MAX_VERSIONS: usize = 100;

/// The digits of the digest in a file name.
const DIGEST_CHARS: usize = 8;

/// The stored task of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreatedTask {
    /// The request that runs it.
    pub request: RunRequest,
    /// Its test command.
    pub test: TestCommand,
}

/// Creates the task of a sentence for the repository of a request, and stores it in the state
/// directory. The same sentence for the same repository is stored only once, so that its unfinished
/// run is found again. The work starts from the checked-out branch.
pub async fn create_for_run(
    sentence: &str,
    request: RunRequest,
    app: &App,
) -> Result<CreatedTask, AppError> {
    let sentence = parse_sentence(sentence)?;
    let directory = app.environment().working_dir();
    let named = request.repo.as_deref();
    let start = match named {
        Some(named) => local_path(named, app.environment(), "a task of one sentence")?,
        None => directory.to_owned(),
    };
    let top = top_level(&start, &app.git_read_only()).await?;
    let test_commands = detect_nearest(&start, &top).test_commands;
    let Some(test) = test_commands.first().cloned() else {
        return Err(no_test_command(&top));
    };
    let (sandbox, provider) = if let Some(name) = &request.sandbox {
        (None, name.clone())
    } else {
        let status = SandboxStatus::find(app).await?;
        (status.task_value(), status.name().to_owned())
    };
    let (worker, spending) = worker_for_request(&request, &provider, app).await?;
    let repository = top.display().to_string();
    let digest = Digest::compute(format!("{repository}\0{sentence}").as_bytes());
    let task = NewTask {
        sentence: Some(sentence),
        comment: Some(format!(
            "written by `ralph run -p` in {repository}; to run it again: ralph run --repo PATH FILE"
        )),
        base_branch: None,
        test_commands,
        setup_command: None,
        sandbox,
        worker,
        spending,
    };
    let content = new_text(&task, app)?;
    let file = store(&content, &digest, &app.state_dir()?.tasks())?;
    let repo = request.repo.clone().or(Some(repository));
    Ok(CreatedTask {
        request: RunRequest {
            file,
            repo,
            ..request
        },
        test,
    })
}

/// Stores the text of a task file in the state directory, once for each text.
pub fn store_task_text(text: &str, app: &App) -> Result<PathBuf, AppError> {
    let digest = Digest::compute(text.as_bytes());
    store(text, &digest, &app.state_dir()?.tasks())
}

/// Stores a text under the id of its task and the start of a digest. Reuses a file with the same
/// text and never overwrites another one, which the user may have edited.
fn store(text: &str, digest: &Digest, directory: &Path) -> Result<PathBuf, AppError> {
    let id = TaskFile::parse(text.as_bytes()).map_or_else(
        |_| "task".to_owned(),
        |task| task.contract.task_id.to_string(),
    );
    let digest = &digest.as_str()[..DIGEST_CHARS];
    durable::create_dir(directory)?;
    for version in 1..=MAX_VERSIONS {
        let suffix = match version {
            1 => String::new(),
            version => format!("-{version}"),
        };
        let path = directory.join(format!("{id}-{digest}{suffix}.md"));
        match fs::read(&path) {
            Ok(stored) if stored == text.as_bytes() => return Ok(path),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                durable::write_shared(&path, text.as_bytes())?;
                return Ok(path);
            }
            Err(error) => return Err(StoreError::when("read", &path)(error).into()),
        }
    }
    Err(AppError::runtime(
        "cannot store the task of this sentence",
        format!(
            "`{}` has {MAX_VERSIONS} edited files for it",
            directory.display()
        ),
        "remove those that you do not need",
    ))
}

fn no_test_command(top: &Path) -> AppError {
    AppError::usage(
        format!("no test command was found in `{}`", top.display()),
        "a run succeeds only if a command proves it",
        "write a task with `ralph init -p \"…\"`, fill in its `test_command`, then start `ralph run`",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_stored_once_and_an_edited_file_is_kept() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("tasks");
        let digest = Digest::compute(b"a");
        let text = "---\ntask_id: add-x\n---\n- [ ] T1 x\n";
        let first = store(text, &digest, &directory).unwrap();
        let name = first.file_name().unwrap().to_str().unwrap();
        assert_eq!(name, format!("add-x-{}.md", &digest.as_str()[..8]));
        assert_eq!(store(text, &digest, &directory).unwrap(), first);
        fs::write(&first, "edited").unwrap();
        let second = store(text, &digest, &directory).unwrap();
        assert_ne!(second, first);
        assert_eq!(store(text, &digest, &directory).unwrap(), second);
        assert_eq!(fs::read_to_string(&first).unwrap(), "edited");
        assert_eq!(fs::read_to_string(&second).unwrap(), text);
    }
}
