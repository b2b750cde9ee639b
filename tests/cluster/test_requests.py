"""What a pod asks of its node."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.requests import pod_requests


def container(cpu: str = "", limit: str = "", **more: Any) -> dict[str, Any]:
    resources = {**({"requests": {"cpu": cpu}} if cpu else {}), **({"limits": {"cpu": limit}} if limit else {})}
    return {"name": "c", "resources": resources, **more}


def test_containers_are_added_and_the_pod_itself_counts() -> None:
    assert pod_requests({"containers": [container("1"), container("500m")]}) == {"cpu": 1500, "pods": 1}


def test_an_empty_pod_asks_for_one_pod() -> None:
    assert pod_requests({}) == {"pods": 1}


def test_a_limit_stands_for_a_missing_request() -> None:
    spec = {"containers": [{"resources": {"limits": {"cpu": "2", "nvidia.com/gpu": 1}, "requests": {"cpu": "1"}}}]}
    assert pod_requests(spec) == {"cpu": 1000, "nvidia.com/gpu": 1000, "pods": 1}


def test_the_neediest_init_container_counts_when_it_needs_more() -> None:
    assert pod_requests({"containers": [container("1")], "initContainers": [container("3"), container("2")]})["cpu"] == 3000
    assert pod_requests({"containers": [container("4")], "initContainers": [container("3")]})["cpu"] == 4000


def test_sidecars_run_beside_what_starts_after_them() -> None:
    side = container("1", restartPolicy="Always")
    assert pod_requests({"containers": [container("1")], "initContainers": [side, container("3")]})["cpu"] == 4000
    assert pod_requests({"containers": [container("1")], "initContainers": [container("3"), side]})["cpu"] == 3000
    assert pod_requests({"containers": [container("4")], "initContainers": [side]})["cpu"] == 5000


def test_pod_level_amounts_replace_before_overhead_is_added() -> None:
    spec = {
        "containers": [container("1")],
        "resources": {"requests": {"cpu": "3", "nvidia.com/gpu": "9"}},
        "overhead": {"cpu": "250m", "memory": "1Mi"},
    }
    assert pod_requests(spec) == {"cpu": 3250, "memory": 2**20, "pods": 1}


def test_a_wrong_quantity_names_its_resource() -> None:
    with pytest.raises(ValueError, match="cpu: '2cpus' is not a quantity: write '2'"):
        pod_requests({"containers": [container("2cpus")]})


def test_a_null_is_an_amount_that_was_not_given() -> None:
    spec = {
        "containers": [{"resources": {"limits": {"cpu": "2", "memory": None}, "requests": {"cpu": None, "memory": "1Ki"}}}],
        "overhead": {"cpu": None},
    }
    assert pod_requests(spec) == {"cpu": 2000, "memory": 1024, "pods": 1}
