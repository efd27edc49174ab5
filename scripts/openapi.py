"""Validates recorded HTTP exchanges against an OpenAPI description. See scripts/openapi."""

import json
import re
import sys

from openapi_core import OpenAPI
from openapi_core.testing import MockRequest, MockResponse

SERVER = "https://api.github.com"


def allow_null(schema):
    """Adds `null` to the values of nullable schemas: the description leaves it out, and GitHub responds with it."""
    if isinstance(schema, dict):
        values = schema.get("enum")
        if schema.get("nullable") is True and isinstance(values, list) and None not in values:
            values.append(None)
        schema = list(schema.values())
    if isinstance(schema, list):
        for part in schema:
            allow_null(part)


def matches(template, path):
    """Returns whether a path has the form of a template such as `/repos/{owner}/{repo}`."""
    parts = re.split(r"\{[^}]*\}", template)
    return re.fullmatch("[^/]+".join(re.escape(part) for part in parts), path) is not None


def references(schema):
    """Yields the names of all components that a part of the description refers to."""
    if isinstance(schema, dict):
        reference = schema.get("$ref")
        if isinstance(reference, str):
            yield reference
        schema = list(schema.values())
    if isinstance(schema, list):
        for part in schema:
            yield from references(part)


def used_part(document, exchanges):
    """Returns the description of the operations in the exchanges: GitHub's whole one takes minutes to load."""
    paths = {exchange["url"].partition("?")[0] for exchange in exchanges}
    described = document["paths"].items()
    used = {template: item for template, item in described if any(matches(template, path) for path in paths)}
    components = {}
    waiting = list(references(used))
    while waiting:
        _, _, kind, name = waiting.pop().split("/")
        if name not in components.setdefault(kind, {}):
            component = document["components"][kind][name]
            components[kind][name] = component
            waiting.extend(references(component))
    return {**{key: document[key] for key in ("openapi", "info", "servers")}, "paths": used, "components": components}


def violations(api, exchange):
    """Yields the violations of a request and its response."""
    path, _, query = exchange["url"].partition("?")
    pairs = dict(pair.split("=", 1) for pair in query.split("&") if pair)
    sent = exchange["request_body"].encode() or None
    request = MockRequest(SERVER, exchange["method"].lower(), path, args=pairs, data=sent)
    body = json.dumps(exchange["body"]).encode()
    response = MockResponse(body, status_code=exchange["status"], content_type="application/json")
    for validate in (lambda: api.validate_request(request), lambda: api.validate_response(request, response)):
        try:
            validate()
        except Exception as error:  # each kind of violation has its own type
            causes = getattr(error.__cause__, "schema_errors", [])
            details = "; ".join(f"{list(cause.path)}: {cause.message[:200]}" for cause in causes)
            yield f"{type(error).__name__}: {details or error}"


def main(description, exchanges):
    """Validates all exchanges and returns the exit code."""
    with open(exchanges, encoding="utf-8") as file:
        recorded = json.load(file)
    with open(description, encoding="utf-8") as file:
        document = used_part(json.load(file), recorded)
    allow_null(document)
    api = OpenAPI.from_dict(document)
    found = 0
    for exchange in recorded:
        for violation in violations(api, exchange):
            found += 1
            print(f"{exchange['method']} {exchange['url']} ({exchange['status']}): {violation}")
    print(f"{len(recorded)} exchanges, {found} violations", file=sys.stderr)
    return 1 if found or not recorded else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
