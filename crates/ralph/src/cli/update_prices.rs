//! `ralph models update-prices`: stores a newer price map and shows its changes.

use std::path::Path;

use ralph_app::AppError;
use ralph_app::config::{MAX_PRICE_BYTES, StoredPrices, read_regular};
use ralph_app::format;
use ralph_app::providers::download::{DownloadError, download};
use ralph_core::price::{Price, PriceBook, PriceChange, PriceChanges, PriceMap};
use serde_json::{Value, json};

use super::context::Context;
use super::exit::ExitCode;
use crate::terminal::lines::field_line;
use crate::terminal::sanitize;
use crate::terminal::styled_line::{StyledLine, Tone};

/// The number of changed prices that are shown.
const MAX_SHOWN_CHANGES: usize = 5;

/// Validates the price map of a file or URL and stores it. A rejected map changes nothing.
pub(super) async fn run(
    source: &str,
    is_json: bool,
    context: &Context,
) -> Result<ExitCode, AppError> {
    let is_url = source.contains("://");
    let (bytes, origin) = if is_url {
        // The query and the fragment may contain a secret.
        let origin = source.split(['?', '#']).next().unwrap_or_default();
        (fetch_prices(source, context).await?, origin.to_owned())
    } else {
        let path = context.app.environment().working_dir().join(source);
        (read_prices(&path, source)?, path.display().to_string())
    };
    let map = parse_prices(&bytes, source)?;
    let state = context.app.state_dir()?;
    let path = StoredPrices::path(state.root());
    let before = match StoredPrices::load(&path) {
        Ok(Some(stored)) => stored.price_book(),
        // A stored map that cannot be read is replaced.
        Ok(None) | Err(_) => PriceBook::embedded().clone(),
    };
    let after = map.book();
    let changes = PriceChanges::between(&before, &after);
    let stored = StoredPrices::new(&map, origin, context.app.clock().now());
    stored.save(&path)?;
    if is_json {
        let value = change_json(&stored, &path, after.len(), &changes);
        context.output().print_json(&value)?;
    } else {
        let lines = change_lines(&stored, after.len(), &changes);
        context.output().print_lines(&lines)?;
    }
    Ok(ExitCode::Success)
}

async fn fetch_prices(address: &str, context: &Context) -> Result<Vec<u8>, AppError> {
    let limit = usize::try_from(MAX_PRICE_BYTES).unwrap_or(usize::MAX);
    let network = context.app.models()?.network();
    download(address, limit, &network).await.map_err(|error| {
        let fix = match error {
            DownloadError::Address(_) | DownloadError::Insecure(_) | DownloadError::Credential => {
                "name a file, or an address that starts with `https://`"
            }
            DownloadError::Status(_) => "check the address in a browser, then correct it",
            DownloadError::TooLarge { .. } => "name the address of a price map in LiteLLM's format",
            DownloadError::Connection(_) => {
                "check the address and the proxy variables, then try again"
            }
        };
        AppError::runtime(rejection_message(address), error.to_string(), fix)
    })
}

fn read_prices(path: &Path, source: &str) -> Result<Vec<u8>, AppError> {
    let rejected = |why: String, fix: &str| AppError::runtime(rejection_message(source), why, fix);
    let file = read_regular(path, Path::new("/"), MAX_PRICE_BYTES)
        .map_err(|problem| rejected(problem.to_string(), "name a file that you can read"))?;
    if file.size > MAX_PRICE_BYTES {
        let why = format!(
            "it has {} bytes, at most {MAX_PRICE_BYTES} are read",
            file.size
        );
        return Err(rejected(why, "name a price map in LiteLLM's format"));
    }
    Ok(file.bytes)
}

fn parse_prices(bytes: &[u8], source: &str) -> Result<PriceMap, AppError> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned());
    let map = text.and_then(|text| PriceMap::parse(text).map_err(|error| error.to_string()));
    map.map_err(|why| {
        AppError::runtime(
            rejection_message(source),
            why,
            "name a price map in LiteLLM's format; the current prices are unchanged",
        )
    })
}

fn rejection_message(source: &str) -> String {
    format!("cannot import prices from `{source}`")
}

fn change_json(stored: &StoredPrices, path: &Path, models: usize, changes: &PriceChanges) -> Value {
    let new_prices: Vec<Value> = changes
        .changed
        .iter()
        .map(
            |change| json!({"model": change.model, "before": change.before, "after": change.after}),
        )
        .collect();
    json!({
        "source": stored.source,
        "stored_at": stored.stored_at,
        "file": path.display().to_string(),
        "models": models,
        "added": changes.added,
        "removed": changes.removed,
        "changed": new_prices,
    })
}

fn change_lines(stored: &StoredPrices, models: usize, changes: &PriceChanges) -> Vec<StyledLine> {
    let counts = format!(
        "{}: {} added, {} changed, {} removed",
        format::plural(models as u64, "model", "models"),
        changes.added.len(),
        changes.changed.len(),
        changes.removed.len()
    );
    let mut lines = vec![
        field_line("source", &sanitize::line(&stored.source)),
        field_line("now", &counts),
    ];
    let shown = changes.changed.iter().take(MAX_SHOWN_CHANGES);
    lines
        .extend(shown.map(|change| {
            field_line("changed", "").wrapped(Tone::Plain, &describe_change(change))
        }));
    let more = changes.changed.len().saturating_sub(MAX_SHOWN_CHANGES);
    if more > 0 {
        lines.push(
            field_line("", "").quiet(&format!("and {more} smaller changes, all with `--json`")),
        );
    }
    lines
}

fn describe_change(change: &PriceChange) -> String {
    let format_price =
        |price: &Price| format!("{} · {}", price.input.dollars(), price.output.dollars());
    let (before, after) = (format_price(&change.before), format_price(&change.after));
    let model = sanitize::line(&change.model);
    if before == after {
        format!("{model}  {after} $/M in·out, other prices changed")
    } else {
        format!("{model}  {before} → {after} $/M in·out")
    }
}
