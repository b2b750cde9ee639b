"""Real manifests, written by other people, through the front door: taken or refused, and run to their end."""

import csv

import httpx
import pytest
import yaml

from tests.conftest import SHARED
from tests.e2e.server import Server, wait_for

KINDS = {"Job", "Queue", "PriorityClass", "PodGroup", "Pod"}
FOLDER = SHARED / "data" / "manifests"


def rows() -> list[dict[str, str]]:
    """The index of the manifests; empty where they are not beside the project."""
    index = FOLDER / "index.csv"
    return list(csv.DictReader(index.open())) if index.exists() else []


def documents(name: str) -> list[dict]:
    """The documents of a file that are of kinds served here."""
    found = [d for d in yaml.safe_load_all((FOLDER / name).read_text()) if d]
    groups = ("volcano.sh", "scheduling.k8s.io/v1", "v1")
    return [
        d
        for d in found
        if d["kind"] in KINDS and (d["apiVersion"] in groups[1:] or d["apiVersion"].split("/")[0].endswith("volcano.sh"))
    ]


INVALID = {
    # One volume names no claim and another names two: Volcano's own webhook refuses this guide's example as well.
    "job-preemptable-cooldown.yaml": "/spec/volumes/0/volumeClaimName",
    "invalid-duplicate-policy-event.yaml": "/spec/policies/1/event",
    "invalid-duplicate-task-name.yaml": "/spec/tasks/1/name",
    "invalid-min-available.yaml": "/spec/minAvailable",
}
VALID = [r["file"] for r in rows() if r["file"] not in INVALID and documents(r["file"])]


def make_what_it_names(client: httpx.Client, objects: list[dict]) -> None:
    """Queues and priority classes that a manifest names and does not bring."""
    brought = {(d["kind"], d["metadata"].get("name")) for d in objects}
    queues = {d["spec"].get("queue", "default") for d in objects if d["kind"] in ("Job", "PodGroup")}
    queues |= {d["spec"]["parent"] for d in objects if d["kind"] == "Queue" and d["spec"].get("parent")}
    missing = [q for q in sorted(queues - {"default", "root"}) if ("Queue", q) not in brought]
    for queue in missing:
        body = {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": queue},
            "spec": {"weight": 1},
        }
        assert client.post("/apply", json=body).status_code == 200


@pytest.mark.parametrize("name", VALID)
def test_a_valid_manifest_is_accepted_and_its_jobs_end(server: Server, name: str):
    objects = documents(name)
    with server.client() as client:
        make_what_it_names(client, objects)
        # One job may stand in several files: a namespace for each keeps them apart.
        for obj in objects:
            if obj["kind"] in ("Job", "PodGroup", "Pod"):
                obj["metadata"]["namespace"] = name.removesuffix(".yaml")
        body = yaml.safe_dump_all(objects, sort_keys=False)
        answer = client.post("/apply", content=body, headers={"Content-Type": "application/yaml"})
        assert answer.status_code == 200, answer.text
        results = answer.json()["results"]
        assert [r["status"] in ("created", "configured", "unchanged") for r in results] == [True] * len(objects), results
        jobs = [r for r in results if r["kind"] == "Job"]

        def settled() -> bool:
            rows = [client.get(f"/jobs/{j['namespace']}/{j['name']}").json() for j in jobs]
            return all(row["phase"] == "Completed" or is_too_large(row) for row in rows)

        wait_for(settled, 60, f"the jobs of {name} to end")


def is_too_large(row: dict) -> bool:
    """The demo fleet has no machine with what this job asks for, and Basalt says so."""
    verdict = row.get("verdict") or {}
    return row["phase"] == "Pending" and verdict.get("code") == "pod.too_large"


@pytest.mark.parametrize("name", [n for n in INVALID if FOLDER.exists()])
def test_an_invalid_manifest_is_refused_at_the_right_field(server: Server, name: str):
    with server.client() as client:
        body = (FOLDER / name).read_bytes()
        answer = client.post("/apply", content=body, headers={"Content-Type": "application/yaml"})
        assert answer.status_code == 422
        assert answer.headers["content-type"].startswith("application/problem+json")
        assert INVALID[name] in [error["pointer"] for error in answer.json()["errors"]]
        for obj in documents(name):
            assert client.get(f"/jobs/default/{obj['metadata']['name']}").status_code == 404
