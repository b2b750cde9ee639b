"""Every route as every rank, generated from the URL conf and compared with one table.

A route that is not in the table fails the test: whoever adds one says who may use it.
"""

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from cluster import runtime
from cluster.embedded.store import EmbeddedCluster
from cluster.kinds import CRON_JOB, JOB, JOB_FLOW, JOB_TEMPLATE, NODE, POD, POD_GROUP, QUEUE
from cluster.projection import Batch
from jobs.blueprints import definition
from jobs.blueprints import operations as blueprints
from jobs.models import CronJob, Job, JobFlow, JobTemplate, Pod
from jobs.projection import project_jobs
from portal.mirror import PROJECTIONS
from portal.models import Simulation
from tests.jobs.cron.world import cron
from tests.jobs.flows.world import flow, template
from tests.portal import objects as make

pytestmark = pytest.mark.django_db(databases="__all__")

RANKS = ("nobody", "user", "owner", "staff")

# Who gets past the door, by URL name; a method in front of the name, else GET.
TABLE = {
    RANKS: """healthz readyz favicon login logout theme set_language api:nothing""",
    ("user", "owner", "staff"): """
        simulations:list simulations:new simulations:detail simulations:file
        GET:api:job-start-estimate GET:api:job-start-estimate-by-uid
        GET:api:scheduler-health GET:api:scheduler-cycles GET:api:scheduler-cycle
        cockpit:cycle cockpit:evictions cockpit:configuration
        overview find preferences scheduler jobs:list jobs:detail jobs:compare
        jobs:by_name jobs:submit jobs:export jobs:export_json jobs:views
        POST:jobs:columns POST:jobs:view jobs:bulk jobs:bulk_detail GET:api:bulk-operations POST:api:bulk-operations
        GET:api:bulk-operation GET:api:bulk-operation-items POST:api:bulk-operation-act POST:jobs:validate POST:apply
        jobs:blueprints jobs:blueprint_new jobs:blueprint POST:jobs:blueprint_preview jobs:blueprint_versions
        jobs:blueprint_export GET:api:blueprints POST:api:blueprints GET:api:blueprint GET:api:blueprint-versions
        GET:api:blueprint-version POST:api:blueprint-submit
        queues:list queues:detail queues:fairness GET:api:fairness GET:api:queue-shares GET:api:queue-history
        cluster:gpus cluster:gpus_export cluster:gpus_export_json
        GET:api:gpus GET:api:gpu-counts cluster:nodes cluster:node cluster:node_panel
        cluster:nodes_export cluster:nodes_export_json topology:domains topology:fragments topology:domain
        GET:api:jobs GET:api:job GET:api:job-by-uid GET:api:job-explain GET:api:job-explain-by-uid
        GET:api:job-priority-by-uid POST:api:job-dry-run unblock way POST:dry_run
        GET:api:queues GET:api:queue GET:api:nodes GET:api:node
        GET:api:pods GET:api:pod GET:api:pod-by-uid GET:api:podgroups GET:api:podgroup GET:api:podgroup-by-uid
        GET:api:pod-log GET:api:job-logs GET:api:job-timeline
        GET:api:jobflows GET:api:jobflow GET:api:jobflow-by-uid GET:api:jobtemplates GET:api:jobtemplate
        GET:api:jobtemplate-by-uid GET:api:cronjobs GET:api:cronjob GET:api:cronjob-by-uid
        POST:api:jobflows POST:api:jobtemplates POST:api:cronjobs
        jobs:flows jobs:flow jobs:templates jobs:template jobs:crons jobs:cron
        GET:api:about GET:api:events GET:api:event GET:api:evictions GET:api:openapi GET:api:docs POST:api:jobs POST:api:apply""",
    ("owner", "staff"): """
        POST:simulations:cancel POST:simulations:delete
        POST:api:job-action DELETE:api:job DELETE:api:job-by-uid POST:jobs:action DELETE:api:pod DELETE:api:pod-by-uid
        PATCH:api:jobflow PATCH:api:jobflow-by-uid DELETE:api:jobflow DELETE:api:jobflow-by-uid
        PATCH:api:jobtemplate PATCH:api:jobtemplate-by-uid DELETE:api:jobtemplate DELETE:api:jobtemplate-by-uid
        PATCH:api:cronjob PATCH:api:cronjob-by-uid DELETE:api:cronjob DELETE:api:cronjob-by-uid POST:api:cronjob-action
        PATCH:api:job-priority-by-uid priority POST:way POST:jobs:flow_action POST:jobs:template_action POST:jobs:cron_action
        jobs:blueprint_edit POST:jobs:blueprint_action PUT:api:blueprint POST:api:blueprint-action""",
    ("staff",): """
        cockpit:edit POST:cockpit:edit cockpit:history POST:cockpit:roll_back cockpit:download cockpit:what_if
        POST:cockpit:what_if cockpit:snapshot cockpit:snapshot_file GET:api:scheduler-snapshot POST:api:scheduler-what-if
        GET:api:scheduler-configuration PUT:api:scheduler-configuration POST:api:scheduler-configuration-check
        GET:api:scheduler-configuration-versions
        POST:portal:workload queues:create queues:edit queues:delete POST:queues:action POST:queue_impact queue_close POST:queue_move POST:api:queue-preview
        POST:cluster:node_action POST:api:node-action
        POST:api:queues PATCH:api:queue DELETE:api:queue POST:api:queue-action""",
    (): "POST:api:token-login POST:api:token-logout POST:api:token-logout-all",  # by password or token, never by session
}


def entries():
    for ranks, text in TABLE.items():
        for entry in text.split():
            method, _, name = entry.partition(":") if entry.split(":")[0].isupper() else ("GET", "", entry)
            yield method, name, ranks


@pytest.fixture
def world(make_user):
    cluster = EmbeddedCluster()
    runtime.use(cluster)
    for name in ("root", "default", "leaf"):
        cluster.create(QUEUE, {"metadata": {"name": name}, "spec": {"weight": 1}})
    cluster.create(NODE, {**make.node(), "metadata": {"name": "gpu-01"}})
    job = make.job()
    cluster.create(JOB, {**job, "metadata": {"name": "train", "annotations": {"basalt.dev/owner": "owner"}}})
    notes = {"annotations": {"basalt.dev/owner": "owner"}}
    for kind, obj in ((JOB_TEMPLATE, template("train")), (CRON_JOB, cron(title="train"))):
        cluster.create(kind, {**obj, "metadata": obj["metadata"] | notes})
    containers = [{"name": "main", "image": "busybox"}]
    cluster.create(POD, {"metadata": {"name": "train", **notes}, "spec": {"containers": containers}})
    for kind in (QUEUE, NODE, JOB, POD_GROUP, POD, JOB_TEMPLATE, CRON_JOB):
        PROJECTIONS[kind].project(Batch(cluster.list(kind).items))
    cluster.create(JOB_TEMPLATE, template("used"))  # a template cannot go while a flow needs it
    cluster.create(JOB_FLOW, {**flow("train", "used"), "metadata": flow("train")["metadata"] | notes})
    PROJECTIONS[JOB_FLOW].project(Batch(cluster.list(JOB_FLOW).items))
    owner = make_user("owner")
    blueprints.create(owner, definition.example("train"))
    Simulation.objects.create(pk=7, title="a month", owner="owner")
    yield {"user": make_user("user"), "owner": owner, "staff": make_user("staff", staff=True), "nobody": None}
    runtime.use(None)


def _row(name):
    """The row that a route with a uid is asked about."""
    title = name.rpartition(":")[2]
    for word, model in (("template", JobTemplate), ("flow", JobFlow), ("cron", CronJob)):
        if word in title:
            return model.objects.get()
    return Pod.objects.get() if title.startswith("pod-") else Job.objects.get()


def address(name):
    job = _row(name)
    nodes = dict.fromkeys(("node", "node_panel", "node_action"), "gpu-01")
    values = {
        "uid": job.uid if "podgroup" not in name and "event" not in name else "unknown",
        "namespace": "default",
        "name": {"queue": "leaf", **nodes}.get(name.rpartition(":")[2].split("-")[0], "train"),
        "pk": "7" if name.startswith(("jobs:view", "simulations:", "cockpit:")) else "00000000-0000-4000-8000-000000000000",
        "wish": "start",
        "other": job.uid,
        "number": "1",
        "place": "0",
        "action": "archive" if "blueprint" in name else "close" if "queue" in name else "cordon" if "node" in name else "suspend",
    }
    if name.startswith("queues:"):
        values["name"] = "leaf"
    pattern = dict(_named(get_resolver()))[name]
    for key, value in values.items():
        for converter in ("str", "uuid", "slug", "path", "int", "queue"):
            pattern = pattern.replace(f"<{converter}:{key}>", value)
    assert "<" not in pattern, pattern
    return f"/{pattern}"


def _named(resolver, prefix="", space=""):
    """Every named route with its whole pattern (the twins with a slash at the end have no name)."""
    for entry in resolver.url_patterns:
        if isinstance(entry, URLResolver):
            inner = f"{space}{entry.namespace}:" if entry.namespace else space
            yield from _named(entry, prefix + str(entry.pattern), inner)
        elif isinstance(entry, URLPattern) and entry.name:
            yield space + entry.name, prefix + str(entry.pattern)


def passes(method, path, user):
    client = Client()
    if user is not None:
        client.force_login(user, "django.contrib.auth.backends.ModelBackend")
    answer = getattr(client, method.lower())(path, content_type="application/json")
    if answer.status_code == 302 and answer.headers["Location"].startswith("/sign-in/"):
        return False
    return answer.status_code not in (401, 403)


@pytest.mark.parametrize(
    ("method", "name", "allowed"), list(entries()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_who_gets_past_the_door(world, method, name, allowed):
    path = address(name)
    assert [rank for rank in RANKS if passes(method, path, world[rank])] == list(allowed)


def test_every_route_is_in_the_table():
    known = {name for _, name, _ in entries()}
    named = {name for name, _ in _named(get_resolver()) if not name.startswith("admin:")}
    assert named - known == set(), "say in TABLE who may use these"


def test_a_user_who_was_locked_sees_nothing(world):
    user = world["user"]
    client = Client()
    client.force_login(user, "django.contrib.auth.backends.ModelBackend")
    assert client.get("/api/v1/jobs").status_code == 200
    user.is_active = False
    user.save()
    assert client.get("/api/v1/jobs").status_code == 401
    project_jobs(Batch([make.job("other")]))
    assert client.get("/jobs/").status_code == 302
