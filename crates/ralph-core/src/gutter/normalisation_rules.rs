//! Replaces the parts of an output that vary between runs of the same failing command.
//!
//! The rules are applied in order to a bounded text; the `regex` crate takes linear time for each.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

/// The units of a duration, longer words first.
const UNIT: &str = "(?:nanoseconds?|microseconds?|milliseconds?|seconds?|minutes?|hours?|msecs?|secs?|mins?|hrs?|ns|µs|μs|us|ms|s|m|h)";

/// The lowest port that Linux assigns automatically. Lower ports are configured, so they matter.
const FIRST_EPHEMERAL_PORT: u32 = 32_768;

fn compile_regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is fixed")
}

/// Removes escape sequences, such as colours, and turns carriage returns into line breaks.
static TERMINAL_CONTROLS: LazyLock<Vec<(Regex, &'static str)>> = LazyLock::new(|| {
    vec![
        (
            compile_regex(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])"),
            "",
        ),
        (compile_regex(r"\r+\n?"), "\n"),
    ]
});

/// Durations that are part of the message: a configured limit, or a value in an assertion.
static SIGNIFICANT_DURATIONS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let words = "time[sd]?[ -]?out|deadline|limit|expected|actual|got|want(?:ed)?|received|but was|to be|to equal|left:|right:";
    let number = format!(r"[0-9]+(?:\.[0-9])?\s?{UNIT}\b");
    vec![
        compile_regex(&format!(
            r"(?i)\b(?:{words})[^\n0-9]{{0,30}}{number}(?:,? [a-z ]{{1,14}} {number})?"
        )),
        compile_regex(&format!(r"(?i)\b{number} (?:time-?out|deadline|limit)")),
    ]
});

/// Patterns with their replacements, in order of application.
static RULES: LazyLock<Vec<(Regex, &'static str)>> = LazyLock::new(|| {
    let day = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)";
    let month = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)";
    let clock = r"\d{1,2}:\d\d:\d\d(?:[.,]\d+)?";
    let number = r"\d+(?:[.,]\d+)?(?:e[-+]?\d+)?";
    [
        // Sandbox directories.
        (r#"(?:/[^\s:'"`()\[\]<>,;/]+)*/sandboxes/local-[A-Za-z0-9]+/"#.to_owned(), "/<sandbox>/"),
        (r"/(?:workspace|<sandbox>)/tmp/".to_owned(), "/tmp/"),
        // Seeds, before the rules for times could match them.
        (r#"(?i)(\w*seed(?: +(?:is|was|of|set to|value|number))?["']?[ \t:=#(]{1,12})-?(?:0x)?[0-9a-f]*[0-9][0-9a-f]*\b"#.to_owned(), "$1<seed>"),
        (r"(test\.shuffle[ =])-?\d+".to_owned(), "$1<seed>"),
        // Identifiers.
        (r"(?i)\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b".to_owned(), "<uuid>"),
        (r"\b01[0-9A-HJKMNP-TV-Z]{24}\b".to_owned(), "<uuid>"),
        // Times.
        (r"\b\d{4}-\d\d-\d\dT\d\d_\d\d_\d\d_\d+Z".to_owned(), "<time>"),
        (r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|\s?[+-]\d\d:?\d\d)?".to_owned(), "<time>"),
        (r"\b\d{8}T\d{6}Z?\b".to_owned(), "<time>"),
        (format!(r"\b{day}, \d{{1,2}} {month} \d{{4}} {clock}(?: (?:[A-Z]{{3,4}}|[+-]\d{{4}}))?"), "<time>"),
        (format!(r"\b{day} {month} +\d{{1,2}} {clock}(?: [A-Z]{{3,5}})? \d{{4}}\b"), "<time>"),
        (format!(r"\b{month} +\d{{1,2}} {clock}"), "<time>"),
        (format!(r"\b\d{{4}}/\d\d/\d\d {clock}"), "<time>"),
        (format!(r"\b\d{{1,2}}/{month}/\d{{4}}:{clock}(?: [+-]\d{{4}})?"), "<time>"),
        (r"\b\d{1,2}/\d{1,2}/\d{4},? \d{1,2}:\d\d(?::\d\d)?(?: [AP]M)?".to_owned(), "<time>"),
        (r"(?m)^([IWEF])\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ ".to_owned(), "$1<time> "),
        (r"\b1[5-9]\d{8}(?:\.\d+|\d{3}|\d{6}|\d{9})?\b".to_owned(), "<time>"),
        // Durations and rates.
        (r"\bPT(?:\d+(?:\.\d+)?[HMS])+\b".to_owned(), "<duration>"),
        (format!(r"\b{clock}\b"), "<time>"),
        (r"\b\d\d:\d\d\.\d{2,}\b".to_owned(), "<duration>"),
        (format!(r"(?i)\b{number}\s?{UNIT}(?:[ ,]{{0,2}}(?:and )?{number}\s?{UNIT})*\b"), "<duration>"),
        (r#"(?i)\b(took|elapsed|duration|time|real|user|sys)(["' \t:=]+)\d+\.\d+\b"#.to_owned(), "$1$2<duration>"),
        (r"\b(?:\d+\.\d+ ?[KMG]i?B(?:/s)?|\d+ ?[kKMG]i?B/s)".to_owned(), "<size>"),
        // Memory, processes, threads.
        (r"\b0x[0-9a-fA-F]+\b".to_owned(), "<hex>"),
        (r"\((node|deno|bun):\d+\)".to_owned(), "($1:<pid>)"),
        (r"(thread '[^'\n]*' )\(\d+\)".to_owned(), "$1(<pid>)"),
        (r"\bThreadId\(\d+\)".to_owned(), "ThreadId(<pid>)"),
        (r"\bgoroutine \d+".to_owned(), "goroutine <pid>"),
        (r"\bpool-\d+-thread-\d+".to_owned(), "pool-thread"),
        (r"\b(Thread|ForkPoolWorker|SpawnPoolWorker|Process|asyncio|MainThread)[-_]\d+(?:_\d+)?".to_owned(), "$1-<pid>"),
        (r"(?i)\b(pid|tid|process|thread|inode|ino|lwp)(['\x22]?[ =:#]*)\d+\b".to_owned(), "$1$2<pid>"),
        (r"==\d+==".to_owned(), "==<pid>=="),
        (r"(?m)^([\w./-]+)\[\d{3,}\]:".to_owned(), "$1[<pid>]:"),
        (r"(<time> (?:\S+ )?[\w./-]+)\[\d+\]".to_owned(), "$1[<pid>]"),
        // Workers and progress.
        (r"(?m)^.*\d+%\|.*(?:\n|$)".to_owned(), ""),
        (r"(?mi)^(?:remote: |.*\b(?:downloading|downloaded|progress|receiving|resolving|compressing|unpacking|fetching)\b).*\d%.*$".to_owned(), "<progress>"),
        (r"\[gw\d+\] ?".to_owned(), ""),
        (r"(?i)\b(gw|worker|fork)([ #:_-]*)\d+\b".to_owned(), "$1$2<n>"),
        (r" *[\[(] *\d+(?:\.\d+)? ?%[\])]".to_owned(), ""),
        (r"\[ *\d+ ?/ ?\d+\] ?".to_owned(), ""),
        (r"(?m)^( *)\d+/\d+ (Test|Building|Compiling|Linking|Running|Copying|#)".to_owned(), "$1$2"),
        (r"(?m)^#\d+ (?:\d+\.\d+ )?".to_owned(), "# "),
        // Random values.
        (r"reproduce_failure\([^)\n]*\)".to_owned(), "reproduce_failure(<seed>)"),
        (r"\bpytest-of-[\w.-]+/pytest-\d+".to_owned(), "pytest-of-<user>/pytest-<n>"),
        (r"\btmp\.[A-Za-z0-9]{6,12}\b".to_owned(), "<tmp>"),
        (r"\.tmp[A-Za-z0-9]{6}\b".to_owned(), "<tmp>"),
        (r"(?i)\b(commit|revision|sha|HEAD is now at|head)([ :=@]+)[0-9a-f]{7,64}\b".to_owned(), "$1$2<hex>"),
        // Widths: the length of horizontal rules and columns depends on the numbers in the output.
        (r"={3,}".to_owned(), "==="),
        (r"-{3,}".to_owned(), "---"),
        (r"_{3,}".to_owned(), "___"),
        (r"─{3,}".to_owned(), "───"),
        (r"\*{3,}".to_owned(), "***"),
        (r"\.{3,}".to_owned(), "..."),
        (r"([\[(])[ \t]+".to_owned(), "$1"),
        (r"(\S)[ \t]{2,}".to_owned(), "$1 "),
        (r"(?m)[ \t]+$".to_owned(), ""),
    ]
    .into_iter()
    .map(|(pattern, with)| (compile_regex(&pattern), with))
    .collect()
});

static TEMPORARY_PATH: LazyLock<Regex> = LazyLock::new(|| {
    compile_regex(
        r#"((?:/private)?(?:/var)?/tmp|/var/folders|/dev/shm)/[^/\s:'"`()\[\]]+((?:/[^/\s:'"`()\[\]]+)*)"#,
    )
});
static TEMPORARY_NAME: LazyLock<Regex> = LazyLock::new(|| compile_regex(r"\btmp[a-z0-9_]{8}\b"));
static HEXADECIMAL: LazyLock<Regex> = LazyLock::new(|| compile_regex(r"\b[0-9a-f]{7,64}\b"));
static PORT: LazyLock<Regex> = LazyLock::new(|| {
    compile_regex(
        r"(?i)((?:\b(?:\d{1,3}\.){3}\d{1,3}|\blocalhost|\]|::1?):|\bport(?: is| number)?[ :=#]{1,3})(\d{5})\b",
    )
});
static SET: LazyLock<Regex> = LazyLock::new(|| compile_regex(r"\{[^{}\n]*, [^{}\n]*\}"));

/// Removes escape sequences and turns carriage returns into line breaks.
pub(super) fn strip_terminal_controls(text: &str) -> Cow<'_, str> {
    apply_rules(Cow::Borrowed(text), &TERMINAL_CONTROLS)
}

/// Replaces the parts that vary between runs, such as times, process ids and temporary paths.
pub(super) fn normalise(text: &str) -> String {
    let text = SIGNIFICANT_DURATIONS
        .iter()
        .fold(strip_terminal_controls(text), |text, pattern| {
            replace_with(text, pattern, |found| hide_digits(&found[0]))
        });
    let text = apply_rules(text, &RULES);
    let text = replace_with(text, &PORT, |found| {
        let is_ephemeral = found[2]
            .parse()
            .is_ok_and(|port: u32| port >= FIRST_EPHEMERAL_PORT);
        let port = if is_ephemeral { "<port>" } else { &found[2] };
        format!("{}{port}", &found[1])
    });
    let text = replace_with(text, &TEMPORARY_PATH, |found| {
        // The name after the directory is random; in the rest only numbers are.
        let rest: String = found[2].chars().filter(|c| !c.is_ascii_digit()).collect();
        format!("{}/<tmp>{rest}", &found[1])
    });
    let text = replace_with(text, &TEMPORARY_NAME, |found| {
        let is_random = found[0].contains(|c: char| c.is_ascii_digit() || c == '_');
        if is_random { "<tmp>" } else { &found[0] }.to_owned()
    });
    let text = replace_with(text, &HEXADECIMAL, |found| {
        // Words have no digits and numbers no letters; digests have both.
        let has = |is: fn(&u8) -> bool| found[0].as_bytes().iter().any(is);
        let is_digest = has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic);
        if is_digest { "<hex>" } else { &found[0] }.to_owned()
    });
    replace_with(text, &SET, |found| {
        let inner = &found[0][1..found[0].len() - 1];
        let mut items: Vec<&str> = inner.split(", ").collect();
        items.sort_unstable();
        format!("{{{}}}", items.join(", "))
    })
    .into_owned()
}

fn apply_rules<'a>(text: Cow<'a, str>, rules: &[(Regex, &str)]) -> Cow<'a, str> {
    rules.iter().fold(text, |text, (pattern, with)| {
        let changed = match pattern.replace_all(&text, *with) {
            Cow::Owned(changed) => Some(changed),
            Cow::Borrowed(_) => None,
        };
        changed.map_or(text, Cow::Owned)
    })
}

fn replace_with<'a>(
    text: Cow<'a, str>,
    pattern: &Regex,
    with: impl Fn(&Captures<'_>) -> String,
) -> Cow<'a, str> {
    let changed = match pattern.replace_all(&text, |found: &Captures<'_>| with(found)) {
        Cow::Owned(changed) => Some(changed),
        Cow::Borrowed(_) => None,
    };
    changed.map_or(text, Cow::Owned)
}

/// Encodes digits as characters that no later pattern matches as a number.
fn hide_digits(text: &str) -> String {
    const HIDDEN: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let hidden = |c: char| c.to_digit(10).map_or(c, |digit| HIDDEN[digit as usize]);
    text.chars().map(hidden).collect()
}
