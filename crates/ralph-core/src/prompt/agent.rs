//! The prompt of a coding agent. The agent reads the files itself, so the prompt names them and
//! states the expected work of one invocation.

use super::build::{already_green_text, list_item};
use super::cap::{self, MAX_AGENT_PART_BYTES};
use super::sanitize::sanitize;

/// The input of an agent's prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentSnapshot {
    pub iteration: u32,
    /// Relative to the repository.
    pub task_file: String,
    /// The specification of an issue, whose steps the boxes are; relative to the repository.
    pub spec_file: Option<String>,
    /// Text and id of each open box, in file order.
    pub open_boxes: Vec<String>,
    /// The command that must succeed.
    pub test_command: Option<String>,
    /// The checks that passed before any work.
    pub already_green: Vec<String>,
    /// Why the last request to stop with success was rejected.
    pub refusals: Vec<String>,
    pub errors_tail: String,
    /// Messages from the user.
    pub messages: Vec<String>,
}

/// Maximum number of open boxes that are listed; the rest is in the task file.
const SHOWN_BOXES: usize = 20;

/// Builds the prompt of one invocation of an agent.
pub fn build_agent(snapshot: &AgentSnapshot) -> String {
    let mut prompt = match &snapshot.spec_file {
        None => task_instructions(snapshot),
        Some(spec) => spec_instructions(snapshot, spec),
    };
    push_part(&mut prompt, "Open boxes", &open_boxes_text(snapshot));
    if let Some(command) = &snapshot.test_command {
        push_part(&mut prompt, "The test command", command);
    }
    if !snapshot.already_green.is_empty() {
        let text = already_green_text(&snapshot.already_green);
        push_part(&mut prompt, "Already green before any work", &text);
    }
    push_part(
        &mut prompt,
        "Why the last verification was not green",
        &snapshot.refusals.join("\n"),
    );
    let messages: Vec<String> = snapshot
        .messages
        .iter()
        .map(|text| list_item(text))
        .collect();
    push_part_capped(
        &mut prompt,
        "Messages from the user",
        &messages.join("\n"),
        cap::MESSAGES.bytes,
    );
    push_part(
        &mut prompt,
        "The last errors, from `.ralph/errors.log`",
        &snapshot.errors_tail,
    );
    prompt
}

/// Returns the instructions for a task whose boxes the agent ticks.
fn task_instructions(snapshot: &AgentSnapshot) -> String {
    let AgentSnapshot {
        iteration,
        task_file,
        ..
    } = snapshot;
    format!(
        "You are invoked repeatedly, once per task; this is iteration {iteration}. You remember nothing of \
         earlier ones: all memory is in the files and in git.\n\n\
         Read the specification in `{task_file}`, then `.ralph/guardrails.md`, `.ralph/progress.md` and \
         `.ralph/notes.md`, and the project's own instructions such as CLAUDE.md or AGENTS.md. Look at \
         `git log` and `git status` to see what is done.\n\n\
         Implement EXACTLY ONE task: the first checkbox that is not ticked. Then stop.\n\n\
         1. Implement it fully. No stubs, no placeholders.\n\
         2. Write or extend tests for it, and run the box's verify command and the test command.\n\
         3. Look over your own change with fresh eyes and correct what you find.\n\
         4. Commit with a message that says what it does now. Never push, never rewrite history, never \
         `git init`: if git does not work, stop and say so.\n\
         5. Tick the box in `{task_file}` by changing `[ ]` to `[x]`. The runner runs its verify command \
         itself and takes the tick back if it is not green. Change nothing else in that file.\n\
         6. Append what the next invocation has to know to `.ralph/progress.md`, and a lesson, if you \
         learned one the hard way, to `.ralph/guardrails.md`. Only append.\n\n\
         A small deviation from the specification is noted in `.ralph/progress.md`. If the task cannot be \
         done as it is specified, write `[blocked: why]` there, make no commit and stop. \
         If every box is ticked, run all checks, say that everything is complete, and make no commit.\n"
    )
}

/// Returns the instructions for an issue whose steps the agent marks.
fn spec_instructions(snapshot: &AgentSnapshot, spec: &str) -> String {
    let AgentSnapshot {
        iteration,
        task_file,
        ..
    } = snapshot;
    format!(
        "You are invoked repeatedly, once per task; this is iteration {iteration}. You remember nothing of \
         earlier ones: all memory is in the files and in git.\n\n\
         Read the specification in `{spec}`, then `.ralph/guardrails.md`, `.ralph/progress.md` and \
         `.ralph/notes.md`, and the project's own instructions such as CLAUDE.md or AGENTS.md. Look at \
         `git log` and `git status` to see what is done. `{task_file}` lists the open steps; leave it alone.\n\n\
         Implement EXACTLY ONE task: the first step that is not marked `[done]`. Then stop.\n\n\
         1. Implement it fully. No stubs, no placeholders.\n\
         2. Write or extend tests for it, and run the commands of its `Test` and `Verify` lines and the test \
         command. A step that asks to run all checks really runs every check.\n\
         3. Look over your own change with fresh eyes and correct what you find.\n\
         4. Commit with a message that says what it does now. Never push, never rewrite history, never \
         `git init`: if git does not work, stop and say so.\n\
         5. Append ` [done]` to the heading of the step in `{spec}`, and add your decisions and deviations \
         at the end of its section. The runner verifies the step itself and takes the mark back if it is not \
         green. Change nothing else in that file.\n\
         6. Append what the next invocation has to know to `.ralph/progress.md`, and a lesson, if you \
         learned one the hard way, to `.ralph/guardrails.md`. Only append.\n\n\
         If the step cannot be done as it is specified, or only with a significant deviation, append \
         ` [blocked: why]` to its heading, make no commit and stop. \
         If every step is marked `[done]`, run all checks, say that everything is complete, and make no commit.\n"
    )
}

fn open_boxes_text(snapshot: &AgentSnapshot) -> String {
    let mut lines: Vec<String> = snapshot
        .open_boxes
        .iter()
        .take(SHOWN_BOXES)
        .map(|text| format!("- [ ] {text}"))
        .collect();
    let more = snapshot.open_boxes.len().saturating_sub(SHOWN_BOXES);
    if more > 0 {
        lines.push(format!("- and {more} more, in the task file"));
    }
    lines.join("\n")
}

/// Adds a part unless it is empty. A long part loses its beginning, because its end is newer.
fn push_part(prompt: &mut String, title: &str, text: &str) {
    push_part_capped(prompt, title, text, MAX_AGENT_PART_BYTES);
}

fn push_part_capped(prompt: &mut String, title: &str, text: &str, most: usize) {
    let text = sanitize(text);
    if text.trim().is_empty() {
        return;
    }
    let mut start = text.len().saturating_sub(most);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    for piece in ["\n## ", title, "\n", text[start..].trim_end(), "\n"] {
        prompt.push_str(piece);
    }
}
