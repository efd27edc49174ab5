//! Tests of the output in a pipe.

use ralph_core::event::RunEvent;
use ralph_core::net::{Allowlist, EgressPolicy, ProviderTool};
use ralph_core::plan::{AgentPlan, NetworkPlan};
use snapbox::{assert_data_eq, str};

use super::*;
use crate::terminal::lines::lifecycle;
use crate::terminal::styled_line::Colour;

/// Returns the output of one chapter.
fn chapter(number: usize) -> String {
    show_chapters(scenarios::chapters(), OutputMode::Plain)[number].clone()
}

#[test]
fn the_beginning() {
    assert_data_eq!(
        chapter(0),
        str![[r"
Say hello (task-001)
  run      260301-100000-0001
  task     /home/me/hello/ralph_task.md · 2 checkboxes
  repo     /home/me/hello · main at aaaaaaaaaa
  branch   ralph/task-001/say-hello · pull request
  sandbox  local · no isolation: commands run as you
  model    scripted:replies.jsonl · actions
  tests    make test
  budgets  10 iterations · 60m wall time · $1.00 cost · 20000 tokens
  … preparing
  sandbox `local-1` is created
  the repository is on `ralph/task-001/say-hello` at aaaaaaaaaa
  … running

── iteration 1 ──
  … asking the model (12.3 KB)
  ✗ model `x` is not available at the moment: status 429; retrying in 2.0s
  … asking the model, attempt 2 (12.3 KB)
  the model answered: 8,200 tokens in, 345 out, $0.05 (2.3s)
  ✗ the reply cannot be used
    - actions[0]: unknown action `fly`
    - claims: missing
  … asking the model, attempt 3 (12.3 KB)
  the model answered: 8,200 tokens in, 345 out, $0.05 (2.3s)
  Write the greeting, then see whether the tests like it; they are strict about the comma
  the reply had to be repaired before it could be read

"]]
    );
}

#[test]
fn actions() {
    assert_data_eq!(
        chapter(1),
        str![[r"
  ✓ write src/hello.txt · 13 bytes (12ms)
  … run make test
  ✗ run make test · exit 2 (12ms)
    │ one
    │ two: red
  ✓ run true · exit 0 (12ms)
  ✗ patch src/other.txt (12ms)
    hunk 1 does not fit: line 3 of the file is not the line the patch expects there
  ⊘ write .git/config refused
    `.git` is the runner's
  ⊘ commit Say hello · skipped: action 4 failed
  ✗ run sleep 100 · interrupted; it runs again (12ms)

"]]
    );
}

#[test]
fn checks() {
    assert_data_eq!(
        chapter(2),
        str![[r"
  ✓ M1.1 verified
  ✗ M1.2 not verified: its verify command is red
    ✗ M1.2 `make test` exit 1 (1.5s)
  boxes 1/2: M1.1
  ✗ tests `make test` exit 1, 3 passed, 1 failed, 2 skipped (1.5s)
  ⚠ tampering: `.ralph/guardrails.md` was shortened
  ⚠ 80% of `max_tokens_total` is used
  iteration 1 ended at action 4 · +10 −2 in 1 file · loop score 0.3 (1m 05s)
  budgets: iterations 1/10 (10%), wall time 31s/60m (0%), cost $0.10/$1.00 (10%), tokens 17090/20000 (85%)

"]]
    );
}

#[test]
fn steering() {
    assert_data_eq!(
        chapter(3),
        str![[r"
  » rotate accepted
  ⚠ resume refused: it is not paused
  » the task file has changed: max_iterations: 10 → 20, a box was added
  ⚠ the changed task file is not used: `max_iterations` is missing
  » 3 uncommitted changes in `repo` are not part of this run
  imported 2 commits, now at bbbbbbbbbb
  ✗ the commits were not imported: branch `main` was moved
  pushed bbbbbbbbbb to `ralph/task-001/say-hello`
  pull request #7 opened (draft) file:///home/me/pulls/7
  ✗ not done yet
    - box M1.2 is not ticked

"]]
    );
}

#[test]
fn the_verdict() {
    assert_data_eq!(
        chapter(4),
        str![[r"
  … verifying

── verification of bbbbbbbbbb ──
  ✗ tests `make test` exit 0, 0 passed (1.5s)
  ✗ bbbbbbbbbb is not green
    - no test was executed
  taken over by process 43
  ✓ tests `make test` exit 0, 4 passed (1.5s)
  ✓ M1.1 `make test` exit 0 (1.5s)
  ✓ bbbbbbbbbb is green in a clean room
  pull request #7 updated (open) file:///home/me/pulls/7

✓ succeeded — Say hello
  branch `ralph/task-001/say-hello` at bbbbbbbbbb
  pull request #7 (open) file:///home/me/pulls/7
  commit bbbbbbbbbb is verified in a clean room
  1 of 2 boxes checked off
  sandbox `local-1` is kept for inspection
  1 iteration · 52.0s · 17,090 tokens · $0.10
  `ralph diff 260301-100000-0001` shows the changes
  `ralph merge 260301-100000-0001` merges them into `main`
  `ralph pr 260301-100000-0001` shows the pull request

"]]
    );
}

#[test]
fn an_agent() {
    let [_, agent] = show_chapters(
        [scenarios::beginning(), scenarios::agent()],
        OutputMode::Plain,
    );
    assert_data_eq!(
        agent,
        str![[r"
  claude is working
  model opus
  Bash npm ci
  ⚠ blocked: registry.example:443, it is not on the list; `ralph allow 260301-100000-0001 registry.example` allows it
  » registry.example is allowed
  ✗ Bash npm ci (3.0s)
  » a message is queued: use the old parser
  » a message was delivered: use the old parser
  » a message was acknowledged: use the old parser
  ⚠ the agent is waiting: busy
  It works.
  ✗ the agent was stopped by a user command (1m 01s)
    It works.

"]]
    );
}

#[test]
fn a_flood_and_provider_tools() {
    let [_, gate] = show_chapters(
        [scenarios::beginning(), scenarios::gate()],
        OutputMode::Plain,
    );
    assert_data_eq!(
        gate,
        str![[r"
  ⚠ blocked: 12,345 further hosts, such as x1.evil.example, x2.evil.example
  ⚠ a request to api.anthropic.com was sent without the tool `web_search_20250305`; `web_search` in `sandbox.network.provider_tools` allows it
  ⚠ a request to api.anthropic.com was refused because of a stored `prompt`
  a request to api.anthropic.com was sent with a URL at `pictures.example`

"]]
    );
}

#[test]
fn a_plan_names_hosts_that_are_not_inspected_and_tools_of_the_provider() {
    let Event::Run(RunEvent::RunCreated { mut plan }) = events::created() else {
        panic!("a story begins with its plan");
    };
    let list = |hosts: &[&str]| Allowlist::parse(hosts.iter().copied()).unwrap();
    plan.network = Some(NetworkPlan {
        policy: EgressPolicy::Allowlist(list(&[
            "pypi.example",
            "*.files.example",
            "opened.example",
        ])),
        inspect: list(&["opened.example"]),
        ..NetworkPlan::default()
    });
    plan.agent = Some(AgentPlan {
        name: "claude".into(),
        model: None,
        auth: None,
        source: None,
        renew: None,
        provider_tools: [ProviderTool::Urls, ProviderTool::WebSearch].into(),
        definition: None,
        fallback: None,
    });
    let lines = lifecycle::plan_lines(&plan);
    let shown: Vec<String> = lines
        .iter()
        .map(|line| line.render(Colour::Unused, None))
        .collect();
    for expected in [
        "  network  pypi.example, *.files.example, opened.example",
        "           not inspected: pypi.example, *.files.example · a command can use a credential of its own there",
        "  provider may be asked for web_search, urls · its fees besides tokens do not count towards the budget",
    ] {
        assert!(shown.iter().any(|line| line == expected), "{shown:#?}");
    }
}
