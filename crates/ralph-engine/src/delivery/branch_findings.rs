//! Findings about the branch: changed files that the checks run, code that could fake a result,
//! files that replace a runner or a dependency.

use std::collections::BTreeSet;
use std::path::Path;

use ralph_core::checks::{self, AddedLine, CheckInputs, TrackedFiles};
use ralph_core::id::CommitId;
use ralph_core::surface::ChangedPath;
use ralph_core::verdict::{FindingKind, VerifyFinding};

use super::verify::contract_checks;
use crate::contract::PinnedTask;
use crate::error::RunError;
use crate::git::{HostRepo, NestedRepository};
use crate::recorder::Recorder;
use crate::workbench::Workbench;

/// The longest script whose commands are followed.
const MAX_SCRIPT: u64 = 256 << 10;
/// The longest diff that is searched for suspicious code.
const MAX_DIFF: u64 = 64 << 20;
/// How many requirement files are read.
const MAX_REQUIREMENTS: usize = 20;

/// Returns the findings about the changes between the base commit and `head`.
pub(super) async fn branch_findings(
    recorder: &Recorder,
    bench: &Workbench,
    pinned: &PinnedTask,
    head: &CommitId,
) -> Result<Vec<VerifyFinding>, RunError> {
    let base = recorder.state().plan.base.clone();
    let changed = bench.repo.changed_paths(&base, head).await?;
    let listed = bench.repo.list_files(head).await?;
    let too_long = listed.is_none().then(file_list_finding);
    let mut paths = listed.unwrap_or_default();
    let requirements = requirements(bench, head, &paths).await?;
    paths.extend(changed.iter().map(|changed| changed.path.clone()));
    let files = TrackedFiles::new(paths);
    let inputs = check_inputs(bench, pinned, head, &files).await?;
    let sizes = bench.repo.line_changes(&base, head).await?;
    let touched: Vec<(String, Vec<ChangedPath>)> = inputs
        .iter()
        .map(|(command, inputs)| (command.clone(), inputs.reviewable_changes(&changed, &sizes)))
        .collect();
    let executed: BTreeSet<String> = inputs
        .iter()
        .flat_map(|(_, inputs)| inputs.executed().iter().cloned())
        .collect();
    let mut findings = checks::changed_input_findings(&touched, &sizes);
    findings.extend(too_long);
    findings.extend(checks::shadowing_finding(&changed, &files, &requirements));
    let nested = bench.repo.nested_repositories(&base, head).await?;
    findings.extend(nested.iter().map(nested_finding));
    match bench.repo.bare_diff(&base, head, MAX_DIFF).await? {
        Some(diff) => findings.extend(checks::suspect_findings(
            &AddedLine::from_diff(&diff),
            &executed,
        )),
        None => findings.push(VerifyFinding::new(
            FindingKind::SuspectCode,
            format!(
                "the diff has more than {} MiB and was not searched for code that fakes results",
                MAX_DIFF >> 20
            ),
        )),
    }
    Ok(findings)
}

/// Returns the commands of all checks, each with the files that it executes or reads through.
async fn check_inputs(
    bench: &Workbench,
    pinned: &PinnedTask,
    head: &CommitId,
    files: &TrackedFiles,
) -> Result<Vec<(String, CheckInputs)>, RunError> {
    let commands = contract_checks(pinned);
    let commands: BTreeSet<&str> = commands
        .iter()
        .map(|check| check.command.as_str())
        .collect();
    let mut found = Vec::new();
    for command in commands {
        let mut inputs = CheckInputs::default();
        inputs.add_line(command, files);
        while let Some(path) = inputs.next_script() {
            if let Some(text) = bench.repo.file_text(head, &path, MAX_SCRIPT).await? {
                inputs.add_script(&path, &text, files);
            }
        }
        found.push((command.to_owned(), inputs));
    }
    Ok(found)
}

/// Returns the texts of the files that name Python dependencies.
async fn requirements(
    bench: &Workbench,
    head: &CommitId,
    files: &[String],
) -> Result<Vec<String>, RunError> {
    let is_list = |path: &String| {
        let name = path.rsplit('/').next().unwrap_or_default();
        name.starts_with("requirements")
            && Path::new(name).extension().is_some_and(|end| end == "txt")
    };
    let mut texts = Vec::new();
    for path in files
        .iter()
        .filter(|path| is_list(path))
        .take(MAX_REQUIREMENTS)
    {
        texts.extend(bench.repo.file_text(head, path, MAX_SCRIPT).await?);
    }
    Ok(texts)
}

/// Returns the finding that only the changed files are known: the list of all files is too long.
fn file_list_finding() -> VerifyFinding {
    let text = format!(
        "the names of all files have more than {} MiB; changed files that the checks run may be missing from the findings",
        HostRepo::MAX_LIST >> 20
    );
    VerifyFinding::new(FindingKind::ChangedInput, text)
}

/// Returns the finding about a repository in the branch.
fn nested_finding(repository: &NestedRepository) -> VerifyFinding {
    let NestedRepository {
        path,
        commit,
        is_submodule,
    } = repository;
    let commit: String = commit.chars().take(10).collect();
    let text = if *is_submodule {
        format!(
            "`{path}` is a submodule: the branch has only its commit {commit}; no check used its files"
        )
    } else {
        format!(
            "`{path}` is a repository of its own: the branch has only its commit {commit} and none of its files, and `.gitmodules` has no entry for it"
        )
    };
    VerifyFinding::new(FindingKind::NestedRepository, text)
}
