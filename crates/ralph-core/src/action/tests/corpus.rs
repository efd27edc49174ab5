//! Replies as models write them, each with its exact outcome.
//!
//! Each corpus file is a list of cases. `=== name` starts a case, followed by the verbatim reply
//! and `--- outcome`: `accepted` and `repaired` list the actions, `re-asked` gives the error for
//! the model. `SNAPSHOTS=overwrite` updates the outcomes; review every change.

use std::fmt::Write as _;

use snapbox::{Data, assert_data_eq};

use super::*;

/// Returns the cases of a file: name and reply.
fn cases(text: &str) -> Vec<(&str, &str)> {
    text.split("\n=== ")
        .skip(1)
        .map(|case| {
            let (name, rest) = case.split_once('\n').expect("a case has a reply");
            let (reply, _outcome) = rest.rsplit_once("\n--- ").expect("a case has an outcome");
            (name, reply)
        })
        .collect()
}

/// Renders the cases of a file with their actual outcomes.
fn render_outcomes(text: &str) -> String {
    let (head, _) = text.split_once("\n=== ").expect("a file has a head");
    let mut rendered = head.to_owned();
    for (name, reply) in cases(text) {
        write!(rendered, "\n=== {name}\n{reply}\n--- {}\n", outcome(reply)).unwrap();
    }
    rendered
}

fn outcome(reply: &str) -> String {
    match parse(reply) {
        Err(error) => format!("re-asked\n{error}"),
        Ok(response) => {
            let word = if response.repaired {
                "repaired"
            } else {
                "accepted"
            };
            let mut lines = format!("{word}\n{:?}", response.summary);
            for action in &response.actions {
                write!(lines, "\n{action:?}").unwrap();
            }
            let claimed = [
                &response.claims.checkboxes_checked,
                &response.claims.milestones_completed,
            ];
            if claimed.iter().any(|ids| !ids.is_empty()) {
                write!(lines, "\nclaims {claimed:?}").unwrap();
            }
            lines
        }
    }
}

#[test]
fn replies_have_the_recorded_outcomes() {
    let files = [
        "wrapped", "several", "slips", "strings", "cut_off", "contract",
    ];
    let mut count = 0;
    for name in files {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join(format!("src/action/tests/corpus/{name}.txt"));
        let file = Data::read_from(&path, None);
        let text = file.render().expect("the corpus is text");
        count += cases(&text).len();
        assert_data_eq!(Data::text(render_outcomes(&text)).raw(), file.raw());
    }
    assert!(count >= 130, "{count}");
}
