//! The wire APIs of a real LiteLLM proxy.

use ralph_core::action;
use ralph_core::ports::ModelError;
use ralph_core::profile::WireApi;
use ralph_providers::model::http::HttpModel;
use ralph_test::{LiteLlm, skip_without_litellm};

use super::{ask, settings};

const CONFIG: &str = r#"
model_list:
  - model_name: "zai/glm-4.7"
    litellm_params: &mocked
      model: "zai/glm-4.7"
      api_key: "unused"
      mock_response: '{"summary":"ready","actions":[],"claims":{"checkboxes_checked":[],"milestones_completed":[]}}'
  - model_name: "openai/gpt-5"
    litellm_params: {<<: *mocked, model: "openai/gpt-5"}
  - model_name: "openai/gpt-5.1-codex-max"
    litellm_params: {<<: *mocked, model: "openai/gpt-5.1-codex-max"}
  - model_name: "anthropic/claude-sonnet-4-6"
    litellm_params: {<<: *mocked, model: "anthropic/claude-sonnet-4-6"}
  - model_name: "ollama/qwen3"
    litellm_params: {<<: *mocked, model: "ollama/qwen3"}
  - model_name: "busy"
    litellm_params: {model: "openai/gpt-5", api_key: "unused", mock_response: "litellm.RateLimitError"}
router_settings: {num_retries: 0}
"#;

fn model(name: &str, wire: WireApi, proxy: &LiteLlm, key: &str) -> HttpModel {
    HttpModel::new(settings(name, wire, &proxy.url(), key)).unwrap()
}

#[tokio::test]
async fn a_gateway_answers_on_every_wire_that_it_has() {
    if skip_without_litellm() {
        return;
    }
    let proxy = LiteLlm::start(CONFIG);
    for (name, wire) in [
        ("litellm_proxy/zai/glm-4.7", WireApi::Chat),
        ("litellm_proxy/openai/gpt-5", WireApi::Chat),
        ("litellm_proxy/openai/gpt-5.1-codex-max", WireApi::Chat),
        ("litellm_proxy/anthropic/claude-sonnet-4-6", WireApi::Chat),
        ("litellm_proxy/ollama/qwen3", WireApi::Chat),
        (
            "litellm_proxy/anthropic/claude-sonnet-4-6",
            WireApi::Messages,
        ),
        ("litellm_proxy/openai/gpt-5", WireApi::Gemini),
    ] {
        let reply = ask(&model(name, wire, &proxy, LiteLlm::KEY)).await;
        let reply = reply.unwrap_or_else(|error| panic!("{name} {wire:?}: {error}"));
        let response = action::parse(&reply.text).unwrap();
        assert_eq!(response.summary, "ready", "{name}");
        assert!(reply.usage.input_tokens > 0 && reply.usage.output_tokens > 0);
        if let Some(answered) = &reply.answered_by {
            assert!(name.ends_with(answered.as_str()), "{name} {answered}");
        }
        if (name, wire) == ("litellm_proxy/zai/glm-4.7", WireApi::Chat) {
            let price = ralph_core::price::embedded_price(name).unwrap();
            let cost = ralph_core::price::cost(&price, &reply.usage);
            assert_eq!(reply.billed, Some(cost), "{:?}", reply.usage);
        }
    }
    // LiteLLM's mock of this API breaks off at the start of a stream: an error, never a reply.
    let codex = model(
        "litellm_proxy/openai/gpt-5",
        WireApi::Responses,
        &proxy,
        LiteLlm::KEY,
    );
    if let Ok(reply) = ask(&codex).await {
        assert_eq!(action::parse(&reply.text).unwrap().summary, "ready");
    }
    assert_rejections(&proxy).await;
}

async fn assert_rejections(proxy: &LiteLlm) {
    let busy = model("litellm_proxy/busy", WireApi::Chat, proxy, LiteLlm::KEY);
    let error = ask(&busy).await.unwrap_err();
    assert!(
        matches!(error, ModelError::Transient { status: 429, .. }),
        "{error:?}"
    );
    let unknown = model("litellm_proxy/unknown", WireApi::Chat, proxy, LiteLlm::KEY);
    let error = ask(&unknown).await.unwrap_err();
    assert!(matches!(error, ModelError::Broken { .. }), "{error:?}");
}
