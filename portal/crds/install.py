"""Putting the definitions into a cluster: what is missing is made, ours are brought up to date, others' are left alone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from kubernetes import client

from cluster import documents
from portal.crds.definitions import DEFINED, OURS, definition

_MANAGED = "app.kubernetes.io/managed-by"
_NOT_FOUND = 404
_POLL = 0.2

Done = Literal["created", "updated", "unchanged", "left as it is: somebody else installed it"]


class NotEstablished(Exception):
    """The server took a definition and does not serve it; the message says which, and what the server says of it."""


@dataclass(frozen=True, slots=True)
class Installed:
    """What became of one definition."""

    name: str
    done: Done


def install(api: client.ApiextensionsV1Api, *, dry_run: bool = False) -> Iterator[Installed]:
    """Each definition in turn. Raises what the client raises (`ApiException`, urllib3's errors)."""
    how = {"dry_run": "All"} if dry_run else {}
    for wanted in map(definition, DEFINED):
        name = wanted["metadata"]["name"]
        there = _read(api, name)
        if there is None:
            api.create_custom_resource_definition(wanted, **how)
            yield Installed(name, "created")
        elif (there.metadata.labels or {}).get(_MANAGED) != OURS:
            yield Installed(name, "left as it is: somebody else installed it")
        else:
            wanted["metadata"]["resourceVersion"] = there.metadata.resource_version
            now = api.replace_custom_resource_definition(name, wanted, **how)
            same = now.metadata.generation == there.metadata.generation
            yield Installed(name, "unchanged" if same else "updated")


def wait_established(api: client.ApiextensionsV1Api, *, seconds: float = 30.0) -> None:
    """Wait until the server serves every definition. Raises NotEstablished after so many seconds."""
    deadline = time.monotonic() + seconds
    for name in (defined.name for defined in DEFINED):
        while not _established(conditions := _conditions(api, name)):
            if time.monotonic() > deadline:
                said = "; ".join(f"{c.type}={c.status}: {c.message}" for c in conditions) or "it says nothing of it"
                raise NotEstablished(f"the API server does not serve {name} after {seconds:g} s ({said})")
            time.sleep(_POLL)


def manifests() -> Iterator[tuple[str, str]]:
    """File name and YAML of each definition, as they lie in `deploy/crds/`."""
    for defined in DEFINED:
        yield f"{defined.name}.yaml", documents.dump(definition(defined))


def _read(api: client.ApiextensionsV1Api, name: str) -> Any:
    try:
        return api.read_custom_resource_definition(name)
    except client.ApiException as error:
        if error.status == _NOT_FOUND:
            return None
        raise


def _conditions(api: client.ApiextensionsV1Api, name: str) -> list[Any]:
    found = _read(api, name)
    return list((found.status.conditions if found and found.status else None) or ())


def _established(conditions: list[Any]) -> bool:
    return any(condition.type == "Established" and condition.status == "True" for condition in conditions)
