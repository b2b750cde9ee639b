"""`job view`: all about a job, in the lines of Volcano's tool."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from basalt.client.rows import EventRow, JobRow
from basalt.commands.manifest import canonical
from basalt.terminal.ages import since

Obj = dict[str, Any]
ZERO = "0001-01-01 00:00:00 +0000 UTC"
_ANNOTATIONS = (
    ("Cri . Cci . Io / Container - Type:          ", "cri.cci.io/container-type"),
    ("Kubernetes . Io / Availablezone:            ", "kubernetes.io/availablezone"),
    ("Network . Alpha . Kubernetes . Io / Network:", "network.alpha.kubernetes.io/network"),
)
_COUNTERS = (
    ("Succeeded:    ", "succeeded"), ("Pending:      ", "pending"), ("Running:      ", "running"), ("Failed:       ", "failed"),
    ("Terminating:  ", "terminating"), ("Unknown:      ", "unknown"), ("RetryCount:   ", "retryCount"),
    ("Min Available:", "minAvailable"), ("Version:      ", "version"),
)  # fmt: skip


def lines(row: JobRow, now: datetime, *, conditions: bool = True) -> Iterator[str]:
    """The whole view; `vjobs` has no conditions."""
    obj = row.get("manifest") or {}
    yield from _head(obj)
    yield from _spec(obj.get("spec") or {})
    yield from _status(obj.get("status") or {}, conditions)
    yield from events([event for event in row.get("events") or () if event["about_name"] == row["name"]], now)


def _head(obj: Obj) -> Iterator[str]:
    meta = obj.get("metadata") or {}
    yield f"Name:       \t{meta.get('name', '')}"
    yield f"Namespace:  \t{meta.get('namespace', '')}"
    yield f"Labels:     \t{_mapping(meta.get('labels'))}"
    yield f"Annotations:\t{_mapping(meta.get('annotations'))}"
    yield f"API Version:\t{obj.get('apiVersion', '')}"
    yield f"Kind:       \t{obj.get('kind', '')}"
    yield "Metadata:"
    yield f"  Creation Timestamp:\t{_instant(meta.get('creationTimestamp'))}"
    yield f"  Generate Name:     \t{meta.get('generateName', '')}"
    yield f"  Generation:        \t{meta.get('generation', 0)}"
    yield f"  Resource Version:  \t{meta.get('resourceVersion', '')}"
    yield f"  UID:               \t{meta.get('uid', '')}"


def _spec(spec: Obj) -> Iterator[str]:
    plugins = spec.get("plugins") or {}
    yield "Spec:"
    yield f"  Min Available:     \t{spec.get('minAvailable', 0)}"
    yield "  Plugins:"
    yield f"    Env:\t[{' '.join(plugins.get('env') or ())}]"
    yield f"    Ssh:\t[{' '.join(plugins.get('ssh') or ())}]"
    yield f"  Scheduler Name:    \t{spec.get('schedulerName', '')}"
    yield "  Tasks:"
    for task in spec.get("tasks") or ():
        yield f"    Name:\t{task.get('name', '')}"
        yield f"    Replicas:\t{task.get('replicas', 0)}"
        yield "    Template:"
        yield from _template(task.get("template") or {})


def _template(template: Obj) -> Iterator[str]:
    meta, spec = template.get("metadata") or {}, template.get("spec") or {}
    notes = meta.get("annotations") or {}
    yield "      Metadata:"
    yield "        Annotations:"
    for title, key in _ANNOTATIONS:
        yield f"          {title}\t{notes.get(key, '')}"
    yield f"        Creation Timestamp:\t{_instant(meta.get('creationTimestamp'))}"
    yield "      Spec:"
    yield "        Containers:"
    for container in spec.get("containers") or ():
        yield from _container(container)
    yield "        Image Pull Secrets:"
    for secret in spec.get("imagePullSecrets") or ():
        yield f"          Name:     \t{secret.get('name', '')}"
    yield f"        Restart Policy:   \t{spec.get('restartPolicy', '')}"


def _container(container: Obj) -> Iterator[str]:
    asked = container.get("resources") or {}
    yield "          Command:"
    for word in container.get("command") or ():
        yield f"            {word}"
    yield f"          Image:\t{container.get('image', '')}"
    yield f"          Name: \t{container.get('name', '')}"
    yield "          Ports:"
    for port in container.get("ports") or ():
        yield f"            Container Port:\t{port.get('containerPort', 0)}"
        yield f"            Name:          \t{port.get('name', '')}"
    yield "          Resources:"
    for title, key in (("Limits", "limits"), ("Requests", "requests")):
        amounts = asked.get(key) or {}
        yield f"            {title}:"
        yield f"              Cpu:   \t{canonical(amounts.get('cpu'))}"
        yield f"              Memory:\t{canonical(amounts.get('memory'))}"
    yield f"            Working Dir:\t{container.get('workingDir', '')}"


def _status(status: Obj, with_conditions: bool) -> Iterator[str]:
    yield "Status:"
    for title, key in _COUNTERS:
        if status.get(key):
            yield f"  {title}\t{status[key]}"
    yield "  State:"
    yield f"    Phase:\t{(status.get('state') or {}).get('phase', '')}"
    made = {key: value for key, value in (status.get("controlledResources") or {}).items() if not key.startswith("basalt.dev/")}
    if made:
        yield "  Controlled Resources:"
        for key in sorted(made):
            yield f"    {key}: \t{made[key]}"
    conditions = status.get("conditions") or ()
    if with_conditions and conditions:
        yield "  Conditions:"
        yield "    Status\tTransitionTime"
        for condition in conditions:
            yield f"    {condition.get('status', '')} \t{_instant(condition.get('lastTransitionTime'))} "


def events(rows: list[EventRow], now: datetime) -> Iterator[str]:
    """What happened to the job itself."""
    if not rows:
        yield "Events: \t<none>"
        return
    yield "Events:"
    yield f"{'Type':<15}\t{'Reason':<40}\t{'Age':<30}\t{'Form':<40}\tMessage"
    yield f"{'-------':<15}\t{'-------':<40}\t{'-------':<30}\t{'-------':<40}\t-------"
    for event in sorted(rows, key=lambda each: each["first_seen"]):
        age = since(event["first_seen"], now)
        if event["count"] > 1:
            age = f"{since(event['last_seen'], now)} (x{event['count']} over {age})"
        yield f"{event['type']:<15}\t{event['reason']:<40}\t{age:<30}\t{event['source']:<40}\t{event['message'].strip()}"


def _mapping(found: Any) -> str:
    return json.dumps(found, sort_keys=True, separators=(",", ":"), ensure_ascii=False) if found else "<none>"


def _instant(stamp: Any) -> str:
    """An instant as Go prints it, in this machine's time zone."""
    if not stamp:
        return ZERO
    at = datetime.fromisoformat(str(stamp)).astimezone()
    return f"{at:%Y-%m-%d %H:%M:%S %z} {at.tzname()}"
