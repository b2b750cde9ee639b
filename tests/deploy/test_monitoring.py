"""The dashboard, the alerts and the documentation name metrics that exist, with labels that they have."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from prometheus_client import CollectorRegistry

from portal.metrics import registry, web
from portal.webhooks import measures
from tests.deploy.rendered import DEPLOY
from tests.portal.test_metrics import CONTROLLER, OURS_SCHEDULER, SCHEDULER

_WORD = re.compile(r'"[^"]*"|[a-zA-Z_:][a-zA-Z0-9_:]*|[{}()\[\]]')
_FUNCTIONS = {"sum", "max", "avg", "rate", "by", "le", "topk", "histogram_quantile", "label_values"}
_SCRAPED = {"service", "pod", "namespace", "instance", "job"}
"""Labels that Prometheus adds."""


def known() -> dict[str, set[str]]:
    """Every sample that a process can show, with its labels."""
    assert None not in (measures, web)  # they register the families of webhooks and pages
    found: dict[str, set[str]] = {}

    def add(name: str, kind: str, labels: set[str]) -> None:
        if kind == "histogram":
            found[f"{name}_bucket"] = labels | {"le"}
            found[f"{name}_sum"] = found[f"{name}_count"] = labels
        else:
            found[name] = labels

    for name, (kind, labels) in (SCHEDULER | CONTROLLER).items():
        add(f"volcano_{name}", kind, labels)
    for name in OURS_SCHEDULER:
        add(f"basalt_{name}", "gauge", {"phase"} if name == "podgroups" else set())
    add("basalt_jobs", "gauge", {"phase"})
    for name in ("leads", "work_queue", "mirror_lag_seconds", "live_sockets", "live_topics", "cluster_answers"):
        add(f"basalt_{name}", "gauge", set())
    for collector in _collectors(registry):
        for family in collector.describe() if hasattr(collector, "describe") else ():
            labels = set(getattr(collector, "_labelnames", ()))
            add(f"{family.name}_total" if family.type == "counter" else family.name, family.type, labels)
    for name in ("process_resident_memory_bytes", "process_cpu_seconds_total"):
        add(name, "gauge", set())
    return found


def _collectors(of: CollectorRegistry) -> list[object]:
    return list(of._collector_to_names)


def expressions() -> Iterator[tuple[str, str]]:
    """Where it stands, and the expression."""
    dashboard = json.loads((DEPLOY / "grafana" / "basalt.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            yield f"panel {panel['title']}", target["expr"]
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            yield f"variable {variable['name']}", variable["query"]
    rules = yaml.safe_load((DEPLOY / "kustomize" / "components" / "monitoring" / "rules.yaml").read_text())
    for group in rules["spec"]["groups"]:
        for rule in group["rules"]:
            yield f"alert {rule['alert']}", rule["expr"]


def faults(expression: str, metrics: dict[str, set[str]]) -> list[str]:
    """Words of an expression that are no metric, function, or label of a metric in it."""
    bare = re.sub(r"\$\{?\w+\}?", "1", expression)
    words = [word for word in _WORD.findall(bare) if not word.startswith('"')]
    used = {word for word in words if word in metrics}
    labels = set().union(_SCRAPED, *(metrics[word] for word in used))
    in_window = re.findall(r"\[(\w+)\]", bare)
    left = [
        w
        for w in words
        if w not in "{}()[]"
        and w not in used | labels | _FUNCTIONS
        and w not in in_window
        and not re.fullmatch(r"[0-9]?[smhd]", w)
    ]
    return left or ([] if used else ["no metric at all"])


@pytest.mark.parametrize(("where", "expression"), list(expressions()), ids=lambda value: str(value)[:40])
def test_every_expression_is_of_metrics_that_exist(where: str, expression: str) -> None:
    assert faults(expression, known()) == [], where
    assert expression.count("(") == expression.count(")")


def test_an_expression_of_a_metric_or_label_that_is_not_there_is_found() -> None:
    assert faults("sum(volcano_queue_wait)", known()) == ["volcano_queue_wait"]
    assert faults("sum by (queue) (volcano_queue_share)", known()) == ["queue"]
    assert faults("1 + 1", known()) == ["no metric at all"]


def test_the_documentation_lists_every_metric() -> None:
    text = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()
    listed = set()
    for words in re.findall(r"^\| (`.*?) \| (?:gauge|counter|histogram)", text, re.MULTILINE):
        first, *others = re.findall(r"`(.*?)`", words)
        stem = first.removesuffix("_duration")  # `…_last_time` beside `…_duration`
        for name in (first, *(other.replace("…", stem) for other in others)):
            listed |= set(_spelled(name))
    ours = {name.removesuffix("_bucket") for name in known() if name.startswith("basalt_")}
    ours = {name for name in ours if not (name.endswith(("_sum", "_count")) and name.rpartition("_")[0] in ours)}
    assert listed == SCHEDULER.keys() | CONTROLLER.keys() | ours


def _spelled(name: str) -> Iterator[str]:
    match = re.search(r"\{(.*?)\}", name)
    if match is None:
        yield name
        return
    words = (
        ("allocated", "request", "deserved", "inqueue", "capacity", "real_capacity")
        if match[1] == "same"
        else match[1].split(",")
    )
    for word in words:
        yield from _spelled(name[: match.start()] + word + name[match.end() :])
