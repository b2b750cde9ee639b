"""What a web process measures of itself: by views, never by what strangers make up."""

from __future__ import annotations

import time
from threading import Event
from typing import Any

import pytest
from django.test import Client
from prometheus_client import CollectorRegistry

from cluster.embedded.store import EmbeddedCluster
from portal import mirror
from portal.live.feed import Feed, Subscription
from portal.live.hub import Hub
from portal.live.topics import JobsTopic
from portal.metrics import base, watch_mirror, web
from portal.mirror import Mirror
from portal.reach import reach


def counted(view: str, method: str = "GET", code: str = "200") -> float:
    labels = {"view": view, "method": method, "code": code}
    return base.registry.get_sample_value("basalt_http_requests_total", labels) or 0.0


@pytest.mark.django_db
def test_requests_are_counted_by_view(client: Client) -> None:
    before, timed = counted("login"), base.registry.get_sample_value("basalt_http_request_seconds_count", {"view": "login"}) or 0
    assert client.get("/sign-in/").status_code == 200
    assert counted("login") == before + 1
    assert base.registry.get_sample_value("basalt_http_request_seconds_count", {"view": "login"}) == timed + 1


@pytest.mark.django_db
def test_what_strangers_make_up_makes_no_series(client: Client) -> None:
    before, other = counted(web.NO_VIEW, code="404"), counted("login", method="other", code="405")
    client.get("/no/such/page-1/")
    client.get("/no/such/page-2/")
    client.generic("BREW", "/sign-in/")
    assert counted(web.NO_VIEW, code="404") == before + 2
    assert counted("login", method="other", code="405") == other + 1
    assert b"page-1" not in base.text()
    assert b"BREW" not in base.text()


@pytest.mark.django_db
def test_probes_are_not_counted(client: Client) -> None:
    before = base.text().count(b"healthz")
    client.get("/healthz")
    assert base.text().count(b"healthz") == before


@pytest.mark.asyncio
async def test_pages_that_listen_are_counted_once_whatever_they_listen_to() -> None:
    into, channels = CollectorRegistry(), Hub()
    web.watch(channels, into)
    assert into.get_sample_value("basalt_live_sockets") == 0
    pages: list[Any] = [object(), object()]
    for topic, listeners in (("jobs", pages), ("queues", pages[:1])):
        channels._feeds[topic] = Feed(topic, JobsTopic())
        channels._feeds[topic].subscriptions.update(dict.fromkeys(listeners, Subscription(frozenset())))
    assert (into.get_sample_value("basalt_live_sockets"), into.get_sample_value("basalt_live_topics")) == (2, 2)


@pytest.mark.asyncio
async def test_nothing_is_said_of_a_cluster_that_nobody_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    into = CollectorRegistry()
    web.watch(Hub(), into)
    monkeypatch.setattr(reach, "looked", False)
    assert into.get_sample_value("basalt_cluster_answers") is None
    monkeypatch.setattr(reach, "looked", True)
    monkeypatch.setattr(reach, "away_since", None)
    assert into.get_sample_value("basalt_cluster_answers") == 1
    monkeypatch.setattr(reach, "away_since", "a moment ago")
    assert into.get_sample_value("basalt_cluster_answers") == 0


def test_a_mirror_tells_how_long_the_oldest_change_waits(cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    into, found = CollectorRegistry(), Mirror(cluster)
    watch_mirror(lambda: found, into)
    assert into.get_sample_value("basalt_mirror_lag_seconds") is None, "it has read nothing yet"
    found.synced.set()
    assert into.get_sample_value("basalt_mirror_lag_seconds") == 0
    seen: list[float] = []
    stop = Event()

    def slow(*_: Any) -> None:
        monkeypatch.setattr(mirror.time, "monotonic", lambda: real() + 40)
        seen.append(into.get_sample_value("basalt_mirror_lag_seconds") or 0.0)
        stop.set()

    real = time.monotonic
    monkeypatch.setattr(found, "_take", slow)
    found.run(stop)
    assert seen[0] >= 40
    assert into.get_sample_value("basalt_mirror_lag_seconds") == 0
