"""Every route as every rank, generated from the URL conf and compared with one table.

A route that is not in the table fails the test: whoever adds one says who may use it.
"""

import pytest
from django.test import Client
from django.urls import get_resolver

from cluster import runtime
from cluster.projection import Batch
from jobs.projection import project_jobs
from tests.portal import objects as make
from tests.portal.site import address, make_world, named

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
        cluster:nodes_export cluster:nodes_export_json drains:list drains:detail GET:api:drains GET:api:drain
        topology:domains topology:fragments topology:domain
        GET:api:topology GET:api:topology-domain GET:api:topology-fragments GET:api:node-sets
        GET:api:job-placement GET:api:job-placement-by-uid
        GET:api:jobs GET:api:job GET:api:job-by-uid GET:api:job-explain GET:api:job-explain-by-uid
        GET:api:job-priority-by-uid POST:api:job-dry-run unblock way POST:dry_run POST:outlook
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
        POST:portal:workload queues:create queues:edit queues:delete POST:queues:action POST:queue_impact POST:api:queue-preview
        queue_close POST:queue_move
        POST:cluster:node_action POST:api:node-action
        drains:new POST:drains:new POST:api:drains GET:api:drain-preview POST:api:drain-cancel
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
    yield make_world(make_user)
    runtime.use(None)


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
    routes = {name for name, _ in named(get_resolver()) if not name.startswith("admin:")}
    assert routes - known == set(), "say in TABLE who may use these"


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
