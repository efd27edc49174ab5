//! Tests for the findings about whole files.

use std::fmt::Write as _;

use super::{LintFinding, LintSeverity, check, lint, unavailable_sandbox};
use crate::task::TaskFile;
use crate::templates;

/// Returns the findings about a file, one per line, without those about the template's examples.
fn findings_text(text: &str) -> String {
    let mut lines = String::new();
    let findings = check(text.as_bytes()).findings.into_iter();
    for finding in findings.filter(|finding| finding.code != "example-left") {
        let severity = match finding.severity {
            LintSeverity::Error => "error",
            LintSeverity::Warning => "warning",
        };
        writeln!(lines, "{severity} [{}] {finding}", finding.code).unwrap();
    }
    lines
}

/// Returns the template without the lines that start with one of the prefixes.
fn template_without(starts: &[&str]) -> String {
    let mut lines = String::new();
    for line in templates::TASK.lines() {
        if !starts.iter().any(|start| line.starts_with(start)) {
            writeln!(lines, "{line}").unwrap();
        }
    }
    lines
}

const VERIFY_COMMANDS: [&str; 2] = ["verify_commands", "  - \"npm"];

/// Returns the template with its examples replaced; lines and boxes stay the same.
fn edited_template() -> String {
    let text = templates::TASK.to_owned();
    let examples = templates::TASK_EXAMPLES.iter();
    examples.fold(text, |text, example| text.replace(example, "mine"))
}

#[test]
fn the_template_has_only_examples_to_replace() {
    let report = check(templates::TASK.as_bytes());
    assert!(report.is_ok());
    let lines = report.findings.iter().map(|finding| {
        assert_eq!(finding.code, "example-left");
        finding.line.unwrap()
    });
    let lines: Vec<u32> = lines.collect();
    assert_eq!(lines, [3, 12, 41, 44, 55, 58, 70, 71, 72, 73, 76, 85]);
    snapbox::assert_data_eq!(
        report.findings[0].to_string(),
        snapbox::str![
            "line 3: `https://github.com/ORG/REPO.git` is an example of the template — replace it with a text about your task, or remove the line"
        ]
    );
    assert_eq!(lint(&report.task.unwrap()), report.findings);
    assert_eq!(check(edited_template().as_bytes()).findings, []);
}

#[test]
fn a_sandbox_of_another_version_is_a_warning() {
    let lint_sandbox = |text: &str| {
        let task = TaskFile::parse(text.as_bytes()).unwrap();
        let finding = unavailable_sandbox(&task, &["local", "docker"]);
        finding.map(|finding| (finding.severity, finding.to_string()))
    };
    let message = "line 11: sandbox `daytona` is not available: this version has local, docker — \
                   choose one of these, or name one with `--sandbox` when you start the run";
    assert_eq!(
        lint_sandbox(templates::TASK),
        Some((LintSeverity::Warning, message.to_owned()))
    );
    assert_eq!(
        lint_sandbox(&templates::TASK.replace("daytona", "docker")),
        None
    );
    assert_eq!(lint_sandbox(&template_without(&["sandbox_provider"])), None);
}

#[test]
fn each_missing_setting_is_reported_with_its_line() {
    let mut table = String::new();
    for key in [
        "task_id",
        "test_command",
        "max_iterations",
        "max_wall_time_minutes",
        "max_cost_usd_estimate",
    ] {
        let text = template_without(&[key]);
        assert!(!check(text.as_bytes()).is_ok());
        table += &findings_text(&text);
    }
    snapbox::assert_data_eq!(
        table,
        snapbox::str![[r#"
error [missing-task-id] line 52: `task_id` is missing — add a line such as `task_id: "task-001"` to the front matter
error [missing-test-command] line 52: `test_command` is missing or empty — add a line such as `test_command: "npm test"` to the front matter
error [missing-max-iterations] line 52: `max_iterations` is missing — add the line `max_iterations: 30` to the front matter
error [missing-max-wall-time-minutes] line 52: `max_wall_time_minutes` is missing — add the line `max_wall_time_minutes: 120` to the front matter
error [missing-cost-or-token-budget] line 52: neither `max_cost_usd_estimate` nor `max_tokens_total` is set — add the line `max_cost_usd_estimate: 10` to the front matter

"#]]
    );
}

#[test]
fn a_fallback_agent_without_effect_is_reported() {
    let codes = |lines: &str| -> Vec<String> {
        let text = templates::TASK.replace("engine: \"actions\"\n", "");
        let text = text.replacen("---\n", &format!("---\n{lines}"), 1);
        let text = findings_text(&text);
        let found = text.lines().filter(|line| line.contains("agent_fallback"));
        found.map(str::to_owned).collect()
    };
    for (lines, expected) in [
        ("engine: agent\nagent_fallback: codex\n", None),
        (
            "engine: agent\nagent: claude\nagent_fallback: claude:haiku\n",
            None,
        ),
        (
            "agent_fallback: codex\n",
            Some("agent-fallback-without-use"),
        ),
        (
            "engine: agent\nagent: codex\nagent_fallback: codex\n",
            Some("fallback-is-default"),
        ),
        (
            "engine: agent\nagent_fallback: 'claude:'\n",
            Some("invalid-name"),
        ),
    ] {
        let found = codes(lines);
        assert_eq!(
            found.len(),
            usize::from(expected.is_some()),
            "{lines}{found:?}"
        );
        if let Some(code) = expected {
            assert!(found[0].contains(&format!("[{code}]")), "{found:?}");
        }
    }
}

#[test]
fn all_missing_settings_are_reported_together() {
    let text = "---\n---\n# Task\n";
    snapbox::assert_data_eq!(
        findings_text(text),
        snapbox::str![[r#"
error [too-few-checkboxes] the task has no checkbox — describe the goal in a line such as `- [ ] M1.1 the tests pass`
error [missing-task-id] line 2: `task_id` is missing — add a line such as `task_id: "task-001"` to the front matter
error [missing-test-command] line 2: `test_command` is missing or empty — add a line such as `test_command: "npm test"` to the front matter
error [missing-max-iterations] line 2: `max_iterations` is missing — add the line `max_iterations: 30` to the front matter
error [missing-max-wall-time-minutes] line 2: `max_wall_time_minutes` is missing — add the line `max_wall_time_minutes: 120` to the front matter
error [missing-cost-or-token-budget] line 2: neither `max_cost_usd_estimate` nor `max_tokens_total` is set — add the line `max_cost_usd_estimate: 10` to the front matter

"#]]
    );
}

#[test]
fn settings_without_a_value_are_reported_on_their_line() {
    let text = "---\ntask_id:\ntest_command: \"  \"\nmax_iterations:\nmax_wall_time_minutes: ~\nmax_tokens_total:\n\
                verify_commands: [\" \", ok, \"\"]\n---\n- [ ] A1 a\n- [ ] A2 b\n";
    snapbox::assert_data_eq!(
        findings_text(text),
        snapbox::str![[r#"
error [missing-task-id] line 2: `task_id` is missing — add a line such as `task_id: "task-001"` to the front matter
error [missing-test-command] line 3: `test_command` is missing or empty — add a line such as `test_command: "npm test"` to the front matter
error [missing-max-iterations] line 4: `max_iterations` is missing — add the line `max_iterations: 30` to the front matter
error [missing-max-wall-time-minutes] line 5: `max_wall_time_minutes` is missing — add the line `max_wall_time_minutes: 120` to the front matter
error [missing-cost-or-token-budget] line 6: neither `max_cost_usd_estimate` nor `max_tokens_total` is set — add the line `max_cost_usd_estimate: 10` to the front matter
error [empty-command] line 7: `verify_commands` contains an empty command — write the command, or remove the line
error [empty-command] line 7: `verify_commands` contains an empty command — write the command, or remove the line

"#]]
    );
}

#[test]
fn a_rejected_value_is_not_also_reported_as_missing() {
    let text = templates::TASK
        .replace("max_iterations: 30", "max_iteration: 30")
        .replace("max_wall_time_minutes: 120", "max_wall_time_minutes: 2h")
        .replace("max_cost_usd_estimate: 10", "max_cost_usd_estimate: 0")
        .replace("task_id:", "taskid:")
        .replace("test_command: \"npm test\"", "test_command: []");
    snapbox::assert_data_eq!(
        findings_text(&text),
        snapbox::str![[r"
error [unknown-key] line 2: unknown key `taskid` — did you mean `task_id`?
error [unknown-key] line 23: unknown key `max_iteration` — did you mean `max_iterations`?
error [wrong-type] line 24: `max_wall_time_minutes` is `2h`, expected a whole number — write it in digits, without quotes
error [out-of-range] line 25: `max_cost_usd_estimate` is 0, expected more than 0, up to 1000000 — choose a value in this range
error [wrong-type] line 30: `test_command` is a list, expected a string — write it on one line, in quotes

"]]
    );
    assert!(check(text.as_bytes()).task.is_none());
}

#[test]
fn a_token_budget_replaces_a_cost_budget() {
    let text = templates::TASK.replace("max_cost_usd_estimate: 10", "max_tokens_total: 1000");
    assert_eq!(findings_text(&text), "");
}

#[test]
fn one_checkbox_is_required_and_the_test_command_verifies_it() {
    let without_global = template_without(&VERIFY_COMMANDS);
    let without_own = template_without(&["  - verify"]);
    let without_both = template_without(&["  - verify", VERIFY_COMMANDS[0], VERIFY_COMMANDS[1]]);
    for text in [without_global, without_own, without_both] {
        assert_eq!(findings_text(&text), "");
    }
    let with_one = template_without(&["- [ ] M1.2", "- [ ] M2", "  - verify"]);
    assert_eq!(findings_text(&with_one), "");
    let without_boxes = template_without(&["- [ ]"]);
    snapbox::assert_data_eq!(
        findings_text(&without_boxes),
        snapbox::str![[r"
error [too-few-checkboxes] the task has no checkbox — describe the goal in a line such as `- [ ] M1.1 the tests pass`
warning [stray-verify] line 70: this verify line does not belong to a checkbox and is ignored — indent it by two spaces below its checkbox
warning [stray-verify] line 71: this verify line does not belong to a checkbox and is ignored — indent it by two spaces below its checkbox
warning [stray-verify] line 74: this verify line does not belong to a checkbox and is ignored — indent it by two spaces below its checkbox
warning [stray-verify] line 75: this verify line does not belong to a checkbox and is ignored — indent it by two spaces below its checkbox
warning [stray-verify] line 76: this verify line does not belong to a checkbox and is ignored — indent it by two spaces below its checkbox

"]]
    );
}

#[test]
fn the_run_branch_must_not_conflict_with_the_base_branch() {
    let task = |base: &str, slug: &str| {
        let text = templates::TASK.replace("\"main\"", base);
        let text = text.replace("\"ralph/task-001/\"", "ma");
        text.replace("\"implement-foo\"", slug)
    };
    assert_eq!(findings_text(&task("main", "ster")), "");
    assert_eq!(findings_text(&task("main", "inline")), "");
    let mut table = String::new();
    for (base, slug) in [("main", "in"), ("main", "in/x"), ("main/y", "in")] {
        table += &findings_text(&task(base, slug));
    }
    snapbox::assert_data_eq!(
        table,
        snapbox::str![[r"
error [branch-meets-base] line 4: the run's branch `main` cannot coexist with the base branch `main` — choose another `target_branch_prefix`, such as `ralph/`
error [branch-meets-base] line 4: the run's branch `main/x` cannot coexist with the base branch `main` — choose another `target_branch_prefix`, such as `ralph/`
error [branch-meets-base] line 4: the run's branch `main` cannot coexist with the base branch `main/y` — choose another `target_branch_prefix`, such as `ralph/`

"]]
    );
}

#[test]
fn suspicious_settings_are_warnings() {
    let text = templates::TASK
        .replace("\"strong-doctor\"", "\"default-cheap\"")
        .replace("\"daytona\"", "local")
        .replace(
            "test_command: \"npm test\"",
            "test_command: |\n  npm ci\n  npm test",
        )
        .replace("[ ] M1.1 Foo", "[x] M1.1\u{202e} Foo")
        .replace("[ ] M2.2 Lint passes", "[ ] M1.9")
        .replace("- install: `npm ci`", "- verify: `npm ci`");
    snapbox::assert_data_eq!(
        findings_text(&text),
        snapbox::str![[r"
warning [image-without-use] line 12: `sandbox_image` has no effect with `sandbox_provider: local` — remove the line, or choose a provider that uses images
warning [fallback-is-default] line 20: `model_profile_fallback` is the same profile as `model_profile_default` — name another profile, or remove the line: switching to it would change nothing
warning [multi-line-command] line 31: `test_command` has several lines, but only the last one determines the result — join the lines with `&&`, so that each of them counts
warning [already-ticked] line 72: checkbox `m1-1-foo-endpoint-returns-200-for-valid` is already ticked — nothing to do: it will be verified again
warning [direction-character] line 72: this line has an invisible character that changes the direction of text — remove it: the displayed command may differ from the executed one
warning [empty-checkbox] line 80: checkbox `M1.9` has no text — describe the condition to verify
warning [misplaced-checkbox] line 80: checkbox `M1.9` is listed under milestone `M2` — move it or rename it
warning [stray-verify] line 90: this verify line does not belong to a checkbox and is ignored — indent it by two spaces below its checkbox

"]]
    );
    assert!(check(text.as_bytes()).is_ok());
}

#[test]
fn findings_are_limited_to_one_hundred() {
    let mut text = edited_template().replace("\n---\n", "\nfoo: 1\n---\n");
    let keys = (0..900).fold(String::new(), |keys, n| keys + &format!("x{n}: 1\n"));
    text = text.replacen("---\n", &format!("---\n{keys}"), 1);
    let report = check(text.as_bytes());
    assert_eq!(report.findings.len(), 101);
    assert_eq!(
        report.findings[100].to_string(),
        "there are 801 more findings — fix these first, then check again"
    );
    assert_eq!(
        TaskFile::parse(text.as_bytes()).unwrap_err(),
        report.findings
    );
}

#[test]
fn the_final_finding_keeps_the_severity_of_omitted_errors() {
    let boxes = "- [x] a\n".repeat(200) + "- verify: `x`\n- [ ] b\n  - verify:\n";
    let text = templates::TASK.to_owned() + "\n" + &boxes;
    assert!(!check(text.as_bytes()).is_ok());
}

#[test]
fn findings_are_serialized_as_json() {
    let finding = LintFinding::missing_task_file("ralph_task.md");
    assert_eq!(
        serde_json::to_string(&finding).unwrap(),
        r#"{"code":"missing-task-file","severity":"error","line":null,"column":null,"message":"there is no task file `ralph_task.md`","fix":"create one with `ralph init`"}"#
    );
}

#[test]
fn a_check_that_cannot_fail_is_an_error() {
    let text = templates::TASK
        .replace(
            "test_command: \"npm test\"",
            "test_command: \"npm test || true\"",
        )
        .replace("  - \"npm", "  - \"true\"\n  - \"npm")
        .replacen("- verify: `", "- verify: `# ", 1)
        .replace(
            "- [ ] M2.1",
            "- [ ] M9 piped\n  - verify: `npm test | tee log`\n- [ ] M2.1",
        );
    snapbox::assert_data_eq!(
        findings_text(&text),
        snapbox::str![[r"
error [check-cannot-fail] line 30: the check `npm test || true` cannot fail: `|| true` turns every failure into success — write a command whose exit code shows whether the work is done
error [check-cannot-fail] line 33: the check `true` cannot fail: `true` always succeeds — write a command whose exit code shows whether the work is done
error [check-cannot-fail] line 35: the check `true` cannot fail: `true` always succeeds — write a command whose exit code shows whether the work is done
error [check-cannot-fail] line 37: the check `true` cannot fail: `true` always succeeds — write a command whose exit code shows whether the work is done
error [check-cannot-fail] line 74: the check `# node scripts/verify-foo.js` cannot fail: it runs no command — write a command whose exit code shows whether the work is done
warning [check-hides-failure] line 80: the check `npm test | tee log` can succeed although something failed: the exit code of a pipe is that of its last command, `tee`; `npm test` can fail unnoticed — let every failure reach the exit code: redirect to a file instead of a pipe (`COMMAND > log 2>&1`), use `bash -o pipefail -c '…'`, or start with `set -e`

"]]
    );
    assert!(!check(text.as_bytes()).is_ok());
}
