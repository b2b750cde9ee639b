"""Thirty causes of waiting, named exactly: the code, the stage, the numbers; and said in both languages."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import translation

from jobs import reasons
from scheduler import conf as configuration
from scheduler.framework.explain import Stage, Verdict
from scheduler.snapshot import Snapshot
from scheduler.whatif import Sandbox
from scheduler.whatif.refused import nodes_by_cause
from tests.jobs.causes import CAUSES
from tests.scheduler.world import World


def verdict(conf: str, parts: list[Any]) -> Verdict:
    found = World(*parts, conf=conf).cycle(3).verdicts["x"]
    assert isinstance(found, Verdict)
    return found


def test_there_are_thirty_and_each_has_its_own_title():
    assert len({title for title, *_ in CAUSES}) == len(CAUSES) == 30


@pytest.mark.parametrize(("title", "conf", "parts", "expected"), CAUSES, ids=[title for title, *_ in CAUSES])
def test_the_cause_is_named(title: str, conf: str, parts: list[Any], expected: dict[str, Any]):
    found = verdict(conf, parts).as_dict()
    assert {key: found[key] for key in expected} == expected, title


@pytest.mark.parametrize(("title", "conf", "parts", "expected"), CAUSES, ids=[title for title, *_ in CAUSES])
def test_the_nodes_that_refuse_it_are_as_many_as_it_says(title: str, conf: str, parts: list[Any], expected: dict[str, Any]):
    flat = [obj for part in parts for obj in (part if isinstance(part, list) else [part])]
    box = Sandbox(Snapshot.of(flat, conf).cache(), configuration.load(conf), now=1_000_000.0)
    job = box.cache.jobs["default/x"]
    job.phase = "Inqueue"
    job.touch()
    found = box.play(cycles=1).verdicts.get("default/x")  # none for what only its admission holds
    names = nodes_by_cause(box, "default/x")
    if found is not None and found.rejected and found.stage is not Stage.TOPOLOGY:  # of a domain its own nodes are counted
        assert {cause: len(nodes) for cause, nodes in names.items()} == found.rejected, title


@pytest.mark.parametrize(("title", "conf", "parts", "expected"), CAUSES, ids=[title for title, *_ in CAUSES])
@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_the_cause_is_said(title: str, conf: str, parts: list[Any], expected: dict[str, Any], language: str):
    found = verdict(conf, parts).as_dict()
    with translation.override(language):
        statement, missing = reasons.headline(found)
        assert statement
        assert "Held at" not in statement, title
        assert reasons.advice(found)
        figures = {each.key: each.value for each in reasons.numbers(found)}
        if found["short"] and found["resource"]:
            assert missing, title
            assert not figures or set(figures) >= {"asked", "short"}
            assert figures or (not found["free"] and found["short"] > found["asked"]), title  # no sum where it would not add up
        for each in reasons.rejections(found):
            assert each.label
            assert each.count == found["rejected"][each.cause]
