"""What every implementation of `cluster.port.Cluster` must do, written against the protocol alone.

Subclass `PortSuite` in a test module and give it a fixture `port`.
"""

from __future__ import annotations

import threading

import pytest

from cluster.errors import AlreadyExists, ApiError, BadRequest, Conflict, Invalid, NotFound
from cluster.kinds import CONFIG_MAP, NAMESPACE, NODE, POD, POD_GROUP, QUEUE
from cluster.port import Cluster, Obj, Victim
from tests.cluster.port_objects import NS, config, names, pod, reference
from tests.cluster.port_pods import PodSuite
from tests.cluster.port_watches import WatchSuite


class PortSuite(PodSuite, WatchSuite):
    """The promises of the port."""

    # --- create and read ---

    def test_a_created_object_gets_its_system_metadata(self, port: Cluster) -> None:
        made = port.create(CONFIG_MAP, config("a", {"k": "v"}))
        meta = made["metadata"]
        assert (made["apiVersion"], made["kind"], made["data"]) == ("v1", "ConfigMap", {"k": "v"})
        assert len(meta["uid"]) == 36
        assert int(meta["resourceVersion"]) > 0
        assert meta["creationTimestamp"].endswith("Z")
        assert port.get(CONFIG_MAP, "a", NS) == made
        assert port.get(NAMESPACE, NS)["metadata"]["name"] == NS

    def test_what_is_not_there_is_not_found(self, port: Cluster) -> None:
        for attempt in (
            lambda: port.get(CONFIG_MAP, "none", NS),
            lambda: port.replace(CONFIG_MAP, config("none")),
            lambda: port.patch(CONFIG_MAP, "none", NS, {}),
            lambda: port.patch_status(POD, "none", NS, {}),
            lambda: port.delete(CONFIG_MAP, "none", NS),
            lambda: port.evict(NS, "none"),
            lambda: list(port.logs(NS, "none")),
        ):
            with pytest.raises(NotFound, match="none"):
                attempt()

    def test_a_name_can_be_taken_once(self, port: Cluster) -> None:
        port.create(CONFIG_MAP, config("a"))
        with pytest.raises(AlreadyExists):
            port.create(CONFIG_MAP, config("a"))

    def test_of_many_creates_of_one_name_one_wins(self, port: Cluster) -> None:
        outcomes: list[str] = []
        barrier = threading.Barrier(8)

        def attempt(number: int) -> None:
            barrier.wait()
            try:
                outcomes.append(port.create(CONFIG_MAP, config("same", {"by": str(number)}))["data"]["by"])
            except AlreadyExists:
                outcomes.append("lost")

        threads = [threading.Thread(target=attempt, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        winners = [outcome for outcome in outcomes if outcome != "lost"]
        assert (len(outcomes), len(winners)) == (8, 1)
        assert port.get(CONFIG_MAP, "same", NS)["data"]["by"] == winners[0]

    def test_generated_names_differ_and_keep_the_prefix(self, port: Cluster) -> None:
        body = {"metadata": {"generateName": "g-", "namespace": NS}}
        made = {port.create(CONFIG_MAP, body)["metadata"]["name"] for _ in range(20)}
        assert len(made) == 20
        assert all(name.startswith("g-") and len(name) == 7 for name in made)

    @pytest.mark.parametrize(
        ("metadata", "pointer"),
        [
            ({"name": "Upper"}, "/metadata/name"),
            ({"name": "a" * 254}, "/metadata/name"),
            ({"name": "a..b"}, "/metadata/name"),
            ({}, "/metadata/name"),
            ({"name": "a", "labels": {"k": 1}}, "/metadata/labels/k"),
            ({"name": "a", "labels": {"k": "v w"}}, "/metadata/labels/k"),
            ({"name": "a", "labels": {"x/y/z": "v"}}, "/metadata/labels/x~1y~1z"),
            ({"name": "a", "annotations": {"k": True}}, "/metadata/annotations/k"),
            ({"name": "a", "ownerReferences": [{"kind": "Job"}]}, "/metadata/ownerReferences/0/uid"),
        ],
    )
    def test_wrong_metadata_is_refused_with_its_place(self, port: Cluster, metadata: Obj, pointer: str) -> None:
        with pytest.raises((Invalid, BadRequest)) as caught:
            port.create(CONFIG_MAP, {"metadata": {"namespace": NS, **metadata}})
        self.check_place(caught.value, pointer)
        assert port.list(CONFIG_MAP, NS).items == []

    def test_all_faults_are_told_at_once(self, port: Cluster) -> None:
        with pytest.raises(Invalid) as caught:
            port.create(CONFIG_MAP, config("Bad", labels={"a b": "c"}, annotations={"d e": "f"}))
        for place in ("/metadata/name", "/metadata/labels/a b", "/metadata/annotations/d e"):
            self.check_place(caught.value, place)

    def test_an_object_of_another_kind_is_a_bad_request(self, port: Cluster) -> None:
        with pytest.raises(BadRequest, match="ConfigMap"):
            port.create(CONFIG_MAP, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": NS}})

    def test_a_dry_run_answers_and_keeps_nothing(self, port: Cluster) -> None:
        assert port.create(CONFIG_MAP, config("a", {"k": "v"}), dry_run=True)["data"] == {"k": "v"}
        assert names(port) == []
        port.create(CONFIG_MAP, config("a", {"k": "v"}))
        assert port.patch(CONFIG_MAP, "a", NS, {"data": {"k": "w"}}, dry_run=True)["data"] == {"k": "w"}
        port.delete(CONFIG_MAP, "a", NS, dry_run=True)
        assert port.get(CONFIG_MAP, "a", NS)["data"] == {"k": "v"}

    def test_a_status_is_set_apart_where_it_is_a_subresource(self, port: Cluster) -> None:
        made = port.create(POD, {**pod("p"), "status": {"phase": "Running"}})
        assert made["status"]["phase"] == "Pending"
        port.patch_status(POD, "p", NS, {"phase": "Running"})
        changed = port.patch(POD, "p", NS, {"metadata": {"labels": {"a": "b"}}, "status": {"phase": "Failed"}})
        assert (changed["status"]["phase"], changed["metadata"]["labels"]) == ("Running", {"a": "b"})

    def test_a_status_is_part_of_the_object_where_it_is_none(self, port: Cluster) -> None:
        if not [q for q in port.list(QUEUE).items if q["metadata"]["name"] == "default"]:
            port.create(QUEUE, {"metadata": {"name": "default"}, "spec": {"weight": 1}})
        group = {"metadata": {"name": "g", "namespace": NS}, "spec": {"minMember": 1, "queue": "default"}}
        port.create(POD_GROUP, {**group, "status": {"phase": "Pending"}})
        assert port.patch_status(POD_GROUP, "g", NS, {"phase": "Inqueue"})["status"] == {"phase": "Inqueue"}

    # --- lists ---

    def test_lists_are_ordered_and_filtered(self, port: Cluster) -> None:
        for name, tier in (("c", "x"), ("a", "y"), ("b", "x")):
            port.create(CONFIG_MAP, config(name, labels={"tier": tier}))
        port.create(CONFIG_MAP, {"metadata": {"name": "other", "namespace": "suite-other"}})
        assert names(port) == ["a", "b", "c"]
        assert names(port, labels="tier=x") == ["b", "c"]
        assert names(port, labels="tier!=x") == ["a"]
        assert names(port, labels="tier in (y, z)") == ["a"]
        assert names(port, labels="!tier") == []
        assert names(port, fields="metadata.name=b") == ["b"]
        everywhere = [o["metadata"]["namespace"] for o in port.list(CONFIG_MAP).items]
        assert everywhere.count(NS) == 3
        assert "suite-other" in everywhere

    @pytest.mark.parametrize("selector", ["a b", "a=b,,c=d", "a in", "a in (b", "=x", "a=b c", "über=x", "a>b"])
    def test_a_wrong_selector_is_a_bad_request(self, port: Cluster, selector: str) -> None:
        with pytest.raises(BadRequest):
            port.list(CONFIG_MAP, labels=selector)

    def test_a_field_that_cannot_be_selected_by_is_a_bad_request(self, port: Cluster) -> None:
        with pytest.raises(BadRequest, match=r"data\.k"):
            port.list(CONFIG_MAP, fields="data.k=v")

    def test_pages_show_everything_once_while_the_list_changes(self, port: Cluster) -> None:
        for number in range(10):
            port.create(CONFIG_MAP, config(f"c{number}"))
        page = port.list(CONFIG_MAP, NS, limit=4)
        seen = [obj["metadata"]["name"] for obj in page.items]
        port.delete(CONFIG_MAP, "c0", NS)
        while page.continue_token:
            page = port.list(CONFIG_MAP, NS, limit=4, token=page.continue_token)
            seen += [obj["metadata"]["name"] for obj in page.items]
        assert seen == [f"c{number}" for number in range(10)]

    def test_a_forged_continue_token_is_a_bad_request(self, port: Cluster) -> None:
        with pytest.raises(BadRequest):
            port.list(CONFIG_MAP, limit=1, token="nonsense")

    # --- changes ---

    def test_replace_needs_the_version_that_it_read(self, port: Cluster) -> None:
        first = port.create(CONFIG_MAP, config("a", {"k": "1"}))
        second = port.replace(CONFIG_MAP, {**first, "data": {"k": "2"}})
        assert int(second["metadata"]["resourceVersion"]) > int(first["metadata"]["resourceVersion"])
        assert second["metadata"]["uid"] == first["metadata"]["uid"]
        with pytest.raises(Conflict):
            port.replace(CONFIG_MAP, {**first, "data": {"k": "3"}})
        with pytest.raises(Conflict):
            port.replace(CONFIG_MAP, config("a", uid="00000000-0000-4000-8000-000000000000"))
        assert port.get(CONFIG_MAP, "a", NS)["data"] == {"k": "2"}

    def test_the_same_object_again_is_no_change(self, port: Cluster) -> None:
        made = port.create(CONFIG_MAP, config("a", {"k": "1"}))
        assert port.replace(CONFIG_MAP, made) == made
        assert port.patch(CONFIG_MAP, "a", NS, {"data": {"k": "1"}}) == made

    def test_a_merge_patch_merges_and_removes(self, port: Cluster) -> None:
        port.create(CONFIG_MAP, config("a", {"k": "1", "l": "2"}, labels={"x": "y"}))
        patched = port.patch(CONFIG_MAP, "a", NS, {"data": {"k": "9", "l": None}, "metadata": {"labels": {"z": "w"}}})
        assert (patched["data"], patched["metadata"]["labels"]) == ({"k": "9"}, {"x": "y", "z": "w"})

    def test_a_merge_patch_can_carry_the_version_as_precondition(self, port: Cluster) -> None:
        first = port.create(CONFIG_MAP, config("a", {"k": "1"}))
        version = {"resourceVersion": first["metadata"]["resourceVersion"]}
        port.patch(CONFIG_MAP, "a", NS, {"metadata": version, "data": {"k": "2"}})
        with pytest.raises(Conflict):
            port.patch(CONFIG_MAP, "a", NS, {"metadata": version, "data": {"k": "3"}})

    def test_a_json_patch_is_done_in_order_or_not_at_all(self, port: Cluster) -> None:
        port.create(CONFIG_MAP, config("a", {"k": "1"}))
        good = [
            {"op": "test", "path": "/data/k", "value": "1"},
            {"op": "add", "path": "/data/l", "value": "2"},
            {"op": "move", "from": "/data/k", "path": "/data/m"},
        ]
        assert port.patch(CONFIG_MAP, "a", NS, good, patch_type="json")["data"] == {"l": "2", "m": "1"}
        bad = [{"op": "remove", "path": "/data/l"}, {"op": "test", "path": "/data/m", "value": "other"}]
        with pytest.raises(Invalid):
            port.patch(CONFIG_MAP, "a", NS, bad, patch_type="json")
        assert port.get(CONFIG_MAP, "a", NS)["data"] == {"l": "2", "m": "1"}

    def test_apply_creates_changes_and_takes_back_what_it_no_longer_says(self, port: Cluster) -> None:
        def apply(data: dict[str, str], manager: str = "me") -> Obj:
            body = {"apiVersion": "v1", "kind": "ConfigMap", **config("a", data)}
            return port.patch(CONFIG_MAP, "a", NS, body, patch_type="apply", field_manager=manager)

        assert apply({"k": "1", "l": "1"})["data"] == {"k": "1", "l": "1"}
        port.patch(CONFIG_MAP, "a", NS, {"data": {"foreign": "x"}})
        assert apply({"k": "2"})["data"] == {"k": "2", "foreign": "x"}
        assert apply({"foreign": "mine"})["data"] == {"foreign": "mine"}, "what another set is taken over"

    def test_what_is_applied_must_bear_the_name_it_is_sent_for(self, port: Cluster) -> None:
        for body in (config("b"), {"metadata": {"name": "a", "namespace": "elsewhere"}}):
            with pytest.raises(BadRequest):
                port.patch(CONFIG_MAP, "a", NS, body, patch_type="apply", field_manager="me")
        assert port.patch(CONFIG_MAP, "a", NS, {"data": {"k": "v"}}, patch_type="apply")["metadata"]["name"] == "a"

    def test_the_generation_counts_changes_of_the_spec_alone(self, port: Cluster) -> None:
        first = port.create(QUEUE, {"metadata": {"name": "suite-q"}, "spec": {"weight": 1, "reclaimable": True}})
        labelled = port.patch(QUEUE, "suite-q", "", {"metadata": {"labels": {"a": "b"}}})
        changed = port.patch(QUEUE, "suite-q", "", {"spec": {"weight": 2}})
        told = port.patch_status(QUEUE, "suite-q", "", {"state": "Open"})
        assert [o["metadata"]["generation"] for o in (first, labelled, changed, told)] == [1, 1, 2, 2]

    def test_status_patches_keep_their_preconditions(self, port: Cluster) -> None:
        made = port.create(POD, pod("p"))
        port.patch_status(POD, "p", NS, {"phase": "Running"}, resource_version=made["metadata"]["resourceVersion"])
        with pytest.raises(Conflict):
            port.patch_status(POD, "p", NS, {"phase": "Failed"}, resource_version=made["metadata"]["resourceVersion"])
        with pytest.raises(Conflict):
            port.patch_status(POD, "p", NS, {"phase": "Failed"}, uid="00000000-0000-4000-8000-000000000000")
        assert port.get(POD, "p", NS)["status"]["phase"] == "Running"

    def test_concurrent_increments_with_retries_lose_none(self, port: Cluster) -> None:
        port.create(CONFIG_MAP, config("counter", {"n": "0"}))

        def add(times: int) -> None:
            while times:
                current = port.get(CONFIG_MAP, "counter", NS)
                try:
                    port.replace(CONFIG_MAP, {**current, "data": {"n": str(int(current["data"]["n"]) + 1)}})
                except Conflict:
                    continue
                times -= 1

        threads = [threading.Thread(target=add, args=(25,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert port.get(CONFIG_MAP, "counter", NS)["data"] == {"n": "100"}

    # --- deletion ---

    def test_delete_keeps_its_preconditions(self, port: Cluster) -> None:
        made = port.create(CONFIG_MAP, config("a"))
        with pytest.raises(Conflict):
            port.delete(CONFIG_MAP, "a", NS, uid="00000000-0000-4000-8000-000000000000")
        with pytest.raises(Conflict):
            port.delete(CONFIG_MAP, "a", NS, resource_version="1")
        port.delete(CONFIG_MAP, "a", NS, uid=made["metadata"]["uid"], resource_version=made["metadata"]["resourceVersion"])
        assert names(port) == []

    def test_finalizers_hold_an_object_until_they_are_gone(self, port: Cluster) -> None:
        port.create(CONFIG_MAP, config("a", finalizers=["example.com/hold"]))
        port.delete(CONFIG_MAP, "a", NS)
        held = port.get(CONFIG_MAP, "a", NS)
        assert held["metadata"]["deletionTimestamp"]
        with pytest.raises(Invalid):
            port.patch(CONFIG_MAP, "a", NS, {"metadata": {"finalizers": ["example.com/hold", "example.com/new"]}})
        port.patch(CONFIG_MAP, "a", NS, {"metadata": {"finalizers": None}})
        with pytest.raises(NotFound):
            port.get(CONFIG_MAP, "a", NS)

    def test_what_an_object_owns_goes_with_it(self, port: Cluster) -> None:
        top = port.create(CONFIG_MAP, config("top"))
        middle = port.create(CONFIG_MAP, config("middle", ownerReferences=[reference(top)]))
        port.create(CONFIG_MAP, config("leaf", ownerReferences=[reference(middle)]))
        other = port.create(CONFIG_MAP, config("other"))
        shared_owners = [reference(top), {**reference(other), "controller": False}]
        port.create(CONFIG_MAP, config("shared", ownerReferences=shared_owners))
        port.delete(CONFIG_MAP, "top", NS)
        self.eventually(lambda: names(port) == ["other", "shared"])
        owners = port.get(CONFIG_MAP, "shared", NS)["metadata"]["ownerReferences"]
        assert [owner["name"] for owner in owners] == ["other"]

    def test_orphaned_objects_stay(self, port: Cluster) -> None:
        top = port.create(CONFIG_MAP, config("top"))
        port.create(CONFIG_MAP, config("leaf", ownerReferences=[reference(top)]))
        port.delete(CONFIG_MAP, "top", NS, propagation="Orphan")
        self.eventually(lambda: names(port) == ["leaf"])
        assert "ownerReferences" not in port.get(CONFIG_MAP, "leaf", NS)["metadata"]

    def test_in_the_foreground_the_owner_goes_last(self, port: Cluster) -> None:
        top = port.create(CONFIG_MAP, config("top"))
        port.create(CONFIG_MAP, config("leaf", ownerReferences=[reference(top)], finalizers=["example.com/hold"]))
        port.delete(CONFIG_MAP, "top", NS, propagation="Foreground")
        assert "foregroundDeletion" in port.get(CONFIG_MAP, "top", NS)["metadata"]["finalizers"]
        self.eventually(lambda: bool(port.get(CONFIG_MAP, "leaf", NS)["metadata"].get("deletionTimestamp")))
        port.patch(CONFIG_MAP, "leaf", NS, {"metadata": {"finalizers": None}})
        self.eventually(lambda: names(port) == [])

    def test_an_object_made_for_a_dead_owner_is_collected(self, port: Cluster) -> None:
        top = port.create(CONFIG_MAP, config("top"))
        port.delete(CONFIG_MAP, "top", NS)
        port.create(CONFIG_MAP, config("late", ownerReferences=[reference(top)]))
        self.eventually(lambda: names(port) == [])

    def test_cluster_wide_objects_have_no_namespace(self, port: Cluster) -> None:
        made = port.create(NODE, {"metadata": {"name": "suite-node"}})
        assert "namespace" not in made["metadata"]
        with pytest.raises((Invalid, BadRequest)):
            port.create(NODE, {"metadata": {"name": "suite-node-2", "namespace": NS}})

    # --- many at once ---

    def test_many_are_created_and_one_refusal_stops_no_other(self, port: Cluster) -> None:
        port.create(CONFIG_MAP, config("taken"))
        outcomes = port.create_many(CONFIG_MAP, [config("one"), config("taken"), config("No Name"), config("two")])
        assert [(o.object or {}).get("metadata", {}).get("name") for o in outcomes] == ["one", None, None, "two"]
        assert [type(o.error) for o in outcomes] == [type(None), AlreadyExists, Invalid, type(None)]
        assert port.get(CONFIG_MAP, "two", NS) == outcomes[3].object

    def test_many_are_patched_each_only_if_it_is_the_one_that_was_meant(self, port: Cluster) -> None:
        first, second = (port.create(CONFIG_MAP, config(name)) for name in ("first", "second"))
        victims = [Victim(NS, "first", first["metadata"]["uid"]), Victim(NS, "second", first["metadata"]["uid"])]
        victims.append(Victim(NS, "missing", "u"))
        outcomes = port.patch_many(CONFIG_MAP, [(victim, {"data": {"n": "1"}}) for victim in victims])
        assert [type(o.error) for o in outcomes] == [type(None), Conflict, NotFound]
        assert outcomes[0].object is not None
        assert outcomes[0].object["data"] == {"n": "1"}
        assert port.get(CONFIG_MAP, "second", NS) == second

    def test_many_are_deleted_each_only_if_it_is_the_one_that_was_meant(self, port: Cluster) -> None:
        first, second = (port.create(CONFIG_MAP, config(name)) for name in ("first", "second"))
        victims = [Victim(NS, "first", first["metadata"]["uid"]), Victim(NS, "second", first["metadata"]["uid"])]
        outcomes = port.delete_many(CONFIG_MAP, [*victims, Victim(NS, "missing", "u")])
        assert [type(o.error) for o in outcomes] == [type(None), Conflict, NotFound]
        assert [obj["metadata"]["name"] for obj in port.list(CONFIG_MAP, NS).items] == ["second"]
        assert port.get(CONFIG_MAP, "second", NS) == second

    # --- for subclasses ---

    def check_place(self, error: ApiError, place: str) -> None:
        """A refusal names the place that is wrong; a server that is coarser than that says so in its own suite."""
        assert place in [fault.pointer for fault in error.fields]
