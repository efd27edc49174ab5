//! HTTP models against a fake that is true to the wire, and against a real LiteLLM proxy.

mod as_they_are;
mod failures;
mod gateway;
mod tls;
mod usage;
mod wires;

use std::sync::Arc;
use std::time::Duration;

use ralph_core::ports::{Clock, Model as _, ModelError, ModelRequest, Reply};
use ralph_core::profile::{ModelChoice, ReplyFormat, Wire};
use ralph_core::secret::Secret;
use ralph_providers::model::http::{
    Credential, Endpoint, HttpModel, HttpSettings, Network, Timeouts,
};
use ralph_test::FakeModelApi;

const KEY: &str = "sk-a-key-that-nobody-may-see";

struct Noon;

impl Clock for Noon {
    fn now(&self) -> jiff::Timestamp {
        "2026-01-01T12:00:00Z".parse().unwrap()
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

fn settings(model: &str, wire: Wire, base: &str, key: &str) -> HttpSettings {
    let choice = ModelChoice {
        api_base: Some(base.to_owned()),
        wire: Some(wire),
        ..ModelChoice::named(model)
    };
    HttpSettings {
        name: model.to_owned(),
        endpoint: Endpoint::of(&choice).unwrap(),
        base: base.to_owned(),
        credential: Some(Arc::new(Credential {
            variable: "TEST_API_KEY".into(),
            secret: Secret::new(key.to_owned()),
        })),
        max_output_tokens: Some(1000),
        temperature: Some(0.5),
        timeouts: Timeouts::default(),
        network: Network::default(),
        clock: Arc::new(Noon),
    }
}

/// Returns a model of the fake, asked for a schema where the wire has one.
fn model(wire: Wire, api: &FakeModelApi) -> HttpModel {
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

async fn ask(model: &HttpModel) -> Result<Reply, ModelError> {
    model.ask(&question()).await
}
