"""REST: the log of a pod, by kubectl's parameters, and the logs of a job, interleaved by time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from django.contrib.auth import get_user_model
from django.http import Http404, StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.views import APIView

from cluster import runtime
from cluster.access import policy
from cluster.errors import BadRequest, FieldError
from cluster.rest.views import route
from cluster.said import said
from jobs.logs import asked as parameters
from jobs.logs import sources
from jobs.logs.asked import Asked
from jobs.logs.sending import Followed, Json, Text, send
from jobs.logs.sources import Source
from jobs.models import Job, Pod

_WORDS = {
    "container": "Of which container; a pod's first one, a job's all.",
    "follow": "true: go on with what comes, until the containers have ended.",
    "previous": "true: of the attempt before the newest.",
    "tailLines": "Only the last so many lines.",
    "sinceSeconds": "Only what is newer than so many seconds.",
    "sinceTime": "Only what is newer than an RFC 3339 instant.",
    "timestamps": "true: each line begins with its instant.",
    "limitBytes": "At most so many bytes.",
    "uid": "The very object, where several had the name.",
    "format": "text, or json: by lines, as the pages read it.",
    "download": "true: as a file.",
    "task": "Only pods of this task.",
    "pod": "Only this pod.",
}


def _described(known: tuple[str, ...]) -> list[OpenApiParameter]:
    return [OpenApiParameter(key, str, description=_WORDS[key]) for key in known]


class _AsAsked(DefaultContentNegotiation):  # type: ignore[misc]
    """The parameters say in which form a log goes out, so any Accept header will do; refusals are JSON as everywhere."""

    def select_renderer(self, request: Any, renderers: Any, format_suffix: Any = None) -> Any:
        return renderers[0], renderers[0].media_type


class PodLog(APIView):
    """The log of one container of a pod, also after the pod is gone."""

    permission_classes = (IsAuthenticated,)
    content_negotiation_class = _AsAsked

    @extend_schema(parameters=_described(parameters.POD), responses={(200, "text/plain"): OpenApiTypes.STR})
    def get(self, request: Request, namespace: str, name: str) -> StreamingHttpResponse:
        """As `kubectl logs` gives it."""
        asked = _asked(request, parameters.POD)
        pod = _pod(request.user, asked.uid, namespace=namespace, name=name)
        job = Job.objects.filter(pk=pod.job_uid).first() if pod.job_uid else None
        names = sources.containers(pod, job)
        if asked.container and asked.container not in names:
            message = said(
                "pod %(pod)s has no container %(container)r; it has %(names)s",
                pod=pod,
                container=asked.container[:63],
                names=", ".join(names) or "none yet",
            )
            raise BadRequest(message, [FieldError("?container", message)])
        asked = replace(asked, container=asked.container or sources.main_container(pod, job))

        def look() -> list[Source]:
            row = Pod.objects.filter(pk=pod.pk).first() or pod
            return sources.of_pod(row, job, asked)

        return _answer(request, asked, look, lambda: may_read_pod(request.user, pod), f"{pod.name}-{asked.container}", many=False)


class JobLogs(APIView):
    """The logs of all containers of a job's pods, or of those of one task, in the order of time."""

    permission_classes = (IsAuthenticated,)
    content_negotiation_class = _AsAsked

    @extend_schema(parameters=_described(parameters.JOB), responses={(200, "text/plain"): OpenApiTypes.STR})
    def get(self, request: Request, namespace: str, name: str) -> StreamingHttpResponse:
        """Each line says whose it is."""
        asked = _asked(request, parameters.JOB)
        job = _job(request.user, asked.uid, namespace=namespace, name=name)
        rows = policy().visible(request.user, Pod.objects.filter(job_uid=job.uid))
        wanted = rows.filter(**{field: value for field, value in (("task", asked.task), ("name", asked.pod)) if value})
        if wanted.count() > sources.most_pods():
            message = said(
                "the logs of at most %(most)s pods are read together: name a task or a pod",
                most=f"{sources.most_pods():,}",
            )
            raise BadRequest(message, [FieldError("?pod", message, "range")])

        def look() -> list[Source]:
            return sources.of_pods(wanted.order_by("task", "index", "created_at"), job, asked)

        return _answer(request, asked, look, lambda: may_read_job(request.user, job), job.name, many=True)


def may_read_job(user: Any, job: Job) -> bool:
    """Whether this user, as he is now, may read the logs of this job."""
    user = _now(user)
    rows = policy().visible(user, Job.objects.filter(pk=job.pk))
    return rows.exists() and policy().may(user, "jobs.view", job) and policy().may(user, "logs.view", job)


def may_read_pod(user: Any, pod: Pod) -> bool:
    """The same of a pod: whoever may not see its job may not read it either."""
    user = _now(user)
    if not policy().visible(user, Pod.objects.filter(pk=pod.pk)).exists() or not policy().may(user, "pods.view", pod):
        return False
    job = Job.objects.filter(pk=pod.job_uid).first() if pod.job_uid else None
    return may_read_job(user, job) if job is not None else policy().may(user, "logs.view", pod)


def _now(user: Any) -> Any:
    """The user as the database has him now: a log that is followed outlives a change of rights."""
    if not user.pk:
        return user
    return get_user_model().objects.filter(pk=user.pk).first()


def _asked(request: Request, known: tuple[str, ...]) -> Asked:
    return parameters.parse(request.query_params, known, runtime.now().timestamp())


def _job(user: Any, uid: str, **where: str) -> Job:
    rows = Job.objects.filter(**where, **({"uid": uid} if uid else {}))
    job = policy().visible(user, rows).order_by("-created_at").first()
    if job is None or not may_read_job(user, job):
        raise Http404(said("There is no %(kind)s %(name)s.", kind="Job", name="/".join(where.values())))
    return job


def _pod(user: Any, uid: str, **where: str) -> Pod:
    rows = policy().visible(user, Pod.objects.filter(**where, **({"uid": uid} if uid else {})))
    pod = rows.filter(deleted_at=None).first() or rows.order_by("-created_at").first()
    if pod is None or not may_read_pod(user, pod):
        raise Http404(said("There is no %(kind)s %(name)s.", kind="Pod", name="/".join(where.values())))
    return pod


def _answer(
    request: Request, asked: Asked, look: Callable[[], list[Source]], still: Callable[[], bool], title: str, *, many: bool
) -> StreamingHttpResponse:
    form = Json() if asked.is_json else Text(asked, many=many)
    kind = "application/x-ndjson" if asked.is_json else "text/plain; charset=utf-8"
    headers = {"X-Accel-Buffering": "no", "Cache-Control": "no-store"}
    if asked.download:
        headers["Content-Disposition"] = f'attachment; filename="{title}.log"'
    answer = Followed if asked.follow else StreamingHttpResponse
    return answer(send(asked, form, look, _still_signed_in(request, still)), content_type=kind, headers=headers)


def _still_signed_in(request: Request, still: Callable[[], bool]) -> Callable[[], bool]:
    """Besides the right itself, the token or session that asked must still hold."""
    session = getattr(request._request, "session", None)
    key = session.session_key if session is not None else None

    def holds() -> bool:
        if request.auth is not None:
            if not type(request.auth).objects.filter(pk=request.auth.pk).exists():
                return False
        elif key and session is not None and not session.exists(key):
            return False
        return still()

    return holds


urlpatterns = [
    *route("pods/<str:namespace>/<str:name>/log", PodLog, "pod-log"),
    *route("jobs/<str:namespace>/<str:name>/logs", JobLogs, "job-logs"),
]
