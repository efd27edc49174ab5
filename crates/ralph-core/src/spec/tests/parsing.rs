use super::*;

#[test]
fn an_issue_has_a_branch_dependencies_and_steps() {
    let spec = spec(BODY);
    assert_eq!(spec.title, "Spec: Greeting");
    assert_eq!(spec.branch.as_str(), "feat/greet");
    assert_eq!(
        spec.base.as_ref().map(crate::task::BranchName::as_str),
        Some("main")
    );
    assert_eq!(spec.depends, [24, 25].into());
    let steps: Vec<_> = spec
        .document
        .steps()
        .iter()
        .map(|step| (&*step.number, &*step.title, &step.mark, &step.commands[..]))
        .collect();
    assert_eq!(
        steps,
        [
            (
                "1",
                "Add `greet`",
                &StepMark::Done,
                &["pytest -k greet".to_owned()][..]
            ),
            ("2", "Add tests", &StepMark::Open, &[][..]),
            ("3", "Run all checks", &StepMark::Open, &[][..]),
        ]
    );
    assert!(spec.warnings.is_empty(), "{:?}", spec.warnings);
}

#[test]
fn both_forms_of_front_matter_are_accepted() {
    let steps = "\n### Step 1: x\n";
    for (title, front, branch, depends) in [
        ("T", "---\nbranch: a/b\n---\n", "a/b", &[][..]),
        (
            "T",
            "\r\n---\r\nbranch: 'a/b'\r\ndepends: 24 25\r\n---\r\n",
            "a/b",
            &[24, 25],
        ),
        (
            "T",
            "branch: a\ndepends: [24, 25]\nSpec: x\n",
            "a",
            &[24, 25],
        ),
        ("T", "branch: a\ndepends:\n- 3\n- \"#4\"\n", "a", &[3, 4]),
        (
            "T",
            "---\nbranch: a\ndepends:\n  - #3\n  - 4\nbase: dev\n---\n",
            "a",
            &[3, 4],
        ),
        ("[fix/x] Title", "", "fix/x", &[]),
        ("[fix/x] Title", "branch: other\n", "other", &[]),
        ("[fix/x] Title", "branch:\n", "fix/x", &[]),
    ] {
        let body = format!("{front}{steps}");
        let spec =
            Spec::parse(7, title, &body).unwrap_or_else(|found| panic!("{front}: {found:?}"));
        assert_eq!(spec.branch.as_str(), branch, "{front}");
        assert_eq!(spec.depends, depends.iter().copied().collect(), "{front}");
        assert_eq!(Spec::dependencies_in(&body), spec.depends);
    }
    assert_eq!(
        Spec::parse(7, "[fix/x] Title", steps).unwrap().title,
        "Title"
    );
}

#[test]
fn every_problem_has_a_code_and_a_fix() {
    let step = "### Step 1: x\n";
    for (title, body, expected) in [
        ("T", step.to_owned(), &["missing-branch"][..]),
        ("[a..b] T", step.to_owned(), &["missing-branch"]),
        (
            "T",
            format!("---\nbranch: a b\n---\n{step}"),
            &["invalid-branch"],
        ),
        (
            "T",
            format!("---\nbranch: a\n{step}"),
            &["front-matter-not-closed", "missing-branch"],
        ),
        (
            "T",
            format!("---\nbranch: a\nbase: a\n---\n{step}"),
            &["branch-is-base"],
        ),
        (
            "T",
            format!("---\nbranch: a\ndepends: [7]\n---\n{step}"),
            &["depends-on-itself"],
        ),
        (
            "T",
            format!("---\nbranch: a\ndepends: o/r#7\n---\n{step}"),
            &["invalid-dependency"],
        ),
        (
            "T",
            format!("---\nbranch: a\ndepends: [0]\n---\n{step}"),
            &["invalid-dependency"],
        ),
        ("T", "branch: a\n".to_owned(), &["no-steps"]),
        ("T", String::new(), &["missing-branch", "no-steps"]),
        ("T", format!("branch: a\n{step}{step}"), &["duplicate-step"]),
        (
            "T",
            "branch: a\n### Step 2a: x\n".to_owned(),
            &["invalid-step"],
        ),
        (
            "T",
            "branch: a\n### Step 1:\n".to_owned(),
            &["step-without-title"],
        ),
    ] {
        let mut found = codes(&Spec::parse(7, title, &body).unwrap_err());
        found.sort_unstable();
        assert_eq!(found, expected, "{body}");
    }
}

#[test]
fn the_number_of_steps_is_limited_and_unknown_keys_are_ignored() {
    let step = "### Step 1: x\n";
    let steps = (1..=MAX_STEPS + 1).map(|number| format!("### Step {number}: x"));
    let many = steps.collect::<Vec<_>>().join("\n");
    let found = Spec::parse(7, "T", &format!("branch: a\n{many}")).unwrap_err();
    assert_eq!(codes(&found), ["too-many-steps"]);
    let ignored = format!("---\nbranch: a\nbranch: b\nowner: me\n---\n{step}");
    let spec = spec(&ignored);
    assert_eq!(spec.branch.as_str(), "a");
    assert_eq!(codes(&spec.warnings), ["duplicate-key", "unknown-key"]);
}
