"""`manage.py token NAME`: a token for a program, such as a worker in another process or kubectl."""

from __future__ import annotations

import argparse
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import yaml
from django.contrib.auth import get_user_model
from django.core.management import BaseCommand, CommandError
from knox.models import AuthToken

from portal.kubernetes import PREFIX, WITH_TOKEN


class Command(BaseCommand):
    help = "Make a token of a user and print it; it is shown this once."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("name", help="the user; what the token may do is what the user may")
        parser.add_argument(
            "--kubeconfig", metavar="URL", default="", help="print a kubeconfig for the portal at this address instead"
        )
        parser.add_argument("--days", type=int, default=0, help="how long it lasts (default: until it is deleted in the admin)")

    def handle(self, **options: Any) -> None:
        user = get_user_model().objects.filter(username=options["name"], is_active=True).first()
        if user is None:
            raise CommandError(f"There is no active user {options['name']!r}.")
        if options["days"] < 0:
            raise CommandError("--days is 1 or more, or left out.")
        expiry = timedelta(days=options["days"]) if options["days"] else None
        url = options["kubeconfig"].rstrip("/")
        if url and urlsplit(url).scheme not in ("http", "https"):
            raise CommandError(f"--kubeconfig takes the portal's address, such as http://127.0.0.1:8000, not {url!r}.")
        token = AuthToken.objects.create(user, expiry=expiry)[1]
        self.stdout.write(kubeconfig(url, token) if url else token)


def kubeconfig(url: str, token: str) -> str:
    """What `kubectl --kubeconfig` reads. It sends tokens over https only; over http, on this machine, the address holds it."""
    is_safe = url.startswith("https:")
    server = f"{url}{PREFIX}" if is_safe else f"{url}{WITH_TOKEN}{token}"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "basalt", "cluster": {"server": server}}],
        "users": [{"name": "me", "user": {"token": token} if is_safe else {}}],
        "contexts": [{"name": "basalt", "context": {"cluster": "basalt", "user": "me"}}],
        "current-context": "basalt",
    }
    return yaml.safe_dump(config, sort_keys=False)
