"""What a watch of any `cluster.port.Cluster` shows, and when."""

from __future__ import annotations

import threading

from cluster.errors import AlreadyExists
from cluster.kinds import CONFIG_MAP, POD
from cluster.port import Cluster, Obj, WatchEvent
from tests.cluster.port_objects import NS, Suite, collect, config, pod, shown, synced


class WatchSuite(Suite):
    """What of the port's promises is about watches."""

    def test_a_watch_shows_what_is_there_then_changes(self, port: Cluster) -> None:
        port.create(CONFIG_MAP, config("a"))
        watch = port.watch([CONFIG_MAP], namespace=NS)
        assert shown(synced(watch)) == [("ADDED", "a"), ("SYNCED", "")]
        port.create(CONFIG_MAP, config("b"))
        port.patch(CONFIG_MAP, "a", NS, {"data": {"k": "v"}})
        port.delete(CONFIG_MAP, "b", NS)
        events = collect(watch, lambda found: len(found) == 3)
        assert shown(events) == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]
        versions = [int(event.object["metadata"]["resourceVersion"]) for event in events]
        assert versions == sorted(set(versions))
        watch.close()
        assert watch.get(0.01) is None

    def test_a_watch_over_two_kinds_is_synced_once(self, port: Cluster) -> None:
        watch = port.watch([CONFIG_MAP, POD], namespace=NS)
        port.create(CONFIG_MAP, config("c"))
        port.create(POD, pod("p"))
        events = collect(watch, lambda found: len(found) == 3)
        assert [event.type for event in events].count("SYNCED") == 1
        assert {event.kind for event in events if event.kind} == {CONFIG_MAP, POD}
        watch.close()

    def test_a_selecting_watch_shows_entering_and_leaving(self, port: Cluster) -> None:
        watch = port.watch([CONFIG_MAP], namespace=NS, labels="on=yes")
        synced(watch)
        port.create(CONFIG_MAP, config("a"))
        port.patch(CONFIG_MAP, "a", NS, {"metadata": {"labels": {"on": "yes"}}})
        port.patch(CONFIG_MAP, "a", NS, {"metadata": {"labels": {"on": "no"}}})
        assert shown(collect(watch, lambda found: len(found) == 2)) == [("ADDED", "a"), ("DELETED", "a")]
        watch.close()

    def test_a_watch_notifies_whenever_something_is_queued(self, port: Cluster) -> None:
        rung = threading.Event()
        watch = port.watch([CONFIG_MAP], namespace=NS, notify=rung.set)
        assert rung.wait(5)
        watch.drain()
        rung.clear()
        port.create(CONFIG_MAP, config("a"))
        assert rung.wait(5)
        self.eventually(lambda: ("ADDED", "a") in shown(watch.drain()))
        watch.close()

    def test_closing_a_watch_frees_a_blocked_reader(self, port: Cluster) -> None:
        watch = port.watch([CONFIG_MAP], namespace=NS)
        seen: list[WatchEvent] = []
        reader = threading.Thread(target=lambda: seen.extend(watch))
        reader.start()
        self.eventually(lambda: bool(seen))
        watch.close()
        reader.join(5)
        assert not reader.is_alive()

    def test_a_mirror_built_from_a_watch_equals_the_list(self, port: Cluster) -> None:
        watch = port.watch([CONFIG_MAP], namespace=NS)

        def churn(base: int) -> None:
            for number in range(20):
                name = f"w{base}-{number % 5}"
                try:
                    port.create(CONFIG_MAP, config(name, {"n": str(number)}))
                except AlreadyExists:
                    port.delete(CONFIG_MAP, name, NS)

        threads = [threading.Thread(target=churn, args=(base,)) for base in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        end = port.create(CONFIG_MAP, config("zz-end"))
        mirror: dict[str, Obj] = {}

        def done(events: list[WatchEvent]) -> bool:
            return bool(events) and events[-1].object.get("metadata", {}).get("uid") == end["metadata"]["uid"]

        for event in collect(watch, done):
            if event.type == "DELETED":
                assert mirror.pop(event.object["metadata"]["name"])
            elif event.type != "SYNCED":
                assert (event.type == "ADDED") == (event.object["metadata"]["name"] not in mirror)
                mirror[event.object["metadata"]["name"]] = event.object
        assert [mirror[name] for name in sorted(mirror)] == port.list(CONFIG_MAP, NS).items
        watch.close()
