//! `passing.jsonl` contains requests that pass unchanged. Each line of `screened.jsonl` contains a
//! request that does not, its finding, and the remaining request if something is removed.

use serde_json::json;

use super::*;

const PASSING: &str = include_str!("passing.jsonl");
const SCREENED: &str = include_str!("screened.jsonl");

fn cases(text: &str) -> impl Iterator<Item = (ModelWireFormat, Value)> {
    text.lines().map(|line| {
        let case: Value = serde_json::from_str(line).unwrap();
        let wire = match case["wire"].as_str().unwrap() {
            "anthropic" => ModelWireFormat::AnthropicMessages,
            "chat" => ModelWireFormat::OpenAiChat,
            "responses" => ModelWireFormat::OpenAiResponses,
            other => panic!("unknown wire format `{other}`"),
        };
        (wire, case)
    })
}

/// Screens a request and returns the remaining request and the findings as `action kind: what`.
fn screened(
    wire: ModelWireFormat,
    request: &Value,
    allowed: &[ProviderTool],
) -> (Value, Vec<String>) {
    let mut left = request.clone();
    let fields = left.as_object_mut().unwrap();
    let screening = screen(wire, fields, &allowed.iter().copied().collect());
    assert_eq!(screening.is_changed, left != *request, "{request}");
    let shown = screening.findings.iter().map(|found| {
        let kind = found.kind.map_or("never", ProviderTool::name);
        format!("{} {kind}: {}", found.action, found.what)
    });
    (left, shown.collect())
}

#[test]
fn client_side_requests_pass_unchanged() {
    for (wire, case) in cases(PASSING) {
        let request = &case["request"];
        let (left, findings) = screened(wire, request, &[]);
        assert_eq!(findings, Vec::<String>::new());
        assert_eq!(left, *request);
    }
}

#[test]
fn provider_side_requests_are_removed_or_refused_on_each_wire() {
    for (wire, case) in cases(SCREENED) {
        let request = &case["request"];
        let kind = case["kind"].as_str();
        let others = ProviderTool::ALL.into_iter();
        let others: Vec<_> = others.filter(|it| Some(it.name()) != kind).collect();
        for allowed in [&[][..], &others] {
            let (left, findings) = screened(wire, request, allowed);
            let (action, what) = (&case["action"], &case["what"]);
            let finding = format!("{action} {}: {what}", kind.unwrap_or("never")).replace('"', "");
            assert_eq!(findings, [finding], "{request}");
            let expected = case.get("left").unwrap_or(request);
            assert_eq!(left, *expected, "{request}");
        }
    }
}

#[test]
fn allowed_kinds_pass_unchanged_and_are_reported() {
    for (wire, case) in cases(SCREENED) {
        let request = &case["request"];
        let Some(kind) = case["kind"]
            .as_str()
            .map(|kind| ProviderTool::parse(kind).unwrap())
        else {
            continue;
        };
        let (left, findings) = screened(wire, request, &[kind]);
        let what = case["what"].as_str().unwrap();
        assert_eq!(findings, [format!("allowed {kind}: {what}")], "{request}");
        assert_eq!(left, *request);
    }
}

#[test]
fn findings_are_bounded_and_the_first_refusal_is_never_lost() {
    let many: Vec<Value> = (0..100)
        .map(|number| json!({"type": format!("tool_{number}\u{202e}")}))
        .collect();
    let image = json!({"type": "image", "source": {"type": "url", "url": "https://evil.example"}});
    let messages = json!([{"role": "user", "content": [image]}]);
    let mut request = json!({"model": "m", "tools": many, "messages": messages});
    let fields = request.as_object_mut().unwrap();
    let screening = screen(ModelWireFormat::AnthropicMessages, fields, &BTreeSet::new());
    assert_eq!(screening.findings.len(), MAX_FINDINGS);
    assert_eq!(screening.findings[0].what, "the tool `tool_0???`");
    assert_eq!(screening.refused().unwrap().what, "a URL at `evil.example`");
    assert_eq!(request.get("tools"), None);
    let reason = screening.refused().unwrap().reason();
    assert_eq!(
        reason,
        "the request asks the provider for a URL at `evil.example` — this run does not allow `urls` — \
         send the data itself, or ask the user to allow `urls` in `sandbox.network.provider_tools`"
    );
}
