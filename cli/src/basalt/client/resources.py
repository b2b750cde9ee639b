"""One kind of thing at the server: its list, one of it, and what can be done to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Generic, TypeVar, cast
from urllib.parse import quote

from basalt.client.errors import NotFound
from basalt.client.rows import DryRun, JobRow, Manifest, QueueRow
from basalt.client.transport import Transport

R = TypeVar("R")
PAGE = 500
Body = Manifest | str
"""A manifest as a mapping, or as YAML or JSON text: then faults come with their lines."""


class Resource(Generic[R]):
    """`R` is the type of a row. Things in namespaces are named by both."""

    def __init__(self, transport: Transport, path: str) -> None:
        self._transport, self._path = transport, path

    def _at(self, name: str, namespace: str = "", *more: str) -> str:
        return "/".join([self._path, *(quote(part, safe="") for part in (namespace, name, *more) if part)])

    def list(self, *, limit: int = 0, **filters: Any) -> Iterator[R]:
        """All that the filters leave, page by page (`limit` 0: all of them). The API's description names the filters."""
        query: dict[str, Any] = {"limit": min(limit, PAGE) if limit else PAGE, **filters}
        given = 0
        while True:
            page = self._transport.get(self._path, query)
            for row in page["results"]:
                yield cast(R, row)
                given += 1
                if limit and given >= limit:
                    return
            if not page["next"]:
                return
            query["cursor"] = _cursor(page["next"])

    def get(self, name: str, namespace: str = "", *, gone: bool = False) -> R:
        """One by its name (or uid, without a namespace), with its manifest; `gone`: also one that is history. Raises NotFound."""
        row = self._transport.get(self._at(name, namespace))
        if not gone and (row.get("deleted_at") or row.get("manifest", row) is None):
            raise NotFound(f"{'/'.join(part for part in (namespace, name) if part)} is gone; only its history is left.")
        return cast(R, row)

    def create(self, manifest: Body, *, namespace: str = "") -> R:
        """Create one; `namespace` is that of a manifest that names none. Raises Refused with every fault, Conflict."""
        return cast(R, self._transport.create(self._path, manifest, {"namespace": namespace}))

    def check(self, manifest: Body, *, namespace: str = "") -> DryRun:
        """What a create would keep, with everything filled in; nothing is written. Raises as `create` does."""
        query = {"dryRun": "All", "namespace": namespace}
        return cast(DryRun, self._transport.send("POST", self._path, manifest, query))

    def delete(self, name: str, namespace: str = "") -> None:
        """Delete one. Raises NotFound, Forbidden, Conflict."""
        self._transport.send("DELETE", self._at(name, namespace))

    def act(self, action: str, name: str, namespace: str = "") -> R:
        """Ask for an action; it is done soon after. Raises Conflict when the thing's state does not allow it."""
        return cast(R, self._transport.send("POST", self._at(name, namespace, "actions", action)))


class Jobs(Resource[JobRow]):
    """Volcano Jobs. Actions: suspend, resume, restart, terminate, complete."""

    def explain(self, uid: str, *, wait: int = 1) -> Any:
        """Why one waits; up to `wait` seconds are spent on what would unblock it."""
        return self._transport.get(self._at(uid, "", "explain"), {"wait": wait})

    def dry_run(self, manifest: Body, *, wait: float = 0.5) -> Any:
        """Where the scheduler would place a job that is not submitted; up to `wait` seconds are spent on when it would start."""
        return self._transport.send("POST", self._at("dry-run"), manifest, {"wait": wait})


class Blueprints:
    """Jobs to fill out."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def get(self, name: str) -> Any:
        """One, with the schema of its parameters. Raises NotFound."""
        return self._transport.get(f"blueprints/{quote(name, safe='')}")

    def submit(self, name: str, order: Manifest, *, dry_run: bool = False) -> Any:
        """Fill one out and submit it: `parameters`, and `name`, `namespace`, `queue`, `version` of the job. Raises Refused."""
        where = f"blueprints/{quote(name, safe='')}/submit"
        if dry_run:
            return self._transport.send("POST", where, order, {"dryRun": "All"})
        return self._transport.create(where, order, {})


class Queues(Resource[QueueRow]):
    """Queues. Actions: open, close."""

    def change(self, name: str, spec: Manifest) -> QueueRow:
        """Change the spec by a merge patch."""
        return cast(QueueRow, self._transport.send("PATCH", self._at(name), {"spec": spec}))


class Drains:
    """Nodes that are emptied for maintenance."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def preview(self, nodes: Sequence[str]) -> Any:
        """What a drain of these nodes would do. Raises NotFound, Forbidden."""
        return self._transport.get("drains/preview", {"node": list(nodes)})

    def create(self, order: Manifest) -> Any:
        """Begin one: `nodes`, `reason` and how. Raises Conflict, with what has to be asked for, and Refused."""
        return self._transport.create("drains", order)

    def get(self, drain: str) -> Any:
        """How far one is."""
        return self._transport.get(f"drains/{quote(drain, safe='')}")

    def cancel(self, drain: str, *, uncordon: bool) -> Any:
        """End one. Raises Conflict when it has ended."""
        return self._transport.send("POST", f"drains/{quote(drain, safe='')}/cancel", {"uncordon": uncordon})


def _cursor(url: str) -> str:
    from urllib.parse import parse_qs, urlsplit

    return parse_qs(urlsplit(url).query)["cursor"][0]
