//! Collects the files that a check executes or reads: scripts, test files, configuration.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use regex::Regex;

use super::command_line::SimpleCommand;
use super::has_extension;
use super::listing::{TestRunner, is_python};
use crate::surface::{ChangedPath, PathChange, configures_checks, is_test};
use crate::verdict::{FindingKind, VerifyFinding};

/// The most scripts read for one check.
const MAX_SCRIPTS: usize = 50;
/// The most files listed in a finding.
const MAX_NAMED_FILES: usize = 5;
/// Programs, and the shell keyword `for`, whose arguments may be files that are executed.
const INTERPRETERS: &[&str] = &[
    "sh",
    "bash",
    "dash",
    "zsh",
    "ksh",
    ".",
    "source",
    "node",
    "ruby",
    "perl",
    "php",
    "deno",
    "bun",
    "tsx",
    "ts-node",
    "lua",
    "pwsh",
    "for",
    "find",
    "xargs",
    "parallel",
    "run-parts",
    "prove",
    "bats",
    "mocha",
    "phpunit",
    "rspec",
    "unittest",
];
/// Programs that read their recipe from files with fixed names.
const BUILD_TOOLS: &[&str] = &[
    "make", "gmake", "npm", "yarn", "pnpm", "bun", "cargo", "go", "tox", "nox", "just", "task",
    "rake", "ctest", "cmake", "meson", "ninja", "bazel", "gradle", "mvn", "mix", "composer",
    "dotnet", "swift", "mocha", "rspec", "phpunit", "bundle", "deno",
];
/// Programs that compare files with expected output.
const COMPARERS: &[&str] = &["diff", "cmp"];

/// The paths of a commit, including those that the branch deleted.
#[derive(Debug, Clone, Default)]
pub struct TrackedFiles {
    paths: BTreeSet<String>,
}

impl TrackedFiles {
    /// Creates the set of paths.
    pub fn new(paths: impl IntoIterator<Item = String>) -> Self {
        let paths = paths.into_iter().collect();
        Self { paths }
    }

    /// Returns the files that a word of a command refers to: a file, a directory or a pattern.
    fn resolve_word(&self, word: &str, command: &SimpleCommand) -> Vec<String> {
        let value = match word.split_once('=') {
            Some((option, value)) if option.starts_with('-') => value,
            Some(_) | None => word,
        };
        // pytest selects a test by `file::name`.
        let path = value.split("::").next().unwrap_or_default();
        let Some(path) = command.repository_path(path) else {
            return Vec::new();
        };
        if path.is_empty() {
            return Vec::new();
        }
        if path.contains(['*', '?', '[', '$', '{']) {
            return self.matching_pattern(&path);
        }
        if self.paths.contains(&path) {
            return vec![path];
        }
        let prefix = format!("{path}/");
        let files = self.paths.range(prefix.clone()..);
        files
            .take_while(|file| file.starts_with(&prefix))
            .cloned()
            .collect()
    }

    fn matching_pattern(&self, pattern: &str) -> Vec<String> {
        let mut text = String::from("^");
        for c in pattern.chars() {
            match c {
                '*' => text.push_str("[^/]*"),
                '?' => text.push_str("[^/]"),
                // Not interpreted: variables, brace lists and bracket expressions match anything.
                '$' | '{' | '}' | '[' | ']' => text.push_str(".*"),
                c => text.push_str(&regex::escape(&c.to_string())),
            }
        }
        // A pattern may also match a directory.
        text.push_str("(?:/.*)?$");
        let Ok(pattern) = Regex::new(&text) else {
            return Vec::new();
        };
        let matching = self.paths.iter().filter(|path| pattern.is_match(path));
        matching.cloned().collect()
    }

    /// Returns the file of a Python module, also for a test name such as `a.b.Class.test`.
    fn resolve_module(&self, name: &str, command: &SimpleCommand) -> Vec<String> {
        let mut name = name.replace('.', "/");
        loop {
            for file in [
                format!("{name}.py"),
                format!("{name}/__main__.py"),
                format!("{name}/__init__.py"),
            ] {
                let path = command.repository_path(&file);
                if let Some(path) = path.filter(|path| self.paths.contains(path)) {
                    return vec![path];
                }
            }
            match name.rsplit_once('/') {
                Some((above, _)) => name = above.to_owned(),
                None => return Vec::new(),
            }
        }
    }

    /// Returns whether a file exists.
    pub(super) fn contains(&self, path: &str) -> bool {
        self.paths.contains(path)
    }

    fn filter(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<String> {
        let wanted = self.paths.iter().filter(|path| is_wanted(path));
        wanted.cloned().collect()
    }
}

/// Collects the files of one check. The caller reads the scripts and adds their text.
#[derive(Debug, Clone, Default)]
pub struct CheckInputs {
    executed: BTreeSet<String>,
    compared: BTreeSet<String>,
    pending_scripts: VecDeque<String>,
    /// The directories in which the scripts run.
    script_directories: BTreeMap<String, String>,
    scripts_read: usize,
}

impl CheckInputs {
    /// Adds the files of a command line.
    pub fn add_line(&mut self, line: &str, files: &TrackedFiles) {
        for command in SimpleCommand::split(line) {
            self.add_command(&command, files);
        }
    }

    /// Returns the next script to pass to [`Self::add_script`].
    pub fn next_script(&mut self) -> Option<String> {
        if self.scripts_read >= MAX_SCRIPTS {
            return None;
        }
        self.scripts_read += 1;
        self.pending_scripts.pop_front()
    }

    /// Adds the files that a script runs: a shell script, makefile or `package.json`. The whole
    /// text is read, whichever target or script the check uses.
    pub fn add_script(&mut self, path: &str, text: &str, files: &TrackedFiles) {
        let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
        let name = path.rsplit('/').next().unwrap_or_default();
        if name == "package.json" {
            for line in package_scripts(text) {
                self.add_line(&format!("cd './{directory}'; {line}"), files);
            }
            return;
        }
        // A makefile runs in its own directory. A script runs in the caller's; many change to the
        // root of the repository first.
        let mut directories = if configures_checks(path) {
            vec![directory.to_owned()]
        } else {
            let caller = self.script_directories.get(path);
            vec![caller.cloned().unwrap_or_default(), String::new()]
        };
        directories.dedup();
        for line in text.lines() {
            let line = line.trim_start_matches(['\t', '@', '-', ' ']);
            for directory in &directories {
                self.add_line(&format!("cd './{directory}'; {line}"), files);
            }
        }
    }

    fn add_command(&mut self, command: &SimpleCommand, files: &TrackedFiles) {
        let program = command.program();
        let arguments = command.words.get(1..).unwrap_or_default();
        if let Some(position) = arguments.iter().position(|word| word == "-c") {
            let is_shell = matches!(program, "sh" | "bash" | "dash" | "zsh" | "ksh");
            if let (true, Some(line)) = (is_shell, arguments.get(position + 1)) {
                self.add_line(&format!("cd './{}'; {line}", command.directory), files);
                return;
            }
        }
        let runner = TestRunner::from_command(command);
        let is_path = command.words.first().is_some_and(|word| word.contains('/'));
        let executes = is_path || runner.is_some() || INTERPRETERS.contains(&program);
        if executes || is_python(program) {
            let words = command.words.iter().skip(usize::from(!is_path));
            let named: Vec<String> = words
                .flat_map(|word| resolve_executed(word, command, files))
                .collect();
            let names_tests = named.iter().any(|path| is_test(path));
            self.add_executed(named, command);
            if runner.is_some() && !names_tests {
                self.add_executed(files.filter(is_test), command);
            }
        }
        if runner.is_some() || BUILD_TOOLS.contains(&program) || is_python(program) {
            let is_read = |path: &str| is_infrastructure(path, runner, program);
            self.add_executed(files.filter(is_read), command);
        }
        if COMPARERS.contains(&program) {
            let named = arguments
                .iter()
                .flat_map(|word| files.resolve_word(word, command));
            self.compared.extend(named);
        }
    }

    fn add_executed(&mut self, paths: Vec<String>, command: &SimpleCommand) {
        for path in paths {
            if self.executed.insert(path.clone()) && may_be_script(&path) {
                let directory = command.directory.clone();
                self.script_directories.insert(path.clone(), directory);
                self.pending_scripts.push_back(path);
            }
        }
    }

    /// Returns the files that the check executes.
    pub fn executed(&self) -> &BTreeSet<String> {
        &self.executed
    }

    /// Returns the changes to these files that need review, changes to existing files first.
    /// Returns nothing if the branch only adds new tests.
    pub fn reviewable_changes(
        &self,
        changed: &[ChangedPath],
        sizes: &LineChanges,
    ) -> Vec<ChangedPath> {
        let mut touched: Vec<ChangedPath> = changed
            .iter()
            .filter(|changed| {
                let is_expectation =
                    changed.change != PathChange::Added && self.compared.contains(&changed.path);
                self.executed.contains(&changed.path) || is_expectation
            })
            .cloned()
            .collect();
        if touched.iter().all(|changed| is_new_test(changed, sizes)) {
            return Vec::new();
        }
        touched.sort_by_key(|changed| match changed.change {
            PathChange::Deleted => 0,
            PathChange::Modified => 1,
            PathChange::Added => 2,
        });
        touched
    }
}

/// Numbers of added and removed lines by path.
pub type LineChanges = BTreeMap<String, (u64, u64)>;

/// Returns the findings for checks that run changed files. Checks with the same files share one
/// finding.
pub fn changed_input_findings(
    checks: &[(String, Vec<ChangedPath>)],
    sizes: &LineChanges,
) -> Vec<VerifyFinding> {
    let mut groups: Vec<(&[ChangedPath], Vec<&str>)> = Vec::new();
    for (command, touched) in checks.iter().filter(|(_, touched)| !touched.is_empty()) {
        match groups.iter_mut().find(|(files, _)| files == touched) {
            Some((_, commands)) => commands.push(command),
            None => groups.push((touched, vec![command])),
        }
    }
    let finding = |(touched, commands): (&[ChangedPath], Vec<&str>)| {
        let subject = match commands.as_slice() {
            [] => return None,
            [one] => format!("`{one}` runs"),
            [one, two] => format!("`{one}` and `{two}` run"),
            [one, two, three] => format!("`{one}`, `{two}` and `{three}` run"),
            [one, two, more @ ..] => format!("`{one}`, `{two}` and {} more checks run", more.len()),
        };
        let text = format!(
            "{subject} files that this branch changed: {}",
            describe_changes(touched, sizes)
        );
        Some(VerifyFinding::new(FindingKind::ChangedInput, text))
    };
    groups.into_iter().filter_map(finding).collect()
}

fn describe_changes(touched: &[ChangedPath], sizes: &LineChanges) -> String {
    let name = |changed: &ChangedPath| {
        let how = match (changed.change, sizes.get(&changed.path)) {
            (PathChange::Added, _) => "added".to_owned(),
            (PathChange::Deleted, _) => "deleted".to_owned(),
            (PathChange::Modified, Some((added, removed))) => {
                format!("modified, +{added} −{removed}")
            }
            (PathChange::Modified, None) => "modified".to_owned(),
        };
        format!("`{}` ({how})", changed.path)
    };
    let named: Vec<String> = touched.iter().take(MAX_NAMED_FILES).map(name).collect();
    let more = match touched.len().saturating_sub(MAX_NAMED_FILES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", named.join(", "))
}

/// Returns whether a change only adds tests, without affecting how tests run.
fn is_new_test(changed: &ChangedPath, sizes: &LineChanges) -> bool {
    const SOURCES: &[&str] = &[
        "py", "rs", "go", "js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx", "rb", "java", "kt",
        "scala", "php", "cs", "swift", "ex", "exs", "dart", "c", "cc", "cpp",
    ];
    let path = changed.path.as_str();
    let name = path.rsplit('/').next().unwrap_or_default();
    let affects_runs = match name {
        // An empty file only marks the directory as a package.
        "__init__.py" => sizes.get(path).is_none_or(|(added, _)| *added > 0),
        "conftest.py" | "__main__.py" | "sitecustomize.py" | "usercustomize.py" => true,
        _ => configures_checks(path) || !SOURCES.iter().any(|end| has_extension(name, end)),
    };
    changed.change == PathChange::Added && is_test(path) && !affects_runs
}

/// Returns the files that a word of an executing command refers to.
fn resolve_executed(word: &str, command: &SimpleCommand, files: &TrackedFiles) -> Vec<String> {
    let resolved = files.resolve_word(word, command);
    if resolved.is_empty() && is_python(command.program()) && !word.starts_with('-') {
        return files.resolve_module(word, command);
    }
    resolved
}

/// Returns whether a test runner or build tool reads a file because of its name.
fn is_infrastructure(path: &str, runner: Option<TestRunner>, program: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let is_python_file = matches!(
        name,
        "conftest.py"
            | "sitecustomize.py"
            | "usercustomize.py"
            | "setup.cfg"
            | "tox.ini"
            | "pytest.ini"
            | ".pytest.ini"
            | "pyproject.toml"
            | "noxfile.py"
            | "setup.py"
    ) || has_extension(name, "pth")
        || has_extension(name, "pyc");
    match runner {
        Some(TestRunner::Pytest | TestRunner::Unittest) => is_python_file,
        None if is_python(program) => is_python_file && name != "conftest.py",
        Some(
            TestRunner::Cargo
            | TestRunner::Nextest
            | TestRunner::Go
            | TestRunner::Jest
            | TestRunner::Vitest
            | TestRunner::Node,
        )
        | None => configures_checks(path),
    }
}

/// Returns whether a file may contain a list of commands.
fn may_be_script(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let lower = name.to_lowercase();
    let is_makefile =
        lower.contains("makefile") || has_extension(&lower, "mk") || lower == "justfile";
    let is_shell = [".sh", ".bash", ".bats"]
        .iter()
        .any(|end| lower.ends_with(end));
    is_makefile || is_shell || name == "package.json" || !name.contains('.')
}

/// Returns the commands of all scripts in a `package.json`.
fn package_scripts(text: &str) -> Vec<String> {
    // A package manager does not run scripts of an invalid file either.
    let Ok(package) = serde_json::from_str::<serde_json::Value>(text) else {
        return Vec::new();
    };
    let scripts = package["scripts"].as_object();
    let lines = scripts.into_iter().flat_map(|scripts| scripts.values());
    lines
        .filter_map(|line| Some(line.as_str()?.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests;
