"""A Chinese page is Chinese: no sentence of it is left in English."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from cluster import runtime
from tests import factories as make
from tests.portal.site import full_pages, make_world
from tests.portal.test_hard_coded import Texts

pytestmark = pytest.mark.django_db(databases="__all__")
SENTENCE = re.compile(r"(?:\b[A-Za-z][a-z]+\b[ ,]+){3,}\b[A-Za-z][a-z]+\b")
"""Four words of Latin letters one after the other: names are shorter."""
OBJECTS_OWN = {"One master, and as many workers as you like."}
"""What people or the cluster wrote."""
TABS = ("pods", "events", "yaml", "decisions", "usage", "lineage", "placement", "logs")


@pytest.fixture
def world(make_user: Any) -> Iterator[dict[str, Any]]:
    yield make_world(make_user)
    runtime.use(None)


def test_no_page_has_a_sentence_of_another_language(world: dict[str, Any], client: Client):
    client.force_login(world["staff"], "django.contrib.auth.backends.ModelBackend")
    client.cookies["django_language"] = "zh-hans"
    paths = [*full_pages(client).values(), "/sign-in/", "/nowhere/"]
    make.fleet()
    held = make.job("gang", verdict=make.verdict(), replicas=8)
    make.save([*make.many_jobs(60), held], make.pods(held, 8, phase="Pending"))
    paths += ["/", "/jobs/?view=all", f"/jobs/{held.uid}/", *(f"/jobs/{held.uid}/?tab={tab}" for tab in TABS)]
    found = []
    for path in paths:
        texts = Texts()
        texts.feed(client.get(path).getvalue().decode())
        found += [f"{path}: {text[:90]}" for _, text in texts.found if SENTENCE.search(text) and text not in OBJECTS_OWN]
    assert sorted(set(found)) == []
