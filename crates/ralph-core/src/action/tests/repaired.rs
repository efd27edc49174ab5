//! Replies that are not strict JSON: unambiguous ones are repaired, the others rejected.

use super::*;

/// The expected meaning of most replies below.
const PLAIN: &str = r#"{"summary":"s","actions":[{"type":"run","command":"npm test"}]}"#;

fn assert_means_plain(reply: &str, repaired: bool) {
    let expected = Response {
        repaired,
        ..response(vec![run("npm test")])
    };
    assert_eq!(parse(reply).as_ref(), Ok(&expected), "{reply}");
}

#[test]
fn strict_json_is_not_repaired() {
    assert_means_plain(PLAIN, false);
    assert_means_plain(&format!(" \r\n\t{PLAIN}\n\n"), false);
    assert_means_plain(&PLAIN.replace(':', " :\n "), false);
    assert_means_plain(&PLAIN.replace("\"s\"", r#""\u0073""#), false);
}

#[test]
fn text_around_the_object_is_ignored() {
    for around in [
        "\u{feff}OBJECT",
        "```json\nOBJECT\n```",
        "```\nOBJECT\n```\n",
        "~~~json\nOBJECT\n~~~",
        "```json\r\nOBJECT\r\n```\r\n",
        "```json\nOBJECT",
        "Here is what I will do:\n\nOBJECT",
        "OBJECT\n\nLet me know if that helps!",
        "I don't know {yet}, but a set like {a, b} is fine: OBJECT",
        "Replace `${name}` and {{ handlebars }} first. OBJECT",
        "fn main() { println!(\"hi\"); }\nOBJECT",
        "OBJECT}",
        "[OBJECT]",
        "(OBJECT);",
        "<think>I could run {\"actions\":[{\"type\":\"rotate\"</think>OBJECT",
        "<THINK>hm</Think>\n```json\nOBJECT\n```",
        "<thinking>a {\"</thinking> <reasoning>b</reasoning> OBJECT",
        "thoughts {\"actions\":[]} </think> OBJECT",
        "<think>a<think>b</think> {\"actions\":[]} </think>OBJECT",
        "<p>OBJECT</p>",
        "First {\"example\": 1}, then OBJECT",
        "Empty {} OBJECT",
        "{\"note\": foo(1)} OBJECT",
        "OBJECT {\"summary\":\"another summary\",\"actions\":[{\"type\":\"run\",\"command\":\"npm test\"}]}",
        "OBJECT\nOBJECT",
        "OBJECT </thinker>",
    ] {
        assert_means_plain(&around.replace("OBJECT", PLAIN), true);
    }
}

#[test]
fn common_slips_are_repaired() {
    for reply in [
        r#"{"summary":"s","actions":[{"type":"run","command":"npm test",},],}"#,
        r#"{"summary":"s" "actions":[{"type":"run" "command":"npm test"}]}"#,
        r"{'summary':'s','actions':[{'type':'run','command':'npm test'}]}",
        r#"{summary:"s",actions:[{type:"run",command:"npm test"}]}"#,
        r#"{summary:s,actions:[{type:run,command:"npm test"}]}"#,
        "{\"summary\":\"s\", // why\n\"actions\":[{\"type\":\"run\",\"command\":\"npm test\"}]}",
        "{ // don't \" stop }\n\"summary\":\"s\",\"actions\":[{\"type\":\"run\",\"command\":\"npm test\"}]}",
        r#"{"summary":"s",/* {"actions":[]} */"actions":[{"type":"run","command":"npm test"}]}"#,
        "{\"summary\":\"s\", # why\n\"actions\":[{\"type\":\"run\",\"command\":\"npm test\"}]}",
        r#"{"summary":"s","actions":[{"type":"run","command":"npm test","cwd":None}],"claims":None}"#,
        r#"{"summary":"s","actions":[{"type":"run","command":"npm test","cwd":undefined}]}"#,
        r#"{"summary":"s","ok":True,"bad":False,"actions":[{"type":"run","command":"npm test"}]}"#,
        "{\u{a0}\"summary\":\"s\",\"actions\":[{\"type\":\"run\",\"command\":\"npm test\"}]}",
        "Sure!\n```json\n{'summary': 's', 'actions': [{'type': 'run', 'command': 'npm test'},]} // done\n```",
    ] {
        assert_means_plain(reply, true);
    }
    let appended =
        "{'summary':'s','actions':[{'type':'write','path':'a','append':True,'content':'x'}]}";
    assert_eq!(
        parse(appended).unwrap().actions,
        [Action::Write {
            path: path("a"),
            content: "x".into(),
            mode: crate::ports::WriteMode::Append,
        }]
    );
}

#[test]
fn strings_survive_a_repair_byte_for_byte() {
    for (source, command) in [
        (r#""grep '\d+\.\w' a""#, r"grep '\d+\.\w' a"),
        (r#""a\\d\n\t\/\"\f\r""#, "a\\d\n\t/\"\u{c}\r"),
        (r#""\\\d\\""#, r"\\d\"),
        (r#""printf '\x1b\033\e[0m'""#, r"printf '\x1b\033\e[0m'"),
        (r#""echo \$HOME \`id\` it\'s""#, r"echo \$HOME \`id\` it's"),
        (r#""\u00e9\ud83d\ude00\uD83D\uDE00""#, "é😀😀"),
        (
            r#""[\ud800-\udbff] \u12 \uzzzz""#,
            r"[\ud800-\udbff] \u12 \uzzzz",
        ),
        (r#""\ud83d\u0041""#, r"\ud83dA"),
        ("\"a\nb\r\n\tc\"", "a\nb\r\n\tc"),
        ("\"a \\\nb\"", "a \\\nb"),
        ("\"\u{1b}[0m\u{1}\"", "\u{1b}[0m\u{1}"),
        (
            r#""true,}]: //x /*y*/ #z, 'q' None""#,
            "true,}]: //x /*y*/ #z, 'q' None",
        ),
        (r#""http://a.b/c?d=[e]&f={g}""#, "http://a.b/c?d=[e]&f={g}"),
        (
            r#"'say "hi" \"there\" it\'s \d'"#,
            r#"say "hi" "there" it's \d"#,
        ),
        (
            r#""```json\n{}\n``` <think> </think>""#,
            "```json\n{}\n``` <think> </think>",
        ),
        (
            r#""callback(1, ObjectId('x')) ...""#,
            "callback(1, ObjectId('x')) ...",
        ),
        (
            "\"“curly” ‘quotes’ \u{a0}\u{2028}é\"",
            "“curly” ‘quotes’ \u{a0}\u{2028}é",
        ),
    ] {
        // The trailing comma sends each of them through the repair.
        let reply =
            format!(r#"{{"summary":"s","actions":[{{"type":"run","command":{source},}},]}}"#);
        let expected = Response {
            repaired: true,
            ..response(vec![run(command)])
        };
        assert_eq!(parse(&reply), Ok(expected), "{reply}");
    }
}

#[test]
fn ambiguous_replies_are_rejected() {
    for reply in [
        r#"{"summary":"s","actions":[{"type":"run","command":"echo "hi""}]}"#,
        r#"{"summary":"s","actions":[{"type":"run","command":"rm -rf "$D"/x"}]}"#,
        r#"{"summary":"s","actions":[{"type":"run","command":"a" + "b"}]}"#,
        r#"{"summary":"s","actions":[{"type":"run","command":npm test}]}"#,
        r#"{"summary":"s","actions":[{"type":"run","command":`npm test`}]}"#,
        r#"{"summary":"s","actions":[{"type":"run","command":“npm test”}]}"#,
        r#"{"summary":"s","actions":[{"type":"run","command":"""npm test"""}]}"#,
        r#"{"summary":"s","actions":[{"type":"run","command":/npm test/}]}"#,
        r#"{"summary":"s","actions":[callback({"type":"run","command":"npm test"})]}"#,
        r#"{"summary":"s","actions":[{"type":"run","command":"npm test"}, ...]}"#,
        r#"{"summary":"s","actions":[{"type":"run","command":"npm test"}}"#,
        r#"{"summary":"s","actions":[{"type":"run","command":"npm test"]}"#,
        r#"{"summary":"s","actions":[{"type":"run","command":"npm test"})}"#,
        r#"{"summary":"s","actions":[{"type":"run","command":"npm test"}],,}"#,
        r#"{"summary":"s","actions":[{"type" "run","command":"npm test"}]}"#,
        r#"{"summary":"""s""","actions":[]}"#,
        r#"{"summary":"s","actions":[{"type":"run","command":"rm "cwd" x"}]}"#,
        r#"{"summary":"s":"t","actions":[]}"#,
        r"{'summary':'it's','actions':[]}",
    ] {
        let error = parse(reply).unwrap_err();
        assert!(
            matches!(error, ReplyError::Malformed(_) | ReplyError::Truncated),
            "{reply}\n{error:?}"
        );
    }
}

#[test]
fn errors_describe_the_json_problem() {
    for (reply, text) in [
        (
            "",
            "the reply contains no JSON object; answer with one JSON object and nothing else",
        ),
        (
            r#"{"actions":[{]}"#,
            "the JSON is not valid, so nothing was executed: expected `}`, found `]` in line 1 of the object",
        ),
        (
            "{\"actions\":\n[(]}",
            "the JSON is not valid, so nothing was executed: expected value at line 2 column 2",
        ),
        (
            r#"{"actions":[{"type":"run","command":"a","command":"b"}]}"#,
            "the key `command` appears twice in one object, so nothing was executed",
        ),
        (
            r#"{"actions":[],"actions":[],}"#,
            "the key `actions` appears twice in one object, so nothing was executed",
        ),
    ] {
        assert_eq!(parse(reply).unwrap_err().to_string(), text, "{reply}");
    }
    for nothing in [
        "I will run the tests now.",
        "null",
        "42",
        "\"I will run {x}.\"",
        "[]",
        "```json\n```",
        "<think>done</think>",
        "{\"actions\":[]} </think> that was a thought",
    ] {
        assert_eq!(parse(nothing), Err(ReplyError::NoObject), "{nothing}");
    }
}
