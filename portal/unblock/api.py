"""REST: why a job waits and what would let it start, a submission tried, a queue's change and a priority looked at first."""

from __future__ import annotations

from typing import Any, ClassVar

from django.http import Http404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from cluster import runtime
from cluster.errors import BadRequest, FieldError
from cluster.kinds import JOB, QUEUE
from cluster.rest.parsers import only
from cluster.rest.problems import about
from cluster.rest.views import Manifest, QuestionViewSet, route
from cluster.said import said
from jobs import operations, reasons
from jobs.models import Job
from jobs.submit.preview import preview
from portal.outlook import questions
from portal.outlook import shown as foretold
from portal.unblock import placement, priority, queue_preview, shown
from portal.unblock.copy import current
from portal.unblock.trial import Trial, try_job
from queues import operations as queue_operations
from queues.models import Queue

Json = dict[str, Any]
LONGEST = 10.0
_TEXTS = serializers.DictField(child=serializers.CharField(), help_text="words by language")


class Unblock(serializers.Serializer[Any]):
    """What would let a job start."""

    state = serializers.ChoiceField(
        ["working", "done", "none", "unavailable"],
        help_text="working: ask again; none: there is nothing to look for; unavailable: the cluster cannot be asked",
    )
    milliseconds = serializers.FloatField()
    tried = serializers.IntegerField(help_text="runs of the scheduler")
    ways = serializers.ListField(child=serializers.DictField(), help_text="at most three changes, each proved by a run")


class Explanation(serializers.Serializer[Any]):
    """Why a job waits."""

    uid = serializers.CharField()
    namespace = serializers.CharField()
    name = serializers.CharField()
    queue = serializers.CharField()
    phase = serializers.CharField()
    group_phase = serializers.CharField()
    waits = serializers.BooleanField()
    impossible = serializers.BooleanField(help_text="no waiting helps")
    why = _TEXTS
    statement = _TEXTS
    advice = _TEXTS
    verdict = serializers.DictField(allow_null=True, help_text="as the scheduler said it; amounts in smallest units")
    numbers = serializers.ListField(child=serializers.DictField(), help_text="asked, free or limit, and short, with words")
    stages = serializers.ListField(child=serializers.DictField(), help_text="on the way to a start: ok, held, or not reached")
    rejected = serializers.ListField(child=serializers.DictField(), help_text="nodes by cause, most first")
    snapshot = serializers.DictField(allow_null=True, help_text="the copy of the cluster that was asked")
    position = serializers.DictField(allow_null=True, help_text="place in the line of its queue and of all, from 1")
    start = serializers.DictField(help_text="when it is likely to start, as `start-estimate` says it")
    free_gpus = serializers.ListField(child=serializers.DictField(), help_text="nodes that it may use, with GPUs that are free")
    unblock = Unblock()


WAIT = OpenApiParameter("wait", float, description="Seconds to wait for what is not worked out yet, up to 10; 1 unless given.")


SHORT = 0.5
START = OpenApiParameter(
    "wait", float, description=f"Seconds to wait for how starts move, up to {LONGEST:.0f}; {SHORT} unless given."
)


class ExplainViewSet(QuestionViewSet):
    """Questions about one job."""

    kind = JOB
    queryset = Job.objects.all()
    serializer_class = Explanation
    rights: ClassVar = {"explain": "jobs.view", "look": "jobs.view", "try_out": "jobs.submit"}

    @extend_schema(responses=Explanation, parameters=[WAIT])
    def explain(self, request: Request, **where: str) -> Response:
        """Why it waits, its place in the line, and up to three smallest changes that would let it start."""
        job: Job = self.find(**where)
        return Response(shown.explanation(request.user, job, shown.answer_of(request.user, job, _wait(request))))

    @extend_schema(request=Manifest, responses={200: OpenApiTypes.OBJECT}, parameters=[START])
    def try_out(self, request: Request) -> Response:
        """Where each pod of a job would go if it were submitted now, or why it would wait, its place in the line and when it is
        likely to start (`start`; while that is `working`, ask again). Nothing is written."""
        document = only(request.data)
        with about(document):
            manifest = operations.submit(
                runtime.current(), document.obj, owner=request.user.get_username(), dry_run=True
            )  # fmt: skip
        with current().pinned() as view:
            trial = try_job(view, manifest)
            snapshot = {"version": view.version, "age_seconds": round(view.age, 1)}
        told = placement.as_json(placement.of_trial(request.user, manifest, trial))
        findings = preview(request.user, manifest).as_list()
        start = foretold.as_json(request.user, questions.draft(manifest), _wait(request, SHORT))
        return Response(trial_json(request.user, trial) | told | {"start": start, "snapshot": snapshot, "findings": findings})

    @extend_schema(
        responses={200: OpenApiTypes.OBJECT},
        parameters=[OpenApiParameter("class", str, required=True, description="a priority class"), START],
    )
    def look(self, request: Request, **where: str) -> Response:
        """What another priority would do: the job's place, whom it passes, who would have to go, and how likely starts move
        (`start`; while that is `working`, ask again). Nothing is written."""
        job: Job = self.find(**where)
        name = request.query_params.get("class", "")
        told = priority.preview(request.user, job, name)
        asked = priority.question([(job.namespace, job.name)], name)
        return Response(told | {"start": foretold.as_json(request.user, asked, _wait(request, SHORT))})

    @extend_schema(request=OpenApiTypes.OBJECT, responses={200: OpenApiTypes.OBJECT})
    def set_priority(self, request: Request, **where: str) -> Response:
        """Give a waiting job of one's own another priority class: `{"class": "high"}`."""
        job: Job = self.find(**where)
        self.allow("jobs.act", job)
        if job.deleted_at is not None:
            raise Http404(said("%(kind)s %(name)s is gone; only its history is left.", kind="Job", name=job))
        name = only(request.data).obj.get("class")
        if not isinstance(name, str):
            raise BadRequest(
                said("name a priority class"), [FieldError("/class", said("must be the name of a priority class"), "type")]
            )
        priority.set_class(job, name)
        return Response({"uid": job.uid, "class": name})


class QueuePreviewViewSet(QuestionViewSet):
    """Questions about one queue."""

    kind = QUEUE
    queryset = Queue.objects.all()
    serializer_class = Explanation
    rights: ClassVar = {"preview": "queues.change"}

    @extend_schema(request=Manifest, responses={200: OpenApiTypes.OBJECT}, parameters=[START])
    def preview(self, request: Request, name: str) -> Response:
        """What a change of a queue's spec (a merge patch, `{"spec": …}`) would do: who starts, waits, has to give way, and
        each queue's share before and after, and how likely starts move. Nothing is written."""
        document = only(request.data)
        self.find(name=name)
        with about(document):
            queue = queue_operations.update(runtime.current(), name, document.obj.get("spec") or {}, dry_run=True)
        told = queue_preview.as_json(request.user, queue_preview.preview(queue))
        return Response(told | {"start": foretold.as_json(request.user, questions.queue(queue), _wait(request, SHORT))})


def trial_json(user: Any, trial: Trial) -> Json:
    """A trial as data."""
    names = shown.Names(user, {each.victim_job for each in trial.evicted} | set(trial.delayed))
    verdict = trial.verdict.as_dict() if trial.verdict is not None and not trial.starts else None
    return {
        "starts": trial.starts,
        "pods": trial.pods,
        "cycles": trial.cycles,
        "milliseconds": round(trial.milliseconds, 1),
        "places": shown.places_json(trial.places),
        "evicted": shown.evicted_json(names, trial.evicted),
        "delayed": [names.as_json(key) for key in trial.delayed],
        "waiting": trial.line,
        "verdict": verdict,
        "why": shown.in_languages(lambda: reasons.say(verdict)),
    }


def _wait(request: Request, usual: float = 1.0) -> float:
    text = request.query_params.get("wait", str(usual))
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= LONGEST:
        raise BadRequest(
            said("wait is a number of seconds from 0 to %(most)s, not %(text)r", most=f"{LONGEST:.0f}", text=text),
            [FieldError("?wait", said("must be 0 to 10"), "range")],
        )
    return value


urlpatterns = [
    *route("jobs/dry-run", ExplainViewSet, "job-dry-run", post="try_out"),
    *route("jobs/<str:uid>/explain", ExplainViewSet, "job-explain-by-uid", get="explain"),
    *route("jobs/<str:namespace>/<str:name>/explain", ExplainViewSet, "job-explain", get="explain"),
    *route("jobs/<str:uid>/priority", ExplainViewSet, "job-priority-by-uid", get="look", patch="set_priority"),
    *route("queues/<str:name>/preview", QueuePreviewViewSet, "queue-preview", post="preview"),
]
