//! Docker objects of a project.

use std::process::Command;

use ralph_guest::best_effort;

use super::Project;

impl Project {
    /// Returns the containers or volumes that belong to this project's state directory.
    pub(crate) fn docker_objects(&self, list: &[&str]) -> Vec<String> {
        let label = format!("label=ralph.state={}", self.home().display());
        let output = Command::new("docker")
            .args(list)
            .args(["--quiet", "--filter", &label])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().map(Into::into).collect()
    }

    /// Removes all its Docker objects.
    pub(crate) fn remove_docker_objects(&self) {
        for (list, remove) in [
            (&["ps", "--all"][..], &["rm", "--force"][..]),
            (&["volume", "ls"], &["volume", "rm", "--force"]),
        ] {
            let left = self.docker_objects(list);
            if !left.is_empty() {
                best_effort(Command::new("docker").args(remove).args(left).output());
            }
        }
    }
}
