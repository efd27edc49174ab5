//! Parses output of the real programs, recorded against a test upstream.

mod ends;
mod events;
mod presets;

use std::collections::BTreeMap;

use ralph_core::ports::{Agent, AgentEnd, AgentEvent, AgentReport, ExecStatus};
use ralph_test::TestClock;

use super::{Agents, PresetAgentSettings};

/// Two hours before the usage limit of the recorded outputs is reset.
const NOW: &str = "2026-11-16T00:53:40Z";

fn settings(model: Option<&str>) -> PresetAgentSettings {
    PresetAgentSettings {
        model: model.map(str::to_owned),
        base_url: "http://127.0.0.1:4141/openai/v1".into(),
        login: BTreeMap::new(),
        clock: TestClock::at(NOW),
    }
}

fn built_in(name: &str) -> Box<dyn Agent> {
    let agents = Agents::built_in();
    agents
        .get(name)
        .unwrap()
        .build_agent(&settings(Some("m1")))
        .unwrap()
}

/// The result of parsing a recorded output.
struct ReaderOutcome {
    events: Vec<AgentEvent>,
    is_done: bool,
    end: AgentEnd,
    report: AgentReport,
}

fn read_output(agent: &str, lines: &str, ended: ExecStatus, stderr: &str) -> ReaderOutcome {
    let mut reader = built_in(agent).reader();
    let events = lines
        .lines()
        .flat_map(|line| reader.parse_line(line))
        .collect();
    let is_done = reader.is_done();
    let (end, report) = reader.finish(ended, stderr);
    ReaderOutcome {
        events,
        is_done,
        end,
        report,
    }
}
