"""Events that wait: exact while few, else of each object the newest; a reader ends with what is there."""

from __future__ import annotations

import threading

from hypothesis import given
from hypothesis import strategies as st

from cluster.kinds import CONFIG_MAP
from cluster.kubernetes.pending import Pending
from cluster.port import WatchEvent


def event(kind: str, uid: str, version: int = 0) -> WatchEvent:
    return WatchEvent(kind, CONFIG_MAP, {"metadata": {"name": uid, "uid": uid}, "version": version})


def read(events: list[WatchEvent]) -> list[tuple[str, str, int]]:
    return [(e.type, e.object["metadata"]["uid"], e.object["version"]) for e in events]


def test_few_events_come_as_they_were() -> None:
    pending = Pending(4)
    pending.put([event("ADDED", "a", 1), event("MODIFIED", "a", 2), event("DELETED", "a", 3)])
    assert read(pending.drain()) == [("ADDED", "a", 1), ("MODIFIED", "a", 2), ("DELETED", "a", 3)]
    assert pending.drain() == []


def test_beyond_the_bound_the_newest_of_an_object_takes_the_place_of_what_waits() -> None:
    pending = Pending(1)
    pending.put([event("ADDED", "first")])
    pending.put([event("ADDED", "new", 1), event("MODIFIED", "new", 2)])
    pending.put([event("MODIFIED", "old", 1), event("DELETED", "old", 2)])
    pending.put([event("ADDED", "brief", 1), event("MODIFIED", "brief", 2), event("DELETED", "brief", 3)])
    assert read(pending.drain()) == [("ADDED", "first", 0), ("ADDED", "new", 2), ("DELETED", "old", 2)]


def test_ten_thousand_events_of_a_hundred_objects_cost_a_hundred_places_more() -> None:
    pending = Pending(50)
    for number in range(10_000):
        pending.put([event("MODIFIED", f"o{number % 100}", number)])
    assert len(pending) == 150
    last = {uid: version for _, uid, version in read(pending.drain())}
    assert last == {f"o{n}": 9900 + n for n in range(100)}


def test_the_mark_of_the_first_list_is_kept() -> None:
    pending = Pending(0)
    pending.put([event("ADDED", "a"), WatchEvent("SYNCED", None, {}), event("MODIFIED", "a", 2)])
    assert [each.type for each in pending.drain()] == ["ADDED", "SYNCED"]


def test_who_waits_is_woken_by_an_event_and_by_the_end() -> None:
    pending, got = Pending(), []
    reader = threading.Thread(target=lambda: got.extend([pending.take(), pending.take()]))
    reader.start()
    pending.put([event("ADDED", "a", 7)])
    while not got and len(pending):
        pass
    pending.close()
    reader.join(5)
    assert (got[0].object["version"], got[1]) == (7, None)
    assert pending.take(0.0) is None


STEPS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["set", "drop", "read one", "read all"])), max_size=60)


@given(STEPS, st.integers(0, 5))
def test_whoever_reads_at_whatever_moments_ends_with_what_is_there(steps: list[tuple[str, str]], exact: int) -> None:
    pending, there, seen = Pending(exact), {}, {}

    def take(events: list[WatchEvent | None]) -> None:
        for each in filter(None, events):
            uid, version = each.object["metadata"]["uid"], each.object["version"]
            if each.type == "DELETED":
                del seen[uid]
            else:
                assert (uid in seen) == (each.type == "MODIFIED")
                seen[uid] = version

    for number, (name, what) in enumerate(steps):
        uid = f"{name}{sum(n == name and w == 'drop' for n, w in steps[:number])}"  # who comes again is another object
        if what == "set":
            pending.put([event("MODIFIED" if uid in there else "ADDED", uid, number)])
            there[uid] = number
        elif what == "drop" and uid in there:
            del there[uid]
            pending.put([event("DELETED", uid, number)])
        elif what == "read one":
            take([pending.take(0.0)])
        elif what == "read all":
            take(list(pending.drain()))
    take(list(pending.drain()))
    assert seen == there
