//! Models behind an API, profiles, prices and usage limits, tested end to end.

use std::fs;

use ralph_test::{FakeModelApi, FakeResponse};
use serde_json::{Value, json};
use snapbox::{assert_data_eq, str};

use crate::project::Project;

const KEY: &str = "sk-a-key-that-nobody-may-see-1234";

/// The whole task in one reply.
pub(crate) fn complete_reply() -> Value {
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
}

/// The same as a stream.
pub(crate) fn streamed(reply: &str) -> FakeResponse {
    let (first, second) = reply.split_at(reply.len() / 2);
    let delta = |text: &str| json!({"model": "one", "choices": [{"delta": {"content": text}}]});
    let usage = json!({
        "choices": [{"delta": {}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 200},
    });
    FakeResponse::stream()
        .event(&delta(first).to_string())
        .event(&delta(second).to_string())
        .event(&usage.to_string())
        .event("[DONE]")
}

/// Returns a project with a profile `web` for this API, and a profile `file` with a script.
fn project(api: &FakeModelApi) -> Project {
    project_at(&api.url())
}

/// Returns the same with an API at an address.
pub(crate) fn project_at(base: &str) -> Project {
    let project = Project::new().env("ACME_API_KEY", KEY);
    let script = project.path("other.jsonl");
    fs::write(&script, json!({"reply": complete_reply()}).to_string()).unwrap();
    let config = format!(
        "profiles:\n  web:\n    litellm_model: acme/one\n    max_output_tokens: 4096\n    \
         api_base: {}/v1\n    api_key_env: ACME_API_KEY\n    input_cost_per_token: 0.000001\n    \
         output_cost_per_token: 0.000002\n    tags: [default]\n  file:\n    \
         litellm_model: scripted:{}\n    max_output_tokens: 10\n  far:\n    \
         litellm_model: zai/glm-4.7\n    max_output_tokens: 10\n  strange:\n    \
         litellm_model: acme/two\n    max_output_tokens: 10\n    api_base: {}/v1\n",
        base,
        script.display(),
        base
    );
    project.configure("models.yaml", &config);
    project
}

/// Asserts that no file of the state directory contains the key.
fn assert_no_key(project: &Project) {
    let output = std::process::Command::new("grep")
        .args(["--recursive", "--files-with-matches", KEY])
        .arg(project.home())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
}

pub(crate) fn statuses(project: &Project) -> Vec<String> {
    let values = project.event_values("status_changed", "status");
    values
        .iter()
        .map(|status| status.as_str().unwrap().into())
        .collect()
}

#[test]
fn a_run_is_answered_over_http() {
    let api = FakeModelApi::start([streamed(&complete_reply().to_string())]).unwrap();
    let project = project(&api);
    project.ralph(&["run"]).expect(0);
    project.audit();
    assert_no_key(&project);
    assert_eq!(
        project.event_values("model_chosen", "choice")[0]["profile"],
        "web"
    );
    assert_eq!(project.event_values("model_replied", "cost_usd"), [0.0014]);
    let response: Value = serde_json::from_str(&project.artifact(1, "response.json")).unwrap();
    assert_eq!(response["attempts"][0]["model"], "acme/one");
    assert_eq!(response["attempts"][0]["answered_by"], "one");
    let heard = api.received();
    assert_eq!(heard.len(), 1);
    assert_eq!(heard[0].headers["authorization"], format!("Bearer {KEY}"));
    let body: Value = serde_json::from_str(&heard[0].body).unwrap();
    assert_eq!(body["max_tokens"], 4096);
}

#[test]
fn half_an_answer_is_charged_and_asked_for_again() {
    let whole = complete_reply().to_string();
    let half = json!({"choices": [{"delta": {"content": &whole[..whole.len() - 1]}}]});
    let cut = FakeResponse::stream().event(&half.to_string());
    let api = FakeModelApi::start([cut, streamed(&whole)]).unwrap();
    let project = project(&api);
    project.ralph(&["run"]).expect(0);
    project.audit();
    assert_eq!(project.events("model_asked").len(), 2);
    let abandoned = &project.events("model_abandoned")[0];
    assert!(abandoned["cost_usd"].as_f64().unwrap() > 0.0, "{abandoned}");
    // The length of the rest is unknown, so the whole reservation is charged.
    assert_eq!(abandoned["usage"]["output_tokens"], 4096, "{abandoned}");
    let reserved = &project.events("model_asked")[0]["reserved"];
    assert_eq!(reserved["output_tokens"], 4096, "{reserved}");
    assert_eq!(
        project.artifact(1, "response.partial"),
        whole[..whole.len() - 1]
    );
    assert_eq!(project.results(1), ["done"; 4]);
    assert_eq!(project.show()["iteration"], 1);
}

#[test]
fn a_call_that_the_budget_does_not_pay_for_is_not_made() {
    let api = FakeModelApi::start([streamed(&complete_reply().to_string())]).unwrap();
    let project = project(&api).set("max_cost_usd_estimate", "0.001");
    let ended = project.ralph(&["run"]).expect(10);
    let budget = "the budget `max_cost_usd_estimate` is used up";
    assert!(ended.combined().contains(budget), "{}", ended.combined());
    assert_eq!(api.received().len(), 0);
    assert_eq!(project.show()["cost_usd"], 0.0);
    project.audit();
}

#[test]
fn a_refused_key_pauses_at_once() {
    let body = format!(r#"{{"error":{{"message":"Incorrect API key provided: {KEY}"}}}}"#);
    let api = FakeModelApi::start([FakeResponse::json(401, &body)]).unwrap();
    let project = project(&api);
    let ended = project.ralph(&["run"]).expect(11);
    assert_eq!(api.received().len(), 1);
    assert_no_key(&project);
    assert!(!ended.combined().contains(KEY));
    assert_data_eq!(
        project.show()["reason"].as_str().unwrap().to_owned(),
        str![
            "model `acme/one` refused the credential: status 401, Incorrect API key provided: *** — set `ACME_API_KEY` to a valid key, then `ralph resume`"
        ]
    );
}

#[test]
fn a_usage_limit_is_waited_for_without_an_iteration() {
    let limit = json!({"error": {"status": 429, "retry_after": 1, "quota": true}});
    let project =
        Project::new().script(&[limit.clone(), limit, json!({"reply": complete_reply()})]);
    project.run().expect(0);
    project.audit();
    assert_eq!(project.show()["iteration"], 1);
    assert_eq!(
        statuses(&project),
        [
            "preparing",
            "running",
            "waiting_quota",
            "running",
            "waiting_quota",
            "running",
            "verifying",
            "succeeded"
        ]
    );
    let countdown = project.events("quota_countdown");
    assert!(countdown.len() >= 2, "{countdown:?}");
    assert!(countdown[0]["left_ms"].as_u64().unwrap() <= 1000);
}

#[test]
fn another_profile_ends_the_wait() {
    let api =
        FakeModelApi::start([
            FakeResponse::json(429, r#"{"error":{"message":"weekly limit"}}"#)
                .header("retry-after", "86400"),
        ])
        .unwrap();
    let project = project(&api);
    let live = project.spawn(&["run"]);
    live.wait_for_status("waiting_quota");
    let shown = project.show();
    assert_eq!(shown["status"], "waiting_quota");
    assert_data_eq!(
        shown["reason"].as_str().unwrap().to_owned(),
        str![
            "the usage limit of model `acme/one` is reached, weekly limit; the model is called again at [..] UTC"
        ]
    );
    project.ralph(&["rotate", "last"]).expect(1);
    project.ralph(&["profile", "last", "nobody"]).expect(2);
    project.ralph(&["profile", "last", "file"]).expect(0);
    live.wait().expect(0);
    project.audit();
    let chosen = project.event_values("model_chosen", "choice");
    let profiles: Vec<&Value> = chosen.iter().map(|choice| &choice["profile"]).collect();
    assert_eq!(profiles, ["web", "file"]);
    assert_eq!(project.show()["iteration"], 1);
}

#[test]
fn a_profile_is_stored_for_an_idle_run() {
    let api = FakeModelApi::start([FakeResponse::json(403, "{}")]).unwrap();
    let project = project(&api);
    project.ralph(&["run"]).expect(11);
    project.ralph(&["profile", "last", "file"]).expect(0);
    project.ralph(&["resume", "last"]).expect(0);
    project.audit();
    assert_eq!(api.received().len(), 1);
    project.ralph(&["profile", "last", "file"]).expect(1);
}

/// A run over HTTP that is stuck until something changes.
fn stuck() -> String {
    let run = json!({"type": "run", "command": "echo 'no fixture' >&2; exit 3"});
    json!({"summary": "try again", "actions": [run]}).to_string()
}

fn profiles_chosen(project: &Project) -> Vec<String> {
    let chosen = project.event_values("model_chosen", "choice");
    let name = |choice: &Value| choice["profile"].as_str().unwrap().to_owned();
    chosen.iter().map(name).collect()
}

#[test]
fn a_run_that_goes_in_circles_is_answered_by_its_fallback_profile() {
    let api = FakeModelApi::start([streamed(&stuck())]).unwrap();
    let project = project(&api)
        .set("max_iterations", "9")
        .set("model_profile_fallback", "file");
    project.ralph(&["run"]).expect(0);
    project.audit();
    assert_eq!(api.received().len(), 4);
    assert_eq!(profiles_chosen(&project), ["web", "file"]);
    assert_eq!(project.show()["iteration"], 5);
}

#[test]
fn an_unusable_fallback_is_skipped() {
    let api = FakeModelApi::start([streamed(&stuck())]).unwrap();
    let project = project(&api)
        .set("max_iterations", "4")
        .set("model_profile_fallback", "far");
    project.ralph(&["run"]).expect(10);
    let log = project.file("activity.log");
    let line = "mitigation: skipped fallback profile: cannot use the model `zai/glm-4.7`, `ZAI_API_KEY` is not set";
    assert!(log.contains(line), "{log}");
    assert_eq!(profiles_chosen(&project), ["web"]);
}

#[test]
fn the_doctor_is_asked_by_its_own_profile_and_its_advice_switches_the_model() {
    let question = json!({"summary": "ask", "actions": [{"type": "pause", "reason": "where?"}]});
    let api = FakeModelApi::start([streamed(&question.to_string())]).unwrap();
    let project = project(&api).set("doctor_profile", "doctor");
    let sign = json!({"name": "look", "trigger": "always", "instruction": "look", "evidence": "-"});
    let report = json!({
        "summary": "Another model may know.", "patterns": [], "root_causes": ["it does not know"],
        "guardrails": [sign], "spec_edits": [], "model_profile": "file",
    });
    let script = project.path("doctor.jsonl");
    fs::write(&script, json!({"reply": report}).to_string()).unwrap();
    let config = project.user_config_path("models.yaml");
    let profiles = fs::read_to_string(&config).unwrap();
    let doctor = format!(
        "  doctor:\n    litellm_model: scripted:{}\n    max_output_tokens: 10\n",
        script.display()
    );
    fs::write(&config, profiles + &doctor).unwrap();
    project.ralph(&["run"]).expect(11);
    project.ralph(&["diagnose", "last", "--apply"]).expect(0);
    project.ralph(&["resume", "last"]).expect(0);
    project.audit();
    assert_eq!(project.event_values("doctor_asked", "profile"), ["doctor"]);
    assert_eq!(
        project.event_values("diagnosis_applied", "profile"),
        ["file"]
    );
    assert_eq!(profiles_chosen(&project), ["web", "file"]);
    assert_eq!(api.received().len(), 1);
}

#[test]
fn money_alone_is_no_limit_for_a_model_without_a_price() {
    let api = FakeModelApi::start([streamed("")]).unwrap();
    let project = project(&api)
        .without("max_tokens_total")
        .set("max_cost_usd_estimate", "1")
        .set("model_profile_default", "strange");
    let linted = project.ralph(&["lint", "--json"]).expect(1);
    let linted: Value = serde_json::from_str(&linted.stdout).unwrap();
    assert_eq!(linted["findings"][0]["code"], "unknown-price");
    assert_eq!(linted["findings"].as_array().unwrap().len(), 1);
    project.ralph(&["run"]).expect(12);
    assert_eq!(api.received(), []);
    // A price map given by the user is as good as a price in the profile.
    let prices = json!({"two": {"litellm_provider": "acme", "input_cost_per_token": 1e-6, "output_cost_per_token": 1e-6}});
    project.configure("prices.json", &prices.to_string());
    let text = fs::read_to_string(project.user_config_path("models.yaml")).unwrap();
    project.configure("models.yaml", &format!("price_file: prices.json\n{text}"));
    project.ralph(&["lint"]).expect(0);
}

#[test]
fn profiles_are_listed_with_their_problems() {
    let api = FakeModelApi::start([streamed("")]).unwrap();
    let project = project(&api);
    let listed = project.ralph(&["models"]).expect(0);
    assert!(!listed.combined().contains(KEY));
    assert_data_eq!(
        listed.stdout,
        str![[r"
PROFILE  MODEL[..]$/M IN·OUT  KEY                  TAGS
far      zai/glm-4.7[..]0.6 · 2.2   missing
    `ZAI_API_KEY` is not set
file     scripted:[..]other.jsonl  0 · 0       not needed
strange  acme/two[..]unknown     ACME_API_KEY is set
web *    acme/one[..]1 · 2       ACME_API_KEY is set  default

  prices   built in (LiteLLM 1.108.4)

"]]
    );
    let json = project.ralph(&["models", "--json"]).expect(0);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    let web = &json[3];
    assert_eq!(web["price"], json!({"input": 1.0, "output": 2.0}));
    assert_eq!(
        web["key"],
        json!({"variables": ["ACME_API_KEY"], "set": "ACME_API_KEY", "needed": true})
    );
    assert_eq!(
        (&web["usable"], &web["is_default"]),
        (&json!(true), &json!(true))
    );
    let line = project.ralph(&["run", "--profile", "far"]).expect(2).stderr;
    assert_data_eq!(
        line,
        str![[r"
ralph: cannot use the model `zai/glm-4.7` — `ZAI_API_KEY` is not set — set it in the environment or in `.env`, or choose another model with `--profile`

"]]
    );
}

#[test]
fn a_model_can_be_tested() {
    let ready = r#"{"summary": "ready", "actions": []}"#;
    let api = FakeModelApi::start([
        streamed(ready),
        streamed("I am ready!"),
        FakeResponse::json(404, r#"{"error":{"message":"no such model"}}"#),
    ])
    .unwrap();
    let project = project(&api);
    let good = project.ralph(&["models", "test", "web"]).expect(0);
    assert_data_eq!(
        good.stdout,
        str![[r#"
  model    acme/one
  answered one
  reply    {"summary": "ready", "actions": []}
  tokens   1,000 in, 200 out, 0 from a cache
  cost     $0.001400
  time     [..]
  usable   yes

"#]]
    );
    let prose = project
        .ralph(&["models", "test", "web", "--json"])
        .expect(1);
    let prose: Value = serde_json::from_str(&prose.stdout).unwrap();
    assert_eq!(
        (&prose["usable"], &prose["reply"]),
        (&json!(false), &json!("I am ready!"))
    );
    let missing = project.ralph(&["models", "test", "web"]).expect(1).stderr;
    assert_data_eq!(
        missing,
        str![[r"
ralph: model `acme/one` did not answer — model `acme/one` cannot answer: status 404, no such model — correct `litellm_model` of its profile in `models.yaml`, then try again

"]]
    );
}

/// Returns a project with two scripted profiles: `slow` is stuck, `quick` completes the task.
fn scripted_profiles() -> Project {
    let project = Project::new().set("max_iterations", "9");
    let lines = [
        ("slow", json!({"reply": stuck()})),
        ("quick", json!({"reply": complete_reply()})),
    ];
    let profiles = lines.map(|(name, line)| {
        let script = project.path(&format!("{name}.jsonl"));
        fs::write(&script, line.to_string()).unwrap();
        format!(
            "  {name}:\n    litellm_model: scripted:{}\n    max_output_tokens: 10\n",
            script.display()
        )
    });
    project.configure("models.yaml", &format!("profiles:\n{}", profiles.concat()));
    project
}

/// Returns the suffix of the script that replied in each iteration.
fn scripts_that_answered(project: &Project) -> Vec<String> {
    let iterations = project.show()["iteration"].as_u64().unwrap();
    let name = |iteration: u64| {
        let file = project.artifact(u32::try_from(iteration).unwrap(), "response.json");
        let names = ["slow.jsonl", "quick.jsonl"].into_iter();
        names.filter(|name| file.contains(name)).collect()
    };
    (1..=iterations).map(name).collect()
}

#[test]
fn a_script_of_a_profile_gives_way_to_the_script_of_the_fallback() {
    let project = scripted_profiles()
        .set("model_profile_default", "slow")
        .set("model_profile_fallback", "quick");
    project.ralph(&["run"]).expect(0);
    assert_eq!(profiles_chosen(&project), ["slow", "quick"]);
    let answered = scripts_that_answered(&project);
    assert_eq!(answered.first().map(String::as_str), Some("slow.jsonl"));
    assert_eq!(answered.last().map(String::as_str), Some("quick.jsonl"));
    project.audit();
}

#[test]
fn the_user_switches_scripts_and_the_run_resumes_there() {
    let project = scripted_profiles();
    let question = json!({"summary": "ask", "actions": [{"type": "pause", "reason": "where?"}]});
    let lines =
        [json!({"reply": question}), json!({"reply": question})].map(|line| line.to_string());
    fs::write(project.path("slow.jsonl"), lines.join("\n")).unwrap();
    project.ralph(&["run", "--profile", "slow"]).expect(11);
    project.ralph(&["resume", "last"]).expect(11);
    project.ralph(&["profile", "last", "quick"]).expect(0);
    project.ralph(&["resume", "last"]).expect(0);
    assert_eq!(profiles_chosen(&project), ["slow", "quick"]);
    assert_eq!(
        scripts_that_answered(&project),
        ["slow.jsonl", "slow.jsonl", "quick.jsonl"]
    );
    project.audit();
}

#[test]
fn the_doctor_of_a_scripted_profile_is_asked_by_its_own_script() {
    let project = scripted_profiles().set("doctor_profile", "doctor");
    let report = json!({
        "summary": "Use the other one.", "patterns": [], "root_causes": ["it is slow"],
        "guardrails": [{"name": "look", "trigger": "always", "instruction": "look", "evidence": "-"}],
        "spec_edits": [], "model_profile": "quick",
    });
    let script = project.path("doctor.jsonl");
    fs::write(&script, json!({"reply": report}).to_string()).unwrap();
    let text = fs::read_to_string(project.user_config_path("models.yaml")).unwrap();
    let doctor = format!(
        "  doctor:\n    litellm_model: scripted:{}\n    max_output_tokens: 10\n",
        script.display()
    );
    project.configure("models.yaml", &(text + &doctor));
    let question = json!({"summary": "ask", "actions": [{"type": "pause", "reason": "where?"}]});
    fs::write(
        project.path("slow.jsonl"),
        json!({"reply": question}).to_string(),
    )
    .unwrap();
    project.ralph(&["run", "--profile", "slow"]).expect(11);
    project.ralph(&["diagnose", "last", "--apply"]).expect(0);
    project.ralph(&["resume", "last"]).expect(0);
    assert_eq!(project.event_values("doctor_asked", "profile"), ["doctor"]);
    assert_eq!(profiles_chosen(&project), ["slow", "quick"]);
    project.audit();
}
