//! The keys of the front matter.

use std::collections::BTreeMap;

use super::suggest::nearest;
use super::yaml::{YamlKey, YamlNode};
use crate::lint::{LintFinding, excerpt};

/// The top-level keys.
pub(crate) const ROOT: [&str; 36] = [
    "task_id",
    "repo_url",
    "base_branch",
    "target_branch_prefix",
    "target_branch_slug",
    "sandbox_provider",
    "sandbox_image",
    "sandbox_resources",
    "model_profile_default",
    "model_profile_fallback",
    "max_iterations",
    "max_wall_time_minutes",
    "max_cost_usd_estimate",
    "max_tokens_total",
    "max_consecutive_gutter",
    "min_net_lines",
    "doctor_every",
    "doctor_profile",
    "doctor_apply",
    "debug_commands",
    "setup_command",
    "lockfiles",
    "test_command",
    "verify_commands",
    "verification",
    "pr",
    "ci",
    "reviews",
    "overlap",
    "commit_state",
    "on_action_error",
    "allow_workflow_changes",
    "engine",
    "agent",
    "agent_fallback",
    "mode",
];

/// The keys under `pr`.
pub(crate) const PR: [&str; 6] = [
    "enabled",
    "draft",
    "ready_on_success",
    "labels",
    "title_template",
    "body_template",
];

/// The keys under `verification`.
pub(crate) const VERIFICATION: [&str; 3] = ["baseline", "on_test_change", "protected"];

/// The keys under `ci`.
pub(crate) const CI: [&str; 5] = ["required", "max_rounds", "interval", "timeout", "grace"];

/// The keys under `reviews`.
pub(crate) const REVIEWS: [&str; 1] = ["respond"];

/// The keys under `overlap`.
pub(crate) const OVERLAP: [&str; 1] = ["action"];

/// The keys under `sandbox_resources`.
pub(crate) const RESOURCES: [&str; 3] = ["vcpu", "memory_gib", "disk_gib"];

/// The lines of keys; a mistyped key is listed under its most likely correction.
pub(super) type KeyLines = BTreeMap<&'static str, u32>;

/// Returns the lines of the front matter's keys and rejects unknown ones.
pub(super) fn root_lines(
    entries: &[(YamlKey, YamlNode)],
    findings: &mut Vec<LintFinding>,
) -> KeyLines {
    let mut lines = KeyLines::new();
    for (key, _) in entries {
        if let Some(known) = ROOT.iter().find(|known| **known == key.name) {
            lines.insert(known, key.location.line);
            continue;
        }
        let meant = nearest(&key.name, ROOT);
        if let Some(meant) = meant {
            lines.entry(meant).or_insert(key.location.line);
        }
        let fix = if PR.contains(&key.name.as_str()) {
            "move it below `pr:`, indented".to_owned()
        } else if VERIFICATION.contains(&key.name.as_str()) {
            "move it below `verification:`, indented".to_owned()
        } else if CI.contains(&key.name.as_str()) {
            "move it below `ci:`, indented".to_owned()
        } else if RESOURCES.contains(&key.name.as_str()) {
            "move it below `sandbox_resources:`, indented".to_owned()
        } else {
            did_you_mean(meant, "remove it, or describe it in the body")
        };
        findings.push(unknown("", key, fix));
    }
    lines
}

/// Rejects the unknown keys of a map.
pub(super) fn refuse_unknown(
    prefix: &str,
    known: &[&str],
    entries: &[(YamlKey, YamlNode)],
    findings: &mut Vec<LintFinding>,
) {
    for (key, _) in entries {
        if !known.contains(&key.name.as_str()) {
            let meant = nearest(&key.name, known.iter().copied());
            let keys = format!("the valid keys are `{}`", known.join("`, `"));
            findings.push(unknown(prefix, key, did_you_mean(meant, &keys)));
        }
    }
}

fn did_you_mean(meant: Option<&str>, otherwise: &str) -> String {
    meant.map_or_else(
        || otherwise.to_owned(),
        |meant| format!("did you mean `{meant}`?"),
    )
}

fn unknown(prefix: &str, key: &YamlKey, fix: String) -> LintFinding {
    let message = format!("unknown key `{prefix}{}`", excerpt(&key.name));
    LintFinding::error("unknown-key", message, fix).at_location(key.location)
}
