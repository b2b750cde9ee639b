"""Beat asks for what workers know, on queues that the manifests' workers serve."""

from __future__ import annotations

import pytest
from django.conf import settings

from tests.deploy.rendered import KUSTOMIZE, processes, render

pytestmark = pytest.mark.services


def test_beats_tasks_exist_and_somebody_hears_them() -> None:
    if not settings.REDIS_URL:
        pytest.skip("needs Redis: set REDIS_URL")
    from portal.celery import app

    command = processes(render(KUSTOMIZE / "base"))["Deployment basalt-worker"].command
    served = set(command[command.index("-Q") + 1].split(","))
    assert app.conf.task_default_queue in served
    for entry in app.conf.beat_schedule.values():
        assert entry["task"] in app.tasks
        assert app.conf.task_routes[entry["task"]]["queue"] in served
