"""`manage.py scenario`: play scenario files and say of each case whether it passed."""

from __future__ import annotations

import argparse
import logging
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.core.management import BaseCommand, CommandError
from django.db import connections, transaction

from portal.scenario import Case, FileError, Outcome, load, play
from portal.scenario.player import SECONDS, needs_pages

_BAD_FILE = 2


class Command(BaseCommand):
    help = (
        "Play scenario files on an embedded cluster in simulated time. "
        "Exit status: 0 nothing failed, 1 a case failed (arguable ones apart), 2 a file is wrong."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("files", nargs="+", metavar="FILE", type=Path, help="scenario files (YAML)")
        parser.add_argument("--only", action="append", metavar="ID", help="play these cases alone (may be given several times)")

    def handle(self, **options: Any) -> None:
        cases = self._load(options["files"], options["only"])
        count: Counter[str] = Counter()
        logging.disable(logging.WARNING)  # that an object is refused is what cases are about
        try:
            with _scratch(cases):
                for case in cases:
                    self._tell(_play(case), count)
        finally:
            logging.disable(logging.NOTSET)
        parts = [f"{count[word]} {word}" for word in ("passed", "failed", "failed, arguable", "for a person") if count[word]]
        self.stdout.write(f"{len(cases)} case{'s' * (len(cases) != 1)}: {', '.join(parts)}")
        if count["failed"]:
            sys.exit(1)

    def _load(self, files: list[Path], only: list[str] | None) -> list[Case]:
        cases: list[Case] = []
        wrong = []
        for path in files:
            try:
                cases += load(path.read_text("utf-8"))
            except (OSError, UnicodeError) as error:
                wrong.append(f"{path}: {getattr(error, 'strerror', None) or error}")
            except FileError as error:
                wrong += [f"{path}, {fault}" for fault in error.faults]
        if wrong:
            raise CommandError("\n".join(wrong), returncode=_BAD_FILE)
        if missing := set(only or ()) - {case.id for case in cases}:
            raise CommandError(f"there is no case {', '.join(sorted(missing))}", returncode=_BAD_FILE)
        return [case for case in cases if not only or case.id in only]

    def _tell(self, outcome: Outcome, count: Counter[str]) -> None:
        word = "passed" if outcome.passed else "failed, arguable" if outcome.case.arguable else "failed"
        count[word] += 1
        seen = f": {'; '.join(outcome.seen)}" if outcome.seen else ""
        self.stdout.write(f"{word}  {outcome.case.id}{seen}")
        for sentence in outcome.for_a_person:
            count["for a person"] += 1
            self.stdout.write(f"for a person  {outcome.case.id}: {sentence}")


def _play(case: Case) -> Outcome:
    if not needs_pages(case):
        return play(case, seconds=SECONDS)
    with transaction.atomic():  # what a case projects is nobody else's
        outcome = play(case, seconds=SECONDS)
        transaction.set_rollback(True)
    return outcome


@contextmanager
def _scratch(cases: list[Case]) -> Iterator[None]:
    """A database for pages, apart from the portal's own; none is made when no case needs it."""
    if not any(map(needs_pages, cases)):
        yield
        return
    connection = connections["default"]
    name = connection.settings_dict["NAME"]
    connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
    try:
        yield
    finally:
        connection.creation.destroy_test_db(name, verbosity=0)
