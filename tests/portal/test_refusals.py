"""What is refused, and what is told by events, is said by a template, never by a text that only one language has.

Read off the sources: the message of a refusal, of a fault, of what becomes one and of an event is `said(…)`, a translated text,
or a variable that holds one. Rooms that nobody meets through a page, REST or a socket are listed with the reason.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster import errors

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("cluster", "scheduler", "queues", "jobs", "portal")
ELSEWHERE = {
    "cluster/embedded/http": "speaks the Kubernetes API: to kubectl and to clients, which have no language",
    "cluster/embedded/processes": "speaks to the log and to pods' statuses, as a kubelet does",
    "cluster/embedded/fleets.py": "reads files that the command line names, and answers there",
    "cluster/embedded/lock.py": "refuses the start of a process",
    "cluster/embedded/table.py": "goes to the log",
    "cluster/kubernetes/flights.py": "is met by programmers",
    "cluster/clock.py": "is met by programmers",
    "cluster/leadership.py": "goes to the log of a process that leads no more",
    "cluster/logs/store.py": "is met by programmers",
    "scheduler/model": "goes to the log; what an object lacks is told by a verdict",
    "scheduler/configmap.py": "refuses the start of a process",
    "scheduler/calls.py": "goes to the log",
    "scheduler/elasticsearch.py": "goes to the log",
    "scheduler/prometheus.py": "goes to the log",
    "scheduler/locker.py": "is caught by the scheduler, which tries again",
    "scheduler/supplier.py": "is caught by the scheduler, which tries again",
    "scheduler/topology/gpu.py": "is met by programmers",
    "scheduler/plugins/deviceshare/mig.py": "goes to the log",
    "scheduler/whatif/sandbox.py": "is met by programmers",
    "jobs/controller/crew.py": "goes to the log of a worker that lost its key",
    "portal/crds": "speaks to the command line",
    "portal/management": "speaks to the command line",
    "portal/scenario": "reads cases that the command line names, and answers there",
    "portal/dryrun": "reads files that the command line names, and answers there",
    "portal/webhooks": "speaks to the API server",
    "portal/logs.py": "refuses the start of a process",
    "portal/postgres.py": "refuses the start of a process",
    "portal/environment.py": "refuses the start of a process",
}
REFUSALS = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, errors.ApiError)}
GRAMMARS = {"ValueError", "ScheduleError", "TopologyError", "FillError", "DraftError", "WorkloadError", "ConfError"}
ANSWERS = {
    "Http404",
    "PermissionDenied",
    "NotAuthenticated",
    "AuthenticationFailed",
    "Throttled",
    "ValidationError",
    "ParseError",
}
TRANSLATES = {"said", "told", "words", "_", "_now", "gettext", "gettext_lazy", "ngettext", "pgettext", "npgettext"}
WORDS = re.compile(r"[A-Za-z]{2}\S* |\s[A-Za-z]{2}")


def called(node: ast.AST) -> str:
    """The last part of a call's name."""
    function = node.func if isinstance(node, ast.Call) else node
    return function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else ""


def messages(call: ast.Call) -> list[ast.expr]:
    """Where a call's message stands, if it is one that refuses."""
    name, given = called(call), list(call.args)
    named = [word.value for word in call.keywords if word.arg in ("message", "detail")]
    if (isinstance(call.func, ast.Name) and name in REFUSALS | GRAMMARS | ANSWERS) or name in ANSWERS:
        return [*given[:1], *named]
    if name in ("FieldError", "Fault", "error", "_fault") and not (isinstance(call.func, ast.Attribute) and is_log(call.func)):
        return [*given[:2], *named] if name == "Fault" else [*given[1:2], *named]
    if name in ("normal", "warning") and isinstance(call.func, ast.Attribute) and "events" in ast.unparse(call.func.value):
        return given[2:3]
    if name in ("event_about", "_event", "tell") and len(given) > 3:
        return given[3:4] if name != "_event" else given[5:6]
    if name == "add" and isinstance(call.func, ast.Attribute) and "fault" in ast.unparse(call.func.value):
        return given[1:2] if len(given) > 1 and called(given[0]) != "said" else given[:1]
    return []


def is_log(function: ast.Attribute) -> bool:
    return ast.unparse(function.value) in ("log", "logger", "messages", "re", "parser", "this.events", "self._events", "self")


def literal(node: ast.expr) -> bool:
    """Whether an expression is a text of one language."""
    if isinstance(node, ast.Call):
        return called(node) not in TRANSLATES and isinstance(node.func, ast.Attribute) and literal(node.func.value)
    if isinstance(node, ast.JoinedStr):
        return any(literal(part) for part in node.values if isinstance(part, ast.Constant))
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and bool(WORDS.search(node.value))
    if isinstance(node, ast.IfExp):
        return literal(node.body) or literal(node.orelse)
    if isinstance(node, ast.BinOp):
        return literal(node.left) or literal(node.right)
    if isinstance(node, ast.BoolOp):
        return any(map(literal, node.values))
    if isinstance(node, ast.Dict):
        return any(map(literal, node.values))
    return isinstance(node, ast.List | ast.Tuple) and any(map(literal, node.elts))


def faults(path: Path) -> Iterator[str]:
    """Each refusal of a file that is not said by a template, also where its text stands in a variable of the same function."""
    tree = ast.parse(path.read_text())
    for scope in (tree, *(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))):
        texts = {
            target.id
            for node in ast.walk(scope)
            if isinstance(node, ast.Assign) and literal(node.value)
            for target in node.targets
            if isinstance(target, ast.Name) and scope is not tree
        }
        for call in (node for node in ast.walk(scope) if isinstance(node, ast.Call)):
            for each in messages(call):
                if (literal(each) and scope is tree) or (isinstance(each, ast.Name) and each.id in texts):
                    yield f"{path.relative_to(ROOT)}:{each.lineno}: {ast.unparse(each)[:90]}"


def sources() -> Iterator[Path]:
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            where = str(path.relative_to(ROOT))
            if "migrations" not in path.parts and not any(where == each or where.startswith(each + "/") for each in ELSEWHERE):
                yield path


def test_every_refusal_that_people_meet_knows_its_template():
    assert [fault for path in sources() for fault in faults(path)] == []


def test_each_exception_from_that_is_still_there():
    assert [each for each in ELSEWHERE if not (ROOT / each).exists()] == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('raise Conflict("Not fine")', 1),
        ('raise Conflict(said("fine"), [FieldError("/a", f"not {fine}")])', 1),
        ('faults.add("/spec/a", "must not be so", "range")', 1),
        ('faults.add(where, said("fine"), "range")', 0),
        ('def f():\n    told = f"not {fine}"\n    raise Forbidden(told)', 1),
        ('def f():\n    told = said("fine")\n    raise Forbidden(told)', 0),
        ('raise BadRequest("; ".join(each.message for each in wrong), wrong)', 0),
        ('raise BadRequest("not " + fine)', 1),
        ('raise NotFound("Not %s" % fine)', 1),
        ('raise ValidationError({"page": [f"not {fine}"]})', 1),
        ('raise Http404(_("fine %(x)s") % {"x": 1})', 0),
        ('raise arguments.error(key, "not fine")', 1),
        ('log.error("of no matter", "to people")', 0),
        ('this.events.warning(this.job, "PVCError", f"not {fine}")', 1),
        ('told = event_about(pod, "Warning", "Reason", f"not {fine}", stamp=stamp, component="kubelet")', 1),
    ],
)
def test_the_check_sees_what_it_is_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, found: int):
    monkeypatch.setattr("tests.portal.test_refusals.ROOT", tmp_path)
    (tmp_path / "a.py").write_text(text)
    assert len(list(faults(tmp_path / "a.py"))) == found
