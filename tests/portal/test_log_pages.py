"""Logs by REST and page: what can be asked, who may read, and the same for pods that are gone or simulated."""

import gzip
import threading

import pytest
from django.core.signals import request_finished
from django.db import close_old_connections
from django.test import Client, override_settings

from cluster import runtime
from cluster.embedded.processes.supervisor.output import LogWriter
from cluster.embedded.store import EmbeddedCluster
from cluster.errors import TooManyRequests
from cluster.kinds import JOB, POD
from cluster.logs.store import LogStore
from cluster.projection import Batch
from jobs.logs import sending
from jobs.models import Job, Pod
from portal.mirror import PROJECTIONS
from portal.policy import StaffPolicy
from tests.portal import objects as make

pytestmark = [
    pytest.mark.django_db(databases="__all__"),
    pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous iterators"),
]


class OwnOnly(StaffPolicy):
    """People see their own jobs only."""

    def visible(self, user, queryset):
        rows = super().visible(user, queryset)
        if user is None or user.is_staff:
            return rows
        if queryset.model is Job:
            return rows.filter(owner=user.get_username())
        if queryset.model is Pod:
            return rows.filter(job_uid__in=Job.objects.filter(owner=user.get_username()).values("uid"))
        return rows


@pytest.fixture
def world(make_user, settings, tmp_path):
    settings.DATA_DIR = tmp_path
    cluster = EmbeddedCluster()
    runtime.use(cluster)
    runtime.run_commands([])
    PROJECTIONS[JOB].project(Batch([make.job()]))
    PROJECTIONS[POD].project(Batch([make.pod(f"train-worker-{index}") for index in range(2)]))
    Job.objects.update(owner="owner")
    store = LogStore(tmp_path / "logs")
    for index, uid in enumerate(Pod.objects.order_by("name").values_list("uid", flat=True)):
        spec = {"initContainers": [{"name": "init"}], "containers": [{"name": "main"}, {"name": "side"}]}
        store.begin({"metadata": {"name": f"train-worker-{index}", "namespace": "default", "uid": uid}, "spec": spec})
        for attempt, words in enumerate((b"before\n", b"\x1b[32mone\x1b[0m\ntwo\nthree \xff\n")):
            writer = LogWriter(str(store.folder(uid) / "main" / str(attempt)), [], 1 << 20)
            writer.write("stdout", words)
            writer.close()
        store.ended(uid)
    users = {"user": make_user("user"), "owner": make_user("owner"), "staff": make_user("staff", staff=True)}
    yield users
    runtime.use(None)
    runtime.run_commands(None)


def get(user, path, **query):
    client = Client()
    if user is not None:
        client.force_login(user, "django.contrib.auth.backends.ModelBackend")
    return client.get(path, query)


def text(answer):
    assert answer.status_code == 200, answer.content
    return b"".join(answer).decode() if answer.streaming else answer.content.decode()


POD_LOG, JOB_LOGS = "/api/v1/pods/default/train-worker-0/log", "/api/v1/jobs/default/train/logs"


def test_a_pods_log_is_its_first_containers_newest_attempt(world):
    assert text(get(world["owner"], POD_LOG)) == "\x1b[32mone\x1b[0m\ntwo\nthree \ufffd\n"


def test_parameters_are_kubectls(world):
    read = lambda **query: text(get(world["owner"], POD_LOG, **query))  # noqa: E731
    assert read(tailLines=1) == "three \ufffd\n"
    assert read(tailLines=0) == ""
    assert read(previous="true") == "before\n"
    assert read(container="side") == ""
    assert read(limitBytes=6) == "\x1b[32mo"
    assert read(sinceTime="2999-01-01T00:00:00Z") == ""
    assert read(sinceSeconds=3600).endswith("three \ufffd\n")
    stamped = read(timestamps="true", tailLines=1)
    assert stamped[10] == "T"
    assert stamped.endswith("Z three \ufffd\n")


def test_every_wrong_parameter_is_said_at_once(world):
    answer = get(world["owner"], POD_LOG, tailLines="-1", follow="maybe", sinceTime="x", nonsense="1")
    assert answer.status_code == 400
    assert sorted(fault["pointer"] for fault in answer.json()["errors"]) == ["?follow", "?nonsense", "?sinceTime", "?tailLines"]
    answer = get(world["owner"], POD_LOG, container="none")
    assert (answer.status_code, answer.json()["errors"][0]["detail"]) == (
        400,
        "pod default/train-worker-0 has no container 'none'; it has init, main, side",
    )


def test_a_jobs_logs_say_whose_each_line_is(world):
    lines = text(get(world["owner"], JOB_LOGS, tailLines=2)).splitlines()
    assert lines == ["[train-worker-1 main] two", "[train-worker-1 main] three \ufffd"]
    assert len(text(get(world["owner"], JOB_LOGS)).splitlines()) == 6
    assert text(get(world["owner"], JOB_LOGS, task="other")) == ""


def test_a_download_is_a_file(world):
    answer = get(world["owner"], JOB_LOGS, download="true")
    assert answer["Content-Disposition"] == 'attachment; filename="train.log"'


def test_following_what_has_ended_ends(world):
    found = text(get(world["owner"], JOB_LOGS, follow="true", format="json"))
    assert found.splitlines()[-1] == '{"end":"over"}'
    assert '"one"' in found, "pages get no escapes"


def test_compressed_logs_read_the_same(world, settings):
    for path in settings.DATA_DIR.rglob("000001.log"):
        with gzip.open(f"{path}.gz", "wb") as packed:
            packed.write(path.read_bytes())
        path.unlink()
    assert text(get(world["owner"], POD_LOG, tailLines=1)) == "three \ufffd\n"


@pytest.mark.parametrize("path", [POD_LOG, JOB_LOGS, "page"])
def test_who_may_not_see_a_job_reads_its_log_by_no_door(world, path):
    page = f"/jobs/{Job.objects.get().uid}/?tab=logs"
    path = page if path == "page" else path
    with override_settings(BASALT_POLICY=f"{__name__}.OwnOnly"):
        found = {name: get(user, path).status_code for name, user in (world | {"nobody": None}).items()}
    nobody = 302 if path == page else 401
    assert found == {"user": 404, "owner": 200, "staff": 200, "nobody": nobody}


def test_whoever_loses_the_right_is_cut_off_while_following(world, monkeypatch):
    from jobs.logs.api import may_read_job

    job, owner = Job.objects.get(), world["owner"]
    assert may_read_job(owner, job)
    type(owner).objects.filter(pk=owner.pk).update(is_active=False)
    assert not may_read_job(owner, job), "asked anew, whatever the user was when he began"
    assert sending.LOOK <= 5


def test_the_page_shows_the_last_lines_without_a_script(world):
    found = text(get(world["owner"], f"/jobs/{Job.objects.get().uid}/", tab="logs"))
    assert found.count('class="lg-l') == 6
    assert "<span>one</span>" in found
    pod = Pod.objects.order_by("name").first()
    found = text(get(world["owner"], f"/jobs/{pod.job_uid}/", tab="logs", pod=pod.uid, previous="true"))
    assert found.count('class="lg-l') == 1
    assert "<span>before</span>" in found


def test_choices_that_do_not_exist_count_as_none(world):
    found = text(
        get(world["owner"], f"/jobs/{Job.objects.get().uid}/", tab="logs", pod="x'\"<", task="<b>", container="..", lines="nan")
    )
    assert found.count('class="lg-l') == 6


def test_a_simulated_pod_says_that_its_log_is_made_up(world, settings):
    runtime.run_commands(None)
    import shutil

    shutil.rmtree(settings.DATA_DIR / "logs")
    Pod.objects.update(started_at="2026-01-01T00:00:00Z", finished_at="2026-01-01T00:00:07Z", exit_code=3)
    found = text(get(world["owner"], POD_LOG))
    assert [line.partition(": ")[2] for line in found.splitlines()] == [
        "started (simulated: no program runs)",
        "step 1 (simulated)",
        "ended (simulated), exit code 3",
    ]


def test_nothing_is_made_up_for_pods_that_run_on_another_cluster(world, settings):
    runtime.run_commands(None)
    settings.BASALT_CLUSTER, settings.DATA_DIR = "kubernetes", settings.DATA_DIR / "nothing"
    Pod.objects.update(started_at="2026-01-01T00:00:00Z", finished_at="2026-01-01T00:00:07Z", exit_code=3)
    assert text(get(world["owner"], POD_LOG)) == ""
    page = text(get(world["owner"], f"/jobs/{Job.objects.get().uid}/", tab="logs"))
    assert "keeps a log as long as its pod" in page
    assert "run no program" not in page
    assert 'class="lg-l' not in page


def test_pages_say_that_commands_run_here_only_when_they_do(world):
    words = "Jobs run their commands on this machine"
    assert words in text(get(world["staff"], "/"))
    assert words in text(get(None, "/sign-in/"))
    assert words in text(get(world["staff"], "/admin/"))
    runtime.run_commands(None)
    assert words not in text(get(world["staff"], "/"))


def test_one_reader_holds_no_more_than_he_may_of_many_long_logs(world, monkeypatch):
    from jobs.logs import reading

    monkeypatch.setattr(reading, "HELD", 300)
    lines = text(get(world["owner"], JOB_LOGS, tailLines=1000)).splitlines()
    assert 0 < len(lines) < 6
    assert lines[-1].endswith("three \ufffd")
    assert len(text(get(world["owner"], JOB_LOGS)).splitlines()) == 6, "what is streamed is not cut"


def test_too_many_pods_are_not_read_together(world, monkeypatch):
    from jobs.logs import sources

    monkeypatch.setattr(sources, "MOST_PODS", 1)
    answer = get(world["owner"], JOB_LOGS)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, "?pod")
    assert len(text(get(world["owner"], JOB_LOGS, pod="train-worker-1")).splitlines()) == 3
    page = text(get(world["owner"], f"/jobs/{Job.objects.get().uid}/", tab="logs"))
    assert page.count('class="lg-l') == 3


@pytest.fixture
def connections_stay():
    """The end of an answer closes connections; the test's own, with its transaction, is to stay."""
    request_finished.disconnect(close_old_connections)
    yield
    request_finished.connect(close_old_connections)


def test_only_so_many_follow_at_a_time_and_each_that_ends_makes_room(monkeypatch, connections_stay):
    monkeypatch.setattr(sending, "_followers", threading.Semaphore(2))
    first, second = sending.Followed([]), sending.Followed([])
    with pytest.raises(TooManyRequests, match="being followed already"):
        sending.Followed([])
    first.close()
    first.close()
    third = sending.Followed([])
    with pytest.raises(TooManyRequests):
        sending.Followed([])
    second.close()
    third.close()


def test_who_comes_too_late_to_follow_is_told_so(world, monkeypatch):
    monkeypatch.setattr(sending, "_followers", threading.Semaphore(0))
    assert get(world["owner"], JOB_LOGS, follow="true").status_code == 429
    assert get(world["owner"], JOB_LOGS).status_code == 200
