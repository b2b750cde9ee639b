"""`manage.py run --runtime process`: what it refuses, and how its kubelet is made from the settings."""

from __future__ import annotations

import ipaddress
import sys
from typing import Any

from django.conf import settings
from django.core.management import CommandError
from django.utils.translation import gettext as _

from cluster.embedded.processes.kubelet import ProcessKubelet, Settings
from cluster.embedded.store import EmbeddedCluster
from cluster.logs import retention

NAME, SIMULATED = "process", "simulated"


def check(options: dict[str, Any]) -> None:
    """Refuse what does not go with real programs. Raises CommandError."""
    if sys.platform != "linux":
        raise CommandError(f"--runtime process needs Linux; this is {sys.platform}.")
    if not is_loopback(options["host"]):
        what = "--runtime process runs people's commands on this machine, so it listens on a loopback address only"
        raise CommandError(f"{what}, not {options['host']}.")
    if options["speed"] != 1.0 or options["instant"]:
        raise CommandError("--runtime process runs real programs, which take their own time: leave --speed and --instant away.")
    if options["workload"]:
        raise CommandError("--runtime process runs real programs: the sample jobs have none. Leave --workload away.")
    if options["fleet"] == "demo":
        raise CommandError("--runtime process runs pods on this machine: the demo fleet is made up. Leave --fleet away.")


def is_loopback(host: str) -> bool:
    """Whether an address to listen on is this machine's own."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def kubelet(cluster: EmbeddedCluster) -> ProcessKubelet:
    """The kubelet of this machine, as the settings have it."""
    megabyte = 2**20
    return ProcessKubelet(
        cluster,
        Settings(
            settings.DATA_DIR,
            host_paths=tuple(settings.BASALT_HOST_PATHS),
            pids=settings.BASALT_POD_PIDS,
            log_bytes=settings.BASALT_LOG_MB * megabyte,
        ),
    )


def log_bounds() -> retention.Bounds:
    """How long logs are kept, and how many of them."""
    return retention.Bounds(settings.BASALT_LOGS_KEEP_DAYS * 86_400.0, settings.BASALT_LOGS_KEEP_MB * 2**20)


def in_words(lack: tuple[str, str]) -> str:
    """What pods have to do without on this machine, as a sentence."""
    code, detail = lack
    if code == "mounts":
        text = _("no mount namespaces (%(why)s): pods see the machine’s own files, and nothing is mounted for them")
        return text % {"why": detail}
    if code == "pids":
        return _("no process namespaces: what a container leaves behind is found and ended one by one")
    return _("no control groups for %(names)s: memory is limited for each process alone, CPU not at all") % {"names": detail}
