//! Replies as models really write them, with exactly what becomes of each.
//!
//! A file of the corpus is a table. `=== name` begins a case, its reply follows as it is, `--- outcome`
//! ends it: `accepted` and `repaired` are followed by what will be done, `re-asked` by the words that the
//! model is told. `SNAPSHOTS=overwrite` writes the outcomes anew; look at every one that changed.

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

/// Writes a file's cases with what becomes of them.
fn render_outcomes(text: &str) -> String {
    let (head, _) = text.split_once("\n=== ").expect("a file has a head");
    let mut told = head.to_owned();
    for (name, reply) in cases(text) {
        write!(told, "\n=== {name}\n{reply}\n--- {}\n", outcome(reply)).unwrap();
    }
    told
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
fn every_reply_has_its_outcome() {
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
