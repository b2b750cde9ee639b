"""`manage.py webhook-certificates`: make, and keep, what the API server knows the webhooks by. Run it again now and then."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from django.core.management import BaseCommand, CommandError

from cluster.errors import ApiError, Unavailable
from portal import services
from portal.webhooks import certificates
from portal.webhooks.definitions import SERVICE
from portal.webhooks.keeping import Kept, Names, keep

_NO_CLUSTER, _REFUSED = 2, 3


class Command(BaseCommand):
    help = (
        "Make the webhooks' authority and certificate, keep them in Secrets, and have the API server trust them. "
        "Run again (a CronJob does) it renews what has less than a third of its life left, without a gap."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--service", metavar="NAME", default=SERVICE, help=f"the webhooks' Service (default: {SERVICE})")
        parser.add_argument(
            "--namespace", help="of the Service and the Secrets (default: BASALT_NAMESPACE, else the pod's, else default)"
        )
        parser.add_argument("--host", action="append", default=[], help="one more name or address they are called by")
        parser.add_argument("--days", type=_days, default=certificates.SERVER_DAYS, help="life of a certificate (default: 90)")
        parser.add_argument("--renew", action="store_true", help="make a new certificate now")
        parser.add_argument("--to", metavar="DIR", type=Path, help="put tls.crt and tls.key there, too: for a process outside")

    def handle(self, **options: Any) -> None:
        namespace = options["namespace"] or services.namespace()
        name = options["service"]
        hosts = [f"{name}.{namespace}.svc", f"{name}.{namespace}", f"{name}.{namespace}.svc.cluster.local", *options["host"]]
        names = Names(namespace, tuple(dict.fromkeys(hosts)), days=options["days"])
        try:
            kept = keep(services.connection(), names, anew=options["renew"])
        except Unavailable as error:
            raise CommandError(str(error), returncode=_NO_CLUSTER) from None
        except (ApiError, ValueError) as error:
            raise CommandError(f"the certificates could not be kept: {error}", returncode=_REFUSED) from None
        for line in kept.done:
            self.stdout.write(line)
        if not kept.done:
            self.stdout.write(f"Nothing to do: the certificate holds until {kept.server.ends:%Y-%m-%d}.")
        if options["to"] is not None:
            self._put(options["to"], kept)

    def _put(self, folder: Path, kept: Kept) -> None:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            pairs = (
                ("ca.crt", kept.bundle, 0o644),
                ("tls.key", kept.server.key, 0o600),
                ("tls.crt", kept.server.certificate, 0o644),
            )
            for name, data, mode in pairs:
                if (folder / name).exists() and (folder / name).read_bytes() == data:
                    continue
                part = folder / f".{name}.new"
                part.unlink(missing_ok=True)
                with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
                    file.write(data)
                part.replace(folder / name)
        except OSError as error:
            raise CommandError(f"{folder}: {error.strerror}", returncode=_NO_CLUSTER) from None


def _days(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 825:
        raise argparse.ArgumentTypeError(f"a certificate holds for 1 to 825 days, not {text}")
    return int(text)
