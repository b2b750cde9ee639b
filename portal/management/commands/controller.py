"""`manage.py controller`: the dispatcher of the job controllers' work; a second one waits until the first is gone."""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management import BaseCommand, CommandError

from cluster.errors import ApiError


class Command(BaseCommand):
    help = "Watch the cluster and hand out work to Celery workers (celery -A portal.celery worker)."

    def handle(self, **_: Any) -> None:
        from portal.celery import dispatcher

        stop = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: stop.set())
        try:
            made = dispatcher()
        except (ApiError, ImproperlyConfigured) as error:
            raise CommandError(str(error)) from None
        with contextlib.suppress(KeyboardInterrupt):
            made.run(stop)
        stop.set()
