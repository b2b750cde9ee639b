"""The last lines of jobs that ended are kept for good, and shown when the log itself is gone."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.test import Client

from cluster.errors import Unavailable
from jobs.choices import JobPhase, PodPhase
from jobs.logs import sources, tails
from jobs.models import LogTail
from tests import factories as make

pytestmark = pytest.mark.django_db(databases="__all__")


@pytest.fixture
def ended():
    end = make.now() - timedelta(minutes=1)
    job = make.job("one", phase=JobPhase.FAILED, started_at=end - timedelta(minutes=5), finished_at=end, phase_since=end)
    times = {"started_at": job.started_at, "finished_at": end}
    (bad,) = make.pods(job, 1, phase=PodPhase.FAILED, name="one-bad-0", **times)
    make.save([job], make.pods(job, 2, phase=PodPhase.SUCCEEDED, **times), [bad])
    return job


def once(monkeypatch) -> None:
    """One pass of the part."""
    stop = threading.Event()
    monkeypatch.setattr(stop, "wait", lambda _seconds, seen=[]: seen.append(1) or len(seen) > 1)
    tails.run(stop)


def test_the_last_lines_of_what_ended_are_kept_once(ended, monkeypatch):
    make.save([make.job("runs", phase=JobPhase.RUNNING)])
    assert [job.uid for job in tails.due()] == [ended.uid]
    once(monkeypatch)
    kept = LogTail.objects.get()
    assert kept.job_uid == ended.uid
    assert {line[1] for line in kept.lines} == {"one-worker-0", "one-worker-1", "one-bad-0"}
    assert len(kept.lines) <= tails.LINES
    assert tails.due() == []


def test_they_are_shown_when_the_log_is_gone(ended, monkeypatch, make_user, client: Client):
    tails.keep(ended)
    client.force_login(make_user("ada"), "django.contrib.auth.backends.ModelBackend")
    LogTail.objects.update(lines=[["2026-01-02T03:04:05+00:00", "one-bad-0", "main", True, "<b>out of memory</b>"]])
    monkeypatch.setattr(sources, "are_simulated", lambda: False)
    html = client.get(f"/jobs/{ended.uid}/?tab=logs").content.decode()
    assert "The last line, kept since the job ended" in html
    assert "&lt;b&gt;out of memory&lt;/b&gt;" in html


def test_a_log_that_cannot_be_read_keeps_none_from_the_others(ended, monkeypatch):
    end = make.now()
    make.save([make.job("two", phase=JobPhase.COMPLETED, finished_at=end, phase_since=end)])
    read = sources.of_pods

    def broken(pods, job, asked):
        if job.name == "one":
            raise Unavailable("away")
        return read(pods, job, asked)

    monkeypatch.setattr(sources, "of_pods", broken)
    once(monkeypatch)
    assert LogTail.objects.count() == 2
    assert LogTail.objects.get(job_uid=ended.uid).lines == []
