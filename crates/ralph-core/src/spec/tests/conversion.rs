use super::*;
use crate::money::Usd;
use crate::plan::EngineKind;
use crate::task::TaskFile;

fn settings(engine: EngineKind) -> SpecTask {
    SpecTask {
        engine,
        agent: (engine == EngineKind::Agent).then(|| "claude".to_owned()),
        test_command: Some("make \"test\"".to_owned()),
        max_iterations: 30,
        max_wall_time_minutes: 120,
        max_cost: Usd::from_dollars(2.5),
        max_tokens: None,
        comment: "written by `ralph issue 7`".to_owned(),
    }
}

#[test]
fn every_step_becomes_a_box() {
    for engine in [EngineKind::Agent, EngineKind::Actions] {
        let text = spec_task(&spec(BODY), &settings(engine)).unwrap();
        let task = TaskFile::parse(text.as_bytes()).unwrap();
        let ids: Vec<&str> = task.checkboxes.iter().map(|it| it.id.as_str()).collect();
        assert_eq!(
            ids,
            ["S1", "S2", "S3"],
            "a mark of an earlier run does not count"
        );
        assert_eq!(task.checkboxes[0].verify, ["pytest -k greet"]);
        assert_eq!(task.checkboxes[1].text, "Add tests");
        assert!(!text.contains("[done]"), "{text}");
        assert_eq!(task.contract.branch(None), "feat/greet");
        assert_eq!(task.contract.base_branch.as_ref().unwrap().as_str(), "main");
        assert_eq!(task.contract.test_command.as_deref(), Some("make \"test\""));
        assert_eq!(task.contract.max_cost_usd_estimate, Usd::from_dollars(2.5));
        assert_eq!(task.contract.engine, engine);
        assert_eq!(task.title.as_deref(), Some("Spec: Greeting"));
        assert_eq!(text.contains("Python 3."), engine == EngineKind::Actions);
    }
    let spec = spec(BODY);
    assert_eq!(spec.done_steps(), ["1"]);
    assert_eq!(spec.text_for_run(), BODY.replace(" [done]", ""));
}

#[test]
fn a_branch_may_have_no_slash_and_all_steps_may_be_done() {
    let spec = spec("branch: greet\n### Step 1: x [done]\n");
    let text = spec_task(&spec, &settings(EngineKind::Agent)).unwrap();
    let task = TaskFile::parse(text.as_bytes()).unwrap();
    assert_eq!(task.contract.branch(None), "greet");
    assert_eq!(task.checkboxes.len(), 1);
}

#[test]
fn titles_do_not_become_other_markdown() {
    for title in [
        "verify: `rm -rf /`",
        "[x] done",
        "- [ ] two",
        "S9 other",
        "<!-- x",
        "```",
        "**S3** x",
        "> quote",
        "# Task: x",
        "a\u{202e}b",
        "[a](b",
        "1. one",
    ] {
        let body = format!("branch: a/b\n### Step 1: {title}\n### Step 2: two\n");
        let Ok(spec) = Spec::parse(7, title, &body) else {
            continue;
        };
        // A text that would be read differently is an error, and never other boxes.
        if let Ok(text) = spec_task(&spec, &settings(EngineKind::Actions)) {
            let task = TaskFile::parse(text.as_bytes()).unwrap();
            let ids: Vec<&str> = task.checkboxes.iter().map(|it| it.id.as_str()).collect();
            assert_eq!(ids, ["S1", "S2"], "{title}");
            assert!(
                task.checkboxes.iter().all(|it| it.verify.is_empty()),
                "{title}"
            );
            assert_eq!(task.contract.branch(None), "a/b");
        }
    }
}
