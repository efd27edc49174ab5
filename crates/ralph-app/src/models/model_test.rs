//! Tests a model with one request.

use std::time::Duration;

use ralph_core::action;
use ralph_core::money::Usd;
use ralph_core::ports::{FinishReason, ModelError, ModelReply, ModelRequest, TokenUsage};
use ralph_core::price;
use ralph_core::profile::ModelChoice;
use ralph_engine::run::ChosenModel;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::AppError;
use crate::providers::models::{absolute_script, listed_price, price_or_highest};

/// The prompt of a test. The expected reply has no actions.
const TEST_SYSTEM_PROMPT: &str = "You answer with one JSON object and nothing else.";
const TEST_PROMPT: &str = r#"This is a test of the connection. Answer with exactly this JSON object:
{"summary": "ready", "actions": [], "claims": {"checkboxes_checked": [], "milestones_completed": []}}"#;

/// The result of testing a model.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ModelTestReport {
    /// The profile, if the model was chosen by one.
    pub profile: Option<String>,
    pub model: String,
    /// The name of the model in the response.
    pub answered_by: Option<String>,
    pub reply: String,
    /// Whether the reply follows the rules for actions.
    pub usable: bool,
    /// The reason why its actions could not be performed.
    pub problem: Option<String>,
    /// The tokens of the call: `input_tokens`, `output_tokens` and parts of them.
    #[schema(value_type = Object)]
    pub usage: TokenUsage,
    /// Null if no price is known.
    #[schema(value_type = Option<f64>)]
    pub cost_usd: Option<Usd>,
    pub duration_ms: u64,
    /// The cost that the provider reported, or the cost at the highest known price.
    #[serde(skip)]
    pub estimated_cost: Option<Usd>,
}

impl ModelTestReport {
    /// Returns the duration of the call.
    pub fn duration(&self) -> Duration {
        Duration::from_millis(self.duration_ms)
    }
}

/// Sends one request to the model of a profile, or to a model such as `zai/glm-4.7`.
pub async fn test_model(name: &str, app: &App) -> Result<ModelTestReport, AppError> {
    app.load_model_keys().await?;
    let chosen = choose_model(name, app)?;
    let request = ModelRequest {
        system: TEST_SYSTEM_PROMPT.into(),
        user: TEST_PROMPT.into(),
        schema: Some(action::json_schema()),
        max_output_tokens: None,
    };
    let clock = app.clock();
    let started = clock.monotonic();
    let response = chosen.model.ask_once(&request).await;
    let duration = clock.monotonic().saturating_sub(started);
    let reply = response.map_err(|error| test_failed(&chosen.choice, &error))?;
    let cost = reply
        .billed
        .unwrap_or_else(|| price::cost(&price_or_highest(&chosen.choice), &reply.usage));
    let has_price = chosen.choice.price.is_some();
    let problem = reply_problem(&reply);
    Ok(ModelTestReport {
        profile: chosen.choice.profile,
        model: chosen.choice.model,
        answered_by: reply.answered_by,
        reply: reply.text,
        usable: problem.is_none(),
        problem,
        usage: reply.usage,
        cost_usd: has_price.then_some(cost),
        duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
        estimated_cost: (has_price || reply.billed.is_some()).then_some(cost),
    })
}

/// Returns the model of a profile; a name with `/` or `:` that is not a profile is a model.
fn choose_model(name: &str, app: &App) -> Result<ChosenModel, AppError> {
    let models = app.models()?;
    let profiles = app.profiles()?;
    let is_model = name.contains(['/', ':']);
    if profiles.resolve(name).is_ok() || !is_model {
        return models.for_profile(name);
    }
    let model = absolute_script(name, app.environment().working_dir());
    let mut choice = ModelChoice::for_model(model);
    choice.price = listed_price(&profiles, &choice, app.environment())?;
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
