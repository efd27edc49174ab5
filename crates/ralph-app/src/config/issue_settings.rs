//! `[issues]`: the runs of issues.

use ralph_core::money::Usd;
use ralph_core::plan::EngineKind;
use ralph_core::spec::IssueLabels;
use serde::{Deserialize, Deserializer, Serialize};

/// The most issues that a process works on at the same time.
const MAX_WORKERS: u32 = 16;

/// The most authors.
const MAX_AUTHORS: usize = 100;

/// `[issues]`: settings of `ralph issue` and `ralph poll`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct IssueSettings {
    /// The logins whose issues are worked on; `@me` is the user of the credential.
    #[serde(deserialize_with = "deserialize_authors")]
    pub authors: Vec<String>,
    /// The command for issues without `Test` and `Verify` lines; empty selects the project's own.
    pub test_command: String,
    pub engine: EngineKind,
    /// The agent of the engine `agent`; empty selects the default one.
    pub agent: String,
    #[serde(deserialize_with = "deserialize_positive")]
    pub max_iterations: u32,
    #[serde(deserialize_with = "deserialize_positive")]
    pub max_wall_time_minutes: u32,
    /// In dollars; applies if the price of the model is known.
    #[serde(deserialize_with = "deserialize_cost")]
    pub max_cost_usd_estimate: f64,
    /// 0 means no limit, unless the price of the model is not known.
    pub max_tokens_total: u64,
    /// The number of issues that `ralph poll` works on at the same time.
    #[serde(deserialize_with = "deserialize_workers")]
    pub workers: u32,
    #[serde(deserialize_with = "deserialize_labels")]
    pub labels: IssueLabels,
}

impl Default for IssueSettings {
    fn default() -> Self {
        Self {
            authors: vec!["@me".into()],
            test_command: String::new(),
            engine: EngineKind::Agent,
            agent: String::new(),
            max_iterations: 30,
            max_wall_time_minutes: 120,
            max_cost_usd_estimate: 10.0,
            max_tokens_total: 0,
            workers: 1,
            labels: IssueLabels::default(),
        }
    }
}

impl IssueSettings {
    /// The author that stands for the user of the credential.
    pub const ME: &str = "@me";
}

fn deserialize_authors<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<String>, D::Error> {
    let authors = Vec::<String>::deserialize(deserializer)?;
    if authors.is_empty() || authors.len() > MAX_AUTHORS {
        return Err(serde::de::Error::custom(format!(
            "list 1 to {MAX_AUTHORS} authors, such as `[\"@me\"]`"
        )));
    }
    let is_login = |name: &String| {
        let login = name.strip_suffix("[bot]").unwrap_or(name);
        let is_word = login
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        name == IssueSettings::ME || (!login.is_empty() && login.len() <= 100 && is_word)
    };
    if let Some(bad) = authors.iter().find(|name| !is_login(name)) {
        let shown: String = bad.chars().take(100).collect();
        let why = format!("`{shown}` is not a login; write it like `octocat`, `bot[bot]` or `@me`");
        return Err(serde::de::Error::custom(why));
    }
    Ok(authors)
}

fn deserialize_positive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let number = u32::deserialize(deserializer)?;
    if number > 0 {
        return Ok(number);
    }
    Err(serde::de::Error::custom("the limit must be at least 1"))
}

fn deserialize_cost<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let dollars = f64::deserialize(deserializer)?;
    match Usd::from_dollars(dollars) {
        Some(cost) if cost > Usd::ZERO => Ok(dollars),
        Some(_) | None => Err(serde::de::Error::custom(
            "the limit must be more than 0 dollars",
        )),
    }
}

fn deserialize_workers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let workers = u32::deserialize(deserializer)?;
    if (1..=MAX_WORKERS).contains(&workers) {
        return Ok(workers);
    }
    Err(serde::de::Error::custom(format!(
        "the number of workers must be between 1 and {MAX_WORKERS}"
    )))
}

fn deserialize_labels<'de, D: Deserializer<'de>>(deserializer: D) -> Result<IssueLabels, D::Error> {
    let labels = IssueLabels::deserialize(deserializer)?;
    labels.check().map_err(serde::de::Error::custom)?;
    Ok(labels)
}
