"""The frame of a process that does one part of Basalt over a Kubernetes cluster: who leads, who asks how it is, and its end."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import structlog
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import BaseCommand, CommandError

from cluster.admission import admission
from cluster.admitted import Admitted
from cluster.errors import ApiError
from cluster.kubernetes import KubernetesCluster
from cluster.leadership import Election
from portal import metrics, services
from portal.ending import Ending
from portal.live import board
from portal.live.publisher import publisher
from portal.parts import Run, keep_running

log = structlog.get_logger(__name__)

LEASE_ANSWER_SECONDS = 4.0
"""An answer about the lease that takes longer comes too late to be of use."""
STOP_SECONDS = 6.0
COLLECTED = (50_000, 20, 100)
"""When Python looks for garbage in circles. What a part holds is objects of the cluster, which stay and have none: by Python's
own thresholds it would look at them so often that reading an object costs five times as much."""


class PartCommand(BaseCommand, ABC):
    """One part. A subclass names it and makes its runs, by name, over a cluster that lets only the leader write."""

    part = ""
    port = 0
    switch = ""
    """The setting by which somebody else does this part's work, if there is one."""

    @abstractmethod
    def runs(self, cluster: Any, options: dict[str, Any]) -> dict[str, Run]:
        """What the part does while it leads, anew each time."""

    def check_options(self, options: dict[str, Any]) -> None:
        """Raise CommandError for what the options or settings get wrong, before anything begins."""

    def ready(self) -> str:
        """Why the part cannot do its work yet; empty when it can."""
        return ""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--listen",
            metavar="ADDRESS:PORT",
            default=f"127.0.0.1:{self.port}",
            help=f"where /healthz, /readyz and /metrics are served (default: 127.0.0.1:{self.port}; none: nowhere)",
        )
        parser.add_argument("--lease", default=f"basalt-{self.part}", help=f"name of its Lease (default: basalt-{self.part})")
        parser.add_argument(
            "--no-leader-election", action="store_true", help="begin at once: nobody else does this part of this cluster's work"
        )

    def handle(self, **options: Any) -> None:
        gc.set_threshold(*COLLECTED)
        if self.switch and not getattr(settings, self.switch):
            raise CommandError(f"{self.switch}=off: this cluster has another {self.part}. Nothing is to be done here.")
        stop, ending = threading.Event(), Ending()
        try:
            election = None
            if not options["no_leader_election"]:
                asking = services.connection(answer_seconds=LEASE_ANSWER_SECONDS, part=self.part)
                election = Election(asking, options["lease"], services.namespace())
            work = self._work(options, election)
        except (ApiError, ImproperlyConfigured) as error:
            raise CommandError(str(error)) from None
        ending.tell, ending.slow = stop.set, lambda: (self.part,)
        ending.listen()
        if election is not None:
            metrics.watch_lead(lambda: election.leads)
        main = threading.Thread(
            target=partial(election.run, stop, work) if election else partial(work, stop), name=self.part, daemon=True
        )
        with self._probed(options["listen"], main, election), _announcing():
            log.info("started", part=self.part, lease=options["lease"] if election else "")
            main.start()
            with contextlib.suppress(KeyboardInterrupt):
                while main.is_alive() and not stop.is_set():
                    stop.wait(0.5)
            stop.set()
            main.join(STOP_SECONDS)
            log.info("stopped", part=self.part, clean=not main.is_alive())

    def _work(self, options: dict[str, Any], election: Election | None) -> Callable[[threading.Event], None]:
        client = services.connection(part=self.part)
        client.on_answer(metrics.heard)
        client.warm()
        if election is not None:
            client.guard(election.check)
        self.check_options(options)

        def work(end: threading.Event) -> None:
            threads = [
                threading.Thread(target=keep_running, args=(name, run, end), name=name, daemon=True)
                for name, run in self.runs(self.cluster(client), options).items()
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        return work

    def cluster(self, client: KubernetesCluster) -> Any:
        """What the part works over: objects that mean what admission would have made of them."""
        return Admitted(client, admission)

    @contextlib.contextmanager
    def _probed(self, listen: str, main: threading.Thread, election: Election | None) -> Iterator[None]:
        if listen == "none":
            yield
            return

        def health() -> str:
            return "the part has ended" if main.ident is not None and not main.is_alive() else ""

        def ready() -> str:
            if election is not None and not election.leads:
                return "" if election.holder else "nobody leads yet, and the lease was not got"
            return self.ready()

        server = probes(listen, health, ready)
        try:
            yield
        finally:
            server.shutdown()
            server.server_close()


def probes(listen: str, health: Callable[[], str], ready: Callable[[], str]) -> ThreadingHTTPServer:
    """Serve /healthz, /readyz and /metrics in a thread of their own; the two say what is amiss. Raises CommandError."""
    host, _, port = listen.rpartition(":")
    try:
        server = ThreadingHTTPServer((host.strip("[]"), int(port)), partial(_Probes, health, ready))
    except (OSError, ValueError, OverflowError) as error:
        raise CommandError(f"cannot listen on {listen}: {str(error).rstrip('.')}. Try --listen ADDRESS:PORT, or none.") from None
    threading.Thread(target=server.serve_forever, name="probes", daemon=True).start()
    return server


class _Probes(BaseHTTPRequestHandler):
    """/healthz, /readyz and /metrics."""

    server_version, sys_version = "basalt", ""
    timeout = 10

    def __init__(self, health: Callable[[], str], ready: Callable[[], str], *args: Any) -> None:
        self._checks = {"/healthz": health, "/readyz": ready}
        super().__init__(*args)

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/metrics":
            self._answer(200, "text/plain; version=0.0.4; charset=utf-8", metrics.text())
        elif path in self._checks:
            said = self._checks[path]()
            answer = {"status": "not ready" if said else "ok", **({"why": said} if said else {})}
            self._answer(503 if said else 200, "application/json", json.dumps(answer).encode())
        else:
            self._answer(404, "text/plain", b"there are /healthz, /readyz and /metrics\n")

    def _answer(self, status: int, media: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", media)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Who probes is not worth a line."""


@contextlib.contextmanager
def _announcing() -> Iterator[None]:
    """Send live notices to the web processes: by Redis, or through the database."""
    if board.is_used():
        publisher.post = board.post
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="notices", daemon=True)
    thread.start()
    publisher.attach(loop)
    try:
        yield
    finally:
        publisher.attach(None)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(2)
        if not thread.is_alive():
            loop.close()
