"""Cycles: their percentiles, their time by plugin which sums up exactly, and each one's ledger as its viewer may see it."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.urls import reverse

from cluster import runtime
from jobs.models import Job
from portal.cockpit import cycles, judged
from portal.cockpit.health import State, health
from portal.decisions import Sink
from portal.models import Cycle, Eviction
from scheduler.framework.explain import Code, Stage, Verdict
from scheduler.framework.record import CycleRecord, Served
from tests.portal.pages import streamed
from tests.portal.test_evictions import AT, eviction, give, narrow, two_jobs  # noqa: F401 - fixtures

pytestmark = pytest.mark.django_db
NOW = datetime.fromtimestamp(AT, UTC)


@pytest.fixture(autouse=True)
def now(monkeypatch):
    monkeypatch.setattr(runtime, "now", lambda: NOW)


def keep(*records: CycleRecord) -> None:
    sink = Sink()
    for record in records:
        sink(record)
        sink.write()


def record(number: int, at: float = AT, **more) -> CycleRecord:
    given = {
        "milliseconds": 10.0,
        "actions": {"enqueue": 1.0, "allocate": 6.0},
        "opening": 2.0,
        "plugins": {"gang": (0.25, 0.25), "drf": (1.0, 0.0)},
        "hooks": {"enqueue": {"gang": 0.5}, "allocate": {"gang": 1.5, "drf": 3.0}},
        "bound": 4,
    }
    return CycleRecord(number, at, **{**given, **more})


def plain(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", html))


def page(client, user, url: str) -> str:
    client.force_login(user)
    answer = client.get(url)
    assert answer.status_code == 200
    return answer.content.decode()


def test_percentiles_are_values_that_occurred():
    values = [float(value) for value in range(1, 101)]
    assert [cycles.percentile(values, percent) for percent in (50, 95, 99, 100)] == [50.0, 95.0, 99.0, 100.0]
    assert cycles.percentile([7.0], 99) == 7.0


def test_a_windows_figures_count_its_cycles_alone():
    old = datetime.fromtimestamp(AT - 121, UTC)
    Cycle.objects.create(number=1, at=old, milliseconds=500.0, bound=50)
    rows = [(2, 10.0, 4, None), (3, 30.0, 0, 40.0), (4, 20.0, 2, 80.0)]
    for number, spent, bound, waited in rows:
        at = datetime.fromtimestamp(AT - 10 + number, UTC)
        Cycle.objects.create(number=number, at=at, milliseconds=spent, bound=bound, waited=waited)
    found = cycles.read("2m", NOW).figures
    assert (found.cycles, found.p50, found.p99, found.longest, found.bound) == (3, 20.0, 30.0, 30.0, 6)
    assert found.per_second == pytest.approx(6 / 0.030)  # of the cycles that placed any
    assert found.waited == 40.0
    assert cycles.read("1h", NOW).figures.cycles == 4
    assert cycles.figures([]) == cycles.Figures()


def test_the_time_by_plugin_and_phase_sums_up_to_the_cycle():
    keep(record(1))
    found = cycles.matrix(Cycle.objects.get())
    assert found["gang"] == {"open": 0.25, "enqueue": 0.5, "allocate": 1.5, "close": 0.25}
    assert found["drf"] == {"open": 1.0, "allocate": 3.0, "close": 0.0}
    assert found["core"] == {"open": 0.75, "enqueue": 0.5, "allocate": 1.5, "close": 0.75}
    assert sum(spent for row in found.values() for spent in row.values()) == 10.0


def test_plugins_never_show_more_than_their_action_took():
    keep(record(1, hooks={"enqueue": {}, "allocate": {"gang": 6.0, "drf": 6.0}}))
    found = cycles.matrix(Cycle.objects.get())
    assert (found["gang"]["allocate"], found["drf"]["allocate"], found["core"]["allocate"]) == (3.0, 3.0, 0.0)


def test_more_cycles_than_bars_show_the_slowest_of_each_stretch():
    for number in range(1, 301):
        at = NOW - timedelta(seconds=120 - number / 3)
        Cycle.objects.create(number=number, at=at, milliseconds=900.0 if number == 150 else 1.0, actions={"allocate": 1.0})
    drawn = cycles.bars(cycles.read("2m", NOW))
    assert len(drawn) <= cycles.BARS + 1
    assert 150 in [each.number for each in drawn]
    assert [each.number for each in drawn] == sorted(each.number for each in drawn)


def test_bands_by_plugin_are_the_largest_and_what_is_left():
    hooks = {"allocate": {name: float(place) for place, name in enumerate("abcdefg", 1)}}
    keep(record(1, milliseconds=40.0, actions={"allocate": 36.0}, hooks=hooks, plugins={}))
    bands = cycles.chart(cycles.bars(cycles.read("2m", NOW + timedelta(seconds=1))), "plugin")
    assert list(bands) == ["g", "f", "e", "d", "c", "others", "core"]
    assert bands["others"] == [3.0]
    assert sum(values[0] for values in bands.values()) == 40.0


def test_the_page_has_the_matrix_the_slowest_and_what_is_kept(client, make_user):
    keep(record(7, AT - 5), record(8, AT - 4, milliseconds=44.0))
    html = page(client, make_user(), reverse("scheduler"))
    shown = plain(html)
    for words in ("Cycle 8", "P50 / P95 / P99", "of 2 cycles kept", "all or nothing", "the newest 5,000 cycles"):
        assert words in shown
    assert shown.index("Slowest in this time 8 ") > 0


@pytest.mark.usefixtures("two_jobs")
def test_a_cycles_page_tells_who_got_nodes_who_waits_and_who_gave_way(client, make_user):
    verdict = Verdict(
        Stage.QUEUE_LIMIT, Code.QUEUE_CAPABILITY, queue="default", resource="cpu", asked=2000, limit=1000, short=1000
    )
    verdicts = {"default/theirs-uid-theirs": verdict}
    served = {"default/mine-uid-mine": Served("default", AT - 90, 3)}
    sink = Sink()
    sink(
        record(
            5, served=served, verdicts=verdicts, evictions=[eviction("theirs-w-0", "theirs", "default/mine-uid-mine", "mine-w-0")]
        )
    )
    sink.write()
    shown = plain(page(client, make_user(), reverse("cockpit:cycle", args=[5])))
    assert re.search(r"Given nodes .* mine default 3 1 min", shown)
    assert re.search(r"Verdicts that changed .* theirs Queue limit", shown)
    assert "beyond its gang" in shown or "lower priority" in shown
    assert client.get(reverse("cockpit:cycle", args=[6])).status_code == 404


@pytest.mark.usefixtures("two_jobs", "narrow")
def test_whoever_may_not_see_a_job_finds_no_name_of_it_on_the_page_in_rest_or_in_csv(client, make_user):
    verdict = Verdict(Stage.QUEUE_LIMIT, Code.QUEUE_CAPABILITY, queue="default")
    served = {"default/theirs-uid-theirs": Served("default", AT - 90, 3), "default/mine-uid-mine": Served("default", AT, 1)}
    gone = [eviction("theirs-w-0", "theirs", "default/mine-uid-mine", "mine-w-0")]
    keep(record(5, served=served, verdicts={"default/theirs-uid-theirs": verdict}, evictions=gone))
    user = make_user()
    urls = [reverse("scheduler"), reverse("cockpit:cycle", args=[5]), "/api/v1/scheduler/cycles/5", "/api/v1/scheduler/cycles"]
    for url in urls:
        html = page(client, user, url)
        assert "theirs" not in html
        assert "another job" in html or "mine" in html or "milliseconds" in html
    told = streamed(client.get(reverse("cockpit:evictions")))
    assert "theirs" not in told
    assert "other,1,mine" in told
    assert "theirs" in page(client, make_user("boss", staff=True), reverse("cockpit:cycle", args=[5]))


@pytest.mark.usefixtures("two_jobs")
def test_a_pod_that_went_for_nobody_leaves_the_cell_empty_in_the_file(client, make_user):
    Eviction.objects.update(preemptor="", preemptor_uid="", action="shuffle")
    client.force_login(make_user("boss", staff=True), "django.contrib.auth.backends.ModelBackend")
    lines = streamed(client.get(reverse("cockpit:evictions"))).splitlines()
    at = lines[0].split(",").index("for")
    assert [line.split(",")[at] for line in lines[1:]] == [""] * (len(lines) - 1)
    assert len(lines) > 1


@pytest.mark.usefixtures("two_jobs")
def test_an_eviction_for_a_job_that_never_started_is_wasted_once_it_had_the_time():
    later = NOW + judged.GRACE + timedelta(seconds=2)
    preempted = Eviction.objects.filter(preemptor_uid="uid-mine")
    Job.objects.filter(pk="uid-mine").update(started_at=None, running=0)
    assert judged.wasted(Eviction.objects.all(), NOW).count() == 0
    assert list(judged.wasted(Eviction.objects.all(), later)) == list(preempted)
    Job.objects.filter(pk="uid-mine").update(started_at=NOW + timedelta(seconds=30))
    assert judged.wasted(Eviction.objects.all(), later).count() == 0


@pytest.mark.usefixtures("two_jobs")
def test_pods_that_went_together_are_one_row_and_a_row_says_if_it_was_needed(make_user):
    Eviction.objects.all().delete()
    for index in range(3):
        give(eviction(f"theirs-w-{index}", "theirs", "default/mine-uid-mine", "mine-w-0"), number=9)
    (row,) = judged.table(make_user(), "all", NOW)
    assert (row.pods, row.victim.job, row.cycle) == (3, "theirs", 9)
    code = row.judgement.code
    assert code == ("exact" if all(Eviction.objects.values_list("proved", flat=True)) else "minimal")
    Eviction.objects.update(proved=True)
    assert judged.table(make_user("b"), "all", NOW)[0].judgement.code == "exact"
    assert judged.table(make_user("c"), "flagged", NOW) == []


def test_health_is_unknown_before_a_cycle_and_silent_when_none_comes(settings):
    assert health(None, NOW).state is State.UNKNOWN
    keep(record(1))
    newest = cycles.newest()
    fresh = health(newest, NOW + timedelta(seconds=20))
    assert (fresh.state, fresh.age, fresh.leader) == (State.RUNNING, 20.0, None)
    assert health(newest, NOW + timedelta(seconds=31)).state is State.SILENT
    settings.BASALT_SCHEDULER = False
    assert health(newest, NOW).state is State.ELSEWHERE


def test_rest_has_the_facts_of_the_page(client, make_user):
    keep(record(3, AT - 1, waited=0.080))
    client.force_login(make_user())
    told = client.get("/api/v1/scheduler/cycles?window=1h").json()
    assert told["figures"]["p50"] == 10.0
    assert told["figures"]["waited"] == 80.0
    assert told["cycles"][0]["plugins"] == {"gang": 2.5, "drf": 4.0, "core": 3.5}
    assert client.get("/api/v1/scheduler/cycles?window=9h").status_code == 400
    assert client.get("/api/v1/scheduler/health").json()["state"] == "running"
    assert client.get("/api/v1/scheduler/cycles/3").json()["time"]["core"]["allocate"] == 1.5


def test_the_page_asks_a_constant_number_of_queries(client, make_user, django_assert_max_num_queries):
    for number in range(200):
        Cycle.objects.create(
            number=number, at=NOW - timedelta(seconds=number / 4), milliseconds=number, actions={"allocate": number}
        )
    client.force_login(make_user())
    with django_assert_max_num_queries(24):
        client.get(reverse("scheduler"))
