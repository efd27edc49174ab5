//! JavaScript and TypeScript: Node.js with its package managers, Bun and Deno.

use serde_json::Value;

use super::detect::{DetectedProject, TestCommand};
use super::project_files::ProjectFiles;

/// The part of the test script that `npm init` writes into a project without tests.
const NPM_PLACEHOLDER: &str = "no test specified";

/// A package manager of Node.js projects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PackageManager {
    Npm,
    Pnpm,
    Yarn,
    Bun,
}

impl PackageManager {
    /// Returns the manager that the project declares, or the one that wrote its lock file.
    fn find(package: &Value, files: &ProjectFiles) -> Self {
        let declared = package["packageManager"].as_str().unwrap_or_default();
        match declared.split('@').next().unwrap_or_default() {
            "pnpm" => Self::Pnpm,
            "yarn" => Self::Yarn,
            "bun" => Self::Bun,
            "npm" => Self::Npm,
            _ if files.has_any(&["pnpm-lock.yaml"]) => Self::Pnpm,
            _ if files.has_any(&["yarn.lock"]) => Self::Yarn,
            _ if files.has_any(&["bun.lock", "bun.lockb"]) => Self::Bun,
            _ => Self::Npm,
        }
    }

    /// Returns the command that installs the dependencies, exactly as locked if there is a lock
    /// file. It changes no file of a commit.
    fn install(self, files: &ProjectFiles) -> &'static str {
        let is_locked = |names: &[&str]| files.has_any(names);
        match self {
            Self::Npm if is_locked(&["package-lock.json", "npm-shrinkwrap.json"]) => "npm ci",
            Self::Npm => "npm install --no-package-lock",
            Self::Pnpm if is_locked(&["pnpm-lock.yaml"]) => "pnpm install --frozen-lockfile",
            Self::Pnpm => "pnpm install --no-lockfile",
            Self::Yarn if is_locked(&[".yarnrc.yml"]) => "yarn install --immutable",
            Self::Yarn if is_locked(&["yarn.lock"]) => "yarn install --frozen-lockfile",
            Self::Yarn => "yarn install --no-lockfile",
            Self::Bun if is_locked(&["bun.lock", "bun.lockb"]) => "bun install --frozen-lockfile",
            Self::Bun => "bun install --no-save",
        }
    }

    fn run_tests(self) -> &'static str {
        match self {
            Self::Npm => "npm test",
            Self::Pnpm => "pnpm test",
            Self::Yarn => "yarn test",
            Self::Bun => "bun run test",
        }
    }
}

pub(super) fn detect(files: &ProjectFiles, project: &mut DetectedProject) {
    let language = if files.has_any(&["tsconfig.json"]) {
        "TypeScript"
    } else {
        "JavaScript"
    };
    if files.has_any(&["package.json"]) {
        project.add(language, node_tests(files));
    }
    if files.has_any(&["deno.json", "deno.jsonc"]) {
        project.add("TypeScript", [deno_tests(files)]);
    }
}

fn node_tests(files: &ProjectFiles) -> Option<TestCommand> {
    let Ok(package) = serde_json::from_str::<Value>(files.text("package.json")) else {
        return None;
    };
    let script = package["scripts"]["test"].as_str()?.trim();
    if script.is_empty() || script.contains(NPM_PLACEHOLDER) {
        return None;
    }
    let manager = PackageManager::find(&package, files);
    let mut command = manager.run_tests().to_owned();
    // Without this variable the script waits for changed files instead of ending.
    if script.contains("react-scripts test") {
        command = format!("CI=true {command}");
    }
    let has_entries = |key: &str| {
        let entries = package[key].as_object();
        entries.is_some_and(|entries| !entries.is_empty())
    };
    let needs_install = has_entries("dependencies")
        || has_entries("devDependencies")
        || !package["workspaces"].is_null();
    if needs_install {
        command = format!("{} && {command}", manager.install(files));
    }
    Some(TestCommand::new(command, "scripts.test in package.json"))
}

fn deno_tests(files: &ProjectFiles) -> TestCommand {
    let has_task = |text: &str| {
        let tasks = text.split_once("\"tasks\"").map(|(_, rest)| rest);
        tasks.is_some_and(|rest| rest.contains("\"test\""))
    };
    let names = ["deno.json", "deno.jsonc"];
    match files.first_with(&names, has_task) {
        Some(file) => TestCommand::new("deno task test", format!("tasks.test in {file}")),
        None => TestCommand::new(
            "deno test",
            files.first_with(&names, |_| true).unwrap_or(names[0]),
        ),
    }
}
