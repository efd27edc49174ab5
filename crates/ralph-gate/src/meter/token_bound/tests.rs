use super::*;

const WINDOW: TokenWindow = TokenWindow {
    max_input: 200_000,
    max_output: 64_000,
};

fn bound(
    wire: ModelWireFormat,
    body: &Value,
    window: Option<TokenWindow>,
) -> Result<TokenBound, BadField> {
    let measured = BoundedRequest {
        wire,
        fields: body.as_object().unwrap(),
        bytes: body.to_string().len() as u64,
        window,
        is_limitable: true,
    };
    measured.bound()
}

#[test]
fn text_is_bounded_by_its_bytes() {
    let body =
        json!({"model": "m", "max_tokens": 100, "messages": [{"content": "é".repeat(1000)}]});
    let found = bound(ModelWireFormat::AnthropicMessages, &body, Some(WINDOW)).unwrap();
    let bytes = body.to_string().len() as u64;
    assert!(bytes > 2000);
    assert_eq!(found.input, bytes + OVERHEAD_TOKENS);
    assert_eq!(
        (found.output, found.min_output, found.choices),
        (100, 100, 1)
    );
}

#[test]
fn media_and_stored_content_have_their_own_bounds() {
    let large = "A".repeat(1_000_000);
    let text = "x".repeat(10);
    let image = json!({"type": "image", "source": {"type": "base64", "data": large}});
    let url = json!({"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{large}")}});
    let input =
        json!({"type": "input_image", "image_url": format!("data:image/png;base64,{large}")});
    let linked = json!({"type": "input_image", "image_url": "https://a.example/x.png"});
    for content in [&image, &url, &input, &linked] {
        let body = json!({"model": "m", "messages": [{"content": [content, {"text": text}]}]});
        let found = bound(ModelWireFormat::OpenAiChat, &body, None).unwrap();
        let least = TOKENS_PER_IMAGE + OVERHEAD_TOKENS;
        assert!(
            (least..least + 300).contains(&found.input),
            "{} {}",
            found.input,
            content["type"]
        );
    }
    let small = "A".repeat(100);
    for body in [
        json!({"model": "m", "messages": [{"content": [{"type": "document", "source": {"type": "base64", "data": small}}]}]}),
        json!({"model": "m", "messages": [{"content": [{"type": "tool_result", "content": [{"type": "document", "source": {"type": "url"}}]}]}]}),
        json!({"model": "m", "input": [{"type": "input_file", "file_data": small}]}),
        json!({"model": "m", "input": [{"type": "item_reference", "id": "x"}]}),
        json!({"model": "m", "previous_response_id": "resp_1"}),
        json!({"model": "m", "tools": [{"type": "web_search_20250305", "name": "web_search"}]}),
    ] {
        for (window, expected) in [(Some(WINDOW), 200_000), (None, LARGEST_WINDOW)] {
            let found = bound(ModelWireFormat::OpenAiResponses, &body, window).unwrap();
            assert_eq!(found.input, expected, "{body}");
        }
    }
    let tool = json!({"model": "m", "tools": [{"type": "bash_20250124", "name": "bash"}, {"name": "own"}]});
    let found = bound(ModelWireFormat::AnthropicMessages, &tool, None).unwrap();
    assert_eq!(found.input, tool.to_string().len() as u64 + 2048);
}

#[test]
fn text_that_looks_like_an_image_counts_in_full() {
    let text = "x".repeat(100_000);
    let image = json!({"type": "image", "source": {"type": "base64", "data": text}});
    let url = json!({"type": "image_url", "image_url": format!("data:image/png;base64,{text}")});
    for body in [
        json!({"messages": [{"content": [{"type": "tool_use", "input": image}]}]}),
        json!({"tools": [{"name": "a", "input_schema": image}]}),
        json!({"tools": [{"type": "function", "function": {"parameters": url}}]}),
        json!({"system": [image]}),
    ] {
        let found = bound(ModelWireFormat::AnthropicMessages, &body, None).unwrap();
        assert_eq!(found.input, body.to_string().len() as u64 + OVERHEAD_TOKENS);
    }
    let result = json!({"messages": [{"content": [{"type": "tool_result", "content": [image]}]}]});
    let found = bound(ModelWireFormat::AnthropicMessages, &result, None).unwrap();
    assert!(found.input < 20_000, "{}", found.input);
}

#[test]
fn tools_are_found_in_namespaces_and_items_of_the_input() {
    let own = json!({"type": "namespace", "tools": [{"type": "function"}, {"type": "custom"}]});
    let searched = json!({"type": "tool_search", "execution": "client"});
    let served = json!({"type": "namespace", "tools": [{"type": "web_search"}]});
    for (body, typed) in [
        (json!({"tools": [own, searched]}), Some(1)),
        (
            json!({"input": [{"type": "additional_tools", "tools": [own]}]}),
            Some(0),
        ),
        (json!({"tools": [served]}), None),
        (json!({"tools": [{"type": "tool_search"}]}), None),
        (
            json!({"input": [{"type": "additional_tools", "tools": [served]}]}),
            None,
        ),
    ] {
        let found = bound(ModelWireFormat::OpenAiResponses, &body, None)
            .unwrap()
            .input;
        let expected = typed.map_or(LARGEST_WINDOW, |typed| {
            body.to_string().len() as u64 + 1024 * (1 + typed)
        });
        assert_eq!(found, expected, "{body}");
    }
}

#[test]
fn a_window_bounds_a_long_request() {
    let body = json!({"model": "m", "input": "x".repeat(300_000)});
    let found = bound(ModelWireFormat::OpenAiResponses, &body, Some(WINDOW)).unwrap();
    assert_eq!((found.input, found.output), (200_000, 64_000));
}

#[test]
fn limits_that_are_not_counts_are_refused() {
    for (wire, body, key) in [
        (
            ModelWireFormat::AnthropicMessages,
            json!({"max_tokens": 1.5}),
            "max_tokens",
        ),
        (
            ModelWireFormat::AnthropicMessages,
            json!({"max_tokens": "9"}),
            "max_tokens",
        ),
        (
            ModelWireFormat::AnthropicMessages,
            json!({"max_tokens": -1}),
            "max_tokens",
        ),
        (
            ModelWireFormat::OpenAiChat,
            json!({"max_completion_tokens": 0}),
            "max_completion_tokens",
        ),
        (
            ModelWireFormat::OpenAiResponses,
            json!({"max_output_tokens": [1]}),
            "max_output_tokens",
        ),
        (ModelWireFormat::OpenAiChat, json!({"n": 0}), "n"),
        (ModelWireFormat::OpenAiChat, json!({"n": 1000}), "n"),
        (ModelWireFormat::OpenAiChat, json!({"n": "2"}), "n"),
    ] {
        assert_eq!(bound(wire, &body, None), Err(BadField(key)), "{body}");
    }
    let both = json!({"max_tokens": 5, "max_completion_tokens": 9, "n": 3});
    let found = bound(ModelWireFormat::OpenAiChat, &both, None).unwrap();
    assert_eq!((found.output, found.choices), (9, 3));
}

#[test]
fn limits_are_written_to_the_field_of_the_wire() {
    let (messages, chat, responses) = (
        ModelWireFormat::AnthropicMessages,
        ModelWireFormat::OpenAiChat,
        ModelWireFormat::OpenAiResponses,
    );
    for (wire, provider, before, after) in [
        (
            messages,
            "anthropic",
            json!({}),
            json!({"max_tokens": 4000}),
        ),
        (
            messages,
            "anthropic",
            json!({"max_tokens": 9000}),
            json!({"max_tokens": 4000}),
        ),
        (
            messages,
            "anthropic",
            json!({"max_tokens": 90}),
            json!({"max_tokens": 90}),
        ),
        (
            chat,
            "openai",
            json!({}),
            json!({"max_completion_tokens": 4000}),
        ),
        (chat, "zai", json!({}), json!({"max_tokens": 4000})),
        (
            chat,
            "zai",
            json!({"max_tokens": 5000, "max_completion_tokens": 9000}),
            json!({"max_tokens": 4000, "max_completion_tokens": 4000}),
        ),
        (
            responses,
            "openai",
            json!({"max_output_tokens": null}),
            json!({"max_output_tokens": 4000}),
        ),
    ] {
        let mut fields = before.as_object().unwrap().clone();
        limit_output(wire, provider, &mut fields, 4000);
        assert_eq!(Value::Object(fields), after, "{before}");
    }
}

#[test]
fn a_thinking_budget_stays_below_the_limit() {
    for (limit, budget, expected) in [
        (4000, 8000, json!(2000)),
        (4000, 4000, json!(2000)),
        (4000, 1024, json!(1024)),
    ] {
        let before =
            json!({"max_tokens": 9000, "thinking": {"type": "enabled", "budget_tokens": budget}});
        let mut fields = before.as_object().unwrap().clone();
        limit_output(
            ModelWireFormat::AnthropicMessages,
            "anthropic",
            &mut fields,
            limit,
        );
        assert_eq!(fields["max_tokens"], limit);
        assert_eq!(fields["thinking"]["budget_tokens"], expected);
    }
    let mut fields = json!({"max_tokens": 9000, "thinking": {"type": "adaptive"}});
    let fields = fields.as_object_mut().unwrap();
    limit_output(
        ModelWireFormat::AnthropicMessages,
        "anthropic",
        fields,
        4000,
    );
    assert_eq!(fields["thinking"], json!({"type": "adaptive"}));
}
