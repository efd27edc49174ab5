use super::*;

fn document() -> SpecDocument {
    SpecDocument::parse(BODY)
}

fn accept(copy: &str) -> AcceptedEdits {
    document().accept_edits(copy)
}

#[test]
fn an_agent_marks_steps_and_adds_notes() {
    let copy = BODY.replace("### Step 2: Add tests", "### Step 2: Add tests [done]").replace(
        "- greets everybody\n",
        "- greets everybody\n\nUsed pytest, as @octocat wants.\n### Step 8: More\n**Verify:** `true`\n",
    );
    let accepted = accept(&copy);
    assert_eq!(accepted.claimed, ["2".to_owned()].into());
    assert_eq!(accepted.blocked, None);
    let known = document();
    let again = SpecDocument::parse(&accepted.text);
    let step = again.step("2").unwrap();
    assert_eq!(step.mark, StepMark::Open, "the runner decides");
    assert!(
        step.notes[0].starts_with("Used pytest, as @\u{200b}octocat wants."),
        "{:?}",
        step.notes
    );
    assert_eq!(
        again.steps().len(),
        known.steps().len(),
        "a note cannot add a step"
    );
    assert!(step.commands.is_empty(), "a note cannot add a check");
    let marked = again.with_done(&["2".into(), "3".into()], |number| number == "2");
    let expected = BODY.replace("### Step 2: Add tests", "### Step 2: Add tests [done]");
    for line in expected.lines() {
        assert!(marked.contains(line), "{line}\n{marked}");
    }
    assert_eq!(
        again.accept_edits(&accepted.text).text,
        accepted.text,
        "notes are added once"
    );
}

#[test]
fn everything_else_is_restored() {
    for (from, to) in [
        ("branch: feat/greet", "branch: main"),
        ("Run `pytest -k greet`", "Run `true`"),
        (
            "### Step 3: Run all checks\n\nVerify: All checks pass clean.\n",
            "",
        ),
        ("### Step 2: Add tests", "### Step 2: Skip tests"),
        ("Python 3.", "Python 2."),
        ("# Spec: Greeting\n", "# Spec: Greeting\n\nAll done.\n"),
        ("## Conventions\n", "### Step 4: Mine\n\n## Conventions\n"),
        ("- [ ] a named user", "- [x] a named user"),
    ] {
        assert!(BODY.contains(from), "{from}");
        let accepted = accept(&BODY.replace(from, to));
        assert!(accepted.differs, "{from}");
        assert_eq!(accepted.claimed, [].into());
        let kept: Vec<&str> = accepted
            .text
            .lines()
            .filter(|line| !line.starts_with('>'))
            .collect();
        for line in BODY.lines() {
            assert!(kept.contains(&line), "{line} of {from}");
        }
        let parsed = Spec::parse(7, "T", &accepted.text).unwrap();
        assert_eq!(parsed.document.steps().len(), 3);
    }
    assert_eq!(accept(BODY).text, BODY);
    assert!(!accept(BODY).differs);
    assert!(!accept(&BODY.replace('\n', "\r\n")).differs);
    let unmarked = accept(&BODY.replace(" [done]", ""));
    assert_eq!(unmarked.text, BODY, "a verified step stays done");
    assert!(accept("").differs);
    assert_eq!(accept("").text, BODY);
}

#[test]
fn an_obstacle_is_reported_once() {
    let copy = BODY.replace(
        "### Step 2: Add tests",
        "### Step 2: Add tests [BLOCKED: no database]",
    );
    let accepted = accept(&copy);
    assert_eq!(accepted.blocked, Some(("2".into(), "no database".into())));
    let known = SpecDocument::parse(&accepted.text);
    assert_eq!(
        known.step("2").unwrap().mark,
        StepMark::Blocked("no database".into())
    );
    assert_eq!(known.accept_edits(&accepted.text).blocked, None);
    assert_eq!(
        known.accept_edits(BODY).text,
        BODY,
        "the agent may remove it"
    );
}

#[test]
fn a_humans_edit_stays_and_keeps_marks_and_notes() {
    let known = document();
    let ours = known
        .accept_edits(&BODY.replace("- greets everybody\n", "- greets everybody\nuses pytest\n"));
    let ours = SpecDocument::parse(&ours.text).with_done(&["2".into()], |_| true);
    let mut record = SpecRecord::new(BODY);
    let write = record.reconcile(&ours, &BODY.replace('\n', "\r\n"));
    assert_eq!(
        (write.body.as_deref(), write.is_edited),
        (Some(&*ours), false)
    );
    let mut crashed = record.clone();
    crashed.record_intent(&ours);
    let write = crashed.reconcile(&ours, &ours);
    assert_eq!(
        (write.body, write.is_edited),
        (None, false),
        "a crash is no edit"
    );
    record.record_written(&ours);
    assert_eq!(record.reconcile(&ours, &ours).body, None);

    let edited = ours
        .replace("Python 3.", "Python 3.14.")
        .replace("## Conventions", "### Step 4: Docs\n\n## Conventions");
    let write = record.reconcile(&ours, &edited);
    assert!(write.is_edited);
    assert_eq!(write.new_steps, ["4"]);
    // The edited text has all marks and notes, so there is nothing to write.
    let merged = write.body.unwrap_or_else(|| edited.clone());
    assert!(merged.contains("Python 3.14.") && merged.contains("### Step 4: Docs"));
    let document = SpecDocument::parse(&merged);
    assert_eq!(document.step("2").unwrap().mark, StepMark::Done);
    assert_eq!(document.step("2").unwrap().notes, ["uses pytest"]);
    record.record_written(&merged);
    let next = record.reconcile(&ours, &merged);
    assert_eq!(
        (next.body, next.is_edited),
        (None, false),
        "the edit stays and is reported once"
    );

    let without = edited.replace("### Step 2: Add tests", "### Step 2: Other");
    let write = record.reconcile(&ours, &without);
    assert_eq!(
        write.dropped,
        [MovedNotes {
            step: "2".into(),
            lines: vec!["uses pytest".into()]
        }]
    );
}

#[test]
fn the_run_decides_about_marks_and_a_human_takes_them_back() {
    let open = BODY.replace(" [done]", "");
    let run = |done: &[&str]| {
        SpecDocument::parse(&open)
            .with_done(&["1".into(), "2".into()], |number| done.contains(&number))
    };
    let edit = |text: &str| text.replace("Python 3.", "Python 3.14.");
    let marks = |write: &SpecWrite, before: &str| {
        let body = write.body.clone().unwrap_or_else(|| before.to_owned());
        let document = SpecDocument::parse(&body);
        let done = document
            .steps()
            .iter()
            .filter(|step| step.mark == StepMark::Done);
        done.map(|step| step.number.clone()).collect::<Vec<_>>()
    };
    // The clean room takes a mark back, after an edit too.
    let mut record = SpecRecord::new(&open);
    record.record_written(&run(&["1", "2"]));
    let edited = edit(&run(&["1", "2"]));
    let write = record.reconcile(&run(&["2"]), &edited);
    assert_eq!(marks(&write, &edited), ["2"]);
    assert!(write.reopened.is_empty());
    // A human's mark is no verification.
    let mut record = SpecRecord::new(&open);
    let edited = edit(&run(&["2"]));
    assert_eq!(
        marks(&record.reconcile(&run(&["1"]), &edited), &edited),
        ["1"]
    );
    // A human removes a mark, and adds it again.
    let mut record = SpecRecord::new(&open);
    record.record_written(&run(&["1", "2"]));
    let write = record.reconcile(&run(&["1", "2"]), &run(&["2"]));
    assert_eq!(write.reopened, ["1"]);
    assert_eq!(write.body, None, "the removal stays");
    record.record_written(&run(&["2"]));
    let write = record.reconcile(&run(&["1", "2"]), &run(&["2"]));
    assert_eq!((write.reopened.len(), write.is_edited), (1, false));
    let write = record.reconcile(&run(&["1", "2"]), &run(&["1", "2"]));
    assert_eq!((write.reopened.len(), write.is_edited), (0, true));
}

#[test]
fn text_of_the_agent_has_no_effect_on_the_host() {
    let copy = BODY
        .replace(
            "### Step 2: Add tests",
            "### Step 2: Add tests [blocked: see #12, a <b>@octocat]",
        )
        .replace(
            "- greets everybody\n",
            "- greets everybody\nfixes #12 <img src=x>\n",
        );
    let accepted = accept(&copy);
    let known = SpecDocument::parse(&accepted.text);
    let step = known.step("2").unwrap();
    assert_eq!(
        step.mark,
        StepMark::Blocked("see #\u{200b}12, a &lt;b>@\u{200b}octocat".into())
    );
    assert_eq!(step.notes, ["fixes #\u{200b}12 &lt;img src=x>"]);
    let human = accepted.text.lines().filter(|line| !line.starts_with('>'));
    for line in BODY.lines().filter(|line| !line.contains("Step 2")) {
        assert!(human.clone().any(|kept| kept == line), "{line}");
    }
    for again in [&accepted.text, &copy] {
        let again = known.accept_edits(again);
        assert_eq!(again.blocked, None, "it is reported once");
        assert_eq!(again.text, accepted.text, "it is converted once");
    }
}

#[test]
fn the_oldest_notes_are_moved_out_of_a_long_issue() {
    let notes = |count: usize| {
        (0..count)
            .map(|at| format!("note {at}"))
            .collect::<Vec<_>>()
    };
    let update = |number: &str, count| {
        (
            number.to_owned(),
            StepUpdate {
                mark: StepMark::Done,
                notes: notes(count),
            },
        )
    };
    let body = document().with_updates(&[update("1", 5), update("2", 5)].into());
    let chars = body.chars().count();
    assert_eq!(
        fit_issue(&body, chars),
        FittedIssue {
            body: Some(body.clone()),
            moved: Vec::new()
        }
    );
    for most in (BODY.len() + 50..chars).step_by(7) {
        let fitted = fit_issue(&body, most);
        let text = fitted.body.unwrap();
        assert!(text.chars().count() <= most);
        let left = SpecDocument::parse(&text);
        for step in ["1", "2"] {
            let moved = fitted
                .moved
                .iter()
                .filter(|it| it.step == step)
                .flat_map(|it| it.lines.clone());
            let all: Vec<String> = moved
                .chain(left.step(step).unwrap().notes.clone())
                .collect();
            assert_eq!(all, notes(5), "nothing is lost at {most}");
        }
    }
    assert_eq!(fit_issue(&body, 10).body, None);
}
