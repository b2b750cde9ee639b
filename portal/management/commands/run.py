"""`manage.py run`: everything in one process, for a machine of one's own, a demonstration, or a first look."""

from __future__ import annotations

import argparse
import contextlib
import secrets
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import uvicorn
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import BaseCommand, CommandError, call_command
from django.db import DatabaseError, OperationalError, connections

from cluster import machines, runtime
from cluster.embedded import Embedded, fleets
from cluster.embedded.fates import INSTANT
from cluster.embedded.gpu_meter import GpuMeter
from cluster.embedded.lock import StoreLocked
from cluster.embedded.processes import machine
from cluster.embedded.processes.kubelet import ProcessKubelet
from cluster.embedded.store import EmbeddedCluster
from cluster.embedded.usage import UsageMeter
from cluster.errors import ApiError
from cluster.kinds import NODE
from cluster.logs import retention
from portal import parts, processes, samples, tidying
from portal.cockpit import configuration
from scheduler import conf

SYNC_SECONDS = 30.0


class Command(BaseCommand):
    help = "Run Basalt: an embedded cluster, its controllers and scheduler, and the portal."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine only)")
        parser.add_argument("--port", type=int, default=8000, help="default: 8000; 0 takes a free one")
        parser.add_argument(
            "--runtime",
            choices=[processes.SIMULATED, processes.NAME],
            default=processes.SIMULATED,
            help="process: pods run their commands on this machine (default: simulated)",
        )
        parser.add_argument(
            "--fleet",
            help="machines of an empty cluster: demo, none, or a file of nodes (default: demo; this machine for processes)",
        )
        parser.add_argument("--speed", type=_speed, default=1.0, help="the cluster's time runs this many times faster")
        parser.add_argument("--workload", choices=["sample"], help="submit a stream of sample jobs")
        parser.add_argument("--instant", action="store_true", help="pods start and stop without delay")
        usual = settings.BASE_DIR / "deploy" / "volcano-scheduler.conf"
        own = configuration.own_file()
        parser.add_argument(
            "--conf",
            type=Path,
            default=own if own.exists() else usual,
            help="a volcano-scheduler.conf (default: the one saved in the portal, else the one in deploy/)",
        )
        parser.add_argument("--seed", type=int, default=1, help="of run times and of the sample jobs")

    def handle(self, **options: Any) -> None:
        for switch in ("BASALT_SCHEDULER", "BASALT_CONTROLLER"):
            if not getattr(settings, switch):
                raise CommandError(f"{switch}=off is for a Kubernetes cluster that has another one; here nothing would run.")
        if options["speed"] != 1 and settings.BASALT_CONTROLLERS == "workers":
            raise CommandError("--speed does not go with BASALT_CONTROLLERS=workers: workers live by the wall's clock.")
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # both ways of asking stop it in the same, clean way
        with contextlib.suppress(KeyboardInterrupt), contextlib.ExitStack() as stack:
            is_real = options["runtime"] == processes.NAME
            if is_real:
                processes.check(options)
            fleet = _fleet(options["fleet"], is_real)
            _check_conf(options["conf"])
            listener = stack.enter_context(contextlib.closing(self._listen(options["host"], options["port"])))
            with _data_usable():
                embedded = stack.enter_context(self._opened(options))
                self._check_machines(embedded, options["runtime"])
                self._load_fleet(embedded, fleet)
                self._first_admin()
                if isinstance(embedded.kubelet, ProcessKubelet):
                    self._say_processes(embedded.kubelet)
            found = parts.assemble(embedded.cluster, embedded.cluster.clock, options["conf"])
            found.runs["kubelet"] = embedded.kubelet.run
            found.runs["claims"] = embedded.claims.run
            found.runs["tidying"] = tidying.run
            if isinstance(embedded.kubelet, ProcessKubelet):
                found.runs["logs"] = retention.keeper(embedded.kubelet.logs, processes.log_bounds())
            else:
                found.runs["usage"] = _simulated_usage(found, options["seed"])
                found.runs["gpu-usage"] = GpuMeter(found.cluster, found.clock, seed=options["seed"]).run
            self._serve(found, listener, options)

    def _serve(self, found: parts.Parts, listener: socket.socket, options: dict[str, Any]) -> None:
        parts.use(found)
        found.start()
        try:
            found.mirror.synced.wait(SYNC_SECONDS)
            if options["workload"]:
                samples.start(found, options["seed"])
            self._web(listener)
        finally:
            late = found.stop()
            parts.use(None)
            if late:
                self.stderr.write(f"Did not stop in time: {', '.join(late)}")
            self.stdout.write("Stopped.")

    def _listen(self, host: str, port: int) -> socket.socket:
        """The socket, before anything else is begun: a port that is taken costs nothing but one line."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except (OSError, OverflowError) as error:
            listener.close()
            raise CommandError(f"Cannot listen on {host} port {port}: {getattr(error, 'strerror', error)}. Try --port.") from None
        return listener

    @contextlib.contextmanager
    def _opened(self, options: dict[str, Any]) -> Iterator[Embedded]:
        timing = INSTANT if options["instant"] else None
        try:
            embedded = parts.embedded(
                settings.DATA_DIR,
                speed=options["speed"],
                timing=timing,
                seed=options["seed"],
                prepare=_migrate,
                processes=processes.kubelet if options["runtime"] == processes.NAME else None,
            )
        except StoreLocked as error:
            raise CommandError(f"{str(error)[0].upper()}{str(error)[1:]}.") from None
        try:
            yield embedded
        finally:
            runtime.use(None)
            runtime.run_commands(None)
            machines.simulate(None)
            embedded.close()
            connections.close_all()

    def _check_machines(self, embedded: Embedded, wanted: str) -> None:
        """Machines that were made up do not become real, nor the other way round."""
        if others := machine.others(embedded.cluster, wanted):
            raise CommandError(
                f"The cluster in {settings.DATA_DIR} has machines of the other runtime ({', '.join(others[:3])}). "
                f"Set BASALT_DATA to another folder for --runtime {wanted}."
            )

    def _say_processes(self, kubelet: ProcessKubelet) -> None:
        runtime.run_commands(kubelet.missing)
        self.stdout.write("Pods run their commands on this machine. Images are not used.")
        for lack in kubelet.missing:
            self.stdout.write(f"Missing here: {processes.in_words(lack)}.")
        if kubelet.left_over:
            self.stdout.write(f"Ended {kubelet.left_over} processes that an earlier run left.")

    def _first_admin(self) -> None:
        users = get_user_model().objects
        if users.exists():
            return
        password = secrets.token_urlsafe(12)
        users.create_superuser("admin", "", password)
        self.stdout.write(f"First user: admin   password: {password}   (shown this once)")

    def _load_fleet(self, embedded: Embedded, fleet: fleets.Fleet | None) -> None:
        if fleet is None or embedded.cluster.list(NODE, limit=1).items:
            return
        try:
            loaded = fleets.load(embedded.cluster, fleet)
        except ApiError as error:
            raise CommandError(f"--fleet: {error}") from None
        self.stdout.write(f"Fleet {fleet.name}: {loaded.created} objects made.")

    def _web(self, listener: socket.socket) -> None:
        host, port = listener.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        config = uvicorn.Config(
            "portal.asgi:application",
            lifespan="on",
            log_config=None,
            access_log=False,
            ws_per_message_deflate=False,
            ws_max_size=2**20,
            proxy_headers=settings.HTTPS,
            server_header=False,
            timeout_graceful_shutdown=2,
        )
        _Server(config, lambda: self.stdout.write(f"Basalt serves http://{shown}:{port}/   (Ctrl-C stops it)")).run([listener])


class _Server(uvicorn.Server):
    """Says so once it really serves."""

    def __init__(self, config: uvicorn.Config, say: Any) -> None:
        super().__init__(config)
        self._say = say

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._say()


@contextlib.contextmanager
def _data_usable() -> Iterator[None]:
    """What the disk or a database refuses inside is one line, which says what helps."""
    try:
        yield
    except DatabaseError as error:
        advice = "Put back a good copy of its databases, or set BASALT_DATA to another folder"
        if isinstance(error, OperationalError):
            advice = "See that there is room on the disk and that the files in it may be written"
        raise CommandError(f"The data folder {settings.DATA_DIR} cannot be used: {error}. {advice}.") from None
    except OSError as error:
        raise CommandError(f"The data folder {settings.DATA_DIR} cannot be used: {error.strerror or error}.") from None


def _simulated_usage(found: parts.Parts, seed: int) -> parts.Run:
    """What nodes use is simulated while the scheduler looks at it and has no server that tells it."""

    def wanted() -> bool:
        conf = found.scheduler.conf.current
        return conf.reads_metrics() and not conf.metrics.get("address")

    return UsageMeter(found.cluster, found.clock, seed=seed, wanted=wanted).run


def _fleet(name: str | None, is_real: bool) -> fleets.Fleet | None:
    """The fleet of an option. A file is tried on a cluster in memory first, so that a bad one leaves nothing behind."""
    if name is None:
        return machine.fleet(settings.DATA_DIR) if is_real else fleets.demo()
    if name in ("none", "demo"):
        return fleets.demo() if name == "demo" else None
    try:
        fleet = fleets.openb(Path(name)) if name.endswith(".csv") else fleets.from_file(Path(name))
        fleets.load(EmbeddedCluster(), fleet)
    except (OSError, ValueError, ApiError) as error:
        raise CommandError(f"--fleet {name}: {error}") from None
    return machine.marked(fleet) if is_real else fleet


def _check_conf(path: Path) -> None:
    try:
        conf.load(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise CommandError(f"--conf {path}: {error}") from None


def _migrate() -> None:
    for alias in settings.DATABASES:
        call_command("migrate", database=alias, interactive=False, verbosity=0)


def _speed(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 10_000:
        raise argparse.ArgumentTypeError(f"a speed is a number above 0 and at most 10000, not {text}")
    return value
