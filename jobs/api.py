"""REST: jobs, pods and PodGroups. A job's body is Volcano's manifest, as JSON or YAML."""

from __future__ import annotations

from typing import Any, ClassVar
from urllib.parse import urlencode

from django.http import Http404
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from cluster import objects, runtime
from cluster.access import Owned
from cluster.disclosure import shown
from cluster.errors import NotFound
from cluster.kinds import JOB, POD, POD_GROUP
from cluster.rest.idempotency import once
from cluster.rest.parsers import only
from cluster.rest.problems import about
from cluster.rest.views import NAMESPACE, Manifest, ObjectViewSet, is_dry_run, route, with_namespace
from cluster.rows import event_row
from cluster.said import said
from jobs import filters, keys, operations, writes
from jobs.made import in_force
from jobs.models import Job, PhaseChange, Pod, PodGroup
from jobs.pages import timeline_api
from jobs.pages.queries import EVENT_LIMIT, events_of
from jobs.rows import JOB_FIELDS, change_row, job_row, pod_group_row, pod_row, task_row
from jobs.submit.preview import preview

Body = dict[str, Any]
FIRST_PODS = 200
MORE = ("unknown",)
"""What programs are told of a job besides what the pages' rows have."""


class JobRow(serializers.ModelSerializer[Job]):
    """A job in a list."""

    mark = serializers.CharField(help_text="the state mark that the pages draw")
    why = serializers.DictField(child=serializers.CharField(), help_text="why it waits, by language")

    class Meta:
        model = Job
        fields = (*JOB_FIELDS, *MORE, "mark", "why")


class JobFull(JobRow):
    """A job by itself."""

    manifest = serializers.DictField(help_text="the Job as Kubernetes writes it")
    deleted_at = serializers.DateTimeField(allow_null=True)
    actions = serializers.ListField(child=serializers.CharField(), help_text="what can be asked of it in its phase")
    tasks = serializers.ListField(child=serializers.DictField(), help_text="its roles, each with `counts` of pods by phase")
    plugins = serializers.ListField(
        child=serializers.DictField(), help_text="in the order in which they run, each with the objects that it `made`"
    )
    pods = serializers.ListField(child=serializers.DictField(), help_text=f"the first {FIRST_PODS}, by task and index")
    pods_total = serializers.IntegerField(help_text="all its pods, also those of earlier runs")
    pods_url = serializers.CharField(help_text="the list of its pods that exist, by pages")
    events = serializers.ListField(child=serializers.DictField())
    changes = serializers.ListField(child=serializers.DictField(), help_text="the steps of its life")

    class Meta(JobRow.Meta):
        fields = (
            *JobRow.Meta.fields, "manifest", "deleted_at", "actions", "tasks",
            "plugins", "pods", "pods_total", "pods_url", "events", "changes",
        )  # fmt: skip


DRY_RUN = OpenApiParameter("dryRun", str, enum=["All"], description="Do everything but keep it.")
KEY = OpenApiParameter("Idempotency-Key", str, OpenApiParameter.HEADER, description="Sent again, the first answer comes back.")

UID = OpenApiParameter("uid", str, description="that very job, of several that had the name one after another")


class JobViewSet(ObjectViewSet):
    """Volcano Jobs."""

    kind = JOB
    queryset = Job.objects.all()
    serializer_class = JobRow
    filterset_class = filters.JobFilter
    columns = (*JOB_FIELDS, *MORE)
    ordering_fields = ("created_at", "name", "namespace", "queue", "owner", "phase", "phase_since", "gpus", "replicas")
    rights: ClassVar = {"list": "jobs.view", "retrieve": "jobs.view", "create": "jobs.submit", "timeline": "jobs.view"}

    def row(self, obj: Job) -> Body:
        return job_row(obj) | {name: getattr(obj, name) for name in MORE}

    def manifest(self, obj: Job) -> Body:
        """As projected: a job that the cluster has forgotten keeps its manifest."""
        return obj.manifest

    @extend_schema(responses=JobFull)
    def retrieve(self, request: Request, **where: str) -> Response:
        """One job: its manifest, its tasks with their counts, its first pods, its events and steps."""
        return super().retrieve(request, **where)

    def full(self, obj: Job) -> Body:
        """The row, the manifest, and what the job's page shows; of very many pods the first, and where the others are."""
        pods = Pod.objects.filter(job_uid=obj.uid)
        return super().full(obj) | {
            "deleted_at": obj.deleted_at.isoformat() if obj.deleted_at else None,
            "actions": operations.allowed_actions(obj.phase) if obj.deleted_at is None else [],
            "tasks": [task_row(task) for task in obj.tasks.all()],
            "plugins": [plugin.as_dict() for plugin in in_force(obj)],
            "pods": [pod_row(pod) for pod in pods.order_by("task", "index", "-created_at")[:FIRST_PODS]],
            "pods_total": pods.count(),
            "pods_url": f"{reverse('api:pods')}?{urlencode({'job': obj.uid})}",
            "events": [event_row(event) for event in events_of(obj.uid)[:EVENT_LIMIT]],
            "changes": [change_row(change) for change in PhaseChange.objects.filter(job_uid=obj.uid)],
        }

    @extend_schema(request=Manifest, responses={201: OpenApiTypes.OBJECT}, parameters=[DRY_RUN, KEY, NAMESPACE])
    def create(self, request: Request) -> Response:
        """Submit a job; its owner is who asks."""
        document = only(request.data)
        manifest, owner = with_namespace(request, document.obj), request.user.get_username()
        with about(document):
            if is_dry_run(request):
                obj = operations.submit(runtime.current(), manifest, owner=owner, dry_run=True)
                findings = preview(request.user, obj).as_list()
                return Response({"dryRun": True, "manifest": shown(obj), "findings": findings})
            return once(request, lambda: self._submit(manifest, owner))

    def _submit(self, manifest: Body, owner: str) -> Response:
        obj = writes.submit(manifest, owner)
        job = Job.objects.get(pk=obj["metadata"]["uid"])
        where = reverse("api:job", args=[job.namespace, job.name])
        body = self.full(job) | {"findings": preview(self.request.user, obj).as_list()}
        return Response(body, status=status.HTTP_201_CREATED, headers={"Location": where})

    @extend_schema(responses={202: OpenApiTypes.OBJECT})
    def destroy(self, request: Request, **where: str) -> Response:
        """Delete a job with its pods."""
        job = self._mine(**where)
        writes.delete(job)
        return Response(job_row(Job.objects.get(pk=job.pk)), status=status.HTTP_202_ACCEPTED)

    @extend_schema(request=None, responses={202: OpenApiTypes.OBJECT})
    def act(self, request: Request, action: str, **where: str) -> Response:
        """Suspend, resume, restart, terminate or complete. The controller does it soon after."""
        job = self._mine(**where)
        writes.act(job, action, request.user.get_username())
        return Response(self.full(Job.objects.get(pk=job.pk)), status=status.HTTP_202_ACCEPTED)

    @extend_schema(responses=OpenApiTypes.OBJECT, parameters=[UID])
    def timeline(self, request: Request, **where: str) -> Response:
        """Its life: lanes of the job, its queue, the scheduler, pods, tasks and decisions; time in each state; gaps explained."""
        uid = request.query_params.get("uid")
        return Response(timeline_api.told(request.user, self.find(**where, **({"uid": uid} if uid else {}))))

    def _mine(self, **where: str) -> Job:
        job: Job = self.find(**where)
        self.allow("jobs.act", job)
        if job.deleted_at is not None:
            raise Http404(said("%(kind)s %(name)s is gone; only its history is left.", kind="Job", name=job))
        return job


class PodRow(serializers.ModelSerializer[Pod]):
    """A pod in a list."""

    mark = serializers.CharField()

    class Meta:
        model = Pod
        exclude = ("requests", "resource_version")


def _owner(pod: Pod) -> str:
    """Who submitted a pod: with its job, or by itself."""
    if pod.job_uid:
        return Job.objects.filter(uid=pod.job_uid).values_list("owner", flat=True).first() or ""
    try:
        obj = runtime.current().get(POD, pod.name, pod.namespace)
    except NotFound:
        return ""
    return objects.annotations(obj).get(keys.OWNER, "") if objects.uid(obj) == pod.uid else ""


class PodViewSet(ObjectViewSet):
    """Pods, those of jobs and bare ones."""

    kind = POD
    queryset = Pod.objects.all()
    serializer_class = PodRow
    filterset_class = filters.PodFilter
    rights: ClassVar = {"list": "pods.view", "retrieve": "pods.view"}

    def row(self, obj: Pod) -> Body:
        return pod_row(obj) | {"job_uid": obj.job_uid, "group": obj.group, "queue": obj.queue}

    def destroy(self, request: Request, **where: str) -> Response:
        """Delete a pod, one's own or one of one's own job, whose controller answers by the job's policies."""
        self.allow("pods.view")
        pod: Pod = self.find(**where)
        self.allow("pods.act", Owned(_owner(pod), "a pod"))
        runtime.current().delete(POD, pod.name, pod.namespace, uid=pod.uid)
        return Response(self.row(pod), status=status.HTTP_202_ACCEPTED)


class PodGroupRow(serializers.ModelSerializer[PodGroup]):
    """A gang in a list."""

    class Meta:
        model = PodGroup
        exclude = ("resource_version", "deleted_at")


class PodGroupViewSet(ObjectViewSet):
    """Gangs as the scheduler sees them."""

    kind = POD_GROUP
    queryset = PodGroup.objects.all()
    serializer_class = PodGroupRow
    filterset_class = filters.PodGroupFilter
    rights: ClassVar = {"list": "podgroups.view", "retrieve": "podgroups.view"}

    def row(self, obj: PodGroup) -> Body:
        return pod_group_row(obj)


urlpatterns = [
    *route("jobs", JobViewSet, "jobs", get="list", post="create"),
    *route("jobs/<str:uid>", JobViewSet, "job-by-uid", get="retrieve", delete="destroy"),
    *route("jobs/<str:namespace>/<str:name>", JobViewSet, "job", get="retrieve", delete="destroy"),
    *route("jobs/<str:namespace>/<str:name>/actions/<str:action>", JobViewSet, "job-action", post="act"),
    *route("jobs/<str:namespace>/<str:name>/timeline", JobViewSet, "job-timeline", get="timeline"),
    *route("pods", PodViewSet, "pods", get="list"),
    *route("pods/<str:uid>", PodViewSet, "pod-by-uid", get="retrieve", delete="destroy"),
    *route("pods/<str:namespace>/<str:name>", PodViewSet, "pod", get="retrieve", delete="destroy"),
    *route("podgroups", PodGroupViewSet, "podgroups", get="list"),
    *route("podgroups/<str:uid>", PodGroupViewSet, "podgroup-by-uid", get="retrieve"),
    *route("podgroups/<str:namespace>/<str:name>", PodGroupViewSet, "podgroup", get="retrieve"),
]
