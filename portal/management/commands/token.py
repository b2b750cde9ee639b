"""`manage.py token NAME`: a token for a program, such as a worker in another process or kubectl."""

from __future__ import annotations

import argparse
from datetime import timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management import BaseCommand, CommandError
from knox.models import AuthToken


class Command(BaseCommand):
    help = "Make a token of a user and print it; it is shown this once."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("name", help="the user; what the token may do is what the user may")
        parser.add_argument("--days", type=int, default=0, help="how long it lasts (default: until it is deleted in the admin)")

    def handle(self, **options: Any) -> None:
        user = get_user_model().objects.filter(username=options["name"], is_active=True).first()
        if user is None:
            raise CommandError(f"There is no active user {options['name']!r}.")
        if options["days"] < 0:
            raise CommandError("--days is 1 or more, or left out.")
        expiry = timedelta(days=options["days"]) if options["days"] else None
        self.stdout.write(AuthToken.objects.create(user, expiry=expiry)[1])
