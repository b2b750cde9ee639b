"""`manage.py report-topology`: run on a node, tell the cluster how its GPUs are linked."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml
from django.core.management import BaseCommand, CommandError
from kubernetes import client, config
from urllib3.exceptions import HTTPError

from cluster.objects import GPU_TOPOLOGY
from cluster.topology import TopologyError, format_topology, parse_topology

_TOOLS = (("nvidia-smi", "topo", "-m"), ("rocm-smi", "--showtopo"))
_TOOL_SECONDS = 30
_NO_TABLE = 2
_REFUSED = 3


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
            raise CommandError(f"the table cannot be read: {error}", returncode=_NO_TABLE) from None
        if options["print"]:
            self.stdout.write(format_topology(topology))
            return
        if not options["node"]:
            raise CommandError("which node is this? Give --node, or set NODE_NAME (the downward API's spec.nodeName)")
        _write(options["node"], text, options["kubeconfig"])
        self.stdout.write(f"node {options['node']}: the links of {topology.gpus} GPUs ({', '.join(sorted(topology.kinds))})")


def _table(file: str | None) -> str:
    if file is None:
        return _from_tool()
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text("utf-8")
    except (OSError, UnicodeError) as error:
        raise CommandError(f"{file}: {getattr(error, 'strerror', None) or error}", returncode=_NO_TABLE) from None


def _from_tool() -> str:
    for command in _TOOLS:
        if (program := shutil.which(command[0])) is None:
            continue
        try:
            done = subprocess.run([program, *command[1:]], capture_output=True, text=True, timeout=_TOOL_SECONDS)  # noqa: S603
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CommandError(f"{' '.join(command)}: {error}", returncode=_NO_TABLE) from None
        if done.returncode:
            said = done.stderr.strip() or done.stdout.strip() or "nothing"
            raise CommandError(f"{' '.join(command)} ended with {done.returncode} and said: {said}", returncode=_NO_TABLE)
        return done.stdout
    raise CommandError("neither nvidia-smi nor rocm-smi is on this machine: give the table by --file", returncode=_NO_TABLE)


def _write(node: str, text: str, kubeconfig: str | None) -> None:
    settings = client.Configuration()
    settings.retries = False  # a server that is down is said at once
    try:
        config.load_config(config_file=kubeconfig, client_configuration=settings)
        client.CoreV1Api(client.ApiClient(settings)).patch_node(node, {"metadata": {"annotations": {GPU_TOPOLOGY: text}}})
    except (config.ConfigException, OSError, yaml.YAMLError) as error:
        raise CommandError(f"no cluster to talk to: {error}", returncode=_REFUSED) from None
    except client.ApiException as error:
        raise CommandError(f"the API server refused: {error.status} {error.reason}", returncode=_REFUSED) from None
    except HTTPError as error:
        raise CommandError(f"the API server cannot be reached: {error}", returncode=_REFUSED) from None
