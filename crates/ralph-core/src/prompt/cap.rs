//! Size limits of the parts of a prompt.

use super::build::RULES;

/// The largest prompt, system and user message together.
pub const MAX_PROMPT_BYTES: usize = 464 * KIB;

/// The largest prompt that asks for a corrected reply.
pub const MAX_REPAIR_BYTES: usize = MAX_PROMPT_BYTES + 12 * KIB;

/// The largest part of an agent's prompt; the agent can read the rest itself.
pub(super) const MAX_AGENT_PART_BYTES: usize = 8 * KIB;

/// Maximum length of a run of backticks. Fences are longer than any run in their text, so this
/// also bounds the fences.
pub(super) const MAX_BACKTICKS: usize = 64;

/// The longest file name, branch or commit that is shown in full.
pub(super) const MAX_NAME_BYTES: usize = 256;

/// Maximum number of loop scores that are shown.
pub(super) const MAX_LOOP_SCORES: usize = 5;

const KIB: usize = 1024;

/// The end that an excerpt preserves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeptEnd {
    /// The first lines.
    Head,
    /// The last lines.
    Tail,
    /// Equal numbers of first and last lines.
    Ends,
}

/// The size limits of an excerpt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExcerptCap {
    pub(crate) keep: KeptEnd,
    pub(crate) lines: usize,
    /// Including line ends.
    pub(crate) bytes: usize,
    /// A longer line loses its middle.
    pub(crate) line_bytes: usize,
}

impl ExcerptCap {
    pub(crate) const fn new(keep: KeptEnd, lines: usize, bytes: usize, line_bytes: usize) -> Self {
        Self {
            keep,
            lines,
            bytes,
            line_bytes,
        }
    }
}

/// The task is included in full: only its size in bytes is limited.
pub(super) const TASK: ExcerptCap =
    ExcerptCap::new(KeptEnd::Head, usize::MAX, 256 * KIB, 256 * KIB);
pub(super) const OPEN_BOXES: ExcerptCap = ExcerptCap::new(KeptEnd::Head, 60, 8 * KIB, KIB);
/// The first guardrails are the project's policy, the last ones the newest lessons.
pub(super) const GUARDRAILS: ExcerptCap = ExcerptCap::new(KeptEnd::Ends, 400, 16 * KIB, 2 * KIB);
pub(super) const PROGRESS: ExcerptCap = ExcerptCap::new(KeptEnd::Head, 200, 8 * KIB, 2 * KIB);
/// The newest note is the last.
pub(super) const NOTES: ExcerptCap = ExcerptCap::new(KeptEnd::Tail, 200, 8 * KIB, 2 * KIB);
pub(super) const ERRORS: ExcerptCap = ExcerptCap::new(KeptEnd::Tail, 200, 16 * KIB, 2 * KIB);
pub(super) const STATUS: ExcerptCap = ExcerptCap::new(KeptEnd::Head, 100, 8 * KIB, KIB);
/// The last line is the sum.
pub(super) const DIFF_STAT: ExcerptCap = ExcerptCap::new(KeptEnd::Ends, 60, 4 * KIB, KIB);
pub(super) const COMMITS: ExcerptCap = ExcerptCap::new(KeptEnd::Head, 10, 3 * KIB, 256);
pub(super) const TEST_COMMAND: ExcerptCap = ExcerptCap::new(KeptEnd::Head, 20, KIB, KIB);
pub(super) const OUTPUT: ExcerptCap = ExcerptCap::new(KeptEnd::Tail, 800, 32 * KIB, 2 * KIB);
pub(super) const REFUSALS: ExcerptCap = ExcerptCap::new(KeptEnd::Head, 60, 4 * KIB, KIB);
pub(super) const CIRCLING: ExcerptCap = ExcerptCap::new(KeptEnd::Head, 40, 3 * KIB, KIB);
/// The engine delivers at most the size of one message; this allows for indenting every line.
pub(super) const MESSAGES: ExcerptCap =
    ExcerptCap::new(KeptEnd::Head, usize::MAX, 32 * KIB, 32 * KIB);
/// The schema is ralph's own text and never that long.
pub(super) const SCHEMA: ExcerptCap = ExcerptCap::new(KeptEnd::Head, 1000, 24 * KIB, 4 * KIB);

/// A reply is often a single line, so a line may use the whole limit.
pub(super) const BAD_REPLY: ExcerptCap = ExcerptCap::new(KeptEnd::Ends, 200, 4 * KIB, 4 * KIB);
pub(super) const BAD_REPLY_ERRORS: ExcerptCap = ExcerptCap::new(KeptEnd::Head, 60, 4 * KIB, KIB);

/// Maximum overhead of a part: heading, explanation, names, fences, marker.
const MAX_FRAME_BYTES: usize = KIB + 2 * MAX_BACKTICKS + 3 * MAX_NAME_BYTES;

const PART_CAPS: [ExcerptCap; 15] = [
    TASK,
    OPEN_BOXES,
    GUARDRAILS,
    PROGRESS,
    NOTES,
    ERRORS,
    STATUS,
    DIFF_STAT,
    COMMITS,
    TEST_COMMAND,
    OUTPUT,
    REFUSALS,
    CIRCLING,
    MESSAGES,
    SCHEMA,
];

const fn worst_case(caps: &[ExcerptCap]) -> usize {
    let mut sum = 0;
    let mut index = 0;
    while index < caps.len() {
        sum += caps[index].bytes + MAX_FRAME_BYTES;
        index += 1;
    }
    sum
}

// The budgets have no cap: they are only numbers, no longer than a frame.
const _: () = assert!(RULES.len() + worst_case(&PART_CAPS) + MAX_FRAME_BYTES <= MAX_PROMPT_BYTES);
const _: () =
    assert!(MAX_PROMPT_BYTES + worst_case(&[BAD_REPLY, BAD_REPLY_ERRORS]) <= MAX_REPAIR_BYTES);
