"""`manage.py install-crds`: teach a Kubernetes cluster the kinds that Basalt works with."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import yaml
from django.core.management import BaseCommand, CommandError
from kubernetes import client, config
from urllib3.exceptions import HTTPError

from portal.crds.install import NotEstablished, install, manifests, wait_established

_NO_CLUSTER = 2
_REFUSED = 3


class Command(BaseCommand):
    help = "Create or update Basalt's CustomResourceDefinitions in a cluster. Definitions that Volcano installed are left alone."
    requires_system_checks = ()

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--kubeconfig", metavar="FILE", help="a kubeconfig (default: $KUBECONFIG, ~/.kube/config, in-cluster)"
        )
        parser.add_argument("--context", help="a context of the kubeconfig (default: its current one)")
        parser.add_argument("--dry-run", action="store_true", help="ask the server, change nothing")
        parser.add_argument("--write", metavar="DIR", type=Path, help="only write the definitions as YAML files into DIR")

    def handle(self, **options: Any) -> None:
        if options["write"] is not None:
            self._write(options["write"])
            return
        try:
            settings = client.Configuration()
            settings.retries = False  # a server that is down is said at once
            config.load_config(config_file=options["kubeconfig"], context=options["context"], client_configuration=settings)
        except (config.ConfigException, OSError, yaml.YAMLError) as error:
            raise CommandError(f"no cluster to talk to: {error}", returncode=_NO_CLUSTER) from None
        api = client.ApiextensionsV1Api(client.ApiClient(settings))
        try:
            for one in install(api, dry_run=options["dry_run"]):
                self.stdout.write(f"{one.name}: {one.done}{' (dry run)' if options['dry_run'] else ''}")
            if not options["dry_run"]:
                wait_established(api)
        except client.ApiException as error:
            raise CommandError(
                f"the API server refused: {error.status} {error.reason}: {error.body}", returncode=_REFUSED
            ) from None
        except HTTPError as error:
            raise CommandError(f"the API server cannot be reached: {error}", returncode=_NO_CLUSTER) from None
        except NotEstablished as error:
            raise CommandError(str(error), returncode=_REFUSED) from None

    def _write(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name, text in manifests():
                (folder / name).write_text(text, "utf-8")
        except OSError as error:
            raise CommandError(f"{folder}: {error.strerror}", returncode=_NO_CLUSTER) from None
        self.stdout.write(f"{folder}: {sum(1 for _ in manifests())} definitions")
