//! Finds new files that shadow a test runner, the standard library or a dependency.

use std::collections::BTreeSet;

use super::has_extension;
use super::inputs::TrackedFiles;
use crate::surface::{ChangedPath, PathChange};
use crate::verdict::{FindingKind, VerifyFinding};

/// Modules that Python loads from the working directory in preference to the installed ones.
const PYTHON_MODULES: &[&str] = &[
    "pytest",
    "_pytest",
    "pluggy",
    "unittest",
    "doctest",
    "nose",
    "hypothesis",
    "coverage",
    "mock",
    "sitecustomize",
    "usercustomize",
    "site",
    "assertpy",
    "xdist",
    "pytest_asyncio",
    "tox",
    "nox",
    "os",
    "sys",
    "re",
    "io",
    "json",
    "time",
    "math",
    "random",
    "subprocess",
    "pathlib",
    "tempfile",
    "shutil",
    "socket",
    "logging",
    "collections",
    "functools",
    "itertools",
    "typing",
    "dataclasses",
    "datetime",
    "decimal",
    "string",
    "traceback",
    "importlib",
    "argparse",
    "difflib",
    "warnings",
    "threading",
    "asyncio",
    "runpy",
    "inspect",
    "ast",
    "copy",
    "enum",
    "hashlib",
    "operator",
];

/// Returns a finding for the added files that shadow something. `requirements` are the contents of
/// requirement files.
pub fn shadowing_finding(
    changed: &[ChangedPath],
    files: &TrackedFiles,
    requirements: &[String],
) -> Option<VerifyFinding> {
    let dependencies: Vec<String> = requirements
        .iter()
        .flat_map(|text| required_modules(text))
        .collect();
    let added: BTreeSet<&str> = changed
        .iter()
        .filter(|changed| changed.change == PathChange::Added)
        .map(|changed| changed.path.as_str())
        .collect();
    let shadowed = |path: &&str| {
        let target = shadowed_module(path, &added, files, &dependencies)?;
        Some(format!("`{path}` shadows {target}"))
    };
    let found: Vec<String> = added.iter().filter_map(shadowed).collect();
    if found.is_empty() {
        return None;
    }
    let more = match found.len().saturating_sub(5) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let text = format!("{}{more}", found[..found.len().min(5)].join(", "));
    Some(VerifyFinding::new(FindingKind::Shadowing, text))
}

fn shadowed_module(
    path: &str,
    added: &BTreeSet<&str>,
    files: &TrackedFiles,
    dependencies: &[String],
) -> Option<String> {
    let parts: Vec<&str> = path.split('/').collect();
    if parts.contains(&"node_modules") {
        return Some("an installed package".into());
    }
    if has_extension(path, "pth") || has_extension(path, "egg-link") {
        return Some("Python's search path".into());
    }
    if parts.contains(&"site-packages") || parts.contains(&"dist-packages") {
        return Some("an installed package".into());
    }
    if !has_extension(path, "py") {
        return None;
    }
    // Python's search path contains the root, the directory of the script and that of the tests.
    // Modules inside a package are prefixed with its name, so they shadow nothing.
    let is_package = |directory: &str| files.contains(&format!("{directory}/__init__.py"));
    let module = match parts.as_slice() {
        [file] => Some(*file),
        [parent, file] if !is_package(parent) => Some(*file),
        _ => None,
    };
    let module = module.and_then(|file| file.strip_suffix(".py"));
    // A package that already existed is not new.
    let is_new = |directory: &str| {
        let init = format!("{directory}/__init__.py");
        !files.contains(&init) || added.contains(init.as_str())
    };
    let package = match parts.as_slice() {
        [first, _, ..] if is_known(first, dependencies) && is_new(first) => Some(*first),
        [first, second, _, ..]
            if is_known(second, dependencies)
                && !is_package(first)
                && is_new(&format!("{first}/{second}")) =>
        {
            Some(*second)
        }
        _ => None,
    };
    let name = module.filter(|name| is_known(name, dependencies));
    let name = name.or(package)?;
    Some(format!("the module `{name}`"))
}

fn is_known(name: &str, dependencies: &[String]) -> bool {
    PYTHON_MODULES.contains(&name) || dependencies.iter().any(|dependency| dependency == name)
}

/// Returns the packages in a requirements file, in the usual spelling of their modules. Misses a
/// package whose module has another name, such as `yaml` of `PyYAML`.
fn required_modules(text: &str) -> Vec<String> {
    let name = |line: &str| {
        let line = line.trim().trim_matches(['"', '\'', ',']);
        let end = line.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')));
        let name = &line[..end.unwrap_or(line.len())];
        let starts = name.chars().next().is_some_and(|c| c.is_ascii_alphabetic());
        starts.then(|| name.to_lowercase().replace(['-', '.'], "_"))
    };
    text.lines().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding_text(path: &str) -> Option<String> {
        finding_text_among(path, PathChange::Added, &[])
    }

    fn finding_text_among(path: &str, change: PathChange, others: &[&str]) -> Option<String> {
        let changed = ChangedPath {
            path: path.to_owned(),
            change,
        };
        let files = others.iter().chain([&path]).map(ToString::to_string);
        let files = TrackedFiles::new(files);
        let requirements = vec!["requests>=2\n# comment\nPyYAML\n".to_owned()];
        shadowing_finding(&[changed], &files, &requirements).map(|finding| finding.text)
    }

    #[test]
    fn files_that_shadow_a_runner_or_a_dependency_are_reported() {
        for (path, target) in [
            ("pytest.py", "the module `pytest`"),
            ("pytest/__init__.py", "the module `pytest`"),
            ("tests/unittest.py", "the module `unittest`"),
            ("sitecustomize.py", "the module `sitecustomize`"),
            ("requests.py", "the module `requests`"),
            ("requests/__init__.py", "the module `requests`"),
            ("node_modules/x/index.js", "an installed package"),
            ("x.pth", "Python's search path"),
        ] {
            let expected = format!("`{path}` shadows {target}");
            assert_eq!(finding_text(path).as_deref(), Some(expected.as_str()));
        }
        for path in [
            "app/main.py",
            "src/deep/er/json.py",
            "tests/test_json.py",
            "json.js",
            "docs/time.md",
        ] {
            assert_eq!(finding_text(path), None, "{path}");
        }
    }

    #[test]
    fn modules_of_packages_and_old_files_shadow_nothing() {
        let package = ["app/__init__.py", "json/__init__.py"];
        for path in ["app/json.py", "app/json/__init__.py", "json/new.py"] {
            assert_eq!(
                finding_text_among(path, PathChange::Added, &package),
                None,
                "{path}"
            );
        }
        assert!(finding_text_among("app/json.py", PathChange::Added, &[]).is_some());
        assert!(finding_text_among("json/__init__.py", PathChange::Added, &[]).is_some());
        assert_eq!(
            finding_text_among("logging.py", PathChange::Modified, &[]),
            None
        );
    }
}
