"""Simulations: what can be read, that a run can be stopped and gone on with, and the pages around it."""

from __future__ import annotations

import gzip
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.db import connections
from django.test import Client
from django.utils import timezone

from portal.models import Simulation, State
from portal.simulations import outputs, picture, sources, words, work
from portal.simulations.runner import CHECKPOINT, Runner, Stopped, alone
from scheduler.simulation.engine import Simulation as Engine
from scheduler.simulation.estimate import Factors, Miss, Misses, Past, estimate, quantile
from scheduler.simulation.experiment import Setting, trial
from scheduler.simulation.measures import jain, spread
from scheduler.simulation.options import Options
from scheduler.simulation.runtimes import Likeness, RunTimes, prefix_of
from scheduler.simulation.workload import WorkloadError
from tests.scheduler.simulation.worlds import ALONE, job, workload

HEADER = "job_id,num_gpu,submit_time,iterations,model_name,duration,interval"
TRACE = "\n".join([HEADER, *(f"{i},{1 + i % 4},{i * 7},1,m,{50 + i},1" for i in range(30))])
SNAPSHOT = """\
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: a}
spec:
  minAvailable: 2
  tasks:
  - name: w
    replicas: 2
    template:
      metadata: {annotations: {sim.basalt.dev/duration: 90s}}
      spec: {containers: [{name: m, image: i, resources: {requests: {cpu: "1"}}}]}
"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.csv"
    path.write_text(TRACE)
    return path


# -- sources ---------------------------------------------------------------------------------------------------------------


def test_a_packed_trace_is_read_as_the_plain_one(trace: Path, tmp_path: Path) -> None:
    packed = tmp_path / "jobs.csv.gz"
    packed.write_bytes(gzip.compress(TRACE.encode()))
    plain, other = (sources.read([path], sources.Wanted(nodes="2x4")) for path in (trace, packed))
    assert [j.name for j in plain.jobs] == [j.name for j in other.jobs]


def test_a_broken_gzip_file_and_other_bytes_are_told(tmp_path: Path) -> None:
    broken = tmp_path / "t.csv.gz"
    broken.write_bytes(gzip.compress(TRACE.encode())[:40])
    with pytest.raises(WorkloadError, match=r"t.csv.gz: it is no whole gzip file"):
        sources.read([broken], sources.Wanted())
    other = tmp_path / "t.csv"
    other.write_bytes(b"job_id,\xff\xfe\n")
    with pytest.raises(WorkloadError, match=r"t\.csv, line 1: it is no UTF-8 text"):
        sources.read([other], sources.Wanted())


def test_the_load_stretches_run_times(trace: Path) -> None:
    found = sources.read([trace], sources.Wanted(nodes="2x4", load=0.5))
    span = max(j.arrival for j in found.jobs) - min(j.arrival for j in found.jobs)
    assert sum(j.duration * j.gpus for j in found.jobs) / (8 * span) == pytest.approx(0.5)


def test_a_snapshot_plays_with_the_run_times_that_pods_state(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(SNAPSHOT)
    simulation = Engine(sources.read([path], sources.Wanted()))
    simulation.run()
    (outcome,) = simulation.outcomes()
    assert (outcome.pods, outcome.duration, outcome.finish - outcome.start) == (2, 90.0, 90.0)


def test_a_snapshot_without_nodes_or_jobs_is_told(tmp_path: Path) -> None:
    node, rest = SNAPSHOT.split("---\n")
    for text, fault in ((rest, "there is no Node in it"), (node, "there is no job in it that runs or waits")):
        path = tmp_path / "c.yaml"
        path.write_text(text)
        with pytest.raises(WorkloadError, match=fault):
            sources.read([path], sources.Wanted())


def test_a_scenario_plays_the_jobs_of_a_case() -> None:
    path = Path(__file__).parents[2] / "docs" / "examples" / "cases.yaml"
    found = sources.read([path], sources.Wanted(run_time=60))
    assert {job.kind for job in found.jobs} == {"first", "gang"}
    with pytest.raises(WorkloadError, match="there is no case 'nope'; there are a-gang-waits"):
        sources.read([path], sources.Wanted(case="nope"))


# -- the runner ------------------------------------------------------------------------------------------------------------


def test_a_run_that_was_stopped_goes_on_to_the_same_result(trace: Path, tmp_path: Path) -> None:
    found = sources.read([trace], sources.Wanted(nodes="2x4"))
    confs = [("a", ALONE), ("b", ALONE.replace("nodeorder", "binpack"))]
    whole = Runner(found, confs, Options()).run()
    steps = iter(range(10_000))
    first = Runner(found, confs, Options(), tmp_path / "out", stop=lambda: next(steps) >= 70)
    with pytest.raises(Stopped):
        first.run()
    assert [path.name for path in (tmp_path / "out").iterdir()] == [CHECKPOINT]
    second = Runner(found, confs, Options(), tmp_path / "out")
    assert second.run() == whole
    assert second.resumed


def test_a_checkpoint_of_another_simulation_is_refused(trace: Path, tmp_path: Path) -> None:
    found = sources.read([trace], sources.Wanted(nodes="2x4"))
    with pytest.raises(Stopped):
        Runner(found, [("a", ALONE)], Options(), tmp_path, stop=lambda: True).run()
    with pytest.raises(WorkloadError, match="it is of another simulation"):
        Runner(found, [("a", ALONE)], Options(seed=1), tmp_path).run()
    (tmp_path / CHECKPOINT).write_text("{")
    with pytest.raises(WorkloadError, match="it is no checkpoint; delete it to begin anew"):
        Runner(found, [("a", ALONE)], Options(), tmp_path).run()


def test_the_command_writes_its_files_and_leaves_no_checkpoint(trace: Path, tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "out"
    call_command("simulate", str(trace), "--nodes", "2x4", "--out", str(out), "--quiet")
    assert sorted(path.name for path in out.iterdir()) == ["jobs.csv", "picture.svg", "result.json"]
    assert "waiting, median" in capsys.readouterr().out
    assert len((out / "jobs.csv").read_text().splitlines()) == 31
    assert orjson.loads((out / "result.json").read_bytes())["results"][0]["summary"]["finished"] == 30


def test_two_at_once_do_not_share_a_folder(trace: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with alone(out), pytest.raises(CommandError, match="another simulation is at work there"):
        call_command("simulate", str(trace), "--out", str(out), "--quiet")
    assert list(out.iterdir()) == []
    call_command("simulate", str(trace), "--out", str(out), "--quiet")
    assert (out / "result.json").exists()


def test_a_folder_that_cannot_be_made_is_told(trace: Path) -> None:
    with pytest.raises(CommandError, match=r"jobs\.csv: File exists"):
        call_command("simulate", str(trace), "--out", str(trace), "--quiet")


def test_the_command_names_what_is_wrong_with_a_configuration(trace: Path, tmp_path: Path) -> None:
    conf = tmp_path / "c.conf"
    conf.write_text('actions: "nope"\n')
    with pytest.raises(CommandError, match=r"c.conf, line 1"):
        call_command("simulate", str(trace), "--conf", str(conf))


def test_names_of_jobs_do_not_become_formulas_and_drawings_are_well_formed(trace: Path) -> None:
    found = sources.read([trace], sources.Wanted(nodes="2x4"))
    results = Runner(found, [("<a> & b", ALONE)], Options()).run()
    results[0]["jobs"][0]["name"] = "=1+1"
    assert "'=1+1" in outputs.as_csv(results)
    from xml.etree import ElementTree

    ElementTree.fromstring(picture.comparison('a "b" <c>', results))


# -- measures and estimates ------------------------------------------------------------------------------------------------


def test_jain_is_one_for_equals_and_one_in_n_for_one_who_has_all() -> None:
    assert jain([0.5, 0.5, 0.5]) == pytest.approx(1)
    assert jain([1, 0, 0, 0]) == pytest.approx(0.25)
    assert jain([]) is None
    assert spread([])["mean"] is None


def test_single_pods_lock_up_where_gangs_go_on() -> None:
    setting = Setting(patience=0.0, limit=50_000.0)
    gangs, pods = trial(setting, "gangs", 5, 3), trial(setting, "pods", 5, 3)
    assert gangs.deadlocks == 0
    assert gangs.makespan == pytest.approx(5 * 600, abs=5)
    assert (pods.deadlocks, pods.makespan, pods.done.count(None)) == (1, None, 5)


def test_run_times_are_drawn_from_the_nearest_likeness_and_above_what_has_run() -> None:
    from random import Random

    times, chance = RunTimes(), Random(1)
    for i in range(20):
        times.add(Likeness("ann", "q", "bert", 4), 100.0 + i)
        times.add(Likeness("bob", "q", "gpt", 4), 9000.0)
    drawn, by = times.draw(Likeness("ann", "q", "bert", 4), 0.0, chance)
    assert by == "name"
    assert 100 <= drawn < 120
    assert times.draw(Likeness("ann", "q", "bert", 4), 5000.0, chance) == (9000.0, "queue")
    assert times.draw(Likeness("ann", "q", "bert", 4), 99_000.0, chance)[0] > 99_000
    assert prefix_of("train-bert-0017") == "train-bert"
    assert prefix_of("17") == "17"


def test_a_certain_future_is_foretold_to_a_tenth_of_the_time_until_then() -> None:
    past = Past()
    for _ in range(30):
        past.times.add(Likeness("", "default", "a", 8.0), 100.0)
    simulation = Engine(workload(job("a", 0, 777, gpus=8), job("b", 10, 50, gpus=8)))
    while simulation.now < 20:
        simulation.step()
        if simulation.peek() > 20:
            break
    (said,) = estimate(simulation, past, [1], futures=5, period=1.0).values()
    wait = 101 - simulation.now
    assert said.p50 == said.raw
    assert wait <= said.raw <= 1.1 * wait + 4


def test_past_misses_widen_the_band() -> None:
    misses = Misses()
    assert misses.factors() == Factors(1.0, 1.5)  # nothing is known yet
    for _ in range(20):
        misses.add(Miss(300.0, 80.0, 135.0))
    assert misses.factors() == Factors(pytest.approx(3), pytest.approx(2))
    assert quantile([1.0, 2.0, 3.0, 4.0], 0.5) == 2.0


# -- pages -----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def signed(make_user: Any, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Client:
    settings.DATA_DIR = tmp_path
    monkeypatch.setattr(work, "start", lambda simulation: None)
    client = Client()
    client.force_login(make_user("ann"), "django.contrib.auth.backends.ModelBackend")
    return client


def post(client: Client, **given: Any) -> Any:
    return client.post("/simulations/new/", {"kind": "replay", "source": "upload", "in_force": "on", **given})


@pytest.mark.django_db
def test_an_upload_is_simulated_and_shown(signed: Client) -> None:
    answer = post(signed, upload=SimpleUploadedFile("jobs.csv", TRACE.encode()), nodes="2x4", default="on")
    made = Simulation.objects.get()
    assert (answer.status_code, answer.headers["Location"], made.owner) == (302, f"/simulations/{made.pk}/", "ann")
    work.play(made.pk)
    made.refresh_from_db()
    assert (made.state, made.percent, made.error) == (State.DONE, 100, "")
    page = signed.get(f"/simulations/{made.pk}/").content.decode()
    assert "Waiting, median" in page
    assert words.length(80.3 * 60) == ("80.3", "min")
    for name, kind in (
        ("picture.svg", "image/svg+xml"),
        ("result.json", "application/json"),
        ("jobs.csv", "text/csv; charset=utf-8"),
    ):
        assert signed.get(f"/simulations/{made.pk}/files/{name}").headers["Content-Type"] == kind
    assert signed.get(f"/simulations/{made.pk}/files/other").status_code == 404
    assert not work.folder(made).exists()


@pytest.mark.django_db
def test_a_bad_upload_starts_nothing_and_names_line_and_column(signed: Client) -> None:
    answer = post(signed, upload=SimpleUploadedFile("jobs.csv", TRACE.replace("0,1,0,", "0,1,-4,").encode()))
    assert answer.status_code == 422
    assert "jobs.csv, line 2, column submit_time: -4 is below 0" in answer.content.decode()
    assert not Simulation.objects.exists()


@pytest.mark.django_db
def test_a_cancelled_simulation_is_never_begun(signed: Client) -> None:
    post(signed, upload=SimpleUploadedFile("jobs.csv", TRACE.encode()), nodes="2x4")
    made = Simulation.objects.get()
    signed.post(f"/simulations/{made.pk}/cancel/")
    work.play(made.pk)
    made.refresh_from_db()
    assert (made.state, made.result) == (State.CANCELLED, None)
    signed.post(f"/simulations/{made.pk}/delete/")
    assert not Simulation.objects.exists()


@pytest.mark.django_db
def test_only_its_owner_or_staff_cancels(signed: Client, make_user: Any) -> None:
    made = Simulation.objects.create(title="theirs", owner="bob")
    assert signed.post(f"/simulations/{made.pk}/cancel/").status_code == 403
    assert signed.get(f"/simulations/{made.pk}/").status_code == 200


@pytest.mark.django_db
def test_nobody_has_more_than_three_under_way(signed: Client) -> None:
    for _ in range(3):
        Simulation.objects.create(title="t", owner="ann")
    answer = post(signed, upload=SimpleUploadedFile("jobs.csv", TRACE.encode()), nodes="2x4")
    assert answer.status_code == 422
    assert Simulation.objects.count() == 3


@pytest.mark.django_db(transaction=True)
def test_nobody_has_more_than_three_under_way_by_asking_at_once(signed: Client) -> None:
    def ask(_: int) -> int:
        client = Client()
        client.cookies = signed.cookies
        try:
            return int(post(client, upload=SimpleUploadedFile("jobs.csv", TRACE.encode()), nodes="2x4").status_code)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(6) as pool:
        assert sorted(pool.map(ask, range(6))) == [302, 302, 302, 422, 422, 422]
    assert Simulation.objects.count() == 3


@pytest.mark.django_db
def test_an_upload_that_unpacks_to_too_much_is_refused(signed: Client) -> None:
    large = gzip.compress(bytes(work.MOST_UPLOADED + 1), 1)
    answer = post(signed, upload=SimpleUploadedFile("jobs.csv.gz", large))
    assert answer.status_code == 422
    assert "jobs.csv.gz: it has more than 64 MiB" in answer.content.decode()


@pytest.mark.django_db
def test_the_experiment_runs_from_the_page(signed: Client) -> None:
    signed.post("/simulations/new/", {"kind": "efficiency", "jobs": "1, 2", "repetitions": "1", "patience": "0"})
    made = Simulation.objects.get()
    work.play(made.pk)
    page = signed.get(f"/simulations/{made.pk}/").content.decode()
    assert "Pod by pod, jobs mixed" in page
    assert signed.get(f"/simulations/{made.pk}/files/picture.svg").content.startswith(b"<svg")


@pytest.mark.django_db
def test_a_trace_outside_of_the_folder_is_not_read(signed: Client, settings: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    settings.BASALT_TRACES = str(tmp_path / "in")
    with pytest.raises(WorkloadError, match="there is no trace"):
        work.trace_path("../../etc/passwd")


@pytest.mark.django_db
@pytest.mark.parametrize("query", ["", "?kind=efficiency", "?kind=nope"])
def test_the_form_opens_whatever_kind_is_asked(signed: Client, query: str) -> None:
    assert signed.get(f"/simulations/new/{query}").status_code == 200


@pytest.mark.django_db
def test_the_list_is_empty_then_shows_what_runs(signed: Client) -> None:
    assert "No simulations yet" in signed.get("/simulations/").content.decode()
    Simulation.objects.create(title="a month", owner="ann", state=State.RUNNING, share=0.5)
    page = signed.get("/simulations/").content.decode()
    assert "a month" in page
    assert "50 %" in page


@pytest.mark.django_db
def test_a_simulation_whose_worker_is_lost_is_taken_up_again(signed: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []
    monkeypatch.setattr(work, "start", lambda simulation: begun.append(simulation.pk))
    made = Simulation.objects.create(title="t", owner="ann", state=State.RUNNING)
    old = timezone.now() - timedelta(minutes=5)
    Simulation.objects.update(created_at=old, seen_at=old)
    assert (work.take_up_lost(), work.take_up_lost()) == (1, 0)
    assert begun == [made.pk]


@pytest.mark.django_db
def test_a_lost_simulation_that_was_cancelled_ends(signed: Client) -> None:
    made = Simulation.objects.create(title="t", owner="ann", state=State.RUNNING, cancel=True)
    old = timezone.now() - timedelta(minutes=5)
    Simulation.objects.update(created_at=old, seen_at=old)
    work.take_up_lost()
    work.play(made.pk)
    made.refresh_from_db()
    assert made.state == State.CANCELLED


@pytest.mark.django_db
def test_of_two_who_come_to_a_simulation_one_plays_it(signed: Client) -> None:
    made = Simulation.objects.create(title="t", owner="ann", state=State.RUNNING, params={"source": "upload"})
    work.play(made.pk)
    made.refresh_from_db()
    assert (made.state, made.error) == (State.RUNNING, "")
