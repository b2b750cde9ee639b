"""What a command that runs on a node tells the cluster of it: annotations, by the Kubernetes API."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping

import yaml
from django.core.management import CommandError
from kubernetes import client, config
from urllib3.exceptions import HTTPError

NOT_READ, REFUSED = 2, 3
"""Exit statuses: the machine could not be read, the cluster could not be told."""
_TOOL_SECONDS = 30


def said(*command: str) -> str | None:
    """What a tool of this machine prints; None where there is none. Raises CommandError when it fails."""
    if (program := shutil.which(command[0])) is None:
        return None
    try:
        done = subprocess.run([program, *command[1:]], capture_output=True, text=True, timeout=_TOOL_SECONDS)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CommandError(f"{' '.join(command)}: {error}", returncode=NOT_READ) from None
    if done.returncode:
        told = done.stderr.strip() or done.stdout.strip() or "nothing"
        raise CommandError(f"{' '.join(command)} ended with {done.returncode} and said: {told}", returncode=NOT_READ)
    return done.stdout


def annotate(node: str, notes: Mapping[str, str], kubeconfig: str | None) -> None:
    """Put annotations on a node. Raises CommandError with what is in the way."""
    settings = client.Configuration()
    settings.retries = False  # a server that is down is said at once
    try:
        config.load_config(config_file=kubeconfig, client_configuration=settings)
        client.CoreV1Api(client.ApiClient(settings)).patch_node(node, {"metadata": {"annotations": dict(notes)}})
    except (config.ConfigException, OSError, yaml.YAMLError) as error:
        raise CommandError(f"no cluster to talk to: {error}", returncode=REFUSED) from None
    except client.ApiException as error:
        raise CommandError(f"the API server refused: {error.status} {error.reason}", returncode=REFUSED) from None
    except HTTPError as error:
        raise CommandError(f"the API server cannot be reached: {error}", returncode=REFUSED) from None
