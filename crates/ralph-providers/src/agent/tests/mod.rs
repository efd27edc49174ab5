//! What the programs really printed, recorded against an upstream of the test's own, and what it
//! is taken for.

mod ends;
mod events;
mod presets;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ralph_core::ports::{Agent, AgentEnd, AgentEvent, AgentReport, Clock, Ended};

use super::{Agents, ProgramSettings};

/// Two hours before the limit of the recorded outputs is lifted.
const NOW: i64 = 1_794_797_620 - 7200;

struct Fixed;

impl Clock for Fixed {
    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::from_second(NOW).unwrap()
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

fn settings(model: Option<&str>) -> ProgramSettings {
    ProgramSettings {
        model: model.map(str::to_owned),
        base_url: "http://127.0.0.1:4141/openai/v1".into(),
        login: BTreeMap::new(),
        clock: Arc::new(Fixed),
    }
}

fn built_in(name: &str) -> Box<dyn Agent> {
    let agents = Agents::built_in();
    agents
        .get(name)
        .unwrap()
        .program(&settings(Some("m1")))
        .unwrap()
}

/// What an agent's reader makes of an output.
struct Read {
    events: Vec<AgentEvent>,
    is_done: bool,
    end: AgentEnd,
    report: AgentReport,
}

fn read(agent: &str, lines: &str, ended: Ended, stderr: &str) -> Read {
    let mut reader = built_in(agent).reader();
    let events = lines.lines().flat_map(|line| reader.line(line)).collect();
    let is_done = reader.is_done();
    let (end, report) = reader.finish(ended, stderr);
    Read {
        events,
        is_done,
        end,
        report,
    }
}
