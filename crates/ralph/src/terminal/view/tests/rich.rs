//! Tests of the output on a terminal of 80 columns.

use ralph_core::budget::Budget;
use ralph_core::run::FailReason;
use snapbox::{assert_data_eq, str};

use super::*;

const MODE: OutputMode = OutputMode::Rich(Width::Fixed(80), SpinnerVisibility::Hidden);

/// Returns the output of one chapter with visible escape sequences.
fn chapter(number: usize) -> String {
    visible(&show_chapters(scenarios::chapters(), MODE)[number])
}

/// Replaces escape sequences with visible text: `\x1b[32m` becomes `<32>`, its end `</>`.
fn visible(text: &str) -> String {
    let text = text.replace("\u{1b}[0m", "</>");
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let (code, rest) = part.split_once('m').unwrap();
        format!("{text}<{code}>{rest}")
    })
}

#[test]
fn the_beginning() {
    assert_data_eq!(
        chapter(0),
        str![[r"
<1>Say hello</><2> (task-001)</>
<2>  run      </>260301-100000-0001
<2>  task     </>/home/me/hello/ralph_task.md · 2 checkboxes
<2>  repo     </>/home/me/hello · main at aaaaaaaaaa
<2>  branch   </>ralph/task-001/say-hello · pull request
<2>  sandbox  </>local · no isolation: commands run as you
<2>  model    </>scripted:replies.jsonl · actions
<2>  tests    </>make test
<2>  budgets  </>10 iterations · 60m wall time · $1.00 cost · 20000 tokens
  <2>sandbox `local-1` is created</>
  <2>the repository is on `ralph/task-001/say-hello` at aaaaaaaaaa</>

<36>── </><1>iteration 1</><36> ─────────────────────────────────────────────────────────────────</>
  <31>✗</> model `x` is not available at the moment: status 429; retrying in 2.0s
  <2>the model answered: 8,200 tokens in, 345 out, $0.05</>                       <2>2.3s</>
  <31>✗</> the reply cannot be used
    <2>- </>actions[0]: unknown action `fly`
    <2>- </>claims: missing
  <2>the model answered: 8,200 tokens in, 345 out, $0.05</>                       <2>2.3s</>
  <1>Write the greeting, then see whether the tests like it; they are strict about</>
  <1>the comma</>
  <2>the reply had to be repaired before it could be read</>

"]]
    );
}

#[test]
fn actions() {
    assert_data_eq!(
        chapter(1),
        str![[r"
  <32>✓</> write src/hello.txt<2> · 13 bytes</>                                          <2>12ms</>
  <31>✗</> run make test<2> · exit 2</>                                                  <2>12ms</>
    <2>│ </><2>one</>
    <2>│ </><2>two: red</>
  <32>✓</> run true<2> · exit 0</>                                                       <2>12ms</>
  <31>✗</> patch src/other.txt                                                     <2>12ms</>
    hunk 1 does not fit: line 3 of the file is not the line the patch expects
    there
  <33>⊘</> write .git/config refused
    `.git` is the runner's
  <2>⊘</> commit Say hello<2> · skipped: action 4 failed</>
  <31>✗</> run sleep 100 · interrupted; it runs again                              <2>12ms</>

"]]
    );
}

#[test]
fn checks() {
    assert_data_eq!(
        chapter(2),
        str![[r"
  <32>✓</> <1>M1.1</> verified
  <31>✗</> <1>M1.2</> not verified: its verify command is red
    <31>✗</> M1.2<2> `make test`</> exit 1                                               <2>1.5s</>
  <2>boxes 1/2: M1.1</>
  <31>✗</> tests<2> `make test`</> exit 1, 3 passed, 1 failed, 2 skipped                 <2>1.5s</>
  <33>⚠</> <33>tampering: `.ralph/guardrails.md` was shortened</>
  <33>⚠</> <33>80% of `max_tokens_total` is used</>
  <36>iteration 1 </>ended at action 4<2> · +10 −2 in 1 file · loop score 0.3</>       <2>1m 05s</>
  <2>iterations </><32>▮</><2>▯▯▯▯▯▯▯▯▯</>  10% 1/10         <2>wall time  </><2>▯▯▯▯▯▯▯▯▯▯</>   0% 31s/60m
  <2>cost       </><32>▮</><2>▯▯▯▯▯▯▯▯▯</>  10% $0.10/$1.00  <2>tokens     </><33>▮▮▮▮▮▮▮▮</><2>▯▯</>  85% 17090/20000

"]]
    );
}

#[test]
fn steering() {
    assert_data_eq!(
        chapter(3),
        str![[r"
  » <1>rotate</> accepted
  <33>⚠</> <33>resume refused: it is not paused</>
  » the task file has changed: max_iterations: 10 → 20, a box was added
  <33>⚠</> <33>the changed task file is not used: `max_iterations` is missing</>
  » 3 uncommitted changes in `repo` are not part of this run
  <2>imported 2 commits, now at bbbbbbbbbb</>
  <31>✗</> the commits were not imported: branch `main` was moved
  <2>pushed bbbbbbbbbb to `ralph/task-001/say-hello`</>
  <36>pull request #7</> opened (draft) <1>file:///home/me/pulls/7</>
  <33>✗</> not done yet
    <2>- </>box M1.2 is not ticked

"]]
    );
}

#[test]
fn the_verdict() {
    assert_data_eq!(
        chapter(4),
        str![[r"

<36>── </><1>verification of bbbbbbbbbb</><36> ──────────────────────────────────────────────────</>
  <31>✗</> tests<2> `make test`</> exit 0, 0 passed                                      <2>1.5s</>
  <31>✗</> <1>bbbbbbbbbb is not green</>
    <2>- </>no test was executed
  <2>taken over by process 43</>
  <32>✓</> tests<2> `make test`</> exit 0, 4 passed                                      <2>1.5s</>
  <32>✓</> M1.1<2> `make test`</> exit 0                                                 <2>1.5s</>
  <32>✓</> <1>bbbbbbbbbb is green in a clean room</>
  <36>pull request #7</> updated (open) <1>file:///home/me/pulls/7</>

<32>┃ </><32>✓ succeeded</><1> — Say hello</>
<32>┃ </>  branch `ralph/task-001/say-hello` at bbbbbbbbbb
<32>┃ </>  pull request #7 (open) file:///home/me/pulls/7
<32>┃ </>  commit bbbbbbbbbb is verified in a clean room
<32>┃ </>  1 of 2 boxes checked off
<32>┃ </>  sandbox `local-1` is kept for inspection
<32>┃ </>  <2>1 iteration · 52.0s · 17,090 tokens · $0.10</>
<32>┃ </>  <36>`ralph diff 260301-100000-0001` shows the changes</>
<32>┃ </>  <36>`ralph merge 260301-100000-0001` merges them into `main`</>
<32>┃ </>  <36>`ralph pr 260301-100000-0001` shows the pull request</>

"]]
    );
}

#[test]
fn the_last_block_shows_the_outcome_and_the_next_step() {
    let endings = [
        RunStatus::Paused(PauseReason::Model {
            question: "Which of the two greetings should it be: the short one of the README, or \
                       the long one of the tests?"
                .into(),
        }),
        RunStatus::Failed(FailReason::Budget {
            budget: Budget::Cost,
        }),
        RunStatus::Stopped,
        RunStatus::SandboxLost,
    ];
    let text = endings.map(|ending| {
        let [_, last] = show_chapters(
            [vec![events::created()], vec![events::status(ending)]],
            MODE,
        );
        visible(&last)
    });
    assert_data_eq!(
        text.concat(),
        str![[r"

<33>┃ </><33>■ paused</> — the model asks: Which of the two greetings should it be: the short
<33>┃ </>           one of the README, or the long one of the tests?
<33>┃ </>  0 of 2 boxes checked off
<33>┃ </>  <2>0 iterations · 2.0s · 0 tokens · $0.00</>
<33>┃ </>  <36>`ralph answer 260301-100000-0001 TEXT` answers and continues it</>
<33>┃ </>  <36>`ralph resume 260301-100000-0001` continues it as it is</>

<31>┃ </><31>✗ failed</> — the budget `max_cost_usd_estimate` is used up
<31>┃ </>  0 of 2 boxes checked off
<31>┃ </>  <2>0 iterations · 2.0s · 0 tokens · $0.00</>
<31>┃ </>  <36>`ralph continue 260301-100000-0001 --max-cost USD` continues it</>
<31>┃ </>  <36>`ralph logs 260301-100000-0001` shows what it did</>

<33>┃ </><33>■ stopped</><1> — Say hello</>
<33>┃ </>  0 of 2 boxes checked off
<33>┃ </>  <2>0 iterations · 2.0s · 0 tokens · $0.00</>

<33>┃ </><33>■ sandbox lost</> — the sandbox is gone; committed work is kept
<33>┃ </>  0 of 2 boxes checked off
<33>┃ </>  <2>0 iterations · 2.0s · 0 tokens · $0.00</>
<33>┃ </>  <36>`ralph resume 260301-100000-0001` continues it</>

"]]
    );
}
