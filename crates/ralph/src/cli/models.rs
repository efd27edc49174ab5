//! `ralph models`: lists the profiles with their prices, tests one, or stores newer prices.

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};
use ralph_app::AppError;
use ralph_app::config::PriceSource;
use ralph_app::format;
use ralph_app::models::{self, ModelTestReport, ProfileEntry, ProfileKeyInfo};
use ralph_core::price::{Price, PriceBook};

use super::context::Context;
use super::dispatch::block_on;
use super::exit::ExitCode;
use super::update_prices;
use crate::terminal::lines::field_line;
use crate::terminal::styled_line::{StyledLine, Tone};
use crate::terminal::{sanitize, width};

/// Arguments of `models`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct ModelsArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(subcommand)]
    pub command: Option<ModelsCommand>,
}

impl ModelsArgs {
    /// Returns whether the output is JSON.
    pub(super) fn is_json(&self) -> bool {
        self.json
            || matches!(
                self.command,
                Some(
                    ModelsCommand::Test { json: true, .. }
                        | ModelsCommand::UpdatePrices { json: true, .. }
                )
            )
    }
}

/// The subcommands of `models`.
#[derive(Debug, Subcommand)]
pub(super) enum ModelsCommand {
    /// Send one request to a model and show its reply
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
        /// The price map: a file or an https address
        #[arg(value_name = "FILE|URL", value_parser = NonEmptyStringValueParser::new())]
        source: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// The number of columns of a reply that are shown.
const SHOWN_COLUMNS: usize = 200;

const HEADER: [&str; 5] = ["PROFILE", "MODEL", "$/M IN·OUT", "KEY", "TAGS"];

/// Lists the profiles, or runs a subcommand.
pub(super) fn run(args: ModelsArgs, context: &Context) -> Result<ExitCode, AppError> {
    match args.command {
        None => block_on(Box::pin(list_profiles(args.json, context))),
        Some(ModelsCommand::Test { profile, json }) => {
            block_on(Box::pin(test_model(profile, json, context)))
        }
        Some(ModelsCommand::UpdatePrices { source, json }) => {
            block_on(Box::pin(update_prices::run(&source, json, context)))
        }
    }
}

async fn list_profiles(is_json: bool, context: &Context) -> Result<ExitCode, AppError> {
    let list = models::list_profiles(&context.app).await?;
    if is_json {
        context.output().print_json(&list.profiles)?;
    } else {
        let mut lines = table(&list.profiles);
        lines.push(StyledLine::new());
        lines.push(prices_in_force(&list.sources));
        context.output().print_lines(&lines)?;
    }
    Ok(ExitCode::Success)
}

/// Describes the effective price maps, in order of precedence.
fn prices_in_force(sources: &[PriceSource]) -> StyledLine {
    let built_in = PriceSource::BuiltIn {
        litellm: PriceBook::EMBEDDED_VERSION,
    };
    let names: Vec<String> = sources.iter().chain([&built_in]).map(source_name).collect();
    field_line("prices", "").wrapped(Tone::Plain, &names.join(", then "))
}

fn source_name(source: &PriceSource) -> String {
    match source {
        PriceSource::Profile => "the profile".to_owned(),
        PriceSource::PriceFile { path } => format!("`{}`", sanitize::line(path)),
        PriceSource::Stored {
            source,
            stored_at,
            models,
        } => format!(
            "{} models of {}, stored {}",
            models,
            sanitize::line(source),
            stored_at.strftime("%Y-%m-%d")
        ),
        PriceSource::BuiltIn { litellm } => format!("built in (LiteLLM {litellm})"),
        PriceSource::Local => "this machine".to_owned(),
    }
}

fn table(entries: &[ProfileEntry]) -> Vec<StyledLine> {
    let rows: Vec<[String; 5]> = entries.iter().map(row).collect();
    let mut widths = HEADER.map(width::columns);
    for row in &rows {
        for (column, cell) in widths.iter_mut().zip(row) {
            *column = (*column).max(width::columns(cell));
        }
    }
    let last = HEADER.len() - 1;
    let pad = |index: usize, cell: &str| {
        if index == last {
            cell.to_owned()
        } else {
            width::pad(cell, widths[index] + 2)
        }
    };
    let mut lines = vec![
        HEADER
            .iter()
            .enumerate()
            .fold(StyledLine::new().cut(), |line, (index, name)| {
                line.quiet(&pad(index, name))
            }),
    ];
    for (entry, row) in entries.iter().zip(&rows) {
        let line = row
            .iter()
            .enumerate()
            .fold(StyledLine::new().cut(), |line, (index, cell)| {
                let tone = match index {
                    0 => Tone::Strong,
                    3 if entry.usable => Tone::Good,
                    3 => Tone::Warn,
                    _ => Tone::Plain,
                };
                line.span(tone, &pad(index, cell))
            });
        lines.push(line);
        if let Some(problem) = &entry.problem {
            lines.push(StyledLine::from_text("    ").wrapped(Tone::Warn, problem));
        }
    }
    lines
}

fn row(entry: &ProfileEntry) -> [String; 5] {
    let key = match &entry.key {
        Some(ProfileKeyInfo {
            set: Some(name),
            variables,
            ..
        }) if variables.contains(name) => format!("{name} is set"),
        Some(ProfileKeyInfo { set: Some(_), .. }) => "stored".to_owned(),
        None | Some(ProfileKeyInfo { needed: false, .. }) => "not needed".to_owned(),
        Some(_) => "missing".to_owned(),
    };
    let name = if entry.is_default {
        format!("{} *", entry.profile)
    } else {
        entry.profile.clone()
    };
    [
        sanitize::line(&name),
        sanitize::line(&entry.model),
        entry
            .price
            .as_ref()
            .map_or_else(|| "unknown".into(), format_price),
        key,
        sanitize::line(&entry.tags.join(", ")),
    ]
}

/// Formats a price: `0.6 · 2.2`.
fn format_price(price: &Price) -> String {
    format!("{} · {}", price.input.dollars(), price.output.dollars())
}

/// Sends one request to a model. A reply that could not be performed sets the exit code to 1.
async fn test_model(name: String, is_json: bool, context: &Context) -> Result<ExitCode, AppError> {
    let report = models::test_model(&name, &context.app).await?;
    if is_json {
        context.output().print_json(&report)?;
    } else {
        context.output().print_lines(&report_lines(&report))?;
    }
    Ok(if report.usable {
        ExitCode::Success
    } else {
        ExitCode::Runtime
    })
}

fn report_lines(report: &ModelTestReport) -> Vec<StyledLine> {
    let answered_by = report.answered_by.as_deref().unwrap_or("not reported");
    let usage = &report.usage;
    let tokens = format!(
        "{} in, {} out, {} from a cache",
        format::count(usage.input_tokens),
        format::count(usage.output_tokens),
        format::count(usage.cache_read_tokens)
    );
    let cost = report
        .estimated_cost
        .map_or_else(|| "unknown".to_owned(), |cost| cost.to_string());
    let text = width::truncate(&sanitize::line(&report.reply), SHOWN_COLUMNS);
    let mut lines = vec![
        field_line("model", &report.model),
        field_line("answered", &sanitize::line(answered_by)),
        field_line("reply", &text),
        field_line("tokens", &tokens),
        field_line("cost", &cost),
        field_line("time", &format::duration(report.duration())),
    ];
    lines.push(match &report.problem {
        None => field_line("usable", "").span(Tone::Good, "yes"),
        Some(why) => field_line("usable", "")
            .span(Tone::Bad, "no")
            .wrapped(Tone::Plain, &format!(", {why}")),
    });
    lines
}
