"""`manage.py webhook`: reviews what is written to a Kubernetes cluster, for its API server, over TLS; as many as you like."""

from __future__ import annotations

import argparse
import socket
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import CommandError

from cluster.admission import admission
from portal.parts import Run
from portal.process import PartCommand
from portal.webhooks import measures, review
from portal.webhooks.pending import Pending
from portal.webhooks.reader import NearReader
from portal.webhooks.server import Certificates, WebhookServer


class Command(PartCommand):
    help = "Answer a Kubernetes cluster's admission reviews over TLS. `install-webhooks` and `webhook-certificates` prepare it."
    part, port = "webhook", 8083

    _near: NearReader | None = None

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--serve", metavar="ADDRESS:PORT", default="127.0.0.1:8443", help="where reviews come in (default: 127.0.0.1:8443)"
        )
        usual = settings.DATA_DIR / "webhook"
        parser.add_argument(
            "--certificates",
            metavar="DIR",
            type=Path,
            default=usual,
            help="tls.crt and tls.key, read again when they change (default: webhook/ in BASALT_DATA)",
        )

    def handle(self, **options: Any) -> None:
        options["no_leader_election"] = True  # nothing is written: all of several work
        super().handle(**options)

    def check_options(self, options: dict[str, Any]) -> None:
        """The address, which is taken here: one that is in use is said at once."""
        host, _, port = options["serve"].rpartition(":")
        host = host.strip("[]")
        listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # an answer's head and body are sent apart: 40 ms a review
        try:
            listener.bind((host, int(port)))
        except (OSError, ValueError, OverflowError) as error:
            listener.close()
            raise CommandError(f"cannot listen on {options['serve']}: {error}. Try --serve ADDRESS:PORT.") from None
        self._listener = listener
        self._certificates = Certificates(options["certificates"])
        measures.watch(self._certificates)

    def ready(self) -> str:
        """There is a certificate that holds, and the copy of what the rules read is complete."""
        if self._near is None or not self._near.synced:
            return "the local copy is not complete yet"
        return self._certificates.trouble()

    def runs(self, cluster: Any, options: dict[str, Any]) -> dict[str, Run]:
        """The copy, and the server."""
        near, pending = NearReader(cluster), Pending()
        self._near = near
        reviews = {
            "/mutate": lambda body: review.mutate(review.parse(body), admission, near),
            "/validate": lambda body: review.validate(review.parse(body), admission, near, cluster, pending),
        }
        server = WebhookServer(self._listener, self._certificates, reviews, measures.heard)
        return {"copy": near.run, "reviews": server.run}
