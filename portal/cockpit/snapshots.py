"""A snapshot of what the scheduler schedules by, without secrets, and its replay."""

from __future__ import annotations

import gzip
import re
import time
import zlib
from typing import Any

import structlog
import yaml
from django.conf import settings

from cluster import runtime
from cluster.disclosure import HIDDEN, LAST_APPLIED, shown
from cluster.errors import ApiError, BadRequest, Unavailable
from cluster.kinds import CONFIG_MAP, POD
from cluster.port import Cluster, Obj
from cluster.said import said
from portal import parts
from portal.body_limit import LIMIT
from portal.models import SchedulerConfiguration
from scheduler import conf as configuration
from scheduler.cache import KINDS
from scheduler.conf import ConfError
from scheduler.replay import Decisions, replay
from scheduler.snapshot import Snapshot

log = structlog.get_logger(__name__)

LONGEST = 30.0
"""Wall seconds that reading the cluster may take."""
UPLOAD = LIMIT
"""Bytes of a file that is replayed on a page: packed, that is a large cluster."""
UNPACKED = 256 * 2**20
"""Bytes that a packed one may unpack to."""
ABOUT_DEVICES = ("vgpu", "geometr", "device")
"""What the names of ConfigMaps about devices have in them; no others are taken along."""
_WORDS = re.compile("password|passwd|token|secret|credential", re.IGNORECASE)
_SECRET = re.compile(
    r"^(\s*(?:#\s*)?(?:- )?[\w.\-\"']*(?:password|passwd|token|secret|credential)[\w.\-\"']*\s*:).*$",
    re.IGNORECASE | re.MULTILINE,
)
_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")
_PRIVATE = ("env", "envFrom", "command", "args", "lifecycle", "livenessProbe", "readinessProbe", "startupProbe")


def take() -> Snapshot:
    """The cluster at this moment, as its watch tells it first. Raises Unavailable."""
    cluster = runtime.current()
    found = Snapshot.of(map(bare, _read(cluster)))
    running = parts.current()
    found.conf = without_secrets(_conf_text())
    found.at = runtime.now().timestamp()
    found.usage = dict(running.scheduler.cache.usage or {}) if running is not None else {}
    return found


def _read(cluster: Cluster) -> list[Obj]:
    found: list[Obj] = []
    watch = cluster.watch(KINDS)
    try:
        end = time.monotonic() + LONGEST
        while time.monotonic() < end:
            event = watch.get(timeout=0.2)
            if event is not None and event.type == "SYNCED":
                return found
            if event is not None and (event.kind != CONFIG_MAP or _about_devices(event.object)):
                found.append(event.object)
    finally:
        watch.close()
    raise Unavailable(said("the cluster could not be read in time"))


def _about_devices(obj: Obj) -> bool:
    return any(word in str(obj["metadata"].get("name")).lower() for word in ABOUT_DEVICES)


def _conf_text() -> str:
    running = parts.current()
    text = running.scheduler.conf.state.text if running is not None else ""
    if text:
        return text
    row = SchedulerConfiguration.objects.filter(pk=1).values_list("text", flat=True).first()
    return row or configuration.DEFAULT


def bare(obj: Obj) -> Obj:
    """An object with what the scheduler looks at and nothing that is somebody's secret: no environment, commands or arguments."""
    meta = {key: value for key, value in shown(obj)["metadata"].items() if key != "managedFields"}
    notes = meta.get("annotations") or {}
    if LAST_APPLIED in notes:
        meta["annotations"] = {key: value for key, value in notes.items() if key != LAST_APPLIED}
    found = {**shown(obj), "metadata": meta}
    if obj.get("kind") == POD.kind:
        spec = dict(found.get("spec") or {})
        for field in _CONTAINERS:
            if field in spec:
                spec[field] = [{key: value for key, value in each.items() if key not in _PRIVATE} for each in spec[field]]
        found["spec"] = spec
    return found


def without_secrets(text: str) -> str:
    """A configuration with what looks like a secret hidden: line by line, written anew where its values are not lines."""
    by_line = _SECRET.sub(rf'\1 "{HIDDEN}"', text)
    hidden = _hidden(_loaded(text))
    if hidden is None or _loaded(by_line) == hidden:
        return by_line
    return yaml.safe_dump(hidden, sort_keys=False)


def _loaded(text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None


def _hidden(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: HIDDEN if _WORDS.search(str(key)) else _hidden(item) for key, item in value.items()}
    return [_hidden(item) for item in value] if isinstance(value, list) else value


def replayed(content: bytes, conf: str = "") -> Decisions:
    """The decisions of a snapshot's cycle, also by another configuration. Raises BadRequest, `scheduler.conf.ConfError`."""
    try:
        return replay(load(content), conf, scheduler_names=settings.BASALT_SCHEDULER_NAMES)[0]
    except (ApiError, ConfError):
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:  # no admission saw these objects
        log.warning("a snapshot cannot be replayed", exc_info=True)
        raise BadRequest(
            said("the file cannot be replayed, since an object in it is not as its kind is: %(error)s", error=f"{error!r:.200}")
        ) from None


def packed(snapshot: Snapshot) -> bytes:
    """As it is given out: gzip."""
    return gzip.compress(snapshot.dump(), 6, mtime=0)


def load(content: bytes) -> Snapshot:
    """A snapshot from a file, packed or not. Raises BadRequest."""
    if content[:2] == b"\x1f\x8b":
        reader = zlib.decompressobj(zlib.MAX_WBITS | 16)
        try:
            content = reader.decompress(content, UNPACKED)
        except zlib.error as error:
            raise BadRequest(said("the file is not what gzip writes: %(error)s", error=error)) from None
        if not reader.eof:
            raise BadRequest(said("the file is cut short, or unpacks to more than %(most)s MiB", most=UNPACKED >> 20))
    return Snapshot.load(content, limit=UNPACKED)


def as_json(found: Decisions) -> dict[str, Any]:
    """Decisions as data."""
    return {
        "binds": [{"pod": pod, "node": node, "gpus": gpus} for pod, node, gpus in found.binds],
        "evictions": [dict(zip(("victim", "node", "action", "for"), each, strict=True)) for each in found.evictions],
        "verdicts": {uid: verdict.as_dict() for uid, verdict in found.verdicts.items()},
        "milliseconds": round(found.milliseconds, 2),
    }
