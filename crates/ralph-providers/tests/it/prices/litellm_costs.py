"""Prints the costs that LiteLLM computes for each of its chat models, one JSON object per line.

Each line has a model's key and provider, and a list of calls: six token counts (input, output, read from a cache,
written to a cache, of those for an hour, reasoning) and the cost in dollars; or `error` if LiteLLM has no price. The
first line has the path of the price map, and calls of an xAI model, which counts reasoning separately from the
output: input, output, reasoning, total, and the cost.
"""
import json
import logging
import os
import re
import sys
from datetime import datetime, timezone

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm
from litellm import _internal_context
from litellm.types.utils import ModelResponse, PromptTokensDetailsWrapper, Usage

logging.disable(logging.CRITICAL)
# LiteLLM prints hints to standard output.
results, sys.stdout = sys.stdout, sys.stderr
# Some models are cheaper at night; at this time no discount applies.
_internal_context._billing_time.set(datetime(2026, 11, 18, 8, 0, tzinfo=timezone.utc))

XAI = "xai/grok-4.7"
LENGTH = re.compile(r"_above_(\d+)(k?)_tokens$")


def provider(entry):
    name = entry.get("litellm_provider", "")
    if name == "bedrock_converse":
        return "bedrock"
    return "vertex_ai" if name.startswith("vertex_ai-") else name


def limits(entry):
    """Returns the prompt lengths at which a price of the entry changes."""
    found = set()
    for key in entry:
        if match := LENGTH.search(key):
            found.add(int(match[1]) * (1000 if match[2] else 1))
    for tier in entry.get("tiered_pricing") or []:
        found.update(int(end) for end in tier.get("range", []) if end > 0)
    return sorted(found)


def calls(entry):
    yield 1_000, 500, 0, 0, 0, 0
    yield 90_000, 4_000, 10_000, 20_000, 0, 3_000
    yield 31_000, 4_000, 0, 20_000, 7_000, 4_000
    yield 2_000_000, 100_000, 700_000, 600_000, 300_000, 50_000
    for limit in limits(entry):
        for tokens in (limit - 1, limit, limit + 1):
            yield tokens, 3_000, 0, 0, 0, 0
        for tokens in (limit, limit + 1):
            yield tokens, 3_000, limit // 2, limit // 4, limit // 5, 1_000
        # Cached tokens count towards the length.
        yield limit + 1, 3_000, limit, 0, 0, 0


def usage(input, output, read, write, hour, reasoning):
    details = {}
    if read or write:
        details["prompt_tokens_details"] = PromptTokensDetailsWrapper(
            cached_tokens=read,
            cache_creation_tokens=write,
            cache_creation_token_details={
                "ephemeral_5m_input_tokens": write - hour,
                "ephemeral_1h_input_tokens": hour,
            }
            if hour
            else None,
        )
    if reasoning:
        details["completion_tokens_details"] = {"reasoning_tokens": reasoning}
    return Usage(prompt_tokens=input, completion_tokens=output, total_tokens=input + output, **details)


def cost(key, name, counted):
    response = ModelResponse(model=key, usage=counted)
    return litellm.completion_cost(completion_response=response, model=key, custom_llm_provider=name)


def priced(key, entry):
    name = provider(entry)
    line = {"model": key, "provider": name}
    try:
        line["calls"] = [
            [call, cost(key, name, usage(*call))]
            for call in calls(entry)
        ]
    except Exception as error:  # any reason why LiteLLM has no price
        line["error"] = str(error).splitlines()[0][:200]
    return line


def xai(input, output, reasoning, total):
    details = {"reasoning_tokens": reasoning}
    counted = Usage(
        prompt_tokens=input, completion_tokens=output, total_tokens=total, completion_tokens_details=details
    )
    return cost(XAI, "xai", counted)


def main():
    path = os.path.join(os.path.dirname(litellm.__file__), "model_prices_and_context_window_backup.json")
    counts = [
        (1_000, 500, 0, 1_500),
        (1_000, 10, 300, 1_310),
        (1_000, 310, 300, 1_310),
        (199_999, 10, 300, 200_309),
        (200_000, 10, 300, 200_310),
    ]
    header = {"map": path, "xai": XAI, "xai_calls": [[call, xai(*call)] for call in counts]}
    print(json.dumps(header), file=results)
    with open(path) as file:
        entries = json.load(file)
    for key, entry in entries.items():
        if entry.get("mode") in ("chat", "responses"):
            print(json.dumps(priced(key, entry)), file=results)


main()
