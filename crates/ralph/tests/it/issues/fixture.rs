//! A repository on a GitHub on loopback, and a clone of it.

use std::time::{Duration, Instant};

use ralph_test::FakeRepo;

use crate::project::Project;
use crate::remote::RemoteProject;

/// Does the first open step of `.ralph/spec.md`: creates `<number>.txt`, commits and marks the step.
pub(super) const DILIGENT: &str = r#"
cat >/dev/null
heading=$(grep '^### Step' .ralph/spec.md | grep -v '\[done\]' | head -n 1)
test -n "$heading" || exit 0
number=$(echo "$heading" | sed 's/### Step \([0-9]*\):.*/\1/')
echo done >"$number.txt"
git add "$number.txt"
git -c user.name=a -c user.email=a@localhost commit --quiet --message "Do step $number"
sed -i "s/^\(### Step $number:.*\)/\1 [done]/" .ralph/spec.md
sed -i "/^### Step $number:/a Chose the name $number.txt" .ralph/spec.md
"#;

/// Two steps with checks of their own.
pub(super) const TWO_STEPS: &str = "---
branch: feat/files
---
### Step 1: One is there

Verify: `test -e 1.txt`

### Step 2: Two is there

Verify: `test -e 2.txt`
";

/// Longer than anything takes on a busy machine.
const WAIT_TIMEOUT: Duration = Duration::from_mins(5);

/// A clone of `octo/app` on a GitHub, with an agent.
pub(super) struct IssueTest {
    pub(super) remote: RemoteProject,
}

impl IssueTest {
    pub(super) fn new(script: &str) -> Self {
        let project = Project::new().env("RALPH_DEFAULT_PROVIDER", "local");
        project.commit(".agent-loop/agent", script);
        project.commit(
            "ralph.toml",
            "[issues]\nagent = \"command\"\ntest_command = \"test -e ralph.toml\"\n",
        );
        let remote = RemoteProject::with(project);
        let origin = ["remote", "add", "origin", &remote.url()];
        remote.project.git(&origin);
        Self { remote }
    }

    /// Changes the project.
    pub(super) fn change(self, change: impl FnOnce(Project) -> Project) -> Self {
        Self {
            remote: self.remote.change(change),
        }
    }

    /// Opens an issue with the labels of a ready one, and returns its number.
    pub(super) fn ready(&self, body: &str) -> u64 {
        self.remote
            .github
            .with_app(|app| app.add_issue("Files", body, &["spec", "status:ready"]))
    }

    /// Returns the labels of an issue besides `spec`.
    pub(super) fn status(&self, number: u64) -> String {
        let labels = self
            .remote
            .github
            .with_app(|app| app.issue(number).labels.clone());
        labels
            .into_iter()
            .filter(|label| label != "spec")
            .collect::<Vec<_>>()
            .join(" ")
    }

    pub(super) fn body(&self, number: u64) -> String {
        self.remote
            .github
            .with_app(|app| app.issue(number).body.clone())
    }

    pub(super) fn comments(&self, number: u64) -> Vec<String> {
        self.remote.github.with_app(|app| app.comments_on(number))
    }

    /// Waits until the repository is in a state.
    #[track_caller]
    pub(super) fn wait_until(&self, what: &str, is_true: impl Fn(&mut FakeRepo) -> bool) {
        let start = Instant::now();
        while !self.remote.github.with_app(&is_true) {
            assert!(
                start.elapsed() < WAIT_TIMEOUT,
                "waited {WAIT_TIMEOUT:?} in vain until {what}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
