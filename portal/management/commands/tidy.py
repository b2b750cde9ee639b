"""`manage.py tidy`: delete what the database keeps without need, once."""

from __future__ import annotations

from typing import Any

from django.core.management import BaseCommand, CommandError
from django.db import DatabaseError

from portal.tidying import tidy


class Command(BaseCommand):
    help = (
        "Delete sessions and tokens that ran out, old sign-ins and old events. Where Celery's beat runs, it asks for this daily."
    )

    def handle(self, **options: Any) -> None:
        try:
            done = tidy()
        except DatabaseError as error:
            raise CommandError(f"the database does not take it: {error}") from None
        for name, count in done.items():
            self.stdout.write(f"{name}: {count} deleted")
