//! `ralph models update-prices`: a newer price map, from a file or a URL, and its effects.

use std::fs::{self, File};
use std::path::PathBuf;

use ralph_test::{FakeModelApi, FakeResponse};
use serde_json::{Map, Value, json};
use snapbox::{assert_data_eq, str};

use crate::project::{Project, ProjectOutput};

const KEY: &str = "sk-a-key-that-nobody-may-see-1234";

/// Returns a map of 101 models in LiteLLM's format: `zai/glm-4.7` costs this many dollars for a million
/// tokens of input, and twice as much for output.
fn map(dollars: f64) -> String {
    let entry = |provider: &str, dollars: f64| {
        json!({
            "litellm_provider": provider,
            "mode": "chat",
            "input_cost_per_token": dollars / 1e6,
            "output_cost_per_token": dollars / 5e5,
            "supports_vision": false,
        })
    };
    let mut map = Map::new();
    for number in 0..98 {
        map.insert(format!("many/{number}"), entry("many", 1.0));
    }
    map.insert("acme/two".into(), entry("acme", dollars));
    map.insert("gpt-5".into(), entry("openai", 2.0));
    map.insert("zai/glm-4.7".into(), entry("zai", dollars));
    Value::Object(map).to_string()
}

fn write_map(project: &Project, text: &str) -> PathBuf {
    let file = project.repo().join("map.json");
    fs::write(&file, text).unwrap();
    file
}

fn update(project: &Project, source: &str) -> ProjectOutput {
    project.ralph(&["models", "update-prices", source])
}

fn stored(project: &Project) -> PathBuf {
    project.home().join("prices.json")
}

/// Returns the price of a profile and its origin.
fn price(project: &Project, profile: &str) -> (Value, Value) {
    let listed = project.ralph(&["models", "--json"]).expect(0);
    let listed: Vec<Value> = serde_json::from_str(&listed.stdout).unwrap();
    let entry = listed.into_iter().find(|entry| entry["profile"] == profile);
    let mut entry = entry.unwrap();
    (entry["price"].take(), entry["price_source"].take())
}

/// Returns a project with two profiles of the map, the second one with its own price.
fn project(more: &str) -> Project {
    let project = Project::new().env("ACME_API_KEY", KEY);
    let profile = "litellm_model: zai/glm-4.7\n    max_output_tokens: 10\n";
    let config = format!(
        "{more}profiles:\n  far:\n    {profile}  own:\n    {profile}    \
         input_cost_per_token: 0.000007\n    output_cost_per_token: 0.000008\n"
    );
    project.configure("models.yaml", &config);
    project
}

#[test]
fn a_file_is_stored_and_decides_below_the_users_own_prices() {
    let project = project("");
    let built_in = json!({"kind": "built_in", "litellm": "1.108.4"});
    assert_eq!(price(&project, "far").1, built_in);
    write_map(&project, &map(3.0));
    let updated = update(&project, "map.json").expect(0);
    assert_data_eq!(
        updated.stdout,
        str![[r"
  source   [..]/map.json
  now      101 models: 99 added, 2 changed, 72 removed
  changed  zai/glm-4.7  0.6 · 2.2 → 3 · 6 $/M in·out
  changed  gpt-5  1.25 · 10 → 2 · 4 $/M in·out

"]]
    );
    let (far, source) = price(&project, "far");
    assert_eq!(far, json!({"input": 3.0, "output": 6.0}));
    assert_eq!(
        (&source["kind"], &source["models"]),
        (&json!("stored"), &json!(101))
    );
    let (own, source) = price(&project, "own");
    assert_eq!(own, json!({"input": 7.0, "output": 8.0}));
    assert_eq!(source, json!({"kind": "profile"}));
    let listed = project.ralph(&["models"]).expect(0).stdout;
    let last = listed.trim_end().lines().last().unwrap();
    assert!(last.starts_with("  prices   101 models of "), "{last}");
    assert!(last.contains("/map.json, stored 20"), "{last}");
    assert!(
        last.ends_with(", then built in (LiteLLM 1.108.4)"),
        "{last}"
    );

    write_map(&project, &map(30.0));
    let updated = update(&project, "map.json").expect(0).stdout;
    let expected = "101 models: 0 added, 2 changed, 0 removed";
    assert!(updated.contains(expected), "{updated}");
    assert_eq!(price(&project, "far").0["input"], 30.0);
    let kept = fs::read_to_string(stored(&project)).unwrap();
    assert!(!kept.contains("supports_vision"), "{kept}");
}

#[test]
fn a_price_file_of_the_configuration_comes_first() {
    let project = project("price_file: own.json\n");
    let own = json!({"zai/glm-4.7": {"input_cost_per_token": 5e-6, "output_cost_per_token": 6e-6}});
    project.configure("own.json", &own.to_string());
    write_map(&project, &map(3.0));
    update(&project, "map.json").expect(0);
    let (far, source) = price(&project, "far");
    assert_eq!(far, json!({"input": 5.0, "output": 6.0}));
    assert_eq!(source["kind"], "price_file");
}

#[test]
fn an_address_is_downloaded() {
    let api = FakeModelApi::start([FakeResponse::json(200, &map(3.0))]).unwrap();
    let project = project("");
    let address = format!("{}/map.json?token=secret", api.url());
    let updated = project.ralph(&["models", "update-prices", &address, "--json"]);
    let updated: Value = serde_json::from_str(&updated.expect(0).stdout).unwrap();
    assert_eq!(updated["source"], format!("{}/map.json", api.url()));
    assert_eq!(updated["models"], 101);
    assert_eq!(updated["added"].as_array().unwrap().len(), 99);
    assert_eq!(
        updated["changed"][0],
        json!({"model": "zai/glm-4.7",
               "before": {"input": 0.6, "output": 2.2, "cache_read": 0.11, "cache_write": 0.0},
               "after": {"input": 3.0, "output": 6.0}})
    );
    let heard = &api.received()[0];
    assert_eq!(heard.line, "GET /map.json?token=secret HTTP/1.1");
    assert_eq!(heard.headers.get("authorization"), None);
    assert_eq!(price(&project, "far").0["input"], 3.0);
    let kept = fs::read_to_string(stored(&project)).unwrap();
    assert!(!kept.contains("secret"));
}

/// Asserts that a source is rejected in one line, and that the stored map is unchanged.
fn assert_refused(project: &Project, source: &str, why: &str) {
    let before = fs::read(stored(project)).unwrap();
    let refused = update(project, source).expect(1);
    assert_eq!(refused.stdout, "");
    assert_eq!(refused.stderr.lines().count(), 1, "{}", refused.stderr);
    assert!(refused.stderr.contains(why), "{why}: {}", refused.stderr);
    assert_eq!(fs::read(stored(project)).unwrap(), before);
}

#[test]
fn a_hostile_file_changes_nothing() {
    let project = project("");
    let file = write_map(&project, &map(3.0));
    update(&project, "map.json").expect(0);
    let bad = |value: &str| map(3.0).replacen('{', &format!("{{\"bad\":{value},"), 1);
    for (text, why) in [
        (String::new(), "invalid JSON: EOF while parsing"),
        (
            "{}".into(),
            "it has prices for 0 models, but a price map has at least 100",
        ),
        ("[]".into(), "invalid JSON: invalid type: sequence"),
        (
            "{\"a\":".repeat(1_000_000),
            "invalid JSON: recursion limit exceeded",
        ),
        (
            map(3.0)[..5000].to_owned(),
            "invalid JSON: EOF while parsing",
        ),
        (
            bad(r#"{"input_cost_per_token":-1e-6}"#),
            "`input_cost_per_token` of `bad` is `-1e-6`, but a token price is a number from 0 to 0.1",
        ),
        (
            bad(r#"{"input_cost_per_token":NaN}"#),
            "invalid JSON: expected value",
        ),
        (
            bad(r#"{"output_cost_per_token":"\u001b[2Jfree"}"#),
            "but a token price is a number from 0 to 0.1",
        ),
    ] {
        fs::write(&file, text).unwrap();
        assert_refused(&project, "map.json", why);
    }
    fs::write(&file, [b'{', 0xff, b'}']).unwrap();
    assert_refused(&project, "map.json", "it is not UTF-8");
    let gigabyte = 1 << 30;
    File::create(&file).unwrap().set_len(gigabyte).unwrap();
    let why = "it has 1073741824 bytes, at most 33554432 are read";
    assert_refused(&project, "map.json", why);
    fs::remove_file(&file).unwrap();
    assert_refused(&project, "map.json", "No such file or directory");
    assert_refused(&project, ".", "it is a directory, not a regular file");
    assert_refused(&project, "/dev/zero", "it is a device, not a regular file");
    assert_eq!(price(&project, "far").0["input"], 3.0);
}

#[test]
fn an_address_that_cannot_be_trusted_changes_nothing() {
    let project = project("");
    write_map(&project, &map(3.0));
    update(&project, "map.json").expect(0);
    for (address, why) in [
        (
            "http://prices.example/map.json",
            "it does not begin with `https://`, and `prices.example` is not this machine",
        ),
        (
            "https://me:pass@prices.example/",
            "it contains a user name or password",
        ),
        ("ftp://prices.example/", "it does not begin with `https://`"),
    ] {
        assert_refused(&project, address, why);
    }
    let large = "x".repeat(33 << 20);
    for (answer, why) in [
        (
            FakeResponse::json(404, "{}"),
            "the server answered with status 404",
        ),
        (
            FakeResponse::json(200, "<html>"),
            "invalid JSON: expected value",
        ),
        (
            FakeResponse::json(200, &large),
            "it has more than 33554432 bytes",
        ),
        (
            FakeResponse::stream().text(&map(3.0)[..50]).cut(),
            "the connection failed: ",
        ),
        (
            FakeResponse::json(302, "").header("location", "http://prices.example/map.json"),
            "redirected to an address without `https://`",
        ),
    ] {
        let api = FakeModelApi::start([answer]).unwrap();
        assert_refused(&project, &format!("{}/map.json", api.url()), why);
    }
}

#[test]
fn a_stored_map_that_is_damaged_is_named_and_can_be_replaced() {
    let project = project("");
    write_map(&project, &map(3.0));
    update(&project, "map.json").expect(0);
    fs::write(stored(&project), r#"{"version":1,"#).unwrap();
    let refused = project.ralph(&["models"]).expect(1).stderr;
    assert_data_eq!(
        refused,
        str![[r"
ralph: cannot use `[..]/prices.json` — EOF while parsing[..] — store prices again with `ralph models update-prices`, or remove the file

"]]
    );
    update(&project, "map.json").expect(0);
    assert_eq!(price(&project, "far").0["input"], 3.0);
}

/// The whole task in one reply.
fn reply() -> String {
    json!({
        "summary": "make both files",
        "actions": [
            {"type": "write", "path": "a.txt", "content": "one\n"},
            {"type": "write", "path": "b.txt", "content": "two\n"},
            {"type": "commit", "message": "Make both files"},
            {"type": "stop_success", "reason": "done"},
        ],
        "claims": {"checkboxes_checked": ["M1.1", "M1.2"], "milestones_completed": ["M1"]},
    })
    .to_string()
}

#[test]
fn a_run_keeps_the_prices_that_it_was_planned_with() {
    let whole = |text: &str| {
        let body = json!({
            "choices": [{"message": {"content": text}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1000, "completion_tokens": 500},
        });
        FakeResponse::json(200, &body.to_string())
    };
    let nothing = r#"{"summary":"look","actions":[],"claims":{"checkboxes_checked":[],"milestones_completed":[]}}"#;
    let refused = FakeResponse::json(401, r#"{"error":{"message":"no such key"}}"#);
    let api = FakeModelApi::start([whole(nothing), refused, whole(&reply())]).unwrap();
    let project = Project::new().env("ACME_API_KEY", KEY);
    let config = format!(
        "profiles:\n  web:\n    litellm_model: acme/two\n    max_output_tokens: 4096\n    \
         api_base: {}/v1\n    api_key_env: ACME_API_KEY\n",
        api.url()
    );
    project.configure("models.yaml", &config);
    let file = project.path("map.json");
    fs::write(&file, map(1.0)).unwrap();
    let source = file.display().to_string();
    update(&project, &source).expect(0);
    project.ralph(&["run"]).expect(11);
    fs::write(&file, map(100.0)).unwrap();
    update(&project, &source).expect(0);
    project.ralph(&["resume", "last"]).expect(0);
    // 1000 × 1 + 500 × 2 millionths of a dollar, before and after.
    assert_eq!(
        project.event_values("model_replied", "cost_usd"),
        [0.002, 0.002]
    );
    assert_eq!(price(&project, "web").0["input"], 100.0);
    project.audit();
}
