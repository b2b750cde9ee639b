"""The parts together, as `manage.py run` starts them: from submit to Completed, and each outliving its own faults."""

import errno
import itertools
import json
import os
import signal
import socket
import threading
import time
from unittest import mock

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.db import DatabaseError, OperationalError

from cluster import runtime
from cluster.clock import ScaledClock
from cluster.embedded import fleets
from cluster.embedded.fates import INSTANT
from cluster.embedded.kubelet import Kubelet
from cluster.embedded.lock import OwnerLock
from cluster.embedded.store import EmbeddedCluster
from cluster.kinds import QUEUE
from jobs import manifest, writes
from jobs.models import Job, PhaseChange, Pod, Task
from portal import parts, samples
from portal.management.commands import run
from portal.management.commands.run import Command
from portal.models import Cycle
from queues.models import Queue


def soon(condition, seconds=20):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, condition
        time.sleep(0.05)
    return found


@pytest.fixture
def basalt(transactional_db):
    clock = ScaledClock(20)
    cluster = EmbeddedCluster(clock=clock)
    runtime.use(cluster)
    fleets.load(cluster, fleets.demo())
    found = parts.assemble(cluster, clock)
    found.runs["kubelet"] = Kubelet(cluster, timing=INSTANT).run
    found.start()
    assert found.mirror.synced.wait(20)
    yield found
    assert found.stop(10) == []
    runtime.use(None)


def gang(name, pods, gpus=1, queue="default", seconds=5):
    template = samples.pod("busybox", seconds, samples.asks(1, 1, gpus))
    spec = {"queue": queue, "minAvailable": pods, "tasks": [samples.task("w", pods, template)]}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


@pytest.mark.services
def test_a_gang_is_placed_runs_and_completes_and_the_database_knows(basalt):
    writes.submit(gang("train", 4, gpus=8), "ada")
    soon(lambda: Job.objects.filter(name="train", phase="Completed"))
    job = Job.objects.get()
    soon(lambda: Task.objects.get().counts == {"Succeeded": 4})
    assert (job.succeeded, job.owner, job.verdict) == (4, "ada", None)
    assert job.started_at <= job.finished_at
    pods = Pod.objects.filter(job_uid=job.uid)
    assert {len(pod.gpus) for pod in pods} == {8}
    assert len({pod.node for pod in pods}) == 4
    assert all(pod.exit_code == 0 for pod in pods)
    assert [step.phase for step in PhaseChange.objects.filter(job_uid=job.uid)][-1] == "Completed"
    soon(lambda: Cycle.objects.filter(bound__gt=0).exists())


def test_a_job_that_cannot_start_says_why_and_starts_when_it_can(basalt):
    writes.submit(gang("first", 8, gpus=8, seconds=200, queue="prod"), "ada")
    soon(lambda: Job.objects.filter(name="first", phase="Running"))
    writes.submit(gang("second", 8, gpus=8, queue="prod"), "ada")
    waiting = soon(lambda: Job.objects.filter(name="second").exclude(verdict_stage="").first())
    assert waiting.verdict["resource"] == "nvidia.com/gpu"
    assert soon(lambda: Queue.objects.get(name="prod").share_allocated.get("nvidia.com/gpu") == 64_000)
    writes.delete(Job.objects.get(name="first"))
    soon(lambda: Job.objects.filter(name="second", phase="Completed", verdict_stage=""))


def test_a_part_that_fails_is_started_again():
    began, stop = [], threading.Event()

    def run(stop):
        began.append(time.monotonic())
        if len(began) == 1:
            raise RuntimeError("a fault")
        stop.set()

    parts.keep_running("faulty", run, stop)
    assert len(began) == 2


def test_time_goes_on_where_the_objects_stopped():
    clock = ScaledClock(1)
    ahead = clock.now() + 500
    clock.catch_up(ahead)
    assert clock.now() >= ahead
    clock.catch_up(ahead - 100)
    assert clock.now() >= ahead


# --- the sample workload ---


def test_sample_jobs_are_valid_varied_and_the_same_for_a_seed():
    cluster = EmbeddedCluster()
    for name in ("root", "default"):
        cluster.create(QUEUE, {"metadata": {"name": name}, "spec": {"weight": 1}})
    fleets.load(cluster, fleets.demo())
    taken = list(itertools.islice(samples.jobs(7, lambda: samples.open_leaves(cluster)), 80))
    assert taken == list(itertools.islice(samples.jobs(7, lambda: samples.open_leaves(cluster)), 80))
    kinds = {obj["metadata"]["generateName"] for _, obj in taken}
    assert len(kinds) == len(samples.SHAPES)
    for _, obj in taken:
        obj["metadata"]["name"] = obj["metadata"].pop("generateName") + "x"
        manifest.default(obj)
        assert manifest.validate(obj, cluster) == []


# --- the command ---


@pytest.fixture
def _signals():
    kept = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, kept)


@pytest.mark.usefixtures("_signals")
@pytest.mark.django_db(databases="__all__", transaction=True)
class TestRun:
    def test_a_port_that_is_taken_is_one_clear_line(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            with pytest.raises(CommandError, match=r"Cannot listen on 127\.0\.0\.1 port \d+: .*Try --port\."):
                call_command("run", port=taken.getsockname()[1])

    def test_a_second_run_on_the_same_data_says_who_holds_it(self, tmp_path, settings):
        settings.DATA_DIR = tmp_path
        with OwnerLock(tmp_path / "cluster.lock"), pytest.raises(CommandError, match=r"is run by process \d+ already"):
            call_command("run", port=0)

    @pytest.mark.parametrize("fleet", ["/nowhere.yaml", "/nowhere.csv"])
    def test_a_fleet_that_cannot_be_read_is_one_clear_line(self, fleet, tmp_path, settings):
        settings.DATA_DIR = tmp_path
        with pytest.raises(CommandError, match=f"--fleet {fleet}"):
            call_command("run", port=0, fleet=fleet)

    @pytest.mark.parametrize(
        ("option", "text"),
        [("fleet", "apiVersion: v1\nkind: Node\nmetadata: {name: 'No Name'}\n"), ("conf", "actions: juggle\n")],
    )
    def test_a_bad_file_ends_it_before_anything_is_begun(self, option, text, tmp_path, settings, capsys):
        settings.DATA_DIR = tmp_path / "data"
        file = tmp_path / "given.yaml"
        file.write_text(text)
        with pytest.raises(CommandError, match=f"--{option} {file}: "):
            call_command("run", port=0, **{option: file if option == "conf" else str(file)})
        assert not settings.DATA_DIR.exists()
        assert not get_user_model().objects.exists()
        assert capsys.readouterr().out == ""

    def test_nothing_is_migrated_without_the_lock(self, tmp_path, settings):
        settings.DATA_DIR = tmp_path
        with (
            OwnerLock(tmp_path / "cluster.lock"),
            mock.patch.object(run, "_migrate") as migrate,
            pytest.raises(CommandError, match="already"),
        ):
            call_command("run", port=0)
        migrate.assert_not_called()

    @pytest.mark.parametrize(
        ("error", "line"),
        [
            (OperationalError("database or disk is full"), "cannot be used: database or disk is full. See that there is room"),
            (DatabaseError("file is not a database"), "cannot be used: file is not a database. Put back a good copy"),
            (OSError(errno.EROFS, "Read-only file system"), "cannot be used: Read-only file system."),
        ],
    )
    def test_a_data_folder_that_cannot_be_used_is_one_clear_line_and_leaves_no_lock(self, error, line, tmp_path, settings):
        settings.DATA_DIR = tmp_path
        with mock.patch.object(run, "_migrate", side_effect=error), pytest.raises(CommandError, match=line):
            call_command("run", port=0)
        with OwnerLock(tmp_path / "cluster.lock"):
            pass

    def test_the_lock_file_of_a_process_that_died_stands_in_nobodys_way(self, tmp_path):
        (tmp_path / "cluster.lock").write_text('{"pid": 999999}')
        with OwnerLock(tmp_path / "cluster.lock"):
            assert json.loads((tmp_path / "cluster.lock").read_text()) == {"pid": os.getpid()}

    def test_the_first_admin_is_made_once(self, capsys):
        command = Command()
        command._first_admin()
        command._first_admin()
        assert capsys.readouterr().out.count("password:") == 1


def test_settings_are_safe_by_default():
    assert not settings.DEBUG
    assert settings.SESSION_COOKIE_HTTPONLY
    assert settings.X_FRAME_OPTIONS == "DENY"
    assert "'unsafe-inline'" not in settings.CONTENT_SECURITY_POLICY["DIRECTIVES"]["script-src"]
