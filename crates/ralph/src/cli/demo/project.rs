//! The projects of the demo, each with a task and the replies of its model.

use ralph_app::planning::{self, TASK_FILE};
use ralph_app::providers::Providers;
use ralph_app::{AppError, planning::RunRequest};

use super::location::{DemoLocation, write};

/// A project of the demo.
#[derive(Debug)]
pub(super) struct DemoProject {
    pub(super) name: &'static str,
    /// What its run does.
    pub(super) purpose: &'static str,
    files: &'static [(&'static str, &'static str)],
    task: &'static str,
    replies: &'static str,
}

/// A file of a project, relative to the directory of the project.
macro_rules! demo_file {
    ($project:literal, $path:literal) => {
        include_str!(concat!("../../../demo/", $project, "/", $path))
    };
}

/// The project of the first run, which succeeds within seconds.
pub(super) const SLUG: DemoProject = DemoProject {
    name: "slug",
    purpose: "succeeds",
    files: &[
        ("README.md", demo_file!("slug", "README.md")),
        ("slug.sh", demo_file!("slug", "slug.sh")),
        ("tests/run.sh", demo_file!("slug", "tests/run.sh")),
    ],
    task: demo_file!("slug", "ralph_task.md"),
    replies: demo_file!("slug", "replies.jsonl"),
};

/// The projects of the runs that the server starts.
pub(super) const SERVED: [DemoProject; 3] = [
    DemoProject {
        name: "units",
        purpose: "works for some minutes",
        files: &[
            ("README.md", demo_file!("units", "README.md")),
            ("convert.sh", demo_file!("units", "convert.sh")),
            ("tests/run.sh", demo_file!("units", "tests/run.sh")),
            (
                "tests/round_trips.sh",
                demo_file!("units", "tests/round_trips.sh"),
            ),
        ],
        task: demo_file!("units", "ralph_task.md"),
        replies: demo_file!("units", "replies.jsonl"),
    },
    DemoProject {
        name: "todo",
        purpose: "asks a question",
        files: &[
            ("README.md", demo_file!("todo", "README.md")),
            ("items.txt", demo_file!("todo", "items.txt")),
            ("todo.sh", demo_file!("todo", "todo.sh")),
            ("tests/run.sh", demo_file!("todo", "tests/run.sh")),
        ],
        task: demo_file!("todo", "ralph_task.md"),
        replies: demo_file!("todo", "replies.jsonl"),
    },
    DemoProject {
        name: "dates",
        purpose: "circles, until a diagnosis finds the reason",
        files: &[
            ("README.md", demo_file!("dates", "README.md")),
            ("iso.sh", demo_file!("dates", "iso.sh")),
            ("tests/run.sh", demo_file!("dates", "tests/run.sh")),
        ],
        task: demo_file!("dates", "ralph_task.md"),
        replies: demo_file!("dates", "replies.jsonl"),
    },
];

impl DemoProject {
    /// Creates the repository with one commit, the task and the script of the model.
    pub(super) async fn create(
        &self,
        location: &DemoLocation,
        providers: &Providers,
    ) -> Result<(), AppError> {
        let git = providers.git()?;
        planning::require_git(&git).await?;
        let dir = location.repository(self.name);
        for (name, text) in self.files {
            write(&dir.join(name), text)?;
        }
        for args in [
            &["init", "--quiet", "--initial-branch=main"][..],
            &["add", "."],
            &["commit", "--quiet", "--message=Start"],
        ] {
            git.run_as_user(&dir, args).await.map_err(|error| {
                AppError::runtime(
                    "cannot create the demo's repository",
                    error.to_string(),
                    error.hint(),
                )
            })?;
        }
        write(&dir.join(TASK_FILE), self.task)?;
        location.write_script(self.name, self.replies)
    }

    /// Returns the request for the run of the project.
    pub(super) fn request(&self, location: &DemoLocation) -> RunRequest {
        RunRequest {
            model: Some(location.model(self.name)),
            ..RunRequest::for_file(location.repository(self.name).join(TASK_FILE))
        }
    }
}
