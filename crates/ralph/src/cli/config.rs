//! `ralph config`: shows the effective settings and where each comes from.

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};
use ralph_app::AppError;
use ralph_app::config::ValueOrigin;
use ralph_app::planning::{EffectiveSetting, SettingEntry, effective_settings};
use ralph_core::task::nearest;
use serde_json::Value;

use super::context::Context;
use super::exit::ExitCode;
use crate::terminal::sanitize;
use crate::terminal::styled_line::{StyledLine, Tone};

/// Arguments of `config`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct ConfigArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(subcommand)]
    pub command: Option<ConfigCommand>,
}

/// The subcommands of `config`.
#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Print one value
    Get {
        /// The key, such as sandbox.provider
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        key: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// Lists the settings, or prints one.
pub(super) fn run(args: &ConfigArgs, context: &Context) -> Result<ExitCode, AppError> {
    let settings = effective_settings(&context.app)?;
    let output = context.output();
    match &args.command {
        Some(ConfigCommand::Get { key, json }) => {
            let setting = find(&settings, key)?;
            if *json {
                output.print_json(&setting.entry(setting.value.clone()))?;
            } else {
                output.print_text(&format!("{}\n", sanitize::line(&raw(&setting.value))))?;
            }
        }
        None if args.json => {
            let entries: Vec<SettingEntry> = settings
                .iter()
                .map(|setting| setting.entry(setting.listed_value()))
                .collect();
            output.print_json(&entries)?;
        }
        None => {
            let lines: Vec<StyledLine> = settings.iter().flat_map(setting_lines).collect();
            output.print_lines(&lines)?;
        }
    }
    Ok(ExitCode::Success)
}

fn find<'a>(settings: &'a [EffectiveSetting], key: &str) -> Result<&'a EffectiveSetting, AppError> {
    if let Some(setting) = settings.iter().find(|setting| setting.key == key) {
        return Ok(setting);
    }
    let keys = || settings.iter().map(|setting| setting.key.as_str());
    let table = format!("{key}.");
    let below: Vec<&str> = keys().filter(|known| known.starts_with(&table)).collect();
    let (why, fix) = match (below.first(), nearest(key, keys())) {
        (Some(first), _) => (
            "it is a table",
            format!("name one of its keys, such as `{first}`"),
        ),
        (None, Some(known)) => (
            "no setting has this key",
            format!("did you mean `{known}`?"),
        ),
        (None, None) => (
            "no setting has this key",
            "`ralph config` lists all keys".to_owned(),
        ),
    };
    Err(AppError::usage(format!("cannot get `{key}`"), why, fix))
}

/// Returns a value for scripts: texts without quotes.
fn raw(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns the lines of a setting: its value and source, and values of the repository that are not
/// used.
fn setting_lines(setting: &EffectiveSetting) -> Vec<StyledLine> {
    let source = match &setting.origin {
        ValueOrigin::Default => "default".to_owned(),
        ValueOrigin::UserFile(path) => format!("your file {}", path.display()),
        ValueOrigin::ProjectFile(path) => format!("project file {}", path.display()),
        ValueOrigin::Environment(name) => format!("environment variable {name}"),
        ValueOrigin::Dotenv(name) => format!("{name} in .env"),
    };
    let text = format!("{} = {} # {source}", setting.key, setting.listed_value());
    let mut lines = vec![StyledLine::new().wrapped(Tone::Plain, &text)];
    let mut note = |text: String| {
        lines.push(StyledLine::from_text("  # ").wrapped(Tone::Warn, &text));
    };
    if !setting.pending.is_empty() {
        let values = setting.pending.join("`, `");
        note(format!(
            "approval pending for `{values}`: `ralph trust` shows it"
        ));
    }
    if let Some(value) = &setting.refused {
        note(format!(
            "the repository sets `{value}`, which only your own file may"
        ));
    }
    lines
}
