"""`manage.py report-topology`: run on a node, tell the cluster how its GPUs are linked."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from django.core.management import BaseCommand, CommandError

from cluster.objects import GPU_TOPOLOGY
from cluster.topology import TopologyError, format_topology, parse_topology
from portal.reporting import NOT_READ, annotate, said

_TOOLS = (("nvidia-smi", "topo", "-m"), ("rocm-smi", "--showtopo"))


class Command(BaseCommand):
    help = (
        "Write this machine's GPU links (nvidia-smi topo -m, or rocm-smi --showtopo) to its node, where the scheduler reads them."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--node", default=os.environ.get("NODE_NAME", ""), help="the node's name (default: $NODE_NAME)")
        parser.add_argument(
            "--file", metavar="FILE", help="read the table from FILE, or from standard input (-), not from a tool"
        )
        parser.add_argument(
            "--kubeconfig", metavar="FILE", help="a kubeconfig (default: $KUBECONFIG, ~/.kube/config, in-cluster)"
        )
        parser.add_argument("--print", action="store_true", help="only print the table as it was understood")

    def handle(self, **options: Any) -> None:
        text = _table(options["file"])
        try:
            topology = parse_topology(text)
        except TopologyError as error:
            raise CommandError(f"the table cannot be read: {error}", returncode=NOT_READ) from None
        if options["print"]:
            self.stdout.write(format_topology(topology))
            return
        if not options["node"]:
            raise CommandError("which node is this? Give --node, or set NODE_NAME (the downward API's spec.nodeName)")
        annotate(options["node"], {GPU_TOPOLOGY: text}, options["kubeconfig"])
        self.stdout.write(f"node {options['node']}: the links of {topology.gpus} GPUs ({', '.join(sorted(topology.kinds))})")


def _table(file: str | None) -> str:
    if file is None:
        return _from_tool()
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text("utf-8")
    except (OSError, UnicodeError) as error:
        raise CommandError(f"{file}: {getattr(error, 'strerror', None) or error}", returncode=NOT_READ) from None


def _from_tool() -> str:
    for command in _TOOLS:
        if (text := said(*command)) is not None:
            return text
    raise CommandError("neither nvidia-smi nor rocm-smi is on this machine: give the table by --file", returncode=NOT_READ)
