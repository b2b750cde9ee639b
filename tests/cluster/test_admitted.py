"""A cluster whose server asks no admission of ours: what is read is completed, what is written is checked."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.admission import Admission, admission
from cluster.admitted import Admitted
from cluster.embedded.store import EmbeddedCluster
from cluster.errors import Forbidden, Invalid, NotFound
from cluster.kinds import CONFIG_MAP, JOB, QUEUE


@pytest.fixture
def server() -> EmbeddedCluster:
    """A server that lets everything in, as one without our webhooks does."""
    bare = EmbeddedCluster(admission=Admission())
    for name in ("root", "default"):
        bare.create(QUEUE, {"metadata": {"name": name}, "spec": {"parent": "root"} if name != "root" else {}})
    return bare


@pytest.fixture
def checked(server: EmbeddedCluster) -> Admitted:
    return Admitted(server, admission, checks=True)


def job(**spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "busybox"}
    task = {"replicas": 2, "template": {"spec": {"containers": [container]}}}
    return {"metadata": {"name": "j"}, "spec": {"tasks": [task], **spec}}


def test_what_is_read_is_completed_and_what_is_kept_is_not(server: EmbeddedCluster) -> None:
    server.create(JOB, job())
    seen = Admitted(server, admission).get(JOB, "j", "default")
    assert (seen["spec"]["queue"], seen["spec"]["minAvailable"], seen["spec"]["tasks"][0]["name"]) == ("default", 2, "default0")
    assert server.get(JOB, "j", "default")["spec"] == job()["spec"]


def test_lists_and_watches_show_the_same(server: EmbeddedCluster) -> None:
    server.create(JOB, job())
    completed = Admitted(server, admission)
    seen = completed.get(JOB, "j", "default")
    assert completed.list(JOB).items == [seen]
    watch = completed.watch([JOB, CONFIG_MAP])
    assert [event.object for event in watch.drain()] == [seen, {}]
    watch.close()


def test_without_checks_everything_is_sent_as_it_is(server: EmbeddedCluster) -> None:
    Admitted(server, admission).create(JOB, job(tasks=[]))
    assert server.get(JOB, "j", "default")["spec"]["tasks"] == []


def test_a_faulty_object_is_refused_with_every_fault_and_not_sent(server: EmbeddedCluster, checked: Admitted) -> None:
    with pytest.raises(Invalid) as refusal:
        checked.create(JOB, job(queue="missing", minAvailable=9))
    assert {fault.pointer for fault in refusal.value.fields} == {"/spec/queue", "/spec/minAvailable"}
    with pytest.raises(NotFound):
        server.get(JOB, "j", "default")


def test_what_is_let_in_is_sent_completed(server: EmbeddedCluster, checked: Admitted) -> None:
    checked.create(JOB, job())
    assert server.get(JOB, "j", "default")["spec"]["minAvailable"] == 2


def test_names_are_generated_before_rules_look_at_them(checked: Admitted) -> None:
    made = checked.create(JOB, {**job(), "metadata": {"generateName": "run-"}})
    assert made["metadata"]["name"].startswith("run-")
    assert len(made["metadata"]["name"]) == len("run-") + 5


def test_a_patch_that_may_not_be_is_refused(server: EmbeddedCluster, checked: Admitted) -> None:
    checked.create(JOB, job())
    with pytest.raises(Invalid) as refusal:
        checked.patch(JOB, "j", "default", {"spec": {"queue": "root"}})
    assert "/spec/queue" in {fault.pointer for fault in refusal.value.fields}
    assert checked.patch(JOB, "j", "default", {"spec": {"minAvailable": 1}})["spec"]["minAvailable"] == 1


def test_a_delete_that_may_not_be_is_refused(checked: Admitted) -> None:
    with pytest.raises(Forbidden):
        checked.delete(QUEUE, "default")


def test_of_many_some_may_be_refused(checked: Admitted) -> None:
    good = {**job(), "metadata": {"name": "good"}}
    outcomes = checked.create_many(JOB, [good, job(minAvailable=9)])
    assert [(each.name, type(each.error)) for each in outcomes] == [("good", type(None)), ("j", Invalid)]
