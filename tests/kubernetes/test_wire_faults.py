"""Faults of the connection to an API server and of what comes over it: cut off, slow, garbled, lost, too large, too much."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import orjson
import pytest

from cluster.clock import SystemClock
from cluster.errors import Unanswered
from cluster.kinds import CONFIG_MAP, POD
from cluster.kubernetes import KubernetesCluster, listing, pending, watch
from cluster.port import Binding, Watch, WatchEvent
from testbed.kubelet import FakeKubelet
from testbed.server import ApiServer
from testbed.stack import Stack, eventually
from tests.kubernetes.faulty import Fault, Lines, faulty
from tests.kubernetes.test_faults import clean, client, controlling, places, running, scheduling, submit

__all__ = ["clean", "client"]  # fixtures

MIB = 2**20


@pytest.fixture(autouse=True)
def parts(stack: Stack, kubelet: FakeKubelet) -> None:
    """Nodes and what runs on them."""


def pods(cluster: KubernetesCluster, names: str) -> dict[str, str]:
    """Plain pods without a node; uids by name."""
    spec = {"schedulerName": "nobody", "containers": [{"name": "main", "image": "busybox"}]}
    made = [cluster.create(POD, {"metadata": {"name": name}, "spec": spec}) for name in names]
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in made}


def maps(cluster: KubernetesCluster, *names: str) -> None:
    for name in names:
        cluster.create(CONFIG_MAP, {"metadata": {"name": name, "labels": {"wire": "yes"}}})


@pytest.fixture(autouse=True)
def no_maps(backend: KubernetesCluster) -> Iterator[None]:
    yield
    for obj in backend.list(CONFIG_MAP, "default", labels="wire=yes").items:
        backend.delete(CONFIG_MAP, obj["metadata"]["name"], "default")


def seen(events: list[WatchEvent]) -> list[tuple[str, str]]:
    return [(each.type, each.object["metadata"]["name"] if each.kind else "") for each in events]


def follow(watching: Watch, until: Callable[[list[tuple[str, str]]], bool], seconds: float = 20) -> list[tuple[str, str]]:
    """What a watch shows until that is enough."""
    events: list[WatchEvent] = []
    eventually(lambda: events.extend(watching.drain()) or until(seen(events)), seconds, why=lambda: str(seen(events)))
    return seen(events)


# --- a connection that ends in the middle of a write ---------------------------------------------------------------------


@pytest.mark.parametrize(("cut", "asked"), [("before", 1), ("after", 1)])
def test_a_bind_that_was_not_answered_is_looked_up_before_it_is_made_again(
    client: Any, backend: KubernetesCluster, cut: str, asked: int
) -> None:
    cluster, proxy = client
    uids = pods(backend, "abc")
    proxy.put(Fault("POST", "/binding", 2, cut=cut))
    outcomes = cluster.bind_many([Binding("default", name, uid, "node-0") for name, uid in uids.items()])
    assert [each.error for each in outcomes] == [None] * 3
    assert set(places(backend)) == {"node-0"}
    made = {path: number for path, number in proxy.seen.items() if path.endswith("/binding")}
    assert made == {f"POST /api/v1/namespaces/default/pods/{name}/binding": asked for name in uids}


def test_a_bind_of_which_nothing_can_be_learnt_is_not_called_failed(client: Any, backend: KubernetesCluster) -> None:
    cluster, proxy = client
    uids = pods(backend, "a")
    proxy.put(Fault("POST", "/binding", 1, cut="after"))
    proxy.put(Fault("GET", "/pods/a", 9, cut="before"))
    (outcome,) = cluster.bind_many([Binding("default", "a", uids["a"], "node-0")])
    assert type(outcome.error) is Unanswered
    assert places(backend) == ["node-0"]


@pytest.mark.parametrize("cut", ["before", "after"])
def test_a_gang_whose_binds_are_cut_off_runs_each_pod_once(client: Any, backend: KubernetesCluster, cut: str) -> None:
    cluster, proxy = client
    proxy.put(Fault("POST", "/binding", 3, cut=cut))
    proxy.put(Fault("GET", "/pods/cut-", 2, cut="before"))  # two cannot be looked at either: everything is read anew
    with controlling(backend), scheduling(cluster) as loop:
        submit(backend, "cut")
        eventually(lambda: running(backend, "cut"))
    assert (proxy.met, loop.failures) == (5, 0)
    assert Counter(bool(place) for place in places(backend)) == {True: 4}


@pytest.mark.parametrize("cut", ["before", "after"])
@pytest.mark.parametrize("method_and_part", ["POST /pods", "POST /podgroups", "PATCH /jobs/", "PATCH /podgroups/"])
def test_whatever_write_is_cut_off_the_job_runs_in_the_end(
    client: Any, backend: KubernetesCluster, method_and_part: str, cut: str
) -> None:
    cluster, proxy = client
    proxy.put(Fault(*method_and_part.split(), 2, cut=cut))
    with controlling(cluster), scheduling(cluster):
        submit(backend, "broken")
        eventually(lambda: running(backend, "broken"))
    assert len(places(backend)) == 4


# --- a slow server -----------------------------------------------------------------------------------------------------------


def test_a_bind_that_arrives_late_is_no_second_one(api_server: ApiServer, backend: KubernetesCluster) -> None:
    uids = pods(backend, "abcd")
    with faulty(api_server, answer_seconds=4.0) as (cluster, proxy):
        proxy.put(Fault("POST", "/binding", 4, seconds=8.0))
        outcomes = cluster.bind_many([Binding("default", name, uid, "node-1") for name, uid in uids.items()])
        assert [each.error for each in outcomes] == [None] * 4
        paths = [f"POST /api/v1/namespaces/default/pods/{name}/binding" for name in uids]
        eventually(lambda: [proxy.seen[path] for path in paths] == [2] * 4)
    assert places(backend) == ["node-1"] * 4


def test_with_a_slow_server_a_gang_takes_longer_and_no_more(client: Any, backend: KubernetesCluster) -> None:
    cluster, proxy = client
    for method in ("GET", "POST", "PATCH"):
        proxy.put(Fault(method, "", 40, seconds=0.3))
    with controlling(cluster), scheduling(cluster) as loop:
        submit(backend, "slow")
        eventually(lambda: running(backend, "slow"), 90)
    assert loop.failures == 0


@pytest.mark.parametrize("skew", [-60.0, 60.0])
def test_a_clock_that_is_a_minute_off_changes_nothing(client: Any, backend: KubernetesCluster, skew: float) -> None:
    cluster, _ = client

    class Skewed(SystemClock):
        def now(self) -> float:
            return super().now() + skew

    cluster.clock = Skewed()
    begin = time.monotonic()
    with controlling(cluster), scheduling(cluster):
        submit(backend, "skewed")
        eventually(lambda: running(backend, "skewed"))
    assert time.monotonic() - begin < 30


# --- what comes over a stream ------------------------------------------------------------------------------------------------


def garbling(*rubbish: bytes) -> Callable[[Lines], Lines]:
    """After the first line, something that is no event; then the connection ends."""

    async def lines(whole: Lines) -> AsyncIterator[bytes]:
        async for line in whole:
            yield line
            for each in rubbish:
                yield each
            return

    return lines


@pytest.mark.parametrize(
    "rubbish",
    [
        b"%%%\n",
        b"[]\n",
        b'{"type":"ADDED"}\n',
        b'{"type":"MODIFIED","object":{"metadata":7}}\n',
        b'{"type":"ADDED","object":{"me',
    ],
    ids=["noise", "a list", "no object", "no metadata", "cut off"],
)
def test_rubbish_on_a_stream_costs_a_list_and_nothing_else(
    client: Any, backend: KubernetesCluster, rubbish: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    cluster, proxy = client
    proxy.put(Fault("GET", "/configmaps", 2, query="watch=", lines=garbling(rubbish)))
    watching = cluster.watch([CONFIG_MAP], namespace="default", labels="wire=yes")
    follow(watching, lambda events: ("SYNCED", "") in events)
    told = []
    for name in ("m1", "m2", "m3"):
        maps(backend, name)
        told += follow(watching, lambda events, name=name: ("ADDED", name) in events)
    watching.close()
    assert told == [("ADDED", "m1"), ("ADDED", "m2"), ("ADDED", "m3")]
    assert not [record for record in caplog.records if record.exc_info]


def test_an_event_that_is_lost_without_a_word_is_found_by_the_next_list(
    client: Any, backend: KubernetesCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "AGAIN_SECONDS", 3.0)

    async def lossy(whole: Lines) -> AsyncIterator[bytes]:
        async for line in whole:
            if b'"name":"lost"' not in line and b'"name":"goes"' not in line:
                yield line

    cluster, proxy = client
    maps(backend, "goes")
    proxy.put(Fault("GET", "/configmaps", 1, query="watch=", lines=lossy))
    watching = cluster.watch([CONFIG_MAP], namespace="default", labels="wire=yes")
    follow(watching, lambda events: ("SYNCED", "") in events)
    maps(backend, "lost", "heard")
    backend.delete(CONFIG_MAP, "goes", "default")
    told = follow(watching, lambda events: {("DELETED", "goes"), ("ADDED", "lost"), ("ADDED", "heard")} <= set(events))
    watching.close()
    assert sorted(told) == [("ADDED", "heard"), ("ADDED", "lost"), ("DELETED", "goes")]


def test_a_stream_that_ends_at_once_is_not_begun_over_and_over(client: Any, backend: KubernetesCluster) -> None:
    async def nothing(whole: Lines) -> AsyncIterator[bytes]:
        return
        yield b""

    cluster, proxy = client
    proxy.put(Fault("GET", "/configmaps", 1000, query="watch=", lines=nothing))
    watching = cluster.watch([CONFIG_MAP], namespace="default", labels="wire=yes")
    time.sleep(3.0)
    watching.close()
    assert 3 <= proxy.met <= 6, "pauses of 0.2, 0.4, 0.8 and 1.6 s, a fifth more or less"


@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_list_whose_next_page_has_expired_is_read_again(
    client: Any, backend: KubernetesCluster, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    monkeypatch.setattr(listing, "PAGE", 2)
    cluster, proxy = client
    names = [f"page-{number}" for number in range(7)]
    maps(backend, *names)

    def first() -> None:
        with contextlib.suppress(Exception):
            backend.delete(CONFIG_MAP, "page-0", "default")  # it was on a page that was told, and is on none any more

    proxy.put(Fault("GET", "/configmaps", times, 410, "Expired", first, query="continue="))
    watching = cluster.watch([CONFIG_MAP], namespace="default", labels="wire=yes")
    told = follow(watching, lambda events: ("SYNCED", "") in events)
    watching.close()
    left = Counter(name for kind, name in told if kind == "ADDED") - Counter(name for kind, name in told if kind == "DELETED")
    assert left == Counter(names[1:])
    assert proxy.met == min(times, 2), "the third time the list is read in one piece, which cannot expire"


def test_objects_of_five_megabytes_are_taken_in(client: Any, backend: KubernetesCluster) -> None:
    cluster, proxy = client
    blob = "x" * (5 * MIB)

    def inflated(pod: Any) -> Any:
        pod["metadata"].setdefault("annotations", {})["blob"] = blob
        return pod

    def whole(said: bytes) -> bytes:
        page = orjson.loads(said)
        return orjson.dumps({**page, "items": [inflated(pod) for pod in page.get("items") or ()]})

    async def lines(stream: Lines) -> AsyncIterator[bytes]:
        async for line in stream:
            event = orjson.loads(line)
            inflated(event["object"])
            yield orjson.dumps(event) + b"\n"

    proxy.put(Fault("GET", "/pods", 1, query="watch=", lines=lines))
    proxy.put(Fault("GET", "/pods", 9, query="limit=", body=whole))
    pods(backend, "ab")
    with controlling(backend), scheduling(cluster) as loop:
        submit(backend, "large")
        eventually(lambda: running(backend, "large"))
        assert loop.aside == []
    assert proxy.met >= 2


def test_ten_thousand_events_at_once_wait_in_bounded_room(client: Any, backend: KubernetesCluster) -> None:
    async def many(whole: Lines) -> AsyncIterator[bytes]:
        async for line in whole:
            made = orjson.loads(line)["object"]
            version = int(made["metadata"]["resourceVersion"])
            for number in range(10_000):
                meta = {"name": f"flood-{number % 20}", "uid": f"uid-{number % 20}", "resourceVersion": str(version + number)}
                obj = {**made, "metadata": {**made["metadata"], **meta}, "data": {"n": str(number)}}
                yield orjson.dumps({"type": "MODIFIED", "object": obj}) + b"\n"
            break
        await asyncio.sleep(60)

    cluster, proxy = client
    proxy.put(Fault("GET", "/configmaps", 1, query="watch=", lines=many))
    watching = cluster.watch([CONFIG_MAP], namespace="default", labels="wire=yes")
    follow(watching, lambda events: ("SYNCED", "") in events)
    maps(backend, "flood")
    eventually(lambda: "9999" in [each.object["data"]["n"] for each in list(watching._pending._beyond.values())])
    assert len(watching._pending) == pending.EXACT + 20
    newest = {each.object["metadata"]["name"]: each.object["data"]["n"] for each in watching.drain()}
    watching.close()
    assert newest == {f"flood-{number}": str(9980 + number) for number in range(20)}
