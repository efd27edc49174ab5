//! The command line: the list of commands, and its help.

use std::fmt::Write as _;

use clap::{CommandFactory as _, Parser, Subcommand};

use super::adopt::AdoptArgs;
use super::allow::AllowArgs;
use super::answer::AnswerArgs;
use super::attach::AttachArgs;
use super::audit::AuditArgs;
use super::completions::CompletionsArgs;
use super::config::{ConfigArgs, ConfigCommand};
use super::continue_run::ContinueArgs;
use super::cost::CostArgs;
use super::debug::DebugArgs;
use super::demo::DemoArgs;
use super::diagnose::DiagnoseArgs;
use super::diff::DiffArgs;
use super::discard::DiscardArgs;
use super::export::ExportArgs;
use super::gc::GcArgs;
use super::image::ImageArgs;
use super::init::InitArgs;
use super::issue::{IssueArgs, PollArgs};
use super::lint::LintArgs;
use super::logs::LogsArgs;
use super::merge::MergeArgs;
use super::mode::ModeArgs;
use super::models::ModelsArgs;
use super::pr::PrArgs;
use super::preflight::PreflightArgs;
use super::profile::ProfileArgs;
use super::proxy::ProxyArgs;
use super::prune::PruneArgs;
use super::reindex::ReindexArgs;
use super::replay::ReplayArgs;
use super::resume::ResumeArgs;
use super::rm::RmArgs;
use super::run::RunArgs;
use super::run_arg::RunArg;
use super::runs::RunsArgs;
use super::scm::ScmArgs;
use super::selftest::SelftestArgs;
use super::serve::ServeArgs;
use super::show::ShowArgs;
use super::steer::{GuardrailArgs, MessageArgs, NoteArgs};
use super::task::TaskArgs;
use super::tokens::{StoreTokenArgs, TokenArgs};
use super::top::TopArgs;
use super::trust::TrustArgs;

/// The commands by purpose, in the order of the help.
const GROUPS: [(&str, &[&str]); 6] = [
    (
        "Start and follow",
        &[
            "init", "lint", "run", "issue", "poll", "runs", "show", "logs", "attach", "top",
            "replay", "serve", "demo",
        ],
    ),
    (
        "Steer",
        &[
            "pause",
            "resume",
            "continue",
            "rotate",
            "stop",
            "answer",
            "message",
            "note",
            "guardrail",
            "allow",
            "profile",
            "mode",
            "task",
            "diagnose",
            "debug",
        ],
    ),
    (
        "Use the result",
        &["diff", "pr", "merge", "discard", "export"],
    ),
    ("Inspect", &["cost", "audit"]),
    (
        "Set up",
        &[
            "config",
            "models",
            "store-token",
            "check-token",
            "get-token",
            "scm",
            "proxy",
            "image",
            "trust",
            "completions",
        ],
    ),
    (
        "Maintain",
        &[
            "preflight",
            "selftest",
            "prune-sandboxes",
            "adopt",
            "rm",
            "gc",
            "reindex",
        ],
    ),
];

/// The version with the commit, if it is known. The reference and the manual pages have only the
/// version.
const VERSION: &str = env!("RALPH_VERSION_TEXT");

/// Returns the command line, with its commands in groups.
pub(super) fn command_line() -> clap::Command {
    let command = Cli::command();
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}Options:\n{{options}}{{after-help}}",
        grouped_commands(&command)
    );
    command.help_template(template).version(VERSION)
}

fn grouped_commands(command: &clap::Command) -> String {
    let mut text = String::new();
    for (title, names) in GROUPS {
        let _ = writeln!(text, "{title}:");
        for name in names {
            let subcommand = command.find_subcommand(name);
            let about = subcommand.and_then(clap::Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {name:<16}{about}");
        }
        text.push('\n');
    }
    text
}

/// Run coding agents in a loop until a task is really done
#[derive(Debug, Parser)]
#[command(
    name = "ralph",
    bin_name = "ralph",
    version,
    arg_required_else_help = true,
    subcommand_required = true,
    after_help = "Start with:\n  ralph init    write a task file\n  ralph lint    check the task file\n  ralph run     start the run\n\nOr in one step:\n  ralph run -p \"what you want\""
)]
pub(super) struct Cli {
    /// Also print the diagnostics log on stderr; -vv prints more
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(super) verbose: u8,
    #[command(subcommand)]
    pub command: CliCommand,
}

impl Cli {
    /// Returns how much of the diagnostics log is printed on standard error. A background process prints
    /// nothing there: its standard error is a file without a size limit.
    pub(super) fn log_verbosity(&self) -> u8 {
        let is_detached = if let CliCommand::Run(args) = &self.command {
            args.detach.detached
        } else if let CliCommand::Resume(args) = &self.command {
            args.detach.detached
        } else {
            false
        };
        if is_detached { 0 } else { self.verbose }
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(super) enum CliCommand {
    /// Write a task file for this repository
    #[command(
        after_help = "Examples:\n  ralph init\n  ralph init -p \"Add a --json flag to list\"\n  ralph init --full\n\nExit codes: 0 written, 1 the file exists or cannot be written"
    )]
    Init(InitArgs),
    /// Check a task file before it is run
    #[command(
        after_help = "Examples:\n  ralph lint\n  ralph lint tasks/login.md --json | jq '.findings[].code'\n\nExit codes: 0 no errors, 1 errors"
    )]
    Lint(LintArgs),
    /// Work on a task until it is done or needs the user
    #[command(
        after_help = "Examples:\n  ralph run\n  ralph run -p \"Add a --json flag to list\"\n  ralph run tasks/login.md --repo ../login --sandbox local\n  ralph run --model scripted:replies.jsonl --json\n\nExit codes: 0 succeeded, 10 failed, 11 paused for the user, 12 the task file was rejected, 130 interrupted"
    )]
    Run(RunArgs),
    /// Work on an issue of the repository until its steps are done
    #[command(
        after_help = "Examples:\n  ralph issue 24\n  ralph issue 24 --repo ../login --agent claude\n  ralph issue 24 --engine actions --profile default-cheap\n\nThe same command continues an issue whose process ended.\n\nExit codes: 0 done, 10 failed, 11 needs attention or blocked, 12 refused, 130 interrupted"
    )]
    Issue(IssueArgs),
    /// Work on every issue that is ready, as soon as it is
    #[command(
        after_help = "Examples:\n  ralph poll\n  ralph poll --interval 1m --timeout 8h\n  ralph poll --workers 3 --repo ../login\n\nCtrl-C ends the work and makes the issues ready again.\n\nExit codes: 0 the time is over, or interrupted"
    )]
    Poll(PollArgs),
    /// List the runs of this repository, the newest first
    #[command(
        visible_aliases = ["ls", "ps"],
        alias = "list",
        after_help = "In a repository without runs, and outside of one, all runs are listed. With `--json`, all are always listed."
    )]
    Runs(RunsArgs),
    /// Show the status of a run, or one of its iterations
    #[command(visible_alias = "status")]
    Show(ShowArgs),
    /// Print the log of a run
    Logs(LogsArgs),
    /// Watch a run that another process works on
    #[command(
        after_help = "Ctrl-C detaches and leaves the run alone.\n\nExit codes: 0 succeeded or detached, 10 failed, 11 paused, 130 interrupted, 1 its process is gone"
    )]
    Attach(AttachArgs),
    /// Watch all unfinished runs, of all repositories
    #[command(
        after_help = "On a terminal, the list is refreshed until Ctrl-C; elsewhere it is printed once."
    )]
    Top(TopArgs),
    /// Pause a run at its next action
    Pause(RunArg),
    /// Continue a run that waits or was interrupted
    Resume(ResumeArgs),
    /// Continue a run with other budgets, even after one was used up
    #[command(
        after_help = "Examples:\n  ralph continue last --max-iterations 40\n  ralph continue last --max-cost 20 --max-time 3h\n\nA limit counts everything that the run has used since its start. Branch and sandbox stay the same.\n\nExit codes: as of `ralph run`"
    )]
    Continue(ContinueArgs),
    /// Start a fresh iteration, and cancel a running model call
    Rotate(RunArg),
    /// End a run and keep its sandbox for inspection
    Stop(RunArg),
    /// Answer the question of a run and continue it
    #[command(
        override_usage = "ralph answer [OPTIONS] [RUN] <TEXT>...",
        after_help = "Examples:\n  ralph answer 'use the second one'\n  ralph answer 260301-100000-0001 'port 8080' --detach\n\nThe next prompt contains the question and the answer. Exit codes: those of `ralph resume`, or 0 with `--detach`"
    )]
    Answer(AnswerArgs),
    /// Switch a run to another model profile
    #[command(override_usage = "ralph profile [OPTIONS] [RUN] <PROFILE>")]
    Profile(ProfileArgs),
    /// Change how far you may intervene in a run
    #[command(
        override_usage = "ralph mode [OPTIONS] [RUN] <MODE>",
        after_help = "Example:\n  ralph mode last guided    allow notes and messages\n\n`debug` also allows `ralph debug`; `autonomous` is the default."
    )]
    Mode(ModeArgs),
    /// Apply a changed task file to a run
    Task(TaskArgs),
    /// Print the changes of a run
    #[command(
        after_help = "Examples:\n  ralph diff\n  ralph diff last --iteration 3\n  ralph diff last --stat\n  ralph diff last | git apply"
    )]
    Diff(DiffArgs),
    /// Print the pull request of a run
    Pr(PrArgs),
    /// Merge the branch of a run into its base branch
    #[command(
        after_help = "Examples:\n  ralph merge\n  ralph merge last --unverified\n\nNothing is changed if the branches conflict, or if local changes in the working tree would be overwritten.\n\nExit codes: 0 merged, 1 not merged"
    )]
    Merge(MergeArgs),
    /// Remove the branch and sandbox of a run, close its pull request
    #[command(
        after_help = "Examples:\n  ralph discard\n  ralph discard last --yes\n\nThe run's files stay: `ralph show`, `ralph logs` and `ralph diff` still work. `ralph rm` removes them, too."
    )]
    Discard(DiscardArgs),
    /// Write the branch of a run into an empty directory
    #[command(override_usage = "ralph export [OPTIONS] [RUN] <DIR>")]
    Export(ExportArgs),
    /// Show the effective settings and where each comes from
    #[command(
        after_help = "Examples:\n  ralph config\n  ralph config get sandbox.provider\n  ralph config --json | jq '.[] | select(.source != \"default\")'\n\nYour own settings are in ~/.config/ralph/config.toml, those of a project in its ralph.toml."
    )]
    Config(ConfigArgs),
    /// Show the cost of all runs, by run, day, repository or model
    #[command(
        after_help = "Examples:\n  ralph cost\n  ralph cost --since 7d --by model\n  ralph cost --by day --json | jq .total.cost_usd"
    )]
    Cost(CostArgs),
    /// List the model profiles, try one, or store newer prices
    #[command(
        after_help = "Examples:\n  ralph models\n  ralph models test default-cheap\n  ralph models update-prices model_prices.json\n  ralph models --json | jq '.[] | select(.usable).profile'"
    )]
    Models(ModelsArgs),
    /// Add a guardrail to a run
    #[command(
        after_help = "Example:\n  ralph guardrail last --name 'no mocks' --trigger 'when a test is slow' \\\n    --instruction 'make the code faster, do not mock it'"
    )]
    Guardrail(GuardrailArgs),
    /// Give a run a hint (modes guided and debug, or if the run asks)
    #[command(
        override_usage = "ralph note [OPTIONS] [RUN] <TEXT>",
        after_help = "Example:\n  ralph note last 'the parser lives in src/parse.rs' --kind file"
    )]
    Note(NoteArgs),
    /// Send the agent or model a message (modes as for `note`)
    #[command(
        override_usage = "ralph message [OPTIONS] [RUN] <TEXT>...",
        alias = "tell",
        after_help = "Example:\n  ralph message last 'use the parser in src/parse.rs, do not write another'\n\nAn agent that accepts messages receives it while it works; otherwise the next prompt contains it. `ralph show` shows whether it was delivered."
    )]
    Message(MessageArgs),
    /// Allow the commands of a run to reach a host
    #[command(
        override_usage = "ralph allow [OPTIONS] [RUN] <HOST>",
        after_help = "Examples:\n  ralph allow last crates.example\n  ralph allow last '*.crates.example' --project\n\n`ralph show` lists the hosts that were blocked."
    )]
    Allow(AllowArgs),
    /// Ask the doctor why a run is stuck, or apply its report
    #[command(
        after_help = "Examples:\n  ralph diagnose last            ask, and show the report\n  ralph diagnose last --apply    apply the last report; ask first if there is none"
    )]
    Diagnose(DiagnoseArgs),
    /// Run a command of the task by its id (mode debug)
    Debug(DebugArgs),
    /// Check a run's records using only its files and git
    Audit(AuditArgs),
    /// Print the output of a run again, from its journal
    Replay(ReplayArgs),
    /// Work on many runs, with a dashboard and an API
    #[command(
        after_help = "Examples:\n  ralph serve --open\n  ralph serve --port 0 --json\n  ralph serve --login\n  ralph serve --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem\n  ralph serve --behind-proxy --public-url https://ralph.example\n\nThe first line contains a link that signs a browser in once. Programs use the token in server.json of the state directory. Ctrl-C parks all runs; the next start continues them.\n\nExit codes: 0 ended by a signal, 1 could not be started, 130 ended at once by a second signal"
    )]
    Serve(ServeArgs),
    /// Store the credential of an agent
    #[command(
        after_help = "Examples:\n  ralph store-token\n  ralph store-token --agent codex < key.txt\n  echo '{\"accessToken\":\"…\",\"baseUrl\":\"https://gateway.example\"}' | ralph store-token --auth gateway\n\nExit codes: 0 stored, 1 not stored"
    )]
    StoreToken(StoreTokenArgs),
    /// Check whether an agent has a valid credential
    #[command(after_help = "Exit codes: 0 valid, 1 missing or expired")]
    CheckToken(TokenArgs),
    /// Print the credential of an agent, without a newline
    #[command(
        after_help = "Example:\n  ANTHROPIC_API_KEY=$(ralph get-token --auth api-key) claude\n\nExit codes: 0 printed, 1 missing or expired"
    )]
    GetToken(TokenArgs),
    /// Add the credential of an agent to requests of other programs
    #[command(
        after_help = "Examples:\n  ralph get-token | ralph proxy\n  { echo api_key; ralph get-token --auth api-key; } | ralph proxy --listen 127.0.0.1:0\n\nThe credential is read from standard input: alone, or after a line with its mode (oauth, api_key, gateway). The variables that other programs need are printed.\n\nExit codes: 0 idle timeout, or already running, 1 could not be started, 130 ended by a signal"
    )]
    Proxy(ProxyArgs),
    /// Build, pull or inspect the images of container sandboxes
    Image(ImageArgs),
    /// Check a repository on its source host, and its credential
    Scm(ScmArgs),
    /// Try ralph without a model, a container or a network
    Demo(DemoArgs),
    /// Check everything that a run needs, without starting one
    #[command(
        after_help = "Examples:\n  ralph preflight\n  ralph preflight tasks/login.md --sandbox docker\n  ralph preflight --agent claude\n\nNothing is changed, and no network request is sent: `ralph check-token` shows when a credential expires, `ralph selftest` tries it.\n\nExit codes: 0 all checks passed, 1 some failed"
    )]
    Preflight(PreflightArgs),
    /// Show what a repository's files propose, and approve it
    #[command(
        after_help = "Examples:\n  ralph trust\n  ralph trust tasks/login.md --yes\n  ralph trust --list\n  ralph trust --revoke\n\nA run uses a repository's hosts, images and prices only after you approved exactly these. Keys, engines and programs of this machine are set in your own configuration, ~/.config/ralph.\n\nExit codes: 0 nothing needs approval, 2 something does"
    )]
    Trust(TrustArgs),
    /// Test a sandbox provider on this machine
    #[command(
        after_help = "Examples:\n  ralph selftest\n  ralph selftest --offline\n  ralph selftest --type local\n\nThe agent sends one short request to a small model, with your token. With `--offline`, a local replacement for the provider answers it.\n\nExit codes: 0 all checks passed, 1 some failed"
    )]
    Selftest(SelftestArgs),
    /// Remove sandboxes that are no longer in use
    #[command(
        after_help = "Examples:\n  ralph prune-sandboxes --dry-run\n  ralph prune-sandboxes --type docker --max-age 2d\n\nA sandbox in which a process works is never removed."
    )]
    PruneSandboxes(PruneArgs),
    /// Rebuild a run whose directory is gone
    #[command(
        after_help = "Examples:\n  ralph adopt 261115-214604-120b\n  ralph adopt task-001 --yes\n\nThe run is paused, and its boxes are open again. `ralph resume` continues it in its sandbox."
    )]
    Adopt(AdoptArgs),
    /// Remove the directory and the sandboxes of a finished run
    Rm(RmArgs),
    /// Show the disk space of runs, and remove old ones
    #[command(
        after_help = "Examples:\n  ralph gc\n  ralph gc --older-than 7d --yes\n\nExit codes: 0, or 1 if a run could not be removed"
    )]
    Gc(GcArgs),
    /// Bring the server's index of all runs up to date
    #[command(
        after_help = "A server does the same when it starts. The index can be removed at any time.\n\nExit codes: 0 up to date, 1 it cannot be used, or a running server updates it"
    )]
    Reindex(ReindexArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
}

impl CliCommand {
    /// Returns whether the output is JSON.
    pub(super) fn is_json(&self) -> bool {
        match self {
            Self::Lint(LintArgs { json, .. })
            | Self::Run(RunArgs { json, .. })
            | Self::Issue(IssueArgs { json, .. })
            | Self::Poll(PollArgs { json, .. })
            | Self::Runs(RunsArgs { json, .. })
            | Self::Top(TopArgs { json })
            | Self::Answer(AnswerArgs { json, .. })
            | Self::Show(ShowArgs { json, .. })
            | Self::Logs(LogsArgs { json, .. })
            | Self::Replay(ReplayArgs { json, .. })
            | Self::Cost(CostArgs { json, .. })
            | Self::Attach(AttachArgs { json, .. })
            | Self::Resume(ResumeArgs { json, .. })
            | Self::Continue(ContinueArgs { json, .. })
            | Self::Pr(PrArgs { json, .. })
            | Self::Merge(MergeArgs { json, .. })
            | Self::Discard(DiscardArgs { json, .. })
            | Self::Rm(RmArgs { json, .. })
            | Self::Adopt(AdoptArgs { json, .. })
            | Self::Gc(GcArgs { json, .. })
            | Self::Diagnose(DiagnoseArgs { json, .. })
            | Self::Audit(AuditArgs { json, .. })
            | Self::Preflight(PreflightArgs { json, .. })
            | Self::Trust(TrustArgs { json, .. })
            | Self::Selftest(SelftestArgs { json, .. })
            | Self::Serve(ServeArgs { json, .. })
            | Self::Reindex(ReindexArgs { json })
            | Self::PruneSandboxes(PruneArgs { json, .. }) => *json,
            Self::Image(args) => args.is_json(),
            Self::Scm(args) => args.is_json(),
            Self::Config(ConfigArgs { json, command }) => match command {
                Some(ConfigCommand::Get { json, .. }) => *json,
                None => *json,
            },
            Self::Models(args) => args.is_json(),
            Self::Init(_)
            | Self::Pause(_)
            | Self::Rotate(_)
            | Self::Stop(_)
            | Self::Profile(_)
            | Self::Mode(_)
            | Self::Task(_)
            | Self::Diff(_)
            | Self::Export(_)
            | Self::Guardrail(_)
            | Self::Note(_)
            | Self::Message(_)
            | Self::Allow(_)
            | Self::Debug(_)
            | Self::StoreToken(_)
            | Self::CheckToken(_)
            | Self::GetToken(_)
            | Self::Proxy(_)
            | Self::Demo(_)
            | Self::Completions(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_definition_is_valid() {
        command_line().debug_assert();
    }

    #[test]
    fn every_command_is_in_one_group_of_the_help() {
        let mut grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| names.iter().copied())
            .collect();
        grouped.sort_unstable();
        let command = Cli::command();
        let mut known: Vec<&str> = command
            .get_subcommands()
            .map(clap::Command::get_name)
            .collect();
        known.sort_unstable();
        assert_eq!(grouped, known);
        let help = command_line().render_help().to_string();
        assert!(help.contains("\nSteer:\n  pause "), "{help}");
        assert!(help.contains("\nOptions:\n"), "{help}");
        let too_long: Vec<&str> = help.lines().filter(|line| line.len() > 80).collect();
        assert_eq!(too_long, Vec::<&str>::new());
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
