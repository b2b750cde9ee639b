"""REST: how queues stood in a minute, now or past, with what the scheduler decided in it; and their amounts over time."""

from __future__ import annotations

from typing import Any, ClassVar

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from cluster import runtime
from cluster.errors import BadRequest, FieldError
from cluster.kinds import QUEUE
from cluster.rest.views import QuestionViewSet, route
from cluster.said import said
from portal.evictions import Party
from portal.minutes import Decisions, decisions
from queues import asked, history, queries
from queues.api import OVER_TIME, QueueRow
from queues.models import Queue, SampleTime
from queues.moments import Moment, moment

Json = dict[str, Any]


class SharesViewSet(QuestionViewSet):
    """Queues over time."""

    kind = QUEUE
    queryset = Queue.objects.all()
    serializer_class = QueueRow
    rights: ClassVar = {"at": "queues.view", "over_time": "queues.view"}

    @extend_schema(
        parameters=[OpenApiParameter("at", str, description="any instant of a minute, ISO 8601; the newest unless it is given")],
        responses={200: OpenApiTypes.OBJECT},
    )
    def at(self, request: Request) -> Response:
        """What queues held, deserved, asked and had admitted at the last sample of a minute (amounts in smallest units, each with
        what was held before), and what the scheduler decided in between. `taken_at` is null where nothing is known."""
        text = request.query_params.get("at", "")
        instant = asked.instant(text) if text else _newest()
        if instant is None:
            right = FieldError("?at", said("is ISO 8601, such as 2026-03-01T12:00:00Z"), "format")
            raise BadRequest(said("%(text)r is no instant", text=text), [right])
        found = moment(request.user, instant)
        return Response(moment_json(found, decisions(request.user, found.since, found.until)))

    @extend_schema(parameters=OVER_TIME[:2], responses={200: OpenApiTypes.OBJECT})
    def over_time(self, request: Request) -> Response:
        """What queues held over a window: `times` in milliseconds and an amount a queue for each, in the unit that charts draw;
        null where nothing was sampled."""
        rows = queries.queues(request.user)
        resource = asked.resource(request.query_params, queries.resources(rows))
        window = asked.window({"window": request.query_params.get("window", "")}, runtime.now())
        names = [row.name for row in queries.leaves(rows)]
        found = history.shares_over_time(names, [], resource, history.WINDOWS[window.name], window.end)
        return Response(found.as_json())


def _newest() -> Any:
    newest = SampleTime.objects.order_by("-at").first()
    return newest.at if newest is not None else runtime.now()


def moment_json(found: Moment, made: Decisions) -> Json:
    """A minute as data."""
    taken = found.taken
    return {
        "minute": found.minute.isoformat(),
        "since": found.since.isoformat(),
        "taken_at": taken.at.isoformat() if taken else None,
        "cycle": taken.cycle if taken else None,
        "capacity": taken.capacity if taken else None,
        "queues": [
            {"queue": each.queue, "parent": each.parent, **each.now,
             "allocated_before": each.was["allocated"] if each.was else None}
            for each in found.queues
        ],
        "decisions_kept": made.kept,
        "placed": [
            {"at": each.at.isoformat(), "cycle": each.cycle, "queue": each.queue, "job": each.job or "other", "job_uid": each.uid,
             "pods": each.pods, "taken": each.units}
            for each in made.placed
        ],
        "placed_total": made.placed_total,
        "evicted": [
            {"at": each.at.isoformat(), "action": each.action, "rules": each.rules, "node": each.node, "freed": each.freed,
             "victim": _party(each.victim), "preemptor": _party(each.taker) if each.taker else None}
            for each in made.evicted.rows
        ],
        "evicted_total": made.evicted.total,
    }  # fmt: skip


def _party(party: Party) -> Json:
    if party.other:
        return {"job": "other"}
    return {"job": party.job, "job_uid": party.uid, "pod": party.pod, "queue": party.queue}


urlpatterns = [
    *route("queue-shares", SharesViewSet, "queue-shares", get="at"),
    *route("queue-history", SharesViewSet, "queue-history", get="over_time"),
]
