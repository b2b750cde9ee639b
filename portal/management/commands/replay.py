"""`manage.py replay`: run a snapshot's cycle again and print what it decides."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from django.core.management import BaseCommand, CommandError

from cluster.errors import BadRequest
from jobs.schedulers import scheduler_names
from portal.cockpit.snapshots import as_json, load
from scheduler.conf import ConfError
from scheduler.replay import replay

_BAD_FILE = 2


class Command(BaseCommand):
    help = (
        "Run the scheduler over a snapshot that the portal gave out: the same cycle with the same decisions. Nothing is changed."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("snapshot", type=Path, help="a snapshot (JSON, or as the portal packs it)")
        parser.add_argument("--conf", metavar="FILE", type=Path, help="by another configuration than the snapshot's own")
        parser.add_argument("--cycles", metavar="N", type=int, default=1, choices=range(1, 1001), help="how many cycles (1)")
        parser.add_argument("-o", "--output", choices=["json", "text"], default="text", help="text (default) or json")

    def handle(self, **options: Any) -> None:
        try:
            conf = options["conf"].read_text("utf-8") if options["conf"] else ""
            snapshot = load(options["snapshot"].read_bytes())
            found = replay(snapshot, conf, cycles=options["cycles"], scheduler_names=scheduler_names())
        except (OSError, UnicodeError) as error:
            raise CommandError(
                f"the file cannot be read: {getattr(error, 'strerror', None) or error}", returncode=_BAD_FILE
            ) from None
        except BadRequest as error:
            raise CommandError(f"{options['snapshot']}: {error.message}", returncode=_BAD_FILE) from None
        except ConfError as error:
            raise CommandError("\n".join(map(str, error.faults)), returncode=_BAD_FILE) from None
        if options["output"] == "json":
            self.stdout.write(json.dumps([as_json(each) for each in found], indent=2, ensure_ascii=False))
            return
        for number, each in enumerate(found, start=1):
            self.stdout.write(
                f"Cycle {number}: {len(each.binds)} bound, {len(each.evictions)} evicted, {len(each.verdicts)} wait"
            )
            for pod, node, gpus in each.binds:
                self.stdout.write(f"  {pod} → {node}{f' GPU {gpus}' if gpus else ''}")
            for victim, node, action, taker in each.evictions:
                self.stdout.write(f"  {victim} leaves {node} ({action}{f' for {taker}' if taker else ''})")
            for uid, verdict in each.verdicts.items():
                self.stdout.write(f"  {uid} waits: {verdict.code}")
