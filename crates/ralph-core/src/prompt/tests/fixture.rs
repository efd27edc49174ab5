//! Snapshots for prompts.

use std::time::Duration;

use crate::budget::{BudgetLimits, Spent};
use crate::money::Usd;
use crate::ports::ExecStatus;
use crate::prompt::{GitSummary, LastOutput, LastTests, PromptSnapshot};

/// The seventh iteration of a small run.
pub(super) fn seventh_iteration() -> PromptSnapshot {
    PromptSnapshot {
        task: "---\ntask_id: health\ntest_command: npm test\n---\n\n# Health endpoint\n\n- [x] M1.1 It answers 200\n- [ ] M1.2 It answers JSON\n  - verify: `npm test`\n\n```json\n{\"ok\": true}\n```\n".into(),
        open_boxes: vec![],
        guardrails: "# Guardrails\n\n### sign: keep diffs small\n- instruction: touch only what is needed\n".into(),
        progress: "# Progress\n\n## Done\n- M1.1\n\n## Next\n- M1.2\n".into(),
        notes: Some("The route lives in `src/server.ts`.\n".into()),
        errors_tail: "iteration 6: run `npm test`: \u{1b}[31mexit 1\u{1b}[0m\r\n".into(),
        git: git(),
        last_output: Some(LastOutput {
            tests: Some(LastTests {
                command: "npm test".into(),
                ended: ExecStatus::Exited(1),
            }),
            output_tail: "1..2\nok 1 - answers\nnot ok 2 - answers JSON\n".into(),
            file: ".ralph/iterations/6/test_output.txt".into(),
        }),
        already_green: vec!["test_command".into()],
        refusals: vec!["checkbox `M1.2` is not ticked".into(), "tests are red:\nexit 1".into()],
        limits: BudgetLimits {
            max_iterations: Some(30),
            max_wall_time: Some(Duration::from_hours(2)),
            max_cost: Usd::from_dollars(10.0),
            max_tokens: Some(1_000_000),
        },
        spent: Spent {
            iterations: 7,
            wall_time: Duration::from_secs(35 * 60 + 1),
            cost: Usd::from_dollars(0.4).unwrap(),
            tokens: 120_000,
        },
        iteration: 7,
        loop_scores: vec![1.0, 0.0, 0.3, 0.5, 0.0, 0.3],
        circling: vec!["`npm test` failed 3 times in the same way (exit 1)".into()],
        messages: vec!["Use the\nold parser.".into()],
        schema: "One JSON object: `summary`, `actions`, `claims`.\n\n```json\n{\"summary\": \"\", \"actions\": []}\n```\n".into(),
    }
}

fn git() -> GitSummary {
    GitSummary {
        branch: "ralph/health/json".into(),
        head: "1a2b3c4".into(),
        status: vec![" M src/server.ts".into(), "?? notes.txt".into()],
        status_total: 2,
        diff_stat: " src/server.ts | 4 ++--\n 1 file changed, 2 insertions(+), 2 deletions(-)\n"
            .into(),
        last_commits: vec!["1a2b3c4 answer 200".into(), "0f0f0f0 start".into()],
        diff_file: ".ralph/iterations/6/git_diff.patch".into(),
    }
}

/// Returns a snapshot in which every text repeats `piece` far beyond its cap.
pub(super) fn oversized_snapshot(piece: &str) -> PromptSnapshot {
    let text = piece.repeat(400_000 / piece.len());
    let list = vec![text[..text.floor_char_boundary(2_000)].to_owned(); 200];
    PromptSnapshot {
        task: text.clone(),
        open_boxes: list.clone(),
        guardrails: text.clone(),
        progress: text.clone(),
        notes: Some(text.clone()),
        errors_tail: text.clone(),
        git: GitSummary {
            branch: text.clone(),
            head: text.clone(),
            status: list.clone(),
            status_total: usize::MAX,
            diff_stat: text.clone(),
            last_commits: list.clone(),
            diff_file: text.clone(),
        },
        last_output: Some(LastOutput {
            tests: Some(LastTests {
                command: text.clone(),
                ended: ExecStatus::Signalled(i32::MAX - 128),
            }),
            output_tail: text.clone(),
            file: text.clone(),
        }),
        already_green: vec!["test_command".into()],
        refusals: list.clone(),
        limits: BudgetLimits {
            max_iterations: Some(u32::MAX),
            max_wall_time: Some(Duration::MAX),
            max_cost: Some(Usd::from_nanos(u64::MAX)),
            max_tokens: Some(u64::MAX),
        },
        spent: Spent::default(),
        iteration: u32::MAX,
        loop_scores: vec![f64::MAX; 100_000],
        circling: list.clone(),
        messages: list,
        schema: text,
    }
}
