"""`manage.py report-gpu-usage`: run on a node, tell the cluster how busy its GPUs are."""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

from django.core.management import BaseCommand, CommandError

from cluster.gpu_usage import FRESH, from_nvidia_smi, text_of
from cluster.objects import GPU_USAGE
from portal.reporting import NOT_READ, annotate, said

_TOOL = ("nvidia-smi", "--query-gpu=index,utilization.gpu,memory.used", "--format=csv,noheader,nounits")
_EVERY = 60


class Command(BaseCommand):
    help = "Write the load and the memory in use of this machine's GPUs (nvidia-smi) to its node, again and again."
    requires_system_checks = ()

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--node", default=os.environ.get("NODE_NAME", ""), help="the node's name (default: $NODE_NAME)")
        parser.add_argument("--every", type=int, default=_EVERY, help=f"seconds between two measurements (default: {_EVERY})")
        parser.add_argument("--once", action="store_true", help="measure once")
        parser.add_argument(
            "--kubeconfig", metavar="FILE", help="a kubeconfig (default: $KUBECONFIG, ~/.kube/config, in-cluster)"
        )
        parser.add_argument("--print", action="store_true", help="only print what was measured, once")

    def handle(self, **options: Any) -> None:
        most = int(FRESH.total_seconds())
        if not 1 <= options["every"] <= most:
            raise CommandError(f"--every is from 1 to {most} seconds: a measurement counts no longer")
        if not (options["node"] or options["print"]):
            raise CommandError("which node is this? Give --node, or set NODE_NAME (the downward API's spec.nodeName)")
        while True:
            text = _measured()
            if options["print"]:
                self.stdout.write(text)
                return
            annotate(options["node"], {GPU_USAGE: text}, options["kubeconfig"])
            if options["once"]:
                return
            time.sleep(options["every"])


def _measured() -> str:
    told = said(*_TOOL)
    if told is None:
        raise CommandError("nvidia-smi is not on this machine", returncode=NOT_READ)
    return text_of(from_nvidia_smi(told, time.time()))
