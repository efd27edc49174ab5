//! Finds files that take the place of a test runner, the standard library or a dependency.

use super::has_extension;
use crate::surface::{Change, ChangedPath};
use crate::verdict::{FindingKind, VerifyFinding};

/// Modules that Python loads from the working directory before its own.
const PYTHON: &[&str] = &[
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

/// Returns the added files that shadow something. `requirements` are the texts of requirement files.
pub fn shadowing(changed: &[ChangedPath], requirements: &[String]) -> Option<VerifyFinding> {
    let dependencies: Vec<String> = requirements.iter().flat_map(|text| names(text)).collect();
    let shadowed = |changed: &&ChangedPath| {
        let is_there = changed.change != Change::Deleted;
        let what = shadowed(&changed.path, &dependencies).filter(|_| is_there)?;
        Some(format!("`{}` takes the place of {what}", changed.path))
    };
    let found: Vec<String> = changed
        .iter()
        .by_ref()
        .filter_map(|c| shadowed(&c))
        .collect();
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

fn shadowed(path: &str, dependencies: &[String]) -> Option<String> {
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
    // Python puts the root, the directory of a script and that of the tests on its search path.
    let is_near = |depth: usize| depth <= 1;
    let module = match parts.as_slice() {
        [above @ .., file] if is_near(above.len()) && has_extension(file, "py") => {
            file.strip_suffix(".py").filter(|name| *name != "__init__")
        }
        _ => None,
    };
    let package = parts
        .iter()
        .take(2)
        .take(parts.len() - 1)
        .find(|part| has_extension(path, "py") && is_known(part, dependencies));
    let name = module.filter(|name| is_known(name, dependencies));
    let name = name.or(package.copied())?;
    Some(format!("the module `{name}`"))
}

fn is_known(name: &str, dependencies: &[String]) -> bool {
    PYTHON.contains(&name) || dependencies.iter().any(|dependency| dependency == name)
}

/// Returns the modules that a requirements file names, as Python imports them.
fn names(text: &str) -> Vec<String> {
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

    fn text(path: &str) -> Option<String> {
        let changed = ChangedPath {
            path: path.to_owned(),
            change: Change::Added,
        };
        let requirements = vec!["requests>=2\n# comment\nPyYAML\n".to_owned()];
        shadowing(&[changed], &requirements).map(|finding| finding.text)
    }

    #[test]
    fn files_in_the_place_of_a_runner_or_a_dependency_are_named() {
        for (path, what) in [
            ("pytest.py", "the module `pytest`"),
            ("pytest/__init__.py", "the module `pytest`"),
            ("tests/unittest.py", "the module `unittest`"),
            ("sitecustomize.py", "the module `sitecustomize`"),
            ("requests.py", "the module `requests`"),
            ("requests/__init__.py", "the module `requests`"),
            ("node_modules/x/index.js", "an installed package"),
            ("x.pth", "Python's search path"),
        ] {
            let expected = format!("`{path}` takes the place of {what}");
            assert_eq!(text(path).as_deref(), Some(expected.as_str()));
        }
        for path in [
            "app/main.py",
            "src/deep/er/json.py",
            "tests/test_json.py",
            "json.js",
            "docs/time.md",
        ] {
            assert_eq!(text(path), None, "{path}");
        }
    }
}
