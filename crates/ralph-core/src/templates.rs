//! The starter files that `ralph init --full` writes and that a run creates if they are missing.

/// `ralph_task.md`: the front matter with every common key, and a body with milestones.
pub const TASK: &str = include_str!("../templates/ralph_task.md");

/// Texts of [`TASK`] that are examples: a user replaces them.
pub const TASK_EXAMPLES: [&str; 9] = [
    "https://github.com/ORG/REPO.git",
    "ghcr.io/your-org/ralph-node-python",
    "Implement Foo",
    "Implements Foo per task-001",
    "Write 2–4 sentences about what this is and where in the repo it belongs.",
    "Foo endpoint returns",
    "scripts/verify-foo",
    "tests added/updated for Foo",
    "src/foo/*",
];

/// `.ralph/guardrails.md`: how to add a guardrail, and the first three.
pub const GUARDRAILS: &str = include_str!("../templates/guardrails.md");

/// `.ralph/progress.md`: finished work and next steps.
pub const PROGRESS: &str = include_str!("../templates/progress.md");

/// `.ralph/notes.md`: the user's notes.
pub const NOTES: &str = include_str!("../templates/notes.md");

/// `.ralph/diagnostics.md`: the doctor's reports.
pub const DIAGNOSTICS: &str = include_str!("../templates/diagnostics.md");

/// `config/models.yaml`: the model profiles.
pub const MODELS: &str = include_str!("../templates/models.yaml");

/// `.env.example`: the supported secrets and settings.
pub const ENV_EXAMPLE: &str = include_str!("../templates/env.example");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_is_plain_text_with_one_newline_at_its_end() {
        for (template, first_line) in [
            (TASK, "---"),
            (GUARDRAILS, "# Ralph Guardrails (append-only)"),
            (PROGRESS, "# Progress"),
            (NOTES, "# Notes (optional)"),
            (DIAGNOSTICS, "# Diagnostics (Doctor reports)"),
            (MODELS, "profiles:"),
            (ENV_EXAMPLE, "# Daytona"),
        ] {
            assert_eq!(template.lines().next(), Some(first_line));
            assert!(template.ends_with('\n') && !template.ends_with("\n\n"));
            assert!(!template.contains(['\r', '\t', '\u{feff}']));
        }
    }

    #[test]
    fn every_example_is_in_the_task() {
        for example in TASK_EXAMPLES {
            assert!(TASK.contains(example), "{example}");
        }
    }

    #[test]
    fn the_checkboxes_of_the_task_end_in_a_hard_line_break() {
        let boxes: Vec<&str> = TASK.lines().filter(|l| l.starts_with("- [ ]")).collect();
        assert_eq!(boxes.len(), 5);
        assert!(boxes.iter().all(|line| line.ends_with("  ")));
    }
}
