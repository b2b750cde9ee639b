"""What of an object may leave the cluster by pages, the API and exports: no secret, whoever asks.

One rule a kind, registered by the app that owns the kind (as admission rules are); `shown` is what everything that hands an
object out passes it through. Whoever has to read a Secret's values does so in the cluster itself.
"""

from __future__ import annotations

from collections.abc import Callable

from cluster.kinds import SECRET, Kind, by_api
from cluster.port import Obj

HIDDEN = "(hidden)"
"""What stands in the place of a secret value."""

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""kubectl's own copy of a manifest, in an annotation."""

Rule = Callable[[Obj], Obj]
_RULES: dict[Kind, Rule] = {}


def register(kind: Kind, rule: Rule) -> None:
    """What is to be shown of a kind instead of the object. The rule must leave its argument as it is."""
    _RULES[kind] = rule


def shown(obj: Obj) -> Obj:
    """The object as it may be shown; itself when nothing in it is secret."""
    kind = by_api(str(obj.get("apiVersion")), str(obj.get("kind")))
    rule = _RULES.get(kind) if kind is not None else None
    return rule(obj) if rule is not None else obj


def without_copy(obj: Obj) -> Obj:
    """The object without kubectl's copy of what it was."""
    notes = obj["metadata"].get("annotations") or {}
    if LAST_APPLIED not in notes:
        return obj
    kept = {key: value for key, value in notes.items() if key != LAST_APPLIED}
    return {**obj, "metadata": {**obj["metadata"], "annotations": kept}}


def _secret(obj: Obj) -> Obj:
    """A Secret's keys, and none of its values."""
    hidden: Obj = {field: dict.fromkeys(obj[field] or (), HIDDEN) for field in ("data", "stringData") if field in obj}
    return {**without_copy(obj), **hidden}


register(SECRET, _secret)
