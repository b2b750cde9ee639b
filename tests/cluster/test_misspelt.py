"""A field that is nearly another's name is pointed out; whatever else nobody knows is let be."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cluster.kinds import by_api
from cluster.misspelt import MOST, misspelt
from jobs.manifest.shapes import JobShape
from portal.crds.definitions import DEFINED
from queues.shapes import QueueShape


def job(template: object = None, **spec: object) -> dict[str, object]:
    return {"spec": {"tasks": [{"name": "w", "template": template or {"spec": {"containers": []}}}], **spec}}


@pytest.mark.parametrize(
    ("obj", "found"),
    [
        (job(minAvailabel=2), [("spec.minAvailabel", "minAvailable")]),
        (job(minavailable=2), [("spec.minavailable", "minAvailable")]),
        (job(priorityClass="high"), [("spec.priorityClass", "priorityClassName")]),
        ({"spec": {"tasks": [{"tempalte": {}}, {"replica": 2}]}},
         [("spec.tasks[0].tempalte", "template"), ("spec.tasks[1].replica", "replicas")]),
        (job({"spec": {"containers": [{"comand": ["x"]}]}}), [("spec.tasks[0].template.spec.containers[0].comand", "command")]),
        (job({"spec": {"nodeselector": {}}}), [("spec.tasks[0].template.spec.nodeselector", "nodeSelector")]),
        ({"metadata": {}, "spce": {}}, [("spce", "spec")]),
        (job(minAvailable=2, minAvailabel=2), []),
        (job(team="a", deadline=3), []),
        (job({"spec": {"hostUsers": False, "restartPolicyRules": [],
                       "containers": [{"resizePolicy": [], "stdinOnce": True}]}}), []),
        (job({"spec": {"containers": [
            {"volumeMounts": [{"subPath": "a", "subPathExpr": "b", "mountPropagation": "None"}]}]}}), []),
        (job(plugins={"evn": []}, minAvailable=1), []),
    ],
)  # fmt: skip
def test_what_looks_like_a_known_field_is_pointed_out(obj: object, found: list[tuple[str, str]]) -> None:
    assert misspelt(JobShape, obj) == found


def test_a_queues_fields_are_known_too() -> None:
    assert misspelt(QueueShape, {"spec": {"wieght": 2, "colour": "red"}}) == [("spec.wieght", "weight")]


def test_of_very_many_some_are_told() -> None:
    assert len(misspelt(JobShape, {"spec": {"tasks": [{"replica": 1}] * 1000}})) == MOST


def test_no_manifest_that_people_use_has_one(shared_dir: Path) -> None:
    shapes = {defined.kind: defined.shape for defined in DEFINED}
    told = {}
    for path in sorted((shared_dir / "data" / "manifests").glob("*.yaml")):
        for obj in yaml.safe_load_all(path.read_text()):
            kind = by_api(str((obj or {}).get("apiVersion")), str((obj or {}).get("kind")))
            if kind in shapes and (found := misspelt(shapes[kind], obj)):
                told[path.name] = found
    assert told == {}


@given(st.recursive(st.none() | st.text(max_size=5) | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(
    st.sampled_from(["spec", "tasks", "template", "containers", "env", "minAvailabel", "x"]), inner)))  # fmt: skip
def test_whatever_is_sent_it_is_no_error(obj: object) -> None:
    assert all(path and meant for path, meant in misspelt(JobShape, obj))
