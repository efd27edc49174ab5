//! Parses traces.

/// A trace of a run.
pub(super) struct RunTrace {
    pub(super) name: String,
    /// The iteration in which circling starts; `None` for an honest run.
    pub(super) circling_from: Option<u32>,
    blocks: Vec<TraceBlock>,
}

struct TraceBlock {
    first: u32,
    last: u32,
    steps: Vec<TraceStep>,
}

/// One step of an iteration.
#[derive(Clone)]
pub(super) struct TraceStep {
    pub(super) verb: String,
    pub(super) object: String,
    /// Content of a file, or standard output.
    pub(super) text: String,
    pub(super) stderr: String,
}

impl RunTrace {
    /// Returns the iterations with their steps, with placeholders filled in.
    pub(super) fn iterations(&self) -> Vec<(u32, Vec<TraceStep>)> {
        let mut iterations = Vec::new();
        for block in &self.blocks {
            for number in block.first..=block.last {
                let fill = |text: &str| fill(text, number, number - block.first);
                let steps = block.steps.iter().map(|step| TraceStep {
                    verb: step.verb.clone(),
                    object: fill(&step.object),
                    text: fill(&step.text),
                    stderr: fill(&step.stderr),
                });
                iterations.push((number, steps.collect()));
            }
        }
        iterations
    }
}

/// Parses all traces of a file.
pub(super) fn parse(text: &str) -> Vec<RunTrace> {
    let mut traces: Vec<RunTrace> = Vec::new();
    for line in text.lines() {
        if let Some(head) = line.strip_prefix("=== ") {
            let (name, kind) = head.rsplit_once(": ").expect("a name and a kind");
            let from = kind.strip_prefix("circling from ");
            assert!(from.is_some() || kind == "honest", "{head}");
            traces.push(RunTrace {
                name: name.to_owned(),
                circling_from: from.map(|from| from.parse().expect("a number")),
                blocks: Vec::new(),
            });
            continue;
        }
        let Some(trace) = traces.last_mut() else {
            continue;
        };
        read_line(trace, line);
    }
    traces
}

fn read_line(trace: &mut RunTrace, line: &str) {
    if let Some(range) = line
        .strip_prefix('[')
        .and_then(|line| line.strip_suffix(']'))
    {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("{line}"));
        trace.blocks.push(TraceBlock {
            first: number(first),
            last: number(last),
            steps: Vec::new(),
        });
        return;
    }
    if line.is_empty() || line.starts_with('#') {
        return;
    }
    let block = trace
        .blocks
        .last_mut()
        .unwrap_or_else(|| panic!("{}: {line}", trace.name));
    let text = |prefix: char| {
        line.strip_prefix(prefix)
            .map(|rest| rest.strip_prefix(' ').unwrap_or(rest))
    };
    if let Some(rest) = text('|') {
        let step = block.steps.last_mut().expect("a step before its text");
        step.text.push_str(rest);
        step.text.push('\n');
    } else if let Some(rest) = text('!') {
        let step = block.steps.last_mut().expect("a step before its text");
        step.stderr.push_str(rest);
        step.stderr.push('\n');
    } else {
        let (verb, object) = line.split_once(' ').unwrap_or((line, ""));
        block.steps.push(TraceStep {
            verb: verb.to_owned(),
            object: object.to_owned(),
            text: String::new(),
            stderr: String::new(),
        });
    }
}

fn fill(text: &str, number: u32, turn: u32) -> String {
    let random = |salt: u32| (number * 7919 + salt) % 9973 + 11;
    let mut text = text
        .replace("{n}", &number.to_string())
        .replace("{r}", &random(1).to_string())
        .replace("{s}", &random(5003).to_string())
        .replace("{m}", &(number * 13 + 5).to_string())
        .replace("{c}", &(40 - number).to_string());
    while let Some(start) = text.find("<<")
        && let Some(length) = text[start..].find(">>")
    {
        let choices: Vec<&str> = text[start + 2..start + length].split('|').collect();
        let at = usize::try_from(turn).expect("a small number") % choices.len();
        let chosen = choices[at].to_owned();
        text.replace_range(start..start + length + 2, &chosen);
    }
    text
}
