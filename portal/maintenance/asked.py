"""What a form or a program asks of a drain."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.http import QueryDict
from django.utils.dateparse import parse_datetime

from cluster import runtime
from cluster.access import policy
from cluster.durations import parse_duration
from cluster.errors import BadRequest, FieldError
from cluster.node_list import NodeFilter, find
from cluster.said import said, told
from portal.maintenance.acts import MOST, Wish
from portal.maintenance.models import Mode

FLAGS = ("in_turn", "bare", "local_data")
KNOWN = frozenset({"nodes", "reason", "mode", "deadline", "deadline_in", *FLAGS})


def names(user: Any, query: QueryDict) -> list[str]:
    """The nodes that an address names: one by one (`node`), or with `all` those that the filter of the list matches."""
    named = query.getlist("node")
    narrowed = query.get("job") or query.get("unusable")  # by what is not known here: all that match are fewer than found
    if query.get("all") and not narrowed and policy().may(user, "nodes.view"):
        named += list(find(user, NodeFilter.of(query.dict())).values_list("name", flat=True)[: MOST + 1])
    return list(dict.fromkeys(name for name in named if name))


def of_form(form: Mapping[str, Any]) -> Wish:
    """A form. Raises BadRequest for a deadline that is none."""
    return Wish(
        reason=str(form.get("reason") or "").strip(),
        mode=str(form.get("mode") or Mode.EVICT),
        deadline=_deadline("", str(form.get("deadline_in") or "").strip()),
        **{name: bool(form.get(name)) for name in FLAGS},
    )


def of_json(given: Mapping[str, Any]) -> tuple[list[str], Wish]:
    """The body of a request: which nodes, and how. Raises BadRequest, with everything that is wrong with it."""
    faults = [FieldError(f"/{key}", said("is not known"), "unknown") for key in sorted(set(map(str, given)) - KNOWN)]
    nodes = given.get("nodes")
    if not isinstance(nodes, list) or not nodes or not all(isinstance(name, str) and name for name in nodes):
        faults.append(FieldError("/nodes", said("must be a list of names of nodes"), "type"))
        nodes = []
    texts = [name for name in ("reason", "mode", "deadline", "deadline_in") if not isinstance(given.get(name, ""), str)]
    faults += [FieldError(f"/{name}", said("must be a text"), "type") for name in texts]
    flags = [name for name in FLAGS if not isinstance(given.get(name, False), bool)]
    faults += [FieldError(f"/{name}", said("must be true or false"), "type") for name in flags]
    if faults:
        raise BadRequest(said("the request is not understood"), faults)
    wish = Wish(
        reason=given.get("reason", "").strip(),
        mode=given.get("mode") or Mode.EVICT,
        deadline=_deadline(given.get("deadline", ""), given.get("deadline_in", "")),
        **{name: given.get(name, False) for name in FLAGS},
    )
    return list(nodes), wish


def _deadline(at: str, after: str) -> datetime | None:
    """An instant, or so long from now. Raises BadRequest."""
    if at and after:
        raise BadRequest(said("give deadline or deadline_in, one of both"), [FieldError("/deadline", said("is given twice"))])
    if after:
        try:
            return runtime.now() + timedelta(seconds=parse_duration(after))
        except (ValueError, OverflowError) as error:
            raise BadRequest(said("the deadline is not understood"), [FieldError("/deadline_in", _text(error))]) from None
    if not at:
        return None
    try:
        found = parse_datetime(at)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        text = said("%(given)r is no instant: write it as 2026-01-31T18:00:00Z", given=at[:60])
        raise BadRequest(said("the deadline is not understood"), [FieldError("/deadline", text)])
    return found


def _text(error: Exception) -> str:
    return told(error) if isinstance(error, ValueError) else said("is too far away")
