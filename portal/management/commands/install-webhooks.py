"""`manage.py install-webhooks`: have a Kubernetes cluster ask `manage.py webhook` about what is written to it."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand, CommandError

from cluster.errors import ApiError, Unavailable
from portal import services
from portal.webhooks import install
from portal.webhooks.definitions import Wanted, Where

_NO_CLUSTER, _REFUSED = 2, 3


class Command(BaseCommand):
    help = "Create or update the webhook configurations in a cluster (found as the other commands find it)."
    requires_system_checks = ()

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        usual = Where()
        parser.add_argument(
            "--service",
            metavar="NAMESPACE/NAME[:PORT]",
            type=_service,
            default=usual,
            help=f"the Service before the webhook processes (default: {usual.namespace}/{usual.service}:{usual.port})",
        )
        parser.add_argument("--url", type=_url, help="their https address in place of a Service, for one outside the cluster")
        parser.add_argument("--dry-run", action="store_true", help="ask the server, change nothing")
        parser.add_argument("--remove", action="store_true", help="delete the configurations: nobody is asked any more")
        parser.add_argument("--write", metavar="DIR", type=Path, help="only write them as YAML files into DIR")

    def handle(self, **options: Any) -> None:
        where = Where(namespace=options["service"].namespace, url=options["url"]) if options["url"] else options["service"]
        names = tuple(settings.BASALT_SCHEDULER_NAMES)
        if options["write"] is not None:
            self._write(options["write"], Wanted(where, names))
            return
        try:
            client = services.connection()
            if options["remove"]:
                self._say(install.remove(client, dry_run=options["dry_run"]), options)
            else:
                wanted = Wanted(where, names, install.has_conditions(client.version()))
                self._say(install.install(client, wanted, dry_run=options["dry_run"]), options)
        except Unavailable as error:
            raise CommandError(str(error), returncode=_NO_CLUSTER) from None
        except ApiError as error:
            raise CommandError(f"the API server refused: {error}", returncode=_REFUSED) from None

    def _say(self, found: Iterable[install.Installed], options: dict[str, Any]) -> None:
        for one in found:
            self.stdout.write(f"{one.kind.kind} {one.name}: {one.done}{' (dry run)' if options['dry_run'] else ''}")

    def _write(self, folder: Path, wanted: Wanted) -> None:
        try:
            for name, text in install.files(wanted):
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_text(text, "utf-8")
        except OSError as error:
            raise CommandError(f"{folder}: {error.strerror}", returncode=_NO_CLUSTER) from None
        self.stdout.write(f"{folder}: {sum(1 for _ in install.files(wanted))} configurations")


def _service(text: str) -> Where:
    namespace, _, rest = text.partition("/")
    name, _, port = rest.partition(":")
    if not namespace or not name or (port and not (port.isdecimal() and 0 < int(port) < 65536)):
        raise argparse.ArgumentTypeError(f"a Service is NAMESPACE/NAME or NAMESPACE/NAME:PORT, not {text!r}")
    return Where(namespace, name, int(port) if port else Where.port)


def _url(text: str) -> str:
    if not text.startswith("https://") or len(text) < len("https://x"):
        raise argparse.ArgumentTypeError(f"an API server calls https addresses only, not {text!r}")
    return text
