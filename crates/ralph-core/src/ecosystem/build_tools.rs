//! Build tools and scripts that are not bound to a language.

use super::detect::{DetectedProject, TestCommand};
use super::project_files::ProjectFiles;

/// Names that make looks for, in its own order.
const MAKEFILES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];

/// Scripts whose name says that they run the tests.
const TEST_SCRIPTS: [&str; 4] = ["test.sh", "tests.sh", "run_tests.sh", "run-tests.sh"];

pub(super) fn detect(files: &ProjectFiles, project: &mut DetectedProject) {
    project.add_commands(make_tests(files));
    project.add_commands(recipe_tests(files));
    let calls = |file: &str, functions: &[&str]| {
        let text = files.text(file);
        functions.iter().any(|function| text.contains(function))
    };
    if files.has_any(&["meson.build"]) {
        let has_tests = calls("meson.build", &["test("]) || files.has_any(&["tests", "test"]);
        let command = "meson setup build && meson test -C build";
        project.add(
            "C or C++",
            has_tests.then(|| TestCommand::new(command, "meson.build")),
        );
    }
    if files.has_any(&["CMakeLists.txt"]) {
        let functions = ["enable_testing", "add_test", "include(CTest)", "gtest"];
        let command = "cmake -S . -B build && cmake --build build && ctest --test-dir build --output-on-failure";
        let has_tests = calls("CMakeLists.txt", &functions);
        project.add(
            "C or C++",
            has_tests.then(|| TestCommand::new(command, "CMakeLists.txt")),
        );
    }
    let sources = [".c", ".cc", ".cpp", ".cxx"];
    if project.languages.is_empty() && files.has_suffix(&sources) {
        project.add("C or C++", None);
    }
    let scripts = TEST_SCRIPTS.iter().filter(|name| files.has_any(&[name]));
    project.add_commands(scripts.map(|name| TestCommand::new(format!("sh {name}"), *name)));
}

/// Returns `make test` or `make check` if the first makefile has such a target.
fn make_tests(files: &ProjectFiles) -> Option<TestCommand> {
    let file = files.first_with(&MAKEFILES, |_| true)?;
    let text = files.text(file);
    let mut targets = ["test", "tests", "check"].into_iter();
    let target = targets.find(|target| has_target(text, target))?;
    Some(TestCommand::new(
        format!("make {target}"),
        format!("the target `{target}` in {file}"),
    ))
}

/// Returns whether a makefile has a rule for a target: `test: build`, not `test := 1`.
fn has_target(makefile: &str, wanted: &str) -> bool {
    let rules = makefile
        .lines()
        .filter(|line| !line.starts_with(['\t', ' ', '#', '.']));
    let mut rules = rules.filter_map(|line| line.split_once(':'));
    rules.any(|(targets, rest)| {
        let is_rule = !rest.starts_with('=') && !rest.starts_with(":=") && !targets.contains('=');
        is_rule && targets.split_whitespace().any(|target| target == wanted)
    })
}

/// Returns the recipe `test` of a justfile or a Taskfile.
fn recipe_tests(files: &ProjectFiles) -> Vec<TestCommand> {
    let mut commands = Vec::new();
    let is_recipe = |line: &str| {
        let line = line.strip_prefix('@').unwrap_or(line);
        let rest = line.strip_prefix("test");
        let rest = rest.and_then(|rest| rest.split_once(':'));
        rest.is_some_and(|(parameters, rest)| {
            let ends_name = parameters.is_empty() || parameters.starts_with(' ');
            ends_name && !rest.starts_with('=')
        })
    };
    let has_recipe = |text: &str| text.lines().any(is_recipe);
    if let Some(file) = files.first_with(&["justfile", "Justfile"], has_recipe) {
        let origin = format!("the recipe `test` in the {file}");
        commands.push(TestCommand::new("just test", origin));
    }
    let has_task = |text: &str| text.lines().any(|line| line.trim_end() == "  test:");
    if let Some(file) = files.first_with(&["Taskfile.yml", "Taskfile.yaml"], has_task) {
        let origin = format!("the task `test` in {file}");
        commands.push(TestCommand::new("task test", origin));
    }
    commands
}
