"""A list of all objects of a kind, page by page, and what to do when the server has forgotten where the next page begins."""

from __future__ import annotations

from collections.abc import Iterator

from cluster.errors import Expired
from cluster.kinds import Kind
from cluster.kubernetes.transport import Request, Transport, path_of
from cluster.port import Obj

PAGE = 500


class Listing:
    """Iterates over pages. After an expired token it begins again, the second time without pages, as client-go does; `begun`
    counts how often, since objects then come twice. `version` is that of the last page's list.
    """

    def __init__(self, transport: Transport, kind: Kind, namespace: str, query: dict[str, str]) -> None:
        self._transport, self._kind, self._path, self._query = transport, kind, path_of(kind, namespace), query
        self._token, self._limit, self._ended = "", PAGE, False
        self.begun = 1
        self._turned: list[list[Obj]] = []
        self.version = ""

    def __iter__(self) -> Iterator[list[Obj]]:
        while self._turned or not self._ended:
            if not self._turned:
                self.turn()
            yield self._turned.pop(0)

    def turn(self) -> None:
        """Read one page more. Raises ApiError."""
        try:
            page = self._page()
        except Expired:
            if not self._token:
                raise
            self.begun += 1
            self._token, self._limit = "", PAGE if self.begun == 2 else 0
            page = self._page()
        found = page.get("items") or []
        for obj in found:  # lists of typed kinds leave these to the list itself
            obj.setdefault("apiVersion", self._kind.api_version)
            obj.setdefault("kind", self._kind.kind)
            obj["metadata"].pop("managedFields", None)
        meta = page.get("metadata") or {}
        self._token, self.version = str(meta.get("continue") or ""), str(meta.get("resourceVersion") or "")
        self._ended = not self._token
        self._turned.append(found)

    def _page(self) -> Obj:
        paging = {"limit": str(self._limit)} if self._limit else {}
        query = {**self._query, **paging, **({"continue": self._token} if self._token else {})}
        return self._transport.call(Request("GET", self._path, query))
