"""Pages of queues: the tree, GPUs by model, files, a past minute, editing with a look first, history, closing and emptying."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from dataclasses import replace
from datetime import timedelta

import pytest

from cluster import runtime
from cluster.kinds import QUEUE
from cluster.projection import Batch
from jobs.models import Pod
from jobs.projection import project_jobs
from portal.models import Eviction, Placement
from queues import changes, fairness, fairness_views
from queues.fairness import Account
from queues.models import Queue, QueueChange
from queues.projection import project
from queues.queries import amounts
from queues.sampling import Sampler
from tests import factories, fleet_rows
from tests.factories import GPU
from tests.portal import objects as make
from tests.portal.pages import signed_in, streamed, text

pytestmark = pytest.mark.django_db(databases=["default", "cluster"])
OWN = "tests.portal.test_evictions.Own"


@pytest.fixture
def fleet():
    cluster = fleet_rows.demo_cluster()
    runtime.use(cluster)
    fleet_rows.occupy()
    fleet_rows.shares(steps=0)
    yield cluster
    runtime.use(None)


def inputs(page):
    """The form's fields as a browser would send them."""
    form = page[page.index("<form", page.index("ba-main")) :]
    found = {}
    for tag in re.findall(r"<input[^>]*>", form):
        name, value = re.search(r'name="([^"]*)"', tag), re.search(r'value="([^"]*)"', tag)
        if name and 'type="submit"' not in tag:
            found[name[1]] = html.unescape(value[1]) if value else ""
    if "reclaimable" not in found:
        found["reclaimable"] = "yes"
    return found


# -- the tree --------------------------------------------------------------------------------------------------------------


def test_the_tree_as_a_file_has_every_amount_of_every_resource(member, fleet):
    rows = list(csv.DictReader(io.StringIO(streamed(member.get("/queues/?format=csv")))))
    assert {row["queue"] for row in rows} == set(Queue.objects.values_list("name", flat=True))
    queue, row = Queue.objects.get(name="nlp"), next(row for row in rows if row["queue"] == "nlp")
    assert float(row[f"{GPU} allocated"]) == queue.share_allocated[GPU] / 1000
    assert float(row[f"{GPU} deserved"]) == 24
    waits = queue.share_request[GPU] - queue.share_allocated[GPU] - queue.share_inqueue[GPU]
    assert float(row[f"{GPU} pending"]) == max(0, waits) / 1000
    assert json.loads(streamed(member.get("/queues/?format=json&q=nlp")))[-1]["queue"] == "nlp"


def test_what_the_script_computes_from_is_small(member, fleet):
    holder = re.search(r'id="tree-data"[^>]*>(.*?)</script>', member.get("/queues/?resource=cpu&q=nlp").content.decode())[1]
    told = json.loads(holder)
    assert {name for name, _ in told["order"]} == set(Queue.objects.values_list("name", flat=True))
    assert all(set(queue["allocated"]) <= {"cpu"} for queue in told["queues"])


def test_a_filter_keeps_what_a_match_hangs_below_and_its_sums(member, fleet):
    whole = {branch.queue.name: branch for branch in member.get("/queues/").context["branches"]}
    found = member.get("/queues/?q=NLP").context["branches"]
    assert [branch.queue.name for branch in found] == ["root", "research", "nlp"]
    assert found[1].bars == whole["research"].bars
    assert "No queue is called like" in text(member.get("/queues/?q=zzz"))


def test_gpus_by_model_add_up_to_what_pods_hold(member, fleet):
    context = member.get("/queues/?resource=models").context
    held = {branch.queue.name: sum(cell.held for cell in cells) for branch, cells in context["by_model"]}
    expected = sum(pod.requests[GPU] for pod in Pod.objects.filter(queue="nlp"))
    assert held["nlp"] == expected
    assert held["research"] == held["nlp"] + held["speech"] + held["vision"]
    assert held["root"] == sum(pod.requests[GPU] for pod in Pod.objects.all())


def test_amounts_of_one_bar_have_one_unit(member, fleet):
    Queue.objects.filter(name="nlp").update(share_allocated={"memory": 512 << 30}, share_deserved={"memory": 2 << 40})
    branch = next(each for each in member.get("/queues/?resource=memory").context["branches"] if each.queue.name == "nlp")
    assert branch.bars[0].pair == ("0.5", "2", "TiB")
    assert amounts((15 << 40, 1300 << 40), "memory") == ("15 TiB", "1.3 PiB", "")
    assert amounts((0, 1300 << 40), "memory") == ("0", "1.3", "PiB")
    assert amounts((7000, 1_500_000), "cpu") == ("7", "1,500", "")


@pytest.mark.parametrize("name", ["fairness", "new"])
def test_a_queue_that_is_called_like_a_page_has_pages_of_its_own(staff, fleet, name):
    staff.post("/queues/new/", {"name": name, "parent": "root", "weight": "1", "reclaimable": "yes"})
    assert staff.get(f"/queues/~{name}/").context["queue"].name == name
    assert f'href="/queues/~{name}/"' in staff.get("/queues/").content.decode()
    assert staff.get(f"/queues/~{name}/edit/").status_code == 200
    assert "queue" not in (staff.get("/queues/fairness/").context or {})


# -- a past minute ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def past(fleet):
    """Two minutes: in the second `nlp` went from 16 GPUs to 8, since a pod of it gave way to a job that 4 were given to."""
    minute = (factories.now() - timedelta(minutes=30)).replace(second=0, microsecond=0)
    sampler = Sampler()
    for seconds, nlp, prod in ((5, 16_000, 0), (35, 16_000, 0), (65, 8000, 0), (95, 8000, 4000)):
        shares = {
            name: {"share": 0.0, "share_allocated": {GPU: units}, "share_deserved": {GPU: 24_000}, "share_request": {GPU: 24_000},
                   "share_inqueue": {}}
            for name, units in (("nlp", nlp), ("prod", prod))
        }  # fmt: skip
        at = minute + timedelta(seconds=seconds)
        sampler.offer(shares, at, capacity={GPU: 64_000}, inner=frozenset({"research", "root"}), cycle=seconds)
    for name in ("mine", "theirs"):
        project_jobs(Batch([make.job(name)]))
    at = minute + timedelta(seconds=94)
    Placement.objects.create(at=at, cycle=95, queue="prod", job="default/theirs", job_uid="uid-theirs", pods=4, taken={GPU: 4000})
    Placement.objects.create(at=at, cycle=95, queue="nlp", job="default/mine", job_uid="uid-mine", pods=1, taken={"cpu": 1000})
    Eviction.objects.create(
        at=at, cycle=95, action="preempt", rule="priority", reason="", node="n1", victim="default/mine-w-0", victim_uid="u",
        victim_job="default/g", victim_job_uid="uid-mine", victim_queue="nlp", preemptor="default/h",
        preemptor_uid="uid-theirs", preemptor_pod="default/h-0", preemptor_queue="prod", freed={GPU: 8000},
    )  # fmt: skip
    return minute + timedelta(minutes=1)


def test_a_minute_shows_what_queues_held_and_what_they_held_before(member, past):
    context = member.get(f"/queues/?at={past.isoformat().replace('+', '%2B')}").context
    figures = {row.queue: row for row in context["figures"]}
    assert (figures["nlp"].was, figures["nlp"].allocated, figures["nlp"].deserved) == (16_000, 8000, 24_000)
    assert (figures["prod"].was, figures["prod"].allocated) == (0, 4000)
    assert context["moment"].taken.cycle == 95


def test_its_ledger_names_who_was_placed_and_who_gave_way(member, past):
    page = text(member.get(f"/queues/?at={past.isoformat().replace('+', '%2B')}"))
    assert "Preempted mine" in page
    assert "4 pods · 4 GPUs" in page
    of_queue = text(member.get(f"/queues/prod/?at={past.isoformat().replace('+', '%2B')}"))
    assert "4 pods · 4 GPUs" in of_queue
    assert "1 pod · 1 CPU" not in of_queue


def test_rest_says_the_same(member, past):
    found = member.get("/api/v1/queue-shares", {"at": past.isoformat()}).json()
    nlp = next(row for row in found["queues"] if row["queue"] == "nlp")
    assert (nlp["allocated"], nlp["allocated_before"]) == ({GPU: 8000}, {GPU: 16_000})
    assert [(row["job"], row["pods"]) for row in found["placed"]] == [("theirs", 4), ("mine", 1)]
    assert found["evicted"][0]["victim"]["job"] == "mine"
    assert found["capacity"] == {GPU: 64_000}
    assert member.get("/api/v1/queue-shares", {"at": "yesterday"}).status_code == 400
    assert member.get("/api/v1/queue-history", {"resource": GPU}).json()["series"]["nlp"][-1] == 8
    assert member.get("/api/v1/queue-history", {"window": "1y"}).status_code == 400


def test_who_may_not_see_a_job_reads_no_name_of_it(member, past, settings):
    settings.BASALT_POLICY = OWN
    for path in ("/queues/", "/queues/nlp/", "/api/v1/queue-shares"):
        page = member.get(path, {"at": past.isoformat()}).content.decode()
        assert "theirs" not in page, path
        assert "uid-theirs" not in page, path
    assert "another job" in text(member.get("/queues/", {"at": past.isoformat()}))


def test_of_a_minute_without_samples_nothing_is_claimed(member, past):
    page = member.get("/queues/", {"at": (past + timedelta(minutes=7)).isoformat()})
    assert "nobody wrote it down" in text(page)
    assert page.context["moment"].earlier == past
    assert member.get("/queues/?at=soon").status_code == 200
    assert member.get("/api/v1/queue-shares", {"at": (past - timedelta(days=9)).isoformat()}).json()["taken_at"] is None


# -- fairness --------------------------------------------------------------------------------------------------------------


def test_the_report_is_the_same_as_page_file_and_rest(member, past):
    page = member.get("/queues/fairness/?resource=" + GPU)
    rest = member.get("/api/v1/fairness", {"resource": GPU}).json()
    file = streamed(member.get(f"/queues/fairness/?format=csv&resource={GPU}"))
    rows = {row["queue"]: row for row in csv.DictReader(io.StringIO(file))}
    nlp = next(row for row in rest["queues"] if row["queue"] == "nlp")
    hours = (16 * 60 + 8 * 30) / 3600
    assert nlp["received"] == pytest.approx(hours, rel=1e-4)
    assert float(rows["nlp"]["received"]) == nlp["received"]
    assert rest["known_seconds"] == 90
    assert rest["capacity"] == pytest.approx(64 * 90 / 3600, rel=1e-4)
    met = {row["queue"]: row["met_share"] for row in rest["queues"]}
    assert met == {"nlp": pytest.approx(hours / (24 * 90 / 3600)), "prod": 0.0}
    assert rest["jain"] == pytest.approx(0.5)
    assert "prod received 0 % of what was due to it, the least of all." in text(page)
    assert json.loads(member.get(f"/queues/fairness/?format=json&resource={GPU}").content)["total"] == rest["total"]


@pytest.mark.parametrize(
    ("due", "said"),
    [
        ({"nlp": 4, "prod": 0}, "nlp received 25 % of what was due to it. Nothing was due to any other queue."),
        ({"nlp": 4, "prod": 4}, "2 queues received 25 % of what was due to them, the least of all."),
        ({"nlp": 4, "prod": 2}, "nlp received 25 % of what was due to it, the least of all."),
        ({"nlp": 1, "prod": 1}, "Every queue received all that was due to it."),
    ],
)
def test_the_report_names_who_got_least_and_of_whom(member, past, monkeypatch, due, said):
    def made(*asked):
        found = fairness.report(*asked)
        nothing = dict.fromkeys(found.total.sums, 0)
        accounts = [Account(name, "root", nothing | {"due": each, "met": min(each, 1)}) for name, each in due.items()]
        return replace(found, accounts=accounts)

    monkeypatch.setattr(fairness_views, "report", made)
    assert said in text(member.get("/queues/fairness/?resource=" + GPU))


def test_a_queue_that_is_gone_is_told_without_a_link(member, past):
    Queue.objects.filter(name="prod").update(deleted_at=factories.now())
    for path in ("/queues/fairness/?resource=" + GPU, "/queues/?at=" + past.isoformat().replace("+", "%2B")):
        page = member.get(path).content.decode()
        assert ">prod</span>" in page, path
        assert 'href="/queues/prod/"' not in page, path


def test_a_report_of_nothing_says_so_and_a_wrong_address_what_would_be_right(member, fleet):
    assert "Nothing is known of this window" in text(member.get("/queues/fairness/"))
    page = text(member.get("/queues/fairness/?window=1y"))
    assert "is one of 1h, 6h, 24h, 7d" in page
    assert member.get("/queues/fairness/?window=1y&format=csv").status_code == 400
    assert member.get("/api/v1/fairness?from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z").status_code == 400
    assert member.get("/api/v1/fairness?resource=nope").status_code == 400


def test_where_another_scheduler_does_not_say_what_is_asked_nothing_of_it_is_claimed(member, past, settings):
    settings.BASALT_SCHEDULER = False
    found = member.get("/api/v1/fairness", {"resource": GPU}).json()
    assert found["jain"] is None
    assert {found["total"][part] for part in ("asked", "due", "met", "waited")} == {None}
    assert found["total"]["received"] > 0
    assert "how fair the sharing was is unknown" in text(member.get("/queues/fairness/?resource=" + GPU))


@pytest.mark.parametrize("at", ["0001-01-01T00:00", "9999-12-31T23:59:59Z", "2026-02-31T00:00", "1e9", "\x00"])
def test_instants_that_are_none_break_nothing(member, past, at):
    assert member.get("/queues/", {"at": at}).status_code == 200
    assert member.get("/api/v1/queue-shares", {"at": at}).status_code == 400
    assert member.get("/api/v1/fairness", {"from": at}).status_code == 400


def test_decisions_that_are_not_kept_any_more_are_not_called_none(member, past):
    Placement.objects.filter(queue="nlp").delete()
    Placement.objects.update(at=past + timedelta(minutes=5))
    Placement.objects.filter(pk=Placement.objects.get().pk).update(id=500)
    Eviction.objects.all().delete()
    page = text(member.get("/queues/", {"at": past.isoformat()}))
    assert "Not all decisions of so long ago are kept" in page
    assert "Nothing was decided" not in page


# -- changes ---------------------------------------------------------------------------------------------------------------


def test_a_change_is_shown_with_what_it_would_do_before_it_is_written(staff, fleet):
    form = inputs(staff.get("/queues/prod/edit/").content.decode())
    page = staff.post("/queues/prod/edit/", form | {"weight": "9", "capability.cpu": "64"})
    assert page.status_code == 200
    assert [(each.key, each.was, each.value) for each, _ in page.context["told"]] == [
        ("weight", "3", "9"),
        ("capability.cpu", form["was-capability.cpu"], "64"),
    ]
    assert "What it would do" in text(page)
    assert fleet.get(QUEUE, "prod")["spec"]["weight"] == 3
    kept = inputs(page.content.decode())
    assert 'value="9"' in staff.post("/queues/prod/edit/", kept | {"step": "back"}).content.decode()
    staff.post("/queues/prod/edit/", kept | {"step": "save"})
    spec = fleet.get(QUEUE, "prod")["spec"]
    assert (spec["weight"], spec["capability"]["cpu"]) == (9, "64")


def test_a_conflict_says_who_changed_what_side_by_side_and_lets_one_go_on(staff, fleet, make_user):
    form = inputs(staff.get("/queues/prod/edit/").content.decode())
    other = signed_in(make_user("olga", staff=True))
    theirs = inputs(other.get("/queues/prod/edit/").content.decode())
    other.post("/queues/prod/edit/", theirs | {"weight": "5", "priority": "7", "step": "save"})
    page = staff.post("/queues/prod/edit/", form | {"weight": "9", "step": "save"})
    assert page.status_code == 409
    rows = {each.key: (was, now, yours) for each, was, now, yours in page.context["conflict"]["rows"]}
    assert rows == {"weight": ("3", "5", "9"), "priority": (form["was-priority"], "7", "7")}
    assert page.context["conflict"]["touch"] is True
    assert page.context["conflict"]["changes"][0].user == "olga"
    staff.post("/queues/prod/edit/", inputs(page.content.decode()) | {"step": "save"})
    spec = fleet.get(QUEUE, "prod")["spec"]
    assert (spec["weight"], spec["priority"]) == (9, 7)


def test_counts_of_jobs_are_no_conflict(staff, fleet):
    form = inputs(staff.get("/queues/prod/edit/").content.decode())
    fleet.patch_status(QUEUE, "prod", "", {"running": 4})
    staff.post("/queues/prod/edit/", form | {"weight": "9", "step": "save"})
    assert fleet.get(QUEUE, "prod")["spec"]["weight"] == 9


def test_every_change_is_kept_once_with_its_author(staff, fleet):
    staff.post("/queues/new/", {"name": "audio", "parent": "root", "weight": "2", "reclaimable": "yes"})
    form = inputs(staff.get("/queues/audio/edit/").content.decode())
    staff.post("/queues/audio/edit/", form | {"capability.cpu": "8", "step": "save"})
    fleet.patch(QUEUE, "audio", "", {"spec": {"weight": 4}})  # as kubectl would
    project(Batch([fleet.get(QUEUE, "audio")]))
    project(Batch([fleet.get(QUEUE, "audio")]))
    staff.post("/queues/audio/actions/close/")
    rows = [(row.verb, row.user, row.diff) for row in QueueChange.objects.filter(name="audio").order_by("pk")]
    assert [row[:2] for row in rows] == [
        ("created", "root-of-all"),
        ("changed", "root-of-all"),
        ("changed", ""),
        ("asked", "root-of-all"),
    ]
    assert rows[1][2] == {"capability.cpu": [None, 8000]}
    assert rows[2][2] == {"weight": [2, 4]}
    page = text(staff.get("/queues/audio/"))
    assert "Capability CPU none → 8" in page
    assert "asked to close it" in page


def test_who_saw_it_first_does_not_hide_who_did_it(staff, fleet):
    fleet.patch(QUEUE, "prod", "", {"spec": {"weight": 8}})
    obj = fleet.get(QUEUE, "prod")
    project(Batch([obj]))  # the mirror is faster than the page
    changes.name_author(obj, "ada")
    assert QueueChange.objects.get(verb="changed", name="prod").user == "ada"


def test_a_sum_that_does_not_fit_stands_at_its_field_with_what_would(staff, fleet):
    spec = {"deserved": {"cpu": "100"}}
    fleet.patch(QUEUE, "research", "", {"spec": spec})
    fleet.patch(QUEUE, "vision", "", {"spec": {"deserved": {"cpu": "70"}}})
    form = inputs(staff.get("/queues/nlp/edit/").content.decode())
    page = staff.post("/queues/nlp/edit/", form | {"deserved.cpu": "40"})
    assert page.status_code == 422
    assert "at most 30 fits here, unless research gets 110" in text(page)
