"""`manage.py schedule`: run the scheduler over files of Kubernetes objects and print what it decides."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from django.core.management import BaseCommand, CommandError

from jobs.schedulers import scheduler_names
from portal.dryrun import FilesError, Result, read, run
from scheduler.conf import ConfError

_BAD_FILE = 2


class Command(BaseCommand):
    help = "Run scheduling cycles over files of Kubernetes objects. No cluster and no database are needed; nothing is changed."
    requires_system_checks = ()

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("files", nargs="+", metavar="FILE", type=Path, help="Kubernetes objects (YAML or JSON)")
        parser.add_argument("--conf", metavar="FILE", type=Path, help="a volcano-scheduler.conf (default: Volcano's built-in)")
        parser.add_argument("--cycles", metavar="N", type=_count, default=1, help="how many cycles to run (1)")
        parser.add_argument("-o", "--output", choices=["json", "table"], default="table", help="table (default) or json")

    def handle(self, **options: Any) -> None:
        try:
            conf = options["conf"].read_text("utf-8") if options["conf"] else ""
        except (OSError, UnicodeError) as error:
            raise CommandError(f"{options['conf']}: {getattr(error, 'strerror', None) or error}", returncode=_BAD_FILE) from None
        try:
            result = run(read(options["files"]), conf, cycles=options["cycles"], scheduler_names=scheduler_names())
        except FilesError as error:
            raise CommandError(str(error), returncode=_BAD_FILE) from None
        except ConfError as error:
            where = options["conf"] or "the configuration in the files"
            raise CommandError("\n".join(f"{where}, {fault}" for fault in error.faults), returncode=_BAD_FILE) from None
        if options["output"] == "json":
            self.stdout.write(json.dumps(result.as_dict(), indent=2, ensure_ascii=False))
            return
        for line in tables(result):
            self.stdout.write(line)


def tables(result: Result) -> Iterator[str]:
    """The result for people; what is empty is left out."""
    parts: list[tuple[str, list[str], list[list[str]]]] = [
        ("Binds", ["pod", "node", "gpus"], [[b["pod"], b["node"], _list(b["gpus"])] for b in result.binds]),
        (
            "Evictions",
            ["victim", "node", "preemptor", "action", "rule", "why"],
            [[e["victim"], e["node"], e["preemptor"], e["action"], e["rule"], e["reason"]] for e in result.evictions],
        ),
        ("Pipelined", ["pod", "node"], [[p["pod"], p["node"]] for p in result.pipelined]),
        ("PodGroups", ["group", "phase", "conditions"], [[k, g["phase"], _true(g)] for k, g in result.pod_groups.items()]),
        (
            "Queues",
            ["queue", "share", "allocated", "deserved"],
            [[k, f"{q['share']:.3f}", _amounts(q["allocated"]), _amounts(q["deserved"])] for k, q in result.queues.items()],
        ),
        ("Waiting", ["group", "why"], [[key, verdict["text"]] for key, verdict in result.verdicts.items()]),
        ("Problems", ["what"], [[problem] for problem in result.problems]),
    ]
    shown = [part for part in parts if part[2]]
    for number, (title, head, rows) in enumerate(shown):
        if number:
            yield ""
        yield title
        yield from _table(head, rows)
    if not shown:
        yield "Nothing was decided."


def _table(head: list[str], rows: list[list[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in [head, *rows]:
        yield ("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))).rstrip()


def _list(values: Iterable[Any]) -> str:
    return ",".join(map(str, values))


def _true(group: dict[str, Any]) -> str:
    return _list(condition["type"] for condition in group["conditions"] if condition.get("status") == "True")


def _amounts(amounts: dict[str, str]) -> str:
    return " ".join(f"{resource}={amount}" for resource, amount in amounts.items() if amount != "0")


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:6]) <= 10_000):
        raise argparse.ArgumentTypeError(f"a number of cycles is from 1 to 10000, not {text}")
    return int(text)
