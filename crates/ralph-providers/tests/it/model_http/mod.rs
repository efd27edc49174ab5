//! HTTP models against a fake API server, and against a real LiteLLM proxy.

mod as_they_are;
mod failures;
mod gateway;
mod tls;
mod usage;
mod wires;

use std::sync::Arc;

use ralph_core::ports::{Model as _, ModelError, ModelReply, ModelRequest};
use ralph_core::profile::{ModelChoice, ReplyFormat, WireApi};
use ralph_core::secret::Secret;
use ralph_providers::model::http::{
    ApiCredential, CredentialScheme, HttpModel, HttpModelSettings, ModelEndpoint, ModelTimeouts,
    ProxySettings,
};
use ralph_test::{FakeModelApi, TestClock};

const KEY: &str = "sk-a-key-that-nobody-may-see";

fn settings(model: &str, wire: WireApi, base: &str, key: &str) -> HttpModelSettings {
    let choice = ModelChoice {
        api_base: Some(base.to_owned()),
        wire: Some(wire),
        ..ModelChoice::for_model(model)
    };
    HttpModelSettings {
        name: model.to_owned(),
        endpoint: ModelEndpoint::for_choice(&choice).unwrap(),
        base: base.to_owned(),
        credential: Some(Arc::new(ApiCredential {
            source: "TEST_API_KEY".into(),
            secret: Secret::new(key.to_owned()),
            scheme: CredentialScheme::ApiKey,
        })),
        max_output_tokens: Some(1000),
        temperature: Some(0.5),
        timeouts: ModelTimeouts::default(),
        network: ProxySettings::default(),
        clock: TestClock::at("2026-01-01T12:00:00Z"),
    }
}

/// Returns a model of the fake server, with a schema if the wire API supports one.
fn model(wire: WireApi, api: &FakeModelApi) -> HttpModel {
    let mut settings = settings("acme/one", wire, &api.url(), KEY);
    settings.endpoint.format = ReplyFormat::Schema;
    HttpModel::new(settings).unwrap()
}

fn question() -> ModelRequest {
    ModelRequest {
        system: "the rules".into(),
        user: "the task".into(),
        schema: Some(ralph_core::action::json_schema()),
        max_output_tokens: None,
    }
}

async fn ask(model: &HttpModel) -> Result<ModelReply, ModelError> {
    model.ask_once(&question()).await
}
