use super::*;

/// Texts that are not meant to be specifications.
fn texts() -> Vec<String> {
    let mut texts: Vec<String> = [
        "",
        "\n\n",
        "---",
        "---\n---",
        "---\n---\n---\n",
        "branch:",
        ":",
        "depends: [",
        "depends: ]24[",
        "depends: 99999999999999999999999",
        "### Step",
        "### Step 1",
        "### Step 1 [done",
        "### Step 1: [blocked: [x]]",
        "```\n### Step 1: x",
        "<!--\n### Step 1: x",
        "<details>\n### Step 1: x",
        "> ### Step 1: x",
        "- ### Step 1: x",
        "Step 1: x\n===",
        "### Step 1: x\n> **Notes**",
        "> **Notes**\n### Step 1: x\n> **Notes**\n> **Notes**\nx\n> y",
        "\u{feff}branch: a\r\n### Step 1: é\u{0}\r",
        "### Step 1: \u{202e}x",
        "[x]: y\n### Step 1: [x] [done]",
        "### Step 1: x\n### Step 1: x\n### Step 1: x [done]",
        "    ### Step 1: x",
        "\t### Step 1: x",
        "### Step 0: x",
    ]
    .map(str::to_owned)
    .into();
    for piece in [
        "#",
        "-",
        ">",
        "`",
        "[",
        "### Step 1: x\n",
        "> **Notes**\n",
        "depends: [1]\n",
        "\u{301}",
    ] {
        texts.push(piece.repeat(20_000));
        texts.push(format!("branch: a\n### Step 1: {}", piece.repeat(5_000)));
    }
    texts
}

#[test]
fn no_text_panics_or_loses_a_line() {
    for text in texts() {
        let title: String = text.chars().take(300).collect();
        let parsed = Spec::parse(1, &title, &text);
        let document = SpecDocument::parse(&text);
        let normalised = normalise_body(&text);
        assert_eq!(document.text(), normalised);
        assert_eq!(
            document.with_updates(&std::collections::BTreeMap::default()),
            normalised
        );
        let fitted = fit_issue(&normalised, 1_000);
        if let Some(body) = fitted.body {
            assert!(body.chars().count() <= 1_000);
        }
        let mut record = SpecRecord::new(&text);
        assert_eq!(record.reconcile(&text, &text).body, None);
        if let Err(found) = parsed {
            assert!(found.iter().all(|finding| !finding.fix.is_empty()));
        }
    }
}

#[test]
fn no_copy_of_an_agent_changes_the_contract_of_the_next_run() {
    let known = SpecDocument::parse(BODY);
    for text in texts() {
        for copy in [
            text.clone(),
            format!("{BODY}\n{text}"),
            BODY.replace("Test:\n", &format!("Test:\n{text}\n")),
        ] {
            let accepted = known.accept_edits(&copy);
            let spec = Spec::parse(7, "Spec: Greeting", &accepted.text).unwrap();
            let now = |document: &SpecDocument| -> Vec<_> {
                let steps = document.steps().iter();
                steps
                    .map(|step| {
                        (
                            step.number.clone(),
                            step.title.clone(),
                            step.commands.clone(),
                        )
                    })
                    .collect()
            };
            assert_eq!(now(&spec.document), now(&known));
            assert_eq!(spec.depends, [24, 25].into());
            let own: String = accepted
                .text
                .lines()
                .filter(|line| !line.starts_with('>'))
                .collect();
            let before: String = BODY.lines().collect();
            let without_marks = |text: &str| text.replace(" [done]", "");
            assert_eq!(without_marks(&own), without_marks(&before));
        }
    }
}
