//! Events parsed from recorded sessions.

use std::time::Duration;

use ralph_core::money::Usd;
use ralph_core::ports::{AgentEvent, AgentReport, ExecStatus, TokenUsage};

use super::read_output;

const DONE: &str = "Done: hello.txt is there.";

fn usage(input_tokens: u64, output_tokens: u64) -> TokenUsage {
    TokenUsage {
        input_tokens,
        output_tokens,
        ..TokenUsage::default()
    }
}

fn usage_event(input: u64, output: u64) -> AgentEvent {
    AgentEvent::Usage {
        usage: usage(input, output),
    }
}

fn text_event(text: &str) -> AgentEvent {
    AgentEvent::Text { text: text.into() }
}

fn tool_event(id: &str, tool: &str, label: &str) -> AgentEvent {
    AgentEvent::Tool {
        id: id.into(),
        tool: tool.into(),
        label: label.into(),
    }
}

fn tool_done_event(id: &str, ok: bool) -> AgentEvent {
    AgentEvent::ToolDone { id: id.into(), ok }
}

fn waiting_event(why: &str, wait: Option<Duration>) -> AgentEvent {
    let why = why.into();
    AgentEvent::Waiting { why, wait }
}

#[test]
fn claude_events_are_read() {
    let lines = include_str!("fixtures/claude-ok.jsonl");
    let read = read_output("claude", lines, ExecStatus::Exited(0), "");
    assert_eq!(
        read.events,
        [
            AgentEvent::Started {
                model: Some("claude-sonnet-5-5".into())
            },
            tool_event("toolu_fake0000", "Write", "/workspace/hello.txt"),
            usage_event(100, 1),
            tool_done_event("toolu_fake0000", true),
            text_event(DONE),
            usage_event(200, 2),
            usage_event(200, 20),
        ]
    );
    assert_eq!(
        read.report,
        AgentReport {
            summary: DONE.into(),
            usage: usage(200, 20),
            cost_usd: Usd::from_dollars(0.0006),
            turns: Some(2),
        }
    );
}

#[test]
fn claude_reports_waits_and_failed_tools() {
    let lines = include_str!("fixtures/claude-failing-tools.jsonl");
    let mut events = read_output("claude", lines, ExecStatus::Exited(0), "").events;
    events.retain(|event| matches!(event, AgentEvent::ToolDone { .. }));
    assert_eq!(
        events,
        [
            tool_done_event("toolu_fake0000", false),
            tool_done_event("toolu_fake0001", false)
        ]
    );
    let lines = include_str!("fixtures/claude-429-limit.jsonl");
    let events = read_output("claude", lines, ExecStatus::Exited(1), "").events;
    assert_eq!(
        events[1],
        waiting_event(
            "the usage limit `five_hour` is reached, until 2026-11-16T02:53:40Z",
            Some(Duration::from_hours(2))
        )
    );
    let lines = include_str!("fixtures/claude-529.jsonl");
    let events = read_output("claude", lines, ExecStatus::Exited(1), "").events;
    assert_eq!(
        events[1],
        waiting_event(
            "status 529, retrying in 0.5 s (attempt 1 of 1)",
            Some(Duration::from_millis(512))
        )
    );
}

#[test]
fn claude_acknowledges_messages_but_not_its_prompt() {
    let replay = |text: &str| {
        let content = format!(r#"{{"role":"user","content":[{{"type":"text","text":"{text}"}}]}}"#);
        format!("{{\"type\":\"user\",\"message\":{content},\"isReplay\":true}}\n")
    };
    let result = |queued: u32| {
        format!(
            "{{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\
             \"queued_turn_count\":{queued},\"result\":\"ok\"}}\n"
        )
    };
    let lines = replay("the prompt") + &replay("use tabs") + &result(1);
    let first = read_output("claude", &lines, ExecStatus::Exited(0), "");
    assert_eq!(
        first.events,
        [
            AgentEvent::Acknowledged {
                text: "use tabs".into()
            },
            usage_event(0, 0),
        ]
    );
    assert!(!first.is_done, "another message waits for its answer");
    let both = read_output("claude", &(lines + &result(0)), ExecStatus::Exited(0), "");
    assert!(both.is_done);
}

#[test]
fn codex_events_are_read() {
    let lines = include_str!("fixtures/codex-ok.jsonl");
    let read = read_output("codex", lines, ExecStatus::Exited(0), "");
    assert_eq!(
        read.events,
        [
            AgentEvent::Started { model: None },
            text_event(
                "Model metadata for `gpt-5.1-codex` not found. Defaulting to fallback metadata; \
                 this can degrade performance and cause issues."
            ),
            tool_event(
                "item_1",
                "command_execution",
                "/bin/bash -lc 'echo hi > hello.txt'"
            ),
            tool_done_event("item_1", true),
            text_event(DONE),
            usage_event(200, 20),
        ]
    );
    assert_eq!(
        read.report,
        AgentReport {
            summary: DONE.into(),
            usage: usage(200, 20),
            cost_usd: None,
            turns: None,
        }
    );
}

#[test]
fn opencode_events_are_read() {
    let lines = include_str!("fixtures/opencode-ok.jsonl");
    let read = read_output("opencode", lines, ExecStatus::Exited(0), "");
    assert_eq!(
        read.events,
        [
            AgentEvent::Started { model: None },
            tool_event("call_fake0000", "bash", "echo hi > hello.txt"),
            tool_done_event("call_fake0000", true),
            usage_event(100, 10),
            text_event(DONE),
            usage_event(200, 20),
        ]
    );
    assert_eq!(
        read.report,
        AgentReport {
            summary: DONE.into(),
            usage: usage(200, 20),
            cost_usd: None,
            turns: Some(2),
        }
    );
}

#[test]
fn a_line_that_is_not_an_event_is_text() {
    for agent in ["claude", "codex", "opencode"] {
        let lines = "{\"type\":\n\n[1]\n{\"type\":\"never heard of\"}\n{\"type\":7}\n{}\n";
        let read = read_output(agent, lines, ExecStatus::Exited(0), "");
        assert_eq!(
            read.events,
            [text_event("{\"type\":"), text_event("[1]")],
            "{agent}"
        );
    }
    let read = read_output("command", "hello\n\n world \n", ExecStatus::Exited(0), "");
    assert_eq!(
        read.events,
        [
            AgentEvent::Started { model: None },
            text_event("hello"),
            text_event("world")
        ]
    );
    assert_eq!(read.report.summary, "world");
}

#[test]
fn long_values_are_truncated() {
    let long = "x".repeat(1 << 20);
    let lines = [
        format!(r#"{{"type":"assistant","message":{{"id":"{long}","content":[{{"type":"text","text":"{long}"}},{{"type":"tool_use","id":"{long}","name":"{long}","input":{{"command":"{long}"}}}}]}}}}"#),
        format!(r#"{{"type":"system","subtype":"init","model":"{long}"}}"#),
        format!(r#"{{"type":"rate_limit_event","rate_limit_info":{{"status":"rejected","rateLimitType":"{long}"}}}}"#),
        format!(r#"{{"type":"item.started","item":{{"id":"{long}","type":"{long}","command":"{long}"}}}}"#),
        format!(r#"{{"type":"error","message":"Reconnecting {long}"}}"#),
        format!(r#"{{"type":"tool_use","part":{{"tool":"{long}","callID":"{long}","state":{{"title":"{long}"}}}}}}"#),
        long,
    ]
    .join("\n");
    for agent in ["claude", "codex", "opencode", "command"] {
        let read = read_output(agent, &lines, ExecStatus::Exited(1), "");
        assert!(!read.events.is_empty());
        for event in &read.events {
            let bytes = serde_json::to_string(event).unwrap().len();
            assert!(bytes < 3000, "{agent}: an event has {bytes} bytes");
        }
        let bytes = serde_json::to_string(&(read.end, read.report))
            .unwrap()
            .len();
        assert!(bytes < 6000, "{agent}: its end has {bytes} bytes");
    }
}
