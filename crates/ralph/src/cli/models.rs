//! `ralph models`: lists the profiles with their prices, tests one, or stores newer prices.

use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};
use ralph_app::AppError;
use ralph_app::config::PriceSource;
use ralph_app::format;
use ralph_app::providers::model_keys::KeyStatus;
use ralph_app::providers::models::{
    ModelFactory, absolute_script, listed_price, price_or_highest, sourced_price,
};
use ralph_core::action;
use ralph_core::money::Usd;
use ralph_core::ports::{FinishReason, ModelError, ModelReply, ModelRequest};
use ralph_core::price::{self, Price, PriceBook};
use ralph_core::profile::ModelChoice;
use ralph_engine::run::ChosenModel;
use serde::Serialize;
use serde_json::json;

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

/// The prompt of a test. The expected reply has no actions.
const TEST_SYSTEM_PROMPT: &str = "You answer with one JSON object and nothing else.";
const TEST_PROMPT: &str = r#"This is a test of the connection. Answer with exactly this JSON object:
{"summary": "ready", "actions": [], "claims": {"checkboxes_checked": [], "milestones_completed": []}}"#;

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

/// A profile in the table and in the JSON.
#[derive(Debug, Serialize)]
struct ProfileEntry {
    profile: String,
    model: String,
    tags: Vec<String>,
    is_default: bool,
    max_output_tokens: Option<u32>,
    temperature: Option<f64>,
    api_base: Option<String>,
    /// In dollars per million tokens; `None` if unknown.
    price: Option<Price>,
    price_source: Option<PriceSource>,
    key: Option<ProfileKeyInfo>,
    usable: bool,
    /// The reason why the profile cannot be used.
    problem: Option<String>,
}

/// Whether a key exists; its value is never shown.
#[derive(Debug, Serialize)]
struct ProfileKeyInfo {
    variables: Vec<String>,
    set: Option<String>,
    needed: bool,
}

impl From<KeyStatus> for ProfileKeyInfo {
    fn from(status: KeyStatus) -> Self {
        Self {
            variables: status.variables,
            set: status.found_in,
            needed: status.is_needed,
        }
    }
}

async fn list_profiles(is_json: bool, context: &Context) -> Result<ExitCode, AppError> {
    context.app.load_model_keys().await?;
    let profiles = context.app.profiles()?;
    let models = context.app.models()?;
    let sources = profiles.price_sources()?;
    let entries: Vec<ProfileEntry> = profiles
        .iter()
        .map(|(name, profile)| ProfileEntry {
            tags: profile.tags.clone(),
            is_default: profiles.default_name() == Some(name),
            ..profile_entry(name, profile.to_model_choice(name), &sources, &models)
        })
        .collect();
    if is_json {
        context.output().print_json(&entries)?;
    } else {
        let mut lines = table(&entries);
        lines.push(StyledLine::new());
        lines.push(prices_in_force(&sources));
        context.output().print_lines(&lines)?;
    }
    Ok(ExitCode::Success)
}

fn profile_entry(
    name: &str,
    mut choice: ModelChoice,
    sources: &[(PriceSource, PriceBook)],
    models: &ModelFactory,
) -> ProfileEntry {
    choice.model = absolute_script(&choice.model, models.environment.working_dir());
    let priced = match choice.price {
        Some(price) => Some((price, PriceSource::Profile)),
        None => sourced_price(sources, &choice, &models.environment),
    };
    let (price, price_source) = priced.unzip();
    let problem = models.create(&choice, &[]).err().map(|error| error.why);
    ProfileEntry {
        profile: name.to_owned(),
        tags: Vec::new(),
        is_default: false,
        max_output_tokens: choice.max_output_tokens,
        temperature: choice.temperature,
        key: models.key_status(&choice).map(ProfileKeyInfo::from),
        price,
        price_source,
        usable: problem.is_none(),
        problem,
        model: choice.model,
        api_base: choice.api_base,
    }
}

/// Describes the effective price maps, in order of precedence.
fn prices_in_force(sources: &[(PriceSource, PriceBook)]) -> StyledLine {
    let built_in = PriceSource::BuiltIn {
        litellm: PriceBook::EMBEDDED_VERSION,
    };
    let sources = sources.iter().map(|(source, _)| source);
    let names: Vec<String> = sources.chain([&built_in]).map(source_name).collect();
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
            .fold(StyledLine::new(), |line, (index, name)| {
                line.quiet(&pad(index, name))
            }),
    ];
    for (entry, row) in entries.iter().zip(&rows) {
        let line = row
            .iter()
            .enumerate()
            .fold(StyledLine::new(), |line, (index, cell)| {
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
    context.app.load_model_keys().await?;
    let chosen = choose_model(&name, context)?;
    let request = ModelRequest {
        system: TEST_SYSTEM_PROMPT.into(),
        user: TEST_PROMPT.into(),
        schema: Some(action::json_schema()),
        max_output_tokens: None,
    };
    let clock = context.app.clock();
    let started = clock.monotonic();
    let response = chosen.model.ask_once(&request).await;
    let duration = clock.monotonic().saturating_sub(started);
    let reply = response.map_err(|error| test_failed(&chosen.choice, &error))?;
    let cost = reply
        .billed
        .unwrap_or_else(|| price::cost(&price_or_highest(&chosen.choice), &reply.usage));
    let problem = reply_problem(&reply);
    if is_json {
        context.output().print_json(&json!({
            "profile": chosen.choice.profile,
            "model": chosen.choice.model,
            "answered_by": reply.answered_by,
            "reply": reply.text,
            "usable": problem.is_none(),
            "problem": problem,
            "usage": reply.usage,
            "cost_usd": chosen.choice.price.map(|_| cost),
            "duration_ms": u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
        }))?;
    } else {
        let lines = reply_lines(&chosen, &reply, problem.as_deref(), cost, duration);
        context.output().print_lines(&lines)?;
    }
    Ok(if problem.is_none() {
        ExitCode::Success
    } else {
        ExitCode::Runtime
    })
}

/// Returns the model of a profile; a name with `/` or `:` that is not a profile is a model.
fn choose_model(name: &str, context: &Context) -> Result<ChosenModel, AppError> {
    let models = context.app.models()?;
    let profiles = context.app.profiles()?;
    let is_model = name.contains(['/', ':']);
    if profiles.resolve(name).is_ok() || !is_model {
        return models.for_profile(name);
    }
    let model = absolute_script(name, context.app.environment().working_dir());
    let mut choice = ModelChoice::for_model(model);
    choice.price = listed_price(&profiles, &choice, context.app.environment())?;
    Ok(ChosenModel {
        model: models.create(&choice, &[])?,
        price: price_or_highest(&choice),
        choice,
    })
}

fn test_failed(choice: &ModelChoice, error: &ModelError) -> AppError {
    let what = format!("model `{}` did not answer", choice.model);
    let hint = format!("{}, then try again", first_step(error));
    AppError::runtime(what, error.to_string(), hint)
}

/// Returns what the user has to do before another test can succeed.
fn first_step(error: &ModelError) -> String {
    match error {
        ModelError::Unauthorized {
            status: 403,
            key: Some(key),
            ..
        } => format!("set `{key}` to a key that may use this model"),
        ModelError::Unauthorized { key: Some(key), .. } => format!("set `{key}` to a valid key"),
        ModelError::Unauthorized { key: None, .. } => "set a valid key".to_owned(),
        ModelError::Transient { .. } | ModelError::CutOff { .. } => "wait a few minutes".to_owned(),
        ModelError::QuotaUsedUp { .. } => "raise the limit or wait for its reset".to_owned(),
        ModelError::Broken { fix: Some(fix), .. } => fix.clone(),
        ModelError::Broken { fix: None, .. } => "correct the profile or its provider".to_owned(),
    }
}

/// Returns why the actions of a reply could not be performed.
fn reply_problem(reply: &ModelReply) -> Option<String> {
    match reply.finish {
        FinishReason::Length => Some("the answer was cut off at the output limit".into()),
        FinishReason::Refused => {
            Some("the model or its provider's filter refused to answer".into())
        }
        FinishReason::Complete => action::parse(&reply.text)
            .err()
            .map(|error| error.to_string()),
    }
}

fn reply_lines(
    chosen: &ChosenModel,
    reply: &ModelReply,
    problem: Option<&str>,
    cost: Usd,
    duration: Duration,
) -> Vec<StyledLine> {
    let answered_by = reply.answered_by.as_deref().unwrap_or("not reported");
    let usage = &reply.usage;
    let tokens = format!(
        "{} in, {} out, {} from a cache",
        format::count(usage.input_tokens),
        format::count(usage.output_tokens),
        format::count(usage.cache_read_tokens)
    );
    let cost = match chosen.choice.price {
        None if reply.billed.is_none() => "unknown".to_owned(),
        Some(_) | None => cost.to_string(),
    };
    let text = width::truncate(&sanitize::line(&reply.text), SHOWN_COLUMNS);
    let mut lines = vec![
        field_line("model", &chosen.choice.model),
        field_line("answered", &sanitize::line(answered_by)),
        field_line("reply", &text),
        field_line("tokens", &tokens),
        field_line("cost", &cost),
        field_line("time", &format::duration(duration)),
    ];
    lines.push(match problem {
        None => field_line("usable", "").span(Tone::Good, "yes"),
        Some(why) => field_line("usable", "")
            .span(Tone::Bad, "no")
            .wrapped(Tone::Plain, &format!(", {why}")),
    });
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_test_says_what_to_do_before_the_next() {
        let unauthorized = |status, key: Option<&str>| ModelError::Unauthorized {
            model: "m".into(),
            status,
            message: String::new(),
            key: key.map(str::to_owned),
        };
        for (error, expected) in [
            (
                unauthorized(403, Some("KEY")),
                "set `KEY` to a key that may use this model",
            ),
            (unauthorized(401, Some("KEY")), "set `KEY` to a valid key"),
            (unauthorized(403, None), "set a valid key"),
        ] {
            assert_eq!(first_step(&error), expected);
        }
    }
}
