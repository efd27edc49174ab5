use std::collections::BTreeSet;

use super::*;

/// At least one line for every event, with and without its optional fields.
const EVERY_EVENT: &str = include_str!("tests/every_event.jsonl");

#[test]
fn every_event_round_trips_byte_for_byte() {
    let mut seen = BTreeSet::new();
    for line in EVERY_EVENT.lines() {
        let event: Event =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(serde_json::to_string(&event).unwrap(), line);
        let value: Value = serde_json::from_str(line).unwrap();
        seen.insert(value["type"].as_str().unwrap().to_owned());
    }
    let known = GROUPS.iter().flat_map(|(types, _)| types.iter());
    let known: Vec<String> = known.map(ToString::to_string).collect();
    let distinct: BTreeSet<String> = known.iter().cloned().collect();
    assert_eq!(
        known.len(),
        distinct.len(),
        "a type belongs to several groups"
    );
    assert_eq!(seen, distinct);
}

#[test]
fn the_types_of_a_group_are_those_of_its_enum() {
    for (types, parse) in GROUPS {
        let error = parse(serde_json::json!({"type": "?"})).unwrap_err();
        let names: Vec<String> = types.iter().map(|name| format!("`{name}`")).collect();
        let expected = format!("unknown variant `?`, expected one of {}", names.join(", "));
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn the_type_may_follow_the_fields() {
    let event: Event = serde_json::from_str(r#"{"message":"x","type":"notice"}"#).unwrap();
    let message = "x".to_owned();
    assert_eq!(event, Event::Run(RunEvent::Notice { message }));
}

#[test]
fn errors_name_the_unknown_event_the_unknown_value_and_the_missing_type() {
    let error = |text: &str| serde_json::from_str::<Event>(text).unwrap_err().to_string();
    let errors = [
        error(r#"{"type":"dreamt","of":"sheep"}"#),
        error(r#"{"type":"sandbox_created","sandbox":"a","purpose":"play"}"#),
        error(r#"{"message":"x"}"#),
        error(r#""notice""#),
    ];
    assert_eq!(
        errors,
        [
            "unknown variant `dreamt`",
            "unknown variant `play`, expected `work` or `clean_room`",
            "missing field `type`",
            "invalid type: string \"notice\", expected internally tagged enum Event",
        ]
    );
}
