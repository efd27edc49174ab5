//! What can be typed.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use ralph_core::plan::EngineKind;

use super::image::ImageArgs;
use super::maintenance_args::{PreflightArgs, PruneArgs, SelftestArgs};
use super::steer_args::{
    AllowArgs, ExportArgs, GuardrailArgs, MessageArgs, NoteArgs, ProfileArgs, TaskArgs,
};
use super::token_args::{ProxyArgs, StoreTokenArgs, TokenArgs};
use super::trust::TrustArgs;

/// The task file that commands take when none is named.
pub const TASK_FILE: &str = "ralph_task.md";

/// Run coding agents in a loop until a task is really done
#[derive(Debug, Parser)]
#[command(
    name = "ralph",
    bin_name = "ralph",
    version,
    arg_required_else_help = true,
    subcommand_required = true,
    after_help = "Start with:\n  ralph init    write a task file\n  ralph lint    see what it lacks\n  ralph run     let it be done"
)]
pub struct Cli {
    /// Also print the diagnostics log on standard error; -vv prints more
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// What to do.
    #[command(subcommand)]
    pub command: CliCommand,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum CliCommand {
    /// Write a task file to start from
    Init(InitArgs),
    /// Check a task file before it is run
    #[command(
        after_help = "Examples:\n  ralph lint\n  ralph lint tasks/login.md --json | jq '.findings[].code'\n\nExit codes: 0 no errors, 1 errors"
    )]
    Lint(LintArgs),
    /// Work on a task until it is done, out of budget or in need of a person
    #[command(
        after_help = "Examples:\n  ralph run\n  ralph run tasks/login.md --repo ../login --sandbox local\n  ralph run --model scripted:replies.jsonl --json\n\nExit codes: 0 succeeded, 10 failed, 11 paused for a person, 12 the task file was refused, 130 interrupted"
    )]
    Run(RunArgs),
    /// List all runs, the newest first
    Runs(RunsArgs),
    /// Show where a run stands
    Show(ShowArgs),
    /// Print what a run has done
    Logs(LogsArgs),
    /// Make a run wait at its next action
    Pause(RunArg),
    /// Continue a run that waits or was interrupted
    Resume(ResumeArgs),
    /// Make a run start a fresh iteration at its next action
    Rotate(RunArg),
    /// End a run and keep its sandbox for a look
    Stop(RunArg),
    /// Let the model of another profile answer from a run's next iteration on
    Profile(ProfileArgs),
    /// Put a changed task file in force for a run
    Task(TaskArgs),
    /// Write the branch of a run into an empty directory, to look at it
    Export(ExportArgs),
    /// List the model profiles, try one, or store newer prices
    #[command(
        after_help = "Examples:\n  ralph models\n  ralph models test default-cheap\n  ralph models update-prices model_prices.json\n  ralph models --json | jq '.[] | select(.usable).profile'"
    )]
    Models(ModelsArgs),
    /// Add a sign to a run's guardrails
    #[command(
        after_help = "Example:\n  ralph guardrail last --name 'no mocks' --trigger 'when a test is slow' \\\n    --instruction 'make the code faster, do not mock it'"
    )]
    Guardrail(GuardrailArgs),
    /// Give a run a hint (modes guided and debug)
    #[command(
        after_help = "Example:\n  ralph note last 'the parser lives in src/parse.rs' --kind file"
    )]
    Note(NoteArgs),
    /// Tell something to who works on a run, at once where that is possible (modes guided and debug)
    #[command(
        alias = "tell",
        after_help = "Example:\n  ralph message last 'use the parser in src/parse.rs, do not write another'\n\nAn agent that can be talked to takes it up while it works; otherwise it is in the next prompt. `ralph show` tells where it stands."
    )]
    Message(MessageArgs),
    /// Let the commands of a run reach a host from now on
    #[command(
        after_help = "Examples:\n  ralph allow last crates.example\n  ralph allow last '*.crates.example' --project\n\n`ralph show` lists the hosts that were blocked."
    )]
    Allow(AllowArgs),
    /// Ask the doctor why a run is stuck, or apply its report
    #[command(
        after_help = "Examples:\n  ralph diagnose last            ask, and show the report\n  ralph diagnose last --apply    apply the last report; ask first if there is none"
    )]
    Diagnose(DiagnoseArgs),
    /// Start a command of the task by its id (mode debug)
    Debug(DebugArgs),
    /// Check a run's records from files and git alone
    Audit(AuditArgs),
    /// Show again what a run showed, from its journal
    Replay(RunArg),
    /// Keep the credential of an agent
    #[command(
        after_help = "Examples:\n  ralph store-token\n  ralph store-token --agent codex < key.txt\n  echo '{\"accessToken\":\"…\",\"baseUrl\":\"https://gateway.example\"}' | ralph store-token --auth gateway\n\nExit codes: 0 stored, 1 not stored"
    )]
    StoreToken(StoreTokenArgs),
    /// Tell whether an agent has a credential that holds
    #[command(after_help = "Exit codes: 0 it has one, 1 it has none, or its time is over")]
    CheckToken(TokenArgs),
    /// Print the credential of an agent, without a line end
    #[command(
        after_help = "Example:\n  ANTHROPIC_API_KEY=$(ralph get-token --auth api-key) claude\n\nExit codes: 0 printed, 1 there is none, or its time is over"
    )]
    GetToken(TokenArgs),
    /// Add the credential of an agent to the requests of other programs
    #[command(
        after_help = "Examples:\n  ralph get-token | ralph proxy\n  { echo api_key; ralph get-token --auth api-key; } | ralph proxy --listen 127.0.0.1:0\n\nThe credential comes on standard input: its mode (oauth, api_key, gateway) and itself in two lines, or itself alone. What a program needs instead of it is printed.\n\nExit codes: 0 nobody needed it any more, or one runs already, 1 it could not be started, 130 ended by a signal"
    )]
    Proxy(ProxyArgs),
    /// Build, pull or look at the images of container sandboxes
    Image(ImageArgs),
    /// Try ralph without a model, a container or a network
    Demo(DemoArgs),
    /// Check everything that a run needs, without starting one
    #[command(
        after_help = "Examples:\n  ralph preflight\n  ralph preflight tasks/login.md --sandbox docker\n  ralph preflight --agent claude\n\nNothing is changed, and nobody on the network is asked: `ralph check-token` tells how long a credential holds, `ralph selftest` tries it out.\n\nExit codes: 0 all checks passed, 1 some failed"
    )]
    Preflight(PreflightArgs),
    /// Show what a repository's files propose, and approve it
    #[command(
        after_help = "Examples:\n  ralph trust\n  ralph trust tasks/login.md --yes\n  ralph trust --list\n  ralph trust --revoke\n\nA run uses a repository's hosts, images and prices only after you approved exactly these. Keys, engines and programs of this machine are set in your own configuration, ~/.config/ralph.\n\nExit codes: 0 nothing waits for approval, 2 something does"
    )]
    Trust(TrustArgs),
    /// Try out a sandbox provider on this machine
    #[command(
        after_help = "Examples:\n  ralph selftest\n  ralph selftest --offline\n  ralph selftest --type local\n\nThe agent is asked to say ok once, with your token and a small model. With `--offline` a stand-in inside of this program answers it.\n\nExit codes: 0 all checks passed, 1 some failed"
    )]
    Selftest(SelftestArgs),
    /// Remove sandboxes that nobody uses any more
    #[command(
        after_help = "Examples:\n  ralph prune-sandboxes --dry-run\n  ralph prune-sandboxes --type docker --max-age 2d\n\nA sandbox in which a process works is never removed."
    )]
    PruneSandboxes(PruneArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
}

impl CliCommand {
    /// Tells whether its output is meant for a script.
    pub fn is_json(&self) -> bool {
        match self {
            Self::Lint(LintArgs { json, .. })
            | Self::Run(RunArgs { json, .. })
            | Self::Runs(RunsArgs { json })
            | Self::Show(ShowArgs { json, .. })
            | Self::Resume(ResumeArgs { json, .. })
            | Self::Diagnose(DiagnoseArgs { json, .. })
            | Self::Audit(AuditArgs { json, .. })
            | Self::Preflight(PreflightArgs { json, .. })
            | Self::Trust(TrustArgs { json, .. })
            | Self::Selftest(SelftestArgs { json, .. })
            | Self::PruneSandboxes(PruneArgs { json, .. }) => *json,
            Self::Image(args) => args.is_json(),
            Self::Models(ModelsArgs { json, command }) => {
                let json_of_command = match command {
                    Some(
                        ModelsCommand::Test { json, .. } | ModelsCommand::UpdatePrices { json, .. },
                    ) => *json,
                    None => false,
                };
                *json || json_of_command
            }
            Self::Init(_)
            | Self::Logs(_)
            | Self::Pause(_)
            | Self::Rotate(_)
            | Self::Stop(_)
            | Self::Profile(_)
            | Self::Task(_)
            | Self::Export(_)
            | Self::Guardrail(_)
            | Self::Note(_)
            | Self::Message(_)
            | Self::Allow(_)
            | Self::Debug(_)
            | Self::Replay(_)
            | Self::StoreToken(_)
            | Self::CheckToken(_)
            | Self::GetToken(_)
            | Self::Proxy(_)
            | Self::Demo(_)
            | Self::Completions(_) => false,
        }
    }
}

/// Arguments of `init`.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// Overwrite files that exist
    #[arg(long)]
    pub force: bool,
    /// Write config/models.yaml too
    #[arg(long)]
    pub models: bool,
}

/// Arguments of `lint`.
#[derive(Debug, Args)]
pub struct LintArgs {
    /// The task file
    #[arg(default_value = TASK_FILE)]
    pub file: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The task file
    #[arg(default_value = TASK_FILE)]
    pub file: PathBuf,
    /// Take this repository instead of the task's
    #[arg(long, value_name = "PATH|URL", value_parser = NonEmptyStringValueParser::new())]
    pub repo: Option<String>,
    /// Run commands in a sandbox of this provider
    #[arg(long, value_name = "PROVIDER", value_parser = NonEmptyStringValueParser::new())]
    pub sandbox: Option<String>,
    /// Choose who does the work
    #[arg(long, value_enum)]
    pub engine: Option<EngineName>,
    /// Let this agent do the work: claude, codex, opencode, or one of config/agents.toml
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub agent: Option<String>,
    /// Use this model profile
    #[arg(long, conflicts_with = "model", value_parser = NonEmptyStringValueParser::new())]
    pub profile: Option<String>,
    /// Use this model, such as zai/glm-4.7 or scripted:FILE.jsonl
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    pub model: Option<String>,
    /// Look for newer versions of the image and build it anew
    #[arg(long)]
    pub rebuild: bool,
    /// Print the plan and start nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON, one record per line
    #[arg(long)]
    pub json: bool,
    /// What to do when the task has an unfinished run.
    #[command(flatten)]
    pub again: UnfinishedRunArgs,
}

/// What to do when the task has an unfinished run.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub struct UnfinishedRunArgs {
    /// Start a new run even if the task has an unfinished one
    #[arg(long)]
    pub new: bool,
    /// Continue the task's unfinished run
    #[arg(long)]
    pub resume: bool,
}

/// Who does the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EngineName {
    /// The model answers with actions and ralph performs them
    Actions,
    /// A coding agent's program works inside the sandbox
    Agent,
}

impl From<EngineName> for EngineKind {
    fn from(name: EngineName) -> Self {
        match name {
            EngineName::Actions => Self::Actions,
            EngineName::Agent => Self::Agent,
        }
    }
}

/// Arguments of `runs`.
#[derive(Debug, Args)]
pub struct RunsArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// A run, for commands that need nothing else.
#[derive(Debug, Args)]
pub struct RunArg {
    /// The run: its id, the start of it, its task's id, or `last`
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub run: String,
}

/// Arguments of `show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Which run.
    #[command(flatten)]
    pub run: RunArg,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `logs`.
#[derive(Debug, Args)]
pub struct LogsArgs {
    /// Which run.
    #[command(flatten)]
    pub run: RunArg,
    /// Go on printing until nobody works on the run
    #[arg(short, long)]
    pub follow: bool,
    /// Print the errors instead
    #[arg(long)]
    pub errors: bool,
}

/// Arguments of `resume`.
#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// Which run.
    #[command(flatten)]
    pub run: RunArg,
    /// Print JSON, one record per line
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `models`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct ModelsArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// What to do instead of listing them.
    #[command(subcommand)]
    pub command: Option<ModelsCommand>,
}

/// What can be done with models besides listing them.
#[derive(Debug, Subcommand)]
pub enum ModelsCommand {
    /// Ask a model once and show what comes back
    Test {
        /// The profile, or a model such as zai/glm-4.7
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        profile: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Store a price map in LiteLLM's format, for all later runs
    UpdatePrices {
        /// The map: a file, or an https address
        #[arg(value_name = "FILE|URL", value_parser = NonEmptyStringValueParser::new())]
        source: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// Arguments of `diagnose`.
#[derive(Debug, Args)]
pub struct DiagnoseArgs {
    /// Which run.
    #[command(flatten)]
    pub run: RunArg,
    /// Apply the last report; ask first if there is none
    #[arg(long)]
    pub apply: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `debug`.
#[derive(Debug, Args)]
pub struct DebugArgs {
    /// Which run.
    #[command(flatten)]
    pub run: RunArg,
    /// The id; without it the ids are listed
    pub id: Option<String>,
}

/// Arguments of `audit`.
#[derive(Debug, Args)]
pub struct AuditArgs {
    /// Which run.
    #[command(flatten)]
    pub run: RunArg,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Put the demo into this directory instead of a temporary one
    #[arg(long)]
    pub dir: Option<PathBuf>,
}

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn command_definition_is_valid() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_help_text_is_imperative_without_a_full_stop() {
        let command = Cli::command();
        for subcommand in command.get_subcommands() {
            let abouts = subcommand.get_about().into_iter();
            let helps = subcommand.get_arguments().filter_map(clap::Arg::get_help);
            for text in abouts.chain(helps).map(ToString::to_string) {
                assert!(!text.ends_with('.'), "{}: {text}", subcommand.get_name());
                assert!(
                    text.starts_with(|c: char| c.is_uppercase()),
                    "{}: {text}",
                    subcommand.get_name()
                );
            }
        }
    }
}
