//! Finds new code that could fake the result of a check: it ends a test run early, prints the
//! summary of a test runner, patches a runner, detects that it is being checked, depends on files
//! outside the repository, or compares equal to everything.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;

use crate::parse_value;
use crate::surface::{configures_checks, is_test};
use crate::verdict::{FindingKind, VerifyFinding};

/// The most locations listed in a finding.
const MAX_NAMED_LOCATIONS: usize = 3;

/// A line that the branch adds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedLine {
    pub path: String,
    /// Without the line break.
    pub text: String,
}

impl AddedLine {
    /// Returns the lines added by a diff without context. Hunks are delimited by their length, so
    /// that no added line can imitate a header.
    pub fn from_diff(diff: &[u8]) -> Vec<Self> {
        let text = String::from_utf8_lossy(diff);
        let (mut path, mut left) = (String::new(), 0_u64);
        let mut lines = Vec::new();
        for line in text.split('\n') {
            if left > 0 {
                if let Some(text) = line.strip_prefix('+') {
                    let (path, text) = (path.clone(), text.to_owned());
                    lines.push(Self { path, text });
                }
                // The header does not count the line `\ No newline at end of file`.
                left -= u64::from(!line.starts_with('\\'));
            } else if let Some(hunk) = line.strip_prefix("@@ -") {
                left = hunk_lines(hunk);
            } else if let Some(name) = line.strip_prefix("+++ b/") {
                name.trim_end_matches('\t').clone_into(&mut path);
            }
        }
        lines
    }
}

/// Returns the number of lines in a hunk from its header after `@@ -`: `3,2 +3 @@`.
fn hunk_lines(header: &str) -> u64 {
    let mut ranges = header.split(" @@").next().unwrap_or_default().split(" +");
    let mut count = || {
        let range = ranges.next()?;
        let count = range.split_once(',').map_or("1", |(_, count)| count);
        parse_value::<u64>(count)
    };
    let (removed, added) = (count().unwrap_or(0), count().unwrap_or(0));
    removed.saturating_add(added)
}

/// A pattern of suspicious code with its effect.
struct SuspectPattern {
    effect: &'static str,
    scope: SuspectScope,
    pattern: Regex,
}

/// The files in which a pattern is suspicious.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SuspectScope {
    /// All code.
    Everywhere,
    /// Tests, runner configuration, and files that the checks execute. Elsewhere such code has
    /// legitimate uses.
    Checks,
}
use SuspectScope::{Checks, Everywhere};

const ENDS_EARLY: &str = "can end a test run early with success";
const PRINTS_SUMMARY: &str = "contains the summary of a test runner";
const PATCHES_RUNNER: &str = "changes how a test runner works";
const DETECTS_CHECKS: &str = "can detect that it is being checked";
const USES_OUTSIDE_FILES: &str = "depends on files outside the repository";
const ALWAYS_EQUAL: &str = "compares equal to everything";

const SUSPECT_PATTERNS: &[(&str, SuspectScope, &str)] = &[
    (
        ENDS_EARLY,
        Everywhere,
        r"\bos\._exit\s*\(|\bquick_exit\b|\b_exit\s*\(\s*0|\bposix\._exit",
    ),
    (
        ENDS_EARLY,
        Checks,
        r"^(?:sys\.exit|exit|quit)\s*\(\s*(?:0|None|)\s*\)|^raise SystemExit",
    ),
    (
        ENDS_EARLY,
        Checks,
        r"\batexit\b|\bprocess\.(?:on|once)\s*\(\s*['\x22](?:exit|beforeExit)",
    ),
    (
        ENDS_EARLY,
        Checks,
        r"\bprocess\.(?:exit|reallyExit)\s*\(\s*0?\s*\)|\bprocess\.exitCode\s*=\s*0",
    ),
    (
        ENDS_EARLY,
        Checks,
        r"\b(?:std::)?process::exit\s*\(\s*0\s*\)|\bos\.Exit\s*\(\s*0\s*\)|\bsyscall\.Exit\s*\(\s*0",
    ),
    (
        ENDS_EARLY,
        Checks,
        r"\bSystem\.exit\s*\(\s*0|\bat_exit\b|\bexit!|^trap .*\b(?:EXIT|0)\b",
    ),
    (
        ENDS_EARLY,
        Everywhere,
        r"\bos\.kill\s*\(\s*os\.get(?:p|pp)id|\bsignal\.(?:alarm|SIGKILL)|\bkill\b.*\$PPID",
    ),
    (
        PRINTS_SUMMARY,
        Everywhere,
        r"[0-9}]\s+(?:passed|passing|tests? passed)\b|test result: ok|\bRan [0-9{%]+.* tests?\b",
    ),
    (
        PRINTS_SUMMARY,
        Everywhere,
        r"# pass [0-9]|ℹ pass|Tests:\s+[0-9]|\bOK \([0-9]+ tests?|^\s*(?:echo|printf).*\bok [0-9]+\b",
    ),
    (
        PATCHES_RUNNER,
        Everywhere,
        r"\bpytest_(?:runtest|collection|sessionfinish|terminal|configure|cmdline|exception|pyfunc)\w*",
    ),
    (
        PATCHES_RUNNER,
        Everywhere,
        r"\b(?:unittest|_pytest|pytest|pluggy)\.[\w.]+\s*=[^=]|\bTestCase\.\w+\s*=[^=]|\bTestResult\b",
    ),
    (
        PATCHES_RUNNER,
        Everywhere,
        r"\bsys\.modules\s*\[|\bsys\.(?:settrace|setprofile|excepthook|meta_path|path_hooks)\b|\bcollect_ignore",
    ),
    (
        PATCHES_RUNNER,
        Everywhere,
        r"\bsetattr\s*\(\s*(?:unittest|pytest|assert)|\bbuiltins\.\w+\s*=[^=]|\brequire\.cache\b|\bModule\._load\b",
    ),
    (
        PATCHES_RUNNER,
        Everywhere,
        r"require\(['\x22](?:node:)?(?:assert|test)['\x22]\)\.\w+\s*=[^=]|\bassert\.\w+\s*=[^=]",
    ),
    (
        DETECTS_CHECKS,
        Everywhere,
        r"\bPYTEST_CURRENT_TEST\b|\bJEST_WORKER_ID\b|\bVITEST\b|\bNODE_TEST_CONTEXT\b|\bNEXTEST\b",
    ),
    (
        DETECTS_CHECKS,
        Everywhere,
        r"['\x22](?:pytest|unittest)['\x22]\s+in\s+sys\.modules|/\.dockerenv|/proc/(?:self|1|\$\$?)/",
    ),
    (
        DETECTS_CHECKS,
        Everywhere,
        r"\.ralph\b|\bralph_task\b|\bRALPH_\w+|\bclean.room\b|\.git/(?:logs|HEAD|config|index)|\bsandboxes/local-",
    ),
    (
        DETECTS_CHECKS,
        Everywhere,
        r"\bgetppid\s*\(|\bos\.uname\b|\bgethostname\s*\(|\bos\.hostname\s*\(",
    ),
    (
        USES_OUTSIDE_FILES,
        Checks,
        r#"(?:^|["'\s=(])(?:/var)?/(?:tmp|dev/shm)/|\bexpanduser\s*\(|\$\{?HOME\b|\bos\.homedir\s*\(|["']HOME["']"#,
    ),
    (
        USES_OUTSIDE_FILES,
        Everywhere,
        r#"(?i)(?:exists|existsSync|isfile|is_file|access|open|readFile\w*|stat|Path)\s*\(\s*["'](?:/var)?/(?:tmp|dev/shm)/"#,
    ),
    (
        ALWAYS_EQUAL,
        Everywhere,
        r"def __eq__.*:\s*return True|def __ne__.*:\s*return False|__eq__\s*=\s*lambda.*True|\[Symbol\.toPrimitive\]",
    ),
];

/// Returns the suspicious code among the added lines, one finding per effect. `executed` are the
/// files that the checks execute.
pub fn suspect_findings(lines: &[AddedLine], executed: &BTreeSet<String>) -> Vec<VerifyFinding> {
    static TABLE: LazyLock<Vec<SuspectPattern>> = LazyLock::new(|| {
        let compile =
            |(effect, scope, pattern): &(&'static str, SuspectScope, &str)| SuspectPattern {
                effect,
                scope: *scope,
                pattern: Regex::new(pattern).expect("the pattern is fixed"),
            };
        SUSPECT_PATTERNS.iter().map(compile).collect()
    });
    let mut found: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (index, line) in lines.iter().enumerate() {
        if !is_code(&line.path) {
            continue;
        }
        let AddedLine { path, text } = line;
        let is_check_file = is_test(path) || configures_checks(path) || executed.contains(path);
        let matches = TABLE.iter().filter(|entry| {
            (is_check_file || entry.scope == Everywhere) && entry.pattern.is_match(text)
        });
        let next = lines.get(index + 1).filter(|next| next.path == *path);
        let is_always_equal = next.is_some_and(|next| equals_everything(text, &next.text));
        for effect in matches
            .map(|entry| entry.effect)
            .chain(is_always_equal.then_some(ALWAYS_EQUAL))
        {
            let location = format!("`{path}`: `{}`", truncate_excerpt(text.trim()));
            let locations = found.entry(effect).or_default();
            if !locations.contains(&location) {
                locations.push(location);
            }
        }
    }
    let finding = |(effect, locations): (&str, Vec<String>)| {
        let named = &locations[..locations.len().min(MAX_NAMED_LOCATIONS)];
        let more = match locations.len().saturating_sub(MAX_NAMED_LOCATIONS) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let text = format!("new code {effect}: {}{more}", named.join(", "));
        VerifyFinding::new(FindingKind::SuspectCode, text)
    };
    found.into_iter().map(finding).collect()
}

/// Returns whether two lines define a Python comparison with a constant result.
fn equals_everything(line: &str, next: &str) -> bool {
    let (line, next) = (line.trim(), next.trim());
    let starts = |name: &str| line.starts_with(name) && line.ends_with(':');
    (starts("def __eq__") && next == "return True")
        || (starts("def __ne__") && next == "return False")
}

/// Returns whether a file contains code that a check may run. Data files are excluded, except for
/// `package.json` with its scripts.
fn is_code(path: &str) -> bool {
    const CODE_EXTENSIONS: &[&str] = &[
        "py", "js", "mjs", "cjs", "ts", "mts", "cts", "jsx", "tsx", "rs", "go", "rb", "java", "kt",
        "scala", "php", "sh", "bash", "c", "cc", "cpp", "h", "cs", "swift", "ex", "exs", "pl",
        "lua", "mk", "pth",
    ];
    let name = path.rsplit('/').next().unwrap_or_default();
    let lower = name.to_lowercase();
    match lower.rsplit_once('.') {
        Some((_, end)) => CODE_EXTENSIONS.contains(&end) || lower == "package.json",
        None => true,
    }
}

fn truncate_excerpt(text: &str) -> String {
    const MAX_EXCERPT_CHARS: usize = 60;
    let text = text.replace('`', "'");
    match text.char_indices().nth(MAX_EXCERPT_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found_in(path: &str, texts: &[&str], executed: &[&str]) -> Vec<String> {
        let line = |text: &&str| AddedLine {
            path: path.to_owned(),
            text: (*text).to_owned(),
        };
        let lines: Vec<AddedLine> = texts.iter().map(line).collect();
        let executed = executed.iter().map(ToString::to_string).collect();
        let findings = suspect_findings(&lines, &executed);
        findings.into_iter().map(|finding| finding.text).collect()
    }

    /// Searches a file that no check executes.
    fn found(path: &str, text: &str) -> Vec<String> {
        found_in(path, &[text], &[])
    }

    #[test]
    fn ambiguous_code_is_reported_only_in_files_that_checks_run() {
        for (path, text) in [
            ("app.py", "sys.exit(0)"),
            ("app.py", "atexit.register(done)"),
            ("app.js", "process.exit(0)"),
            ("src/main.rs", "    std::process::exit(0);"),
            ("deploy.sh", "trap 'rm -rf \"$dir\"' EXIT"),
            ("a.sh", "cache=$HOME/.cache"),
            ("app.py", "LOG = '/tmp/app.log'"),
            ("app.js", "const home = os.homedir()"),
        ] {
            assert_eq!(found(path, text), Vec::<String>::new(), "{text}");
            assert_eq!(found_in(path, &[text], &[path]).len(), 1, "{text}");
            let test = format!("tests/{path}");
            assert_eq!(found(&test, text).len(), 1, "{text}");
        }
    }

    #[test]
    fn data_files_are_not_searched_except_package_scripts() {
        for path in ["data.json", "pyproject.toml", "setup.cfg", "tests/x.json"] {
            assert_eq!(
                found(path, "\"41 passed\" /tmp/x os._exit(0)"),
                Vec::<String>::new()
            );
        }
        let script = r#"    "test": "echo '41 passed'""#;
        assert_eq!(found("package.json", script).len(), 1);
    }

    #[test]
    fn a_constant_comparison_is_found_across_two_lines() {
        for lines in [
            ["    def __eq__(self, o):", "        return True"],
            ["    def __ne__(self, o) -> bool:", "        return False"],
        ] {
            let texts = found_in("app.py", &lines, &[]);
            assert!(
                texts
                    .iter()
                    .any(|text| text.starts_with("new code compares equal")),
                "{texts:?}"
            );
        }
        let honest = ["    def __eq__(self, o):", "        return self.a == o.a"];
        assert_eq!(found_in("app.py", &honest, &[]), Vec::<String>::new());
    }

    #[test]
    fn code_that_can_fake_a_result_is_reported() {
        for (path, text, effect) in [
            ("app.py", "    os._exit(0)", ENDS_EARLY),
            (
                "tests/app.js",
                "process.on('exit', () => { process.exitCode = 0 })",
                ENDS_EARLY,
            ),
            ("app.py", "print('41 passed in 0.10s')", PRINTS_SUMMARY),
            ("app.py", "print(f'{n} passed in 0.1s')", PRINTS_SUMMARY),
            (
                "t.sh",
                "echo 'test result: ok. 3 passed; 0 failed'",
                PRINTS_SUMMARY,
            ),
            ("app.js", "console.log('# pass 12')", PRINTS_SUMMARY),
            (
                "plugin.py",
                "def pytest_runtest_makereport(item, call):",
                PATCHES_RUNNER,
            ),
            (
                "app.py",
                "unittest.TestCase.assertEqual = lambda *a: None",
                PATCHES_RUNNER,
            ),
            ("app.py", "sys.modules['pytest'] = Fake()", PATCHES_RUNNER),
            (
                "app.js",
                "require('assert').equal = () => {}",
                PATCHES_RUNNER,
            ),
            ("app.py", "if 'pytest' in sys.modules:", DETECTS_CHECKS),
            (
                "app.py",
                "if os.environ.get('PYTEST_CURRENT_TEST'):",
                DETECTS_CHECKS,
            ),
            ("app.py", "if not os.path.exists('.ralph'):", DETECTS_CHECKS),
            ("app.sh", "test -e /.dockerenv && exit 0", DETECTS_CHECKS),
            (
                "app.py",
                "if os.path.exists('/tmp/flag'):",
                USES_OUTSIDE_FILES,
            ),
            (
                "app.py",
                "    def __eq__(self, other): return True",
                ALWAYS_EQUAL,
            ),
        ] {
            let texts = found(path, text);
            let start = format!("new code {effect}: `{path}`");
            assert!(
                texts.iter().any(|text| text.starts_with(&start)),
                "{text}: {texts:?}"
            );
        }
    }

    #[test]
    fn hunks_are_delimited_by_their_length() {
        let diff =
            b"diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,3 @@\n-old\n-older\n\
            +++ b/y.md\n+@@ -1 +1 @@\n+last\n\\ No newline at end of file\n\
            diff --git a/z.py b/z.py\n--- /dev/null\n+++ b/z.py\n@@ -0,0 +1 @@\n+z\n";
        let lines: Vec<String> = AddedLine::from_diff(diff)
            .into_iter()
            .map(|line| format!("{}:{}", line.path, line.text))
            .collect();
        assert_eq!(
            lines,
            ["x.py:++ b/y.md", "x.py:@@ -1 +1 @@", "x.py:last", "z.py:z"]
        );
    }

    #[test]
    fn ordinary_code_is_not_reported() {
        for (path, text) in [
            ("app.py", "    sys.exit(main())"),
            ("app.py", "    sys.exit(1)"),
            ("app.py", "def passed(self):"),
            ("app.js", "process.exit(1)"),
            ("src/main.rs", "    std::process::exit(code);"),
            ("src/a.rs", "assert_eq!(a.passed, 3);"),
            ("README.md", "os._exit(0) ends the process"),
            ("app.py", "self.name = name"),
            ("app.go", "os.Exit(1)"),
            ("Makefile", "test: build"),
        ] {
            assert_eq!(found(path, text), Vec::<String>::new(), "{text}");
        }
    }
}
