"""REST: the scheduler's health, cycles and their ledgers, its configuration, a sandbox, snapshots. The facts of the pages."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict
from typing import Any, ClassVar

from django.http import Http404, HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer
from rest_framework.viewsets import ViewSet

from cluster import runtime
from cluster.errors import BadRequest, FieldError, Invalid
from cluster.rest.parsers import only
from cluster.rest.views import Allowed, route
from cluster.said import said
from portal.cockpit import configuration, cycles, judged, ledger, snapshots, what_if
from portal.cockpit.draft import FIELDS, QUEUE_FIELDS, Draft
from portal.cockpit.health import health
from portal.evictions import Party
from portal.models import ConfigurationVersion, Cycle
from portal.unblock.copy import current

Json = dict[str, Any]
WINDOW = OpenApiParameter("window", str, enum=list(cycles.WINDOWS), description="how far back: 2m, 1h or 24h")
NUMBER = OpenApiParameter("number", int, OpenApiParameter.PATH)


class SchedulerViewSet(ViewSet):
    """One scheduler: nothing here is a list of objects."""

    permission_classes = (IsAuthenticated, Allowed)
    serializer_class = Serializer
    rights: ClassVar = {
        "health": "scheduler.view",
        "cycles": "scheduler.view",
        "cycle": "scheduler.view",
        "configuration": "scheduler.source",
        "versions": "scheduler.source",
        "save": "scheduler.change",
        "check": "scheduler.change",
        "what_if": "scheduler.try",
        "snapshot": "scheduler.snapshot",
    }

    def right(self) -> str | None:
        """The right that the action takes; what has none is nobody's."""
        return self.rights.get(self.action or "", "nobody")

    @extend_schema(responses={200: OpenApiTypes.OBJECT})
    def health(self, request: Request) -> Response:
        """Who leads, how long ago the last cycle was (seconds), and how long news waited for it (milliseconds); null: unknown."""
        return Response(asdict(health(cycles.newest(), runtime.now())))

    @extend_schema(parameters=[WINDOW], responses={200: OpenApiTypes.OBJECT})
    def cycles(self, request: Request) -> Response:
        """The kept cycles of a window, newest first, with percentiles, and each one's milliseconds by action and by plugin."""
        window = request.query_params.get("window", "2m")
        if window not in cycles.WINDOWS:
            known = ", ".join(cycles.WINDOWS)
            raise BadRequest(
                said("window is one of %(known)s, not %(window)r", known=known, window=window),
                [FieldError("?window", said("must be one of %(known)s", known=known), "choice")],
            )
        stretch = cycles.read(window, runtime.now(), cycles.FIELDS)
        return Response({"window": window, "figures": asdict(stretch.figures), "cycles": [_row(each) for each in stretch.rows]})

    @extend_schema(parameters=[NUMBER], responses={200: OpenApiTypes.OBJECT})
    def cycle(self, request: Request, number: int) -> Response:
        """One cycle with what it decided, as much of it as you may see. `?id=` names an older one of the same number."""
        pk = request.query_params.get("id", "")
        found = ledger.cycle_numbered(number, int(pk) if pk.isascii() and pk.isdigit() and len(pk) < 19 else None)
        if found is None:
            raise Http404(said("cycle %(number)s is not kept", number=number))
        told = ledger.of(request.user, found, runtime.now())
        return Response(_row(found) | {
            "time": cycles.matrix(found),
            "bound_jobs": [
                {"job": _job(each.job), "pods": each.pods, "waited_seconds": each.waited.total_seconds() if each.waited else None}
                for each in told.bound
            ],
            "verdicts": [{"job": _job(each.job), "stage": each.stage, "why": each.text} for each in told.verdicts],
            "evictions": [_eviction(each) for each in told.evictions],
            "room_kept": told.kept,
        })  # fmt: skip

    @extend_schema(responses={200: OpenApiTypes.OBJECT})
    def configuration(self, request: Request) -> Response:
        """The configuration in force (`text`, `in_force` its version; null: none that is known) with its warnings.

        `version` is the newest, which is where the scheduler reads (`place`; `absent`: it is not there and would be made), and
        the one to name when something is saved; `faults` say why it is not used. `writable`: nothing speaks against saving.
        """
        standing = configuration.standing(asks=True)
        row, newest, place = standing.told, standing.newest, standing.place
        if row is None or newest is None:
            raise Http404(said("no scheduler has told its configuration yet"))
        return Response({
            "version": newest.pk, "in_force": standing.in_force.pk if standing.in_force is not None else None,
            "text": row.text, "source": row.source, "since": row.since, "faults": row.faults,
            "warnings": [asdict(each) for each in configuration.warnings(row.text)],
            "place": str(place) if place is not None else None, "absent": standing.is_absent,
            "writable": place is not None and not standing.why, "why_not": standing.why,
        })  # fmt: skip

    @extend_schema(request=OpenApiTypes.OBJECT, responses={200: OpenApiTypes.OBJECT})
    def save(self, request: Request) -> Response:
        """Put a text in force: `{"text": …, "version": the one it was made from, "note": …}`; 409 when another is in force.

        Sent twice it is saved once.
        """
        given = _given(request, {"text", "version", "note"})
        text, version, note = given.get("text"), given.get("version"), given.get("note", "")
        if not isinstance(text, str) or isinstance(version, bool) or not isinstance(version, int) or not isinstance(note, str):
            raise BadRequest(
                said("give text, and the number of the version that it was made from"),
                [FieldError("/version", said("is needed"))],
            )
        saved = configuration.save(text, version, request.user.get_username(), note)
        return Response(_version(saved))

    @extend_schema(request=OpenApiTypes.OBJECT, responses={200: OpenApiTypes.OBJECT})
    def check(self, request: Request) -> Response:
        """Look at a text (`{"text": …}`): its faults with their lines, what is different, and what it would do."""
        text = _given(request, {"text"}).get("text")
        if not isinstance(text, str):
            raise BadRequest(said("give the text"), [FieldError("/text", said("must be a text"))])
        checked, newest = configuration.check(text), configuration.standing().newest
        told: Json = {
            "faults": [asdict(each) for each in checked.faults],
            "diff": [each.text for each in configuration.diff(newest.text if newest else "", text)],
        }
        if checked.loaded is not None:
            with current().pinned() as view:
                found = what_if.ask(view, Draft(), checked.loaded)
            told["effect"] = what_if.as_json(request.user, found) if found else None
        return Response(told)

    @extend_schema(responses={200: OpenApiTypes.OBJECT})
    def versions(self, request: Request) -> Response:
        """The newest versions with who, when, and what each changed."""
        configuration.standing()  # what is there now is one of them
        found = configuration.history()
        return Response([_version(each) | {"diff": [line.text for line in diff]} for each, diff in found])

    @extend_schema(request=OpenApiTypes.OBJECT, responses={200: OpenApiTypes.OBJECT})
    def what_if(self, request: Request) -> Response:
        """What a draft would do: `{"weight.prod": 3, "deserved.prod": 16, "cordon": "n1", "remove": "n3", "add": "4*n2"}`.

        With `"conf"` also by another configuration. Nothing is written.
        """
        given = _given(request, {"conf", *FIELDS}, QUEUE_FIELDS)
        if faults := [FieldError(f"/{key}", said("must be a text")) for key in given if isinstance(given[key], (dict, list))]:
            raise BadRequest(said("the request is not understood"), faults)
        checked = configuration.check(str(given["conf"])) if given.get("conf") else None
        if checked is not None and checked.faults:
            raise Invalid(said("the configuration has faults"), [FieldError("/conf", each.sentence) for each in checked.faults])
        draft = Draft.read(given)
        with current().pinned() as view:
            found = what_if.ask(view, draft, checked.loaded if checked else None) if not draft.faults else None
        if found is None:
            raise Invalid(said("the draft has faults"), [FieldError(f"/{key}", text) for key, text in draft.faults.items()])
        return Response(what_if.as_json(request.user, found))

    @extend_schema(responses={200: OpenApiTypes.OBJECT})
    def snapshot(self, request: Request) -> HttpResponse:
        """Everything that the scheduler decides by at this moment, without secrets: for `manage.py replay`."""
        return HttpResponse(snapshots.take().dump(), content_type="application/json")


def _given(request: Request, known: Collection[str], queues: Collection[str] = ()) -> Json:
    """The object of a body, none of whose fields is mistyped; those of `queues` have a queue's name behind a dot."""
    given = only(request.data).obj
    odd = [key for key in given if key not in known and not (key.partition(".")[0] in queues and key.partition(".")[2])]
    if odd:
        faults = [FieldError(f"/{key}", said("is not known"), "unknown") for key in odd]
        raise BadRequest(said("the request is not understood"), faults)
    return given


def _row(found: Cycle) -> Json:
    return {
        "id": found.pk, "number": found.number, "at": found.at, "milliseconds": found.milliseconds,
        "actions": found.actions, "plugins": cycles.by_plugin(found), "considered": found.considered, "bound": found.bound,
        "evicted": found.evicted, "news_waited": found.waited,
    }  # fmt: skip


def _version(found: ConfigurationVersion) -> Json:
    return {
        "version": found.pk, "at": found.at, "who": found.who, "note": found.note, "source": found.source,
        "writing": found.writing,
    }  # fmt: skip


def _job(found: Any) -> Json | None:
    """A job that the viewer may see; null for another."""
    return (
        {"uid": found.uid, "namespace": found.namespace, "name": found.name, "queue": found.queue} if found is not None else None
    )


def _party(party: Party | None) -> str | None:
    return None if party is None else "other" if party.other else party.job or party.pod


def _eviction(each: judged.Group) -> Json:
    return {
        "at": each.at, "victim": _party(each.victim), "for": _party(each.taker), "action": each.action, "pods": each.pods,
        "freed": each.freed, "node": each.node, "judgement": each.judgement.code,
    }  # fmt: skip


urlpatterns = [
    *route("scheduler/health", SchedulerViewSet, "scheduler-health", get="health"),
    *route("scheduler/cycles", SchedulerViewSet, "scheduler-cycles", get="cycles"),
    *route("scheduler/cycles/<int:number>", SchedulerViewSet, "scheduler-cycle", get="cycle"),
    *route("scheduler/configuration", SchedulerViewSet, "scheduler-configuration", get="configuration", put="save"),
    *route("scheduler/configuration/check", SchedulerViewSet, "scheduler-configuration-check", post="check"),
    *route("scheduler/configuration/versions", SchedulerViewSet, "scheduler-configuration-versions", get="versions"),
    *route("scheduler/what-if", SchedulerViewSet, "scheduler-what-if", post="what_if"),
    *route("scheduler/snapshot", SchedulerViewSet, "scheduler-snapshot", get="snapshot"),
]
