"""Every route with an address that leads somewhere, and a world for them to show."""

from django.urls import URLPattern, URLResolver, get_resolver

from cluster import runtime
from cluster.embedded.store import EmbeddedCluster
from cluster.kinds import CRON_JOB, HYPER_NODE, JOB, JOB_FLOW, JOB_TEMPLATE, NODE, POD, POD_GROUP, QUEUE
from cluster.projection import Batch
from cluster.runtime import now
from jobs.blueprints import definition
from jobs.blueprints import operations as blueprints
from jobs.models import CronJob, Job, JobFlow, JobTemplate, Pod
from portal.mirror import PROJECTIONS
from portal.models import Drain, DrainedNode, Simulation
from tests.jobs.cron.world import cron
from tests.jobs.flows.world import flow, template
from tests.portal import objects as make
from tests.scheduler.topology.world import domain

NOBODY = "00000000-0000-4000-8000-000000000000"
"""The uid of what is asked for by one, and mostly is not there."""


def make_world(make_user):
    """A cluster with one of each kind, as its rows, and people of each rank. The caller lets the cluster go."""
    cluster = EmbeddedCluster()
    runtime.use(cluster)
    for name in ("root", "default", "leaf"):
        cluster.create(QUEUE, {"metadata": {"name": name}, "spec": {"weight": 1}})
    cluster.create(NODE, {**make.node(), "metadata": {"name": "gpu-01"}})
    cluster.create(HYPER_NODE, domain("train", 1, ["gpu-01"]))
    job = make.job()
    cluster.create(JOB, {**job, "metadata": {"name": "train", "annotations": {"basalt.dev/owner": "owner"}}})
    notes = {"annotations": {"basalt.dev/owner": "owner"}}
    for kind, obj in ((JOB_TEMPLATE, template("train")), (CRON_JOB, cron(title="train"))):
        cluster.create(kind, {**obj, "metadata": obj["metadata"] | notes})
    containers = [{"name": "main", "image": "busybox"}]
    cluster.create(POD, {"metadata": {"name": "train", **notes}, "spec": {"containers": containers}})
    for kind in (QUEUE, NODE, HYPER_NODE, JOB, POD_GROUP, POD, JOB_TEMPLATE, CRON_JOB):
        PROJECTIONS[kind].project(Batch(cluster.list(kind).items))
    cluster.create(JOB_TEMPLATE, template("used"))  # a template cannot go while a flow needs it
    cluster.create(JOB_FLOW, {**flow("train", "used"), "metadata": flow("train")["metadata"] | notes})
    PROJECTIONS[JOB_FLOW].project(Batch(cluster.list(JOB_FLOW).items))
    owner = make_user("owner")
    blueprints.create(owner, definition.example("train"))
    Simulation.objects.create(pk=7, title="a month", owner="owner")
    drain = Drain.objects.create(pk=NOBODY, user="staff", reason="a fan", state="done", created_at=now())
    DrainedNode.objects.create(drain=drain, place=0, node="gpu-01", uid="n", state="drained", pods=2, left=0)
    return {"user": make_user("user"), "owner": owner, "staff": make_user("staff", staff=True), "nobody": None}


def _row(name):
    """The row that a route with a uid is asked about."""
    title = name.rpartition(":")[2]
    for word, model in (("template", JobTemplate), ("flow", JobFlow), ("cron", CronJob)):
        if word in title:
            return model.objects.get()
    return Pod.objects.get() if title.startswith("pod-") else Job.objects.get()


def address(name):
    """The path of a route, about what `make_world` made."""
    job = _row(name)
    nodes = dict.fromkeys(("node", "node_panel", "node_action"), "gpu-01")
    values = {
        "uid": job.uid if "podgroup" not in name and "event" not in name else "unknown",
        "namespace": "default",
        "name": {"queue": "leaf", **nodes}.get(name.rpartition(":")[2].split("-")[0], "train"),
        "pk": "7" if name.startswith(("jobs:view", "simulations:", "cockpit:")) else NOBODY,
        "wish": "start",
        "other": job.uid,
        "number": "1",
        "place": "0",
        "action": "archive" if "blueprint" in name else "close" if "queue" in name else "cordon" if "node" in name else "suspend",
    }
    if name.startswith(("queues:", "queue_")):
        values["name"] = "leaf"
    pattern = dict(named(get_resolver()))[name]
    for key, value in values.items():
        for converter in ("str", "uuid", "slug", "path", "int", "queue"):
            pattern = pattern.replace(f"<{converter}:{key}>", value)
    assert "<" not in pattern, pattern
    return f"/{pattern}"


def named(resolver, prefix="", space=""):
    """Every named route with its whole pattern (the twins with a slash at the end have no name)."""
    for entry in resolver.url_patterns:
        if isinstance(entry, URLResolver):
            inner = f"{space}{entry.namespace}:" if entry.namespace else space
            yield from named(entry, prefix + str(entry.pattern), inner)
        elif isinstance(entry, URLPattern) and entry.name:
            yield space + entry.name, prefix + str(entry.pattern)


def full_pages(client):
    """Paths of every route that answers this client with a whole page, by name; a route that cannot be addressed fails."""
    found = {}
    for name in dict(named(get_resolver())):
        if name.startswith(("admin:", "api:")) and name != "api:docs":
            continue
        answer = client.get(address(name))
        if answer.status_code == 200 and answer["Content-Type"].startswith("text/html") and b"<html" in answer.getvalue():
            found[name] = address(name)
    return found
