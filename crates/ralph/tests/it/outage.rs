//! Model providers that are temporarily unavailable, or need another setting, tested end to end.

use std::fs;
use std::net::TcpListener;

use ralph_test::{FakeCertificate, FakeModelApi, FakeResponse};
use rustix::process::Signal;
use serde_json::{Value, json};
use snapbox::{assert_data_eq, str};

use crate::models::{complete_reply, project_at, statuses, streamed};
use crate::project::Project;

/// Delays short enough for a test.
const QUICK: &str = "[model]\nretry_delay = \"2ms\"\nlongest_retry_delay = \"40ms\"\n";

fn busy(status: u16) -> FakeResponse {
    FakeResponse::json(
        status,
        r#"{"error":{"message":"all our machines are busy"}}"#,
    )
}

/// Returns this many errors, followed by the solution of the task.
fn failing(times: usize, answer: &FakeResponse) -> Vec<FakeResponse> {
    let mut answers = vec![answer.clone(); times];
    answers.push(streamed(&complete_reply().to_string()));
    answers
}

fn quick(base: &str) -> Project {
    let project = project_at(base);
    project.configure("ralph.toml", QUICK);
    project
}

/// Returns the active time of each wait for the provider, in milliseconds.
fn active_time_of_waits(project: &Project) -> Vec<u64> {
    let text = fs::read_to_string(project.run_dir().join("journal.jsonl")).unwrap();
    let records: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let changes: Vec<&Value> = records
        .iter()
        .filter(|record| record["event"]["type"] == "status_changed")
        .collect();
    let waits = changes
        .windows(2)
        .filter(|pair| pair[0]["event"]["status"] == "waiting_provider");
    let active = |record: &Value| record["active_ms"].as_u64().unwrap();
    waits
        .map(|pair| active(pair[1]) - active(pair[0]))
        .collect()
}

#[test]
fn an_outage_of_many_calls_uses_no_iteration_and_no_wall_time() {
    let past = "Thu, 01 Jan 2015 00:00:00 GMT";
    for (name, answer) in [
        ("an error of the server", busy(503)),
        ("an overload", busy(529)),
        (
            "too many requests, without a limit that is used up",
            busy(429),
        ),
        ("no time to wait", busy(503).header("retry-after", "0")),
        ("no time to wait", busy(429).header("retry-after", "0")),
        ("a date in the past", busy(503).header("retry-after", past)),
    ] {
        let api = FakeModelApi::start(failing(20, &answer)).unwrap();
        let project = quick(&api.url());
        project.ralph(&["run"]).expect(0);
        project.audit();
        assert_eq!(api.received().len(), 21, "{name}");
        let shown = project.show();
        assert_eq!(shown["iteration"], 1, "{name}");
        // Only the one reply is charged.
        assert_eq!(shown["cost_usd"], 0.0014, "{name}");
        let waits = active_time_of_waits(&project);
        assert_eq!(waits, [0; 16], "{name}");
        assert_eq!(project.events("provider_countdown").len(), 16, "{name}");
        let errors = project.file("errors.log");
        assert_eq!(errors.matches("not available").count(), 4, "{errors}");
        let delays = project.event_values("model_failed", "retry_in_ms");
        assert!(
            delays[..2].iter().all(|delay| delay.as_u64().unwrap() <= 4),
            "{delays:?}"
        );
        assert!(
            delays[8..]
                .iter()
                .all(|delay| delay.as_u64().unwrap() >= 20),
            "{delays:?}"
        );
    }
}

#[test]
fn a_provider_that_cannot_be_reached_is_waited_for() {
    let address = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let project = quick(&format!("http://{address}"));
    let live = project.spawn(&["run"]);
    live.wait_for_status("waiting_provider");
    let reason = live_reason(&project);
    let expected = format!(
        "model `acme/one` is not available at the moment: cannot reach `{address}`: Connection refused"
    );
    assert!(reason.starts_with(&expected), "{reason}");
    let api = FakeModelApi::start_at(address, failing(0, &busy(503))).unwrap();
    live.wait().expect(0);
    project.audit();
    assert_eq!(api.received().len(), 1);
    assert_eq!(project.show()["iteration"], 1);
}

/// Returns the reason of the last wait for the provider.
fn live_reason(project: &Project) -> String {
    let waits = project.events("status_changed").into_iter();
    let mut waits = waits.filter(|event| event["status"] == "waiting_provider");
    let wait = waits.next_back().unwrap();
    wait["reason"]["why"].as_str().unwrap().to_owned()
}

/// A project whose provider once requests a wait of an hour.
fn waiting() -> (FakeModelApi, Project) {
    let hour = busy(503).header("retry-after", "3600");
    let api = FakeModelApi::start(failing(1, &hour)).unwrap();
    let project = quick(&api.url());
    (api, project)
}

#[test]
fn a_wait_is_shown_and_obeys_commands() {
    for commands in [
        &[&["resume", "last"][..]][..],
        &[&["pause", "last"], &["resume", "last"]],
    ] {
        let (_api, project) = waiting();
        let live = project.spawn(&["run"]);
        live.wait_for_status("waiting_provider");
        let shown = project.show();
        assert_eq!(shown["status"], "waiting_provider");
        assert_data_eq!(
            shown["reason"].as_str().unwrap().to_owned(),
            str![
                "model `acme/one` is not available at the moment: status 503, all our machines are busy; next attempt at [..] UTC"
            ]
        );
        let listed = project.ralph(&["runs"]).expect(0);
        assert!(
            listed.stdout.contains("waiting_provider"),
            "{}",
            listed.stdout
        );
        let refused = project.ralph(&["rotate", "last"]).expect(1);
        let why = "it is waiting for the model's provider";
        assert!(refused.stderr.contains(why), "{}", refused.stderr);
        for command in commands {
            project.ralph(command).expect(0);
            if command[0] == "pause" {
                live.wait_for_status("paused");
            }
        }
        let ended = live.wait().expect(0);
        let shown = "status 503, all our machines are busy; next attempt at ";
        assert!(ended.combined().contains(shown), "{}", ended.combined());
        project.audit();
        assert_eq!(project.show()["iteration"], 1);
    }
}

#[test]
fn another_profile_and_a_stop_end_the_wait() {
    let (api, project) = waiting();
    let live = project.spawn(&["run"]);
    live.wait_for_status("waiting_provider");
    project.ralph(&["profile", "last", "file"]).expect(0);
    live.wait().expect(0);
    project.audit();
    assert_eq!(api.received().len(), 1);
    let (_api, project) = waiting();
    let live = project.spawn(&["run"]);
    live.wait_for_status("waiting_provider");
    project.ralph(&["stop", "last"]).expect(0);
    live.wait().expect(10);
    assert_eq!(project.show()["status"], "stopped");
    project.audit();
}

#[test]
fn a_wait_survives_the_death_of_the_program() {
    let (api, project) = waiting();
    let live = project.spawn(&["run"]);
    live.wait_for_status("waiting_provider");
    live.signal(Signal::KILL);
    live.wait();
    assert_eq!(project.show()["status"], "interrupted");
    project.ralph(&["resume", "last"]).expect(0);
    project.audit();
    assert_eq!(api.received().len(), 2);
    assert_eq!(project.show()["iteration"], 1);
    assert_eq!(project.show()["cost_usd"], 0.0014);
}

#[test]
fn a_wait_ends_at_its_limit() {
    for (limit, calls, waited) in [
        ("0s", 5, "several attempts failed"),
        ("50ms", 7, "the run waited 1s for it"),
    ] {
        let api = FakeModelApi::start([busy(503)]).unwrap();
        let project = project_at(&api.url());
        project.configure("ralph.toml", &format!("{QUICK}max_outage = \"{limit}\"\n"));
        project.ralph(&["run"]).expect(11);
        project.audit();
        assert!(
            (calls..=calls + 2).contains(&api.received().len()),
            "{limit}"
        );
        let reason = project.show()["reason"].as_str().unwrap().to_owned();
        let expected = format!(
            "model `acme/one` is not available at the moment: status 503, all our machines are busy; {waited} — `ralph resume` tries again; `model.max_outage` in `ralph.toml` sets how long a run waits"
        );
        assert_eq!(reason, expected);
    }
}

#[test]
fn a_repository_does_not_decide_how_often_a_provider_is_asked() {
    let api = FakeModelApi::start([busy(503)]).unwrap();
    let project = project_at(&api.url());
    project.commit("ralph.toml", "[model]\nretry_delay = \"1ms\"\n");
    let refused = project.ralph(&["run"]).expect(2);
    assert!(
        refused.stderr.contains("model.retry_delay"),
        "{}",
        refused.stderr
    );
    assert_eq!(api.received(), []);
}

#[test]
fn a_certificate_that_is_not_trusted_pauses_at_once_and_names_the_setting() {
    for (certificate, what) in [
        (
            FakeCertificate::new("127.0.0.1"),
            "is signed by an authority that this machine does not trust — if it is your own server or a proxy, set `SSL_CERT_FILE`",
        ),
        (
            FakeCertificate::expired("127.0.0.1"),
            "has expired — check the clock",
        ),
        (
            FakeCertificate::new("other.example"),
            "is for another host — check `api_base`",
        ),
    ] {
        let is_good = what.contains("SSL_CERT_FILE");
        let api = FakeModelApi::start_tls(failing(0, &busy(503)), &certificate).unwrap();
        let project = quick(&api.url());
        let authority = project.path("authority.pem");
        fs::write(&authority, certificate.authority()).unwrap();
        let file = authority.to_str().unwrap();
        // Expired certificates and wrong names are only detected if the authority is trusted.
        let project = if is_good {
            project
        } else {
            project.env("SSL_CERT_FILE", file)
        };
        project.ralph(&["run"]).expect(11);
        let shown = project.show();
        let reason = shown["reason"].as_str().unwrap();
        assert!(reason.contains(what), "{reason}");
        assert!(
            reason.contains(api.url().trim_start_matches("https://")),
            "{reason}"
        );
        assert_eq!(project.events("model_asked").len(), 1);
        if is_good {
            let project = project.env("SSL_CERT_FILE", file);
            project.ralph(&["resume", "last"]).expect(0);
            project.audit();
        }
    }
}

#[test]
fn a_refused_request_shows_the_providers_words_and_the_setting() {
    let error = |message: &str| json!({"error": {"message": message}}).to_string();
    for (status, message, expected) in [
        (
            403,
            "your plan does not include this model",
            "model `acme/one` refused the credential: status 403, your plan does not include this model — set `ACME_API_KEY` to a key that may use this model, or choose another one with `ralph profile`, then `ralph resume`",
        ),
        (
            404,
            "The model `one` does not exist",
            "model `acme/one` cannot answer: status 404, The model `one` does not exist — correct `litellm_model` of its profile in `models.yaml` and choose the profile again with `ralph profile`, then `ralph resume`",
        ),
        (
            400,
            "This model's maximum context length is 8192 tokens",
            "model `acme/one` cannot answer: status 400, This model's maximum context length is 8192 tokens — lower `max_output_tokens` of its profile in `models.yaml`, or use a model with a larger context window and choose the profile again with `ralph profile`, then `ralph resume`",
        ),
    ] {
        let api = FakeModelApi::start([FakeResponse::json(status, &error(message))]).unwrap();
        let project = quick(&api.url());
        project.ralph(&["run"]).expect(11);
        assert_eq!(project.show()["reason"].as_str(), Some(expected));
        assert_eq!(api.received().len(), 1);
    }
}

#[test]
fn a_refusal_of_the_model_is_shown_with_its_words() {
    let refusal = r#"{"choices":[{"message":{"content":null,"refusal":"I cannot help with that."},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":5}}"#;
    let mut answers = vec![FakeResponse::json(200, refusal)];
    answers.extend(failing(0, &busy(503)));
    let api = FakeModelApi::start(answers).unwrap();
    let project = quick(&api.url());
    project.ralph(&["run"]).expect(0);
    project.audit();
    assert_eq!(
        project.event_values("reply_rejected", "errors"),
        [
            "the model or its provider's filter refused to answer, it says: I cannot help with that.; answer with the actions only"
        ]
    );
}

#[test]
fn statuses_of_an_outage_follow_each_other() {
    let api = FakeModelApi::start(failing(6, &busy(500))).unwrap();
    let project = quick(&api.url());
    project.ralph(&["run"]).expect(0);
    let wait = ["waiting_provider", "running"];
    let expected = [
        &["preparing", "running"][..],
        &wait,
        &wait,
        &["verifying", "succeeded"],
    ];
    assert_eq!(statuses(&project), expected.concat());
}
