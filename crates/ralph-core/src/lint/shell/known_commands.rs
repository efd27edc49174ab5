//! Simple commands with a predictable exit code.

use super::exit_paths::ExitPaths;
use super::lexer::ShellWord;
use super::parser::{ShellOptions, evaluate};
use crate::parse_value;

/// Commands that in practice always exit with 0.
const ALWAYS_SUCCEED: [&str; 14] = [
    "true", ":", "echo", "printf", "sleep", "pwd", "date", "whoami", "hostname", "uname", "clear",
    "export", "unset", "umask",
];

/// Commands that pass their input through: at the end of a pipe, their exit code does not reflect
/// the preceding command.
pub(super) const FILTERS: [&str; 20] = [
    "tee", "cat", "head", "tail", "sort", "uniq", "sed", "tr", "cut", "wc", "nl", "less", "more",
    "column", "fold", "fmt", "ts", "rev", "tac", "logger",
];

const SHELLS: [&str; 6] = ["sh", "bash", "dash", "zsh", "ksh", "ash"];

/// Returns the possible outcomes of a simple command.
pub(super) fn simple_command_paths(
    words: &[ShellWord],
    options: &mut ShellOptions,
    depth: usize,
) -> ExitPaths {
    let Some((name, arguments)) = without_assignments(words).split_first() else {
        // The exit code of an assignment is that of its command substitution.
        return if words.iter().any(|word| word.substitutes) {
            ExitPaths::unknown()
        } else {
            ExitPaths::success("an assignment always succeeds")
        };
    };
    let program = name.text.rsplit('/').next().unwrap_or_default();
    // A program of the project may happen to have a known name.
    if !name.is_literal || (name.text != program && !is_system_path(&name.text)) {
        return ExitPaths::unknown();
    }
    match program {
        "exit" | "return" => exit_command(arguments),
        "false" => ExitPaths::failure(),
        "wait" if arguments.is_empty() => always_succeeds(&name.text),
        "git" => git_command(arguments),
        "find" => find_command(arguments),
        "make" | "gmake" => make_command(arguments),
        "npm" | "pnpm" | "yarn" => node_script(arguments),
        "test" => constant_test(&name.text, arguments),
        "[" | "[[" => match arguments.split_last() {
            Some((_, inner)) => constant_test(&name.text, inner),
            None => ExitPaths::unknown(),
        },
        "set" => {
            options.apply_arguments(arguments);
            always_succeeds(&name.text)
        }
        "trap" => {
            options.apply_trap(arguments, depth);
            always_succeeds(&name.text)
        }
        "eval" => {
            let text: Vec<&str> = arguments.iter().map(|word| word.text.as_str()).collect();
            evaluate(&text.join(" "), options.clone(), depth).unwrap_or_else(ExitPaths::unknown)
        }
        _ if ALWAYS_SUCCEED.contains(&program) => always_succeeds(&name.text),
        _ if SHELLS.contains(&program) => shell_command(arguments, depth),
        _ => match wrapped_command(program, arguments) {
            Some(inner) => simple_command_paths(inner, options, depth),
            None => ExitPaths::unknown(),
        },
    }
}

fn always_succeeds(name: &str) -> ExitPaths {
    ExitPaths::success(format!("`{name}` always succeeds"))
}

fn is_system_path(path: &str) -> bool {
    path.starts_with("/bin/") || path.starts_with("/usr/bin/")
}

fn without_assignments(words: &[ShellWord]) -> &[ShellWord] {
    let first = words.iter().position(|word| !is_assignment(word));
    &words[first.unwrap_or(words.len())..]
}

fn is_assignment(word: &ShellWord) -> bool {
    let Some((name, _)) = word.text.split_once('=') else {
        return false;
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.chars().all(is_name) && !name.starts_with(|c: char| c.is_ascii_digit())
}

fn exit_command(arguments: &[ShellWord]) -> ExitPaths {
    let code = arguments.first().filter(|word| word.is_literal);
    match code.and_then(|word| parse_value::<u32>(&word.text)) {
        Some(0) => ExitPaths {
            exits_with_success: true,
            reason: Some("`exit 0` ends it with success".to_owned()),
            ..ExitPaths::default()
        },
        Some(_) => ExitPaths {
            exits_with_failure: true,
            ..ExitPaths::default()
        },
        None => ExitPaths {
            exits_with_success: true,
            exits_with_failure: true,
            ..ExitPaths::default()
        },
    }
}

/// Evaluates a `test` with constant operands.
fn constant_test(name: &str, operands: &[ShellWord]) -> ExitPaths {
    let texts: Vec<&str> = operands.iter().map(|word| word.text.as_str()).collect();
    let always = || ExitPaths::success(format!("`{name} {}` is always true", texts.join(" ")));
    if operands.iter().any(|word| !word.is_literal) {
        return ExitPaths::unknown();
    }
    match texts.as_slice() {
        [text] if !text.is_empty() => always(),
        ["-n", text] if !text.is_empty() => always(),
        ["-z", ""] | ["-e" | "-d" | "-r" | "-x", "." | "/" | "./"] => always(),
        [left, "=" | "==" | "-eq" | "-ge" | "-le", right] if left == right => always(),
        _ => ExitPaths::unknown(),
    }
}

/// `git status` and `git diff` report differences in their output, not in their exit code.
fn git_command(arguments: &[ShellWord]) -> ExitPaths {
    let texts: Vec<&str> = arguments.iter().map(|word| word.text.as_str()).collect();
    match texts.split_first() {
        Some((&"status", [])) => ExitPaths::success("`git status` always succeeds"),
        Some((&"diff", [] | ["--stat"])) => {
            ExitPaths::success("`git diff` without `--exit-code` always succeeds")
        }
        _ => ExitPaths::unknown(),
    }
}

/// `find` exits with 0 whether it finds something or not.
fn find_command(arguments: &[ShellWord]) -> ExitPaths {
    let runs = |word: &ShellWord| word.text.starts_with("-exec") || word.text.starts_with("-ok");
    let starts_here = arguments
        .iter()
        .take_while(|word| !word.text.starts_with(['-', '(', '!']))
        .all(|word| word.text == "." || word.text == "./");
    if starts_here && !arguments.iter().any(runs) {
        ExitPaths::success("`find` succeeds whether it finds something or not")
    } else {
        ExitPaths::unknown()
    }
}

fn make_command(arguments: &[ShellWord]) -> ExitPaths {
    let mut paths = ExitPaths::unknown();
    let ignores = |word: &ShellWord| word.text == "-i" || word.text == "--ignore-errors";
    if arguments.iter().any(ignores) {
        paths
            .hidden_failures
            .push("`make -i` ignores errors in recipes".to_owned());
    }
    paths
}

fn node_script(arguments: &[ShellWord]) -> ExitPaths {
    let mut paths = ExitPaths::unknown();
    if arguments.iter().any(|word| word.text == "--if-present") {
        paths
            .hidden_failures
            .push("`--if-present` succeeds if there is no such script".to_owned());
    }
    paths
}

/// Evaluates `sh -c 'TEXT'`, also as `bash -euo pipefail -c 'TEXT'`.
fn shell_command(arguments: &[ShellWord], depth: usize) -> ExitPaths {
    let mut options = ShellOptions::default();
    let mut rest = arguments;
    while let Some((word, after)) = rest.split_first() {
        let Some(flags) = word.text.strip_prefix('-').filter(|text| !text.is_empty()) else {
            return ExitPaths::unknown();
        };
        rest = after;
        if flags.starts_with('-') {
            continue;
        }
        options.apply_arguments(std::slice::from_ref(word));
        if flags.contains('o')
            && let Some((name, after)) = rest.split_first()
        {
            options.apply_named(&name.text, true);
            rest = after;
        }
        if flags.contains('c') {
            let Some(script) = rest.first() else {
                return ExitPaths::unknown();
            };
            let paths = evaluate(&script.text, options, depth);
            return paths.map_or_else(ExitPaths::unknown, ExitPaths::in_subshell);
        }
    }
    ExitPaths::unknown()
}

/// Returns the command that a wrapper such as `timeout` or `env` runs.
fn wrapped_command<'w>(program: &str, arguments: &'w [ShellWord]) -> Option<&'w [ShellWord]> {
    /// Wrapper programs, their options with a value, and the number of operands before the command.
    const WRAPPERS: [(&str, &[&str], usize); 11] = [
        ("timeout", &["-s", "-k"], 1),
        ("env", &["-u", "-C"], 0),
        ("nice", &["-n"], 0),
        ("nohup", &[], 0),
        ("time", &[], 0),
        ("exec", &["-a"], 0),
        ("command", &[], 0),
        ("builtin", &[], 0),
        ("stdbuf", &["-o", "-e", "-i"], 0),
        ("sudo", &["-u"], 0),
        ("busybox", &[], 0),
    ];
    let (_, valued, operands) = WRAPPERS.iter().find(|(name, _, _)| *name == program)?;
    let mut rest = arguments;
    while let Some((word, after)) = rest.split_first() {
        if !word.text.starts_with('-') {
            break;
        }
        let skipped = usize::from(valued.contains(&word.text.as_str()));
        rest = after.get(skipped..)?;
    }
    let rest = without_assignments(rest.get(*operands..)?);
    (!rest.is_empty()).then_some(rest)
}
