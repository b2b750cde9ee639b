"""The text of a blueprint, and jobs ordered of one by REST."""

import json

from jobs.blueprints import definition

PAGE = "/blueprints/train/"
API = "/api/v1/blueprints"


def source(name="train", **changes):
    text = definition.example(name)
    for old, new in changes.pop("swap", ()):
        assert old in text
        text = text.replace(old, new)
    return text


def order(client, name="train", expect=201, query="", **body):
    answer = client.post(f"{API}/{name}/submit{query}", json.dumps(body), content_type="application/json")
    assert answer.status_code == expect, answer.content
    return answer.json()
