//! Lists the model profiles of a directory.

use ralph_core::price::{Price, PriceBook};
use ralph_core::profile::ModelChoice;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::config::PriceSource;
use crate::error::AppError;
use crate::providers::model_keys::KeyStatus;
use crate::providers::models::{ModelFactory, absolute_script, sourced_price};

/// The profiles of a directory, and the price maps in force there.
#[derive(Debug)]
pub struct ProfileList {
    pub profiles: Vec<ProfileEntry>,
    /// The sources of prices, in order of precedence.
    pub sources: Vec<PriceSource>,
}

/// A profile in the table and in the JSON.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ProfileEntry {
    pub profile: String,
    pub model: String,
    pub tags: Vec<String>,
    pub is_default: bool,
    pub max_output_tokens: Option<u32>,
    pub temperature: Option<f64>,
    pub api_base: Option<String>,
    /// In dollars per million tokens: `input`, `output`, and others that the provider bills; null if unknown.
    #[schema(value_type = Option<Object>)]
    pub price: Option<Price>,
    /// The origin of the price: `kind` and its details.
    #[schema(value_type = Option<Object>)]
    pub price_source: Option<PriceSource>,
    pub key: Option<ProfileKeyInfo>,
    pub usable: bool,
    /// The reason why the profile cannot be used.
    pub problem: Option<String>,
}

/// Whether a key exists; its value is never shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ProfileKeyInfo {
    /// The variables that may contain the key.
    pub variables: Vec<String>,
    /// The variable or the store that contains it.
    pub set: Option<String>,
    pub needed: bool,
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

/// Lists the profiles of the working directory.
pub async fn list_profiles(app: &App) -> Result<ProfileList, AppError> {
    app.load_model_keys().await?;
    let profiles = app.profiles()?;
    let models = app.models()?;
    let sources = profiles.price_sources()?;
    let entries = profiles
        .iter()
        .map(|(name, profile)| ProfileEntry {
            tags: profile.tags.clone(),
            is_default: profiles.default_name() == Some(name),
            ..profile_entry(name, profile.to_model_choice(name), &sources, &models)
        })
        .collect();
    Ok(ProfileList {
        profiles: entries,
        sources: sources.into_iter().map(|(source, _)| source).collect(),
    })
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
