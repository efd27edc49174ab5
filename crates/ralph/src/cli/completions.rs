//! `ralph completions`: prints a completion script for a shell.

use clap::Args;
use clap::CommandFactory as _;
use clap_complete::Shell;
use ralph_app::AppError;

use super::command_line::Cli;
use super::context::Context;
use super::exit::ExitCode;

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub(super) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}

/// The function of the generated scripts for bash and zsh, which becomes the second choice.
const STATIC_FUNCTION: &str = "_ralph() {";

const BASH: &str = r#"
_ralph() {
    local value
    COMPREPLY=()
    while IFS= read -r value; do
        COMPREPLY+=("$value")
    done < <("${COMP_WORDS[0]}" __complete "$COMP_CWORD" "${COMP_WORDS[@]}" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} -eq 0 ]]; then
        _ralph_static "$@"
    fi
}

"#;

const ZSH: &str = r#"
_ralph() {
    local -a values
    values=("${(@f)$("${words[1]}" __complete $((CURRENT - 1)) "${words[@]}" 2>/dev/null)}")
    if [[ -n "${values[1]}" ]]; then
        [[ "$PREFIX" == --*=* ]] && compset -P '*='
        compadd -a values
    else
        _ralph_static "$@"
    fi
}

"#;

/// Fish completes the value of an option only by a rule of that option. Without values, files are
/// offered.
const FISH: &str = r#"
function __ralph_values
    set -l words (commandline -opc) (commandline -ct)
    ralph __complete (math (count $words) - 1) $words 2>/dev/null
end
function __ralph_has_values
    set -l values (__ralph_values)
    test (count $values) -gt 0
end
complete -c ralph -n __ralph_has_values -f -a "(__ralph_values)"
complete -c ralph -n __ralph_has_values -l profile -x -a "(__ralph_values)"
complete -c ralph -n __ralph_has_values -l agent -x -a "(__ralph_values)"
complete -c ralph -n __ralph_has_values -l sandbox -x -a "(__ralph_values)"
"#;

/// Prints the script.
pub(super) fn run(args: &CompletionsArgs, context: &Context) -> Result<ExitCode, AppError> {
    context.output().print_text(&script(args.shell))?;
    Ok(ExitCode::Success)
}

/// Returns the generated script, with the values of `ralph __complete` for the shells that can show
/// them: runs, profiles, agents and keys of settings.
fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "ralph", &mut script);
    let script = String::from_utf8_lossy(&script);
    let with_values = |function: &str| {
        let (start, rest) = script.split_once(STATIC_FUNCTION)?;
        Some(format!(
            "{start}{}_ralph_static() {{{rest}",
            function.trim_start()
        ))
    };
    let extended = if shell == Shell::Bash {
        with_values(BASH)
    } else if shell == Shell::Zsh {
        with_values(ZSH)
    } else if shell == Shell::Fish {
        Some(format!("{script}{FISH}"))
    } else {
        None
    };
    extended.unwrap_or_else(|| script.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_ask_for_values() {
        for shell in [Shell::Bash, Shell::Zsh] {
            let script = script(shell);
            assert_eq!(
                script.matches("\n_ralph() {").count()
                    + usize::from(script.starts_with("_ralph() {")),
                1,
                "{shell}"
            );
            assert!(script.contains("_ralph_static() {"), "{shell}");
            assert!(script.contains("__complete"), "{shell}");
        }
        let fish = script(Shell::Fish);
        for option in ["-f", "-l profile -x", "-l agent -x"] {
            let rule = format!("{option} -a \"(__ralph_values)\"");
            assert!(fish.contains(&rule), "{option}");
        }
        assert!(!script(Shell::PowerShell).contains("__complete"));
    }
}
