"""Admission: the rules that an object must pass before a cluster keeps it.

Rules are registered by kind (by `apps.py` of the app that owns the kind) and called by the embedded store; on
Kubernetes the same rules are served as webhooks. A rule reads the cluster only through the request's reader.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from cluster.errors import FieldError, Forbidden, Invalid
from cluster.kinds import Kind
from cluster.port import Obj, Reader

Operation = Literal["CREATE", "UPDATE", "DELETE"]


@dataclass(frozen=True, slots=True)
class Request:
    """One write that asks to be let in. `obj` is a private copy that `default` may change; `old` is None on create."""

    operation: Operation
    kind: Kind
    obj: Obj
    old: Obj | None
    reader: Reader


class Rules(Protocol):
    """What an app says about one kind. Either method may do nothing."""

    def default(self, request: Request) -> None:
        """Fill in defaults in `request.obj`: on create, and on update too where the rules say `defaults_updates = True`."""
        ...

    def validate(self, request: Request) -> list[FieldError]:
        """Every fault, all at once; an empty list lets the object in. May raise Forbidden for what no change would mend."""
        ...


@runtime_checkable
class Advising(Protocol):
    """Rules that have something to say of what they let in, too."""

    def advise(self, request: Request) -> Iterable[str]:
        """Sentences about an object without faults; they change nothing."""
        ...


class PlainRules(ABC):
    """Rules that fill in nothing, unless they say so, and leave deletion alone."""

    def default(self, request: Request) -> None:  # noqa: B027 - few kinds have something to fill in
        """Nothing to fill in."""

    def validate(self, request: Request) -> list[FieldError]:
        """Every fault of what is to be kept."""
        return [] if request.operation == "DELETE" else self.check(request)

    @abstractmethod
    def check(self, request: Request) -> list[FieldError]:
        """Every fault of a new object, or of a new version."""


class Admission:
    """The registered rules, applied in the order of their registration."""

    def __init__(self) -> None:
        self._rules: defaultdict[Kind, list[Rules]] = defaultdict(list)

    def register(self, kind: Kind, rules: Rules) -> None:
        """Add rules for a kind; registering the same object twice changes nothing."""
        if rules not in self._rules[kind]:
            self._rules[kind].append(rules)

    def copy(self) -> Admission:
        """The same rules, to which more can be added without touching these."""
        other = Admission()
        for kind, rules in self._rules.items():
            other._rules[kind].extend(rules)
        return other

    def complete(self, request: Request) -> None:
        """Fill in what the rules give a new object, and check nothing."""
        for rule in self._rules.get(request.kind, ()):
            rule.default(request)

    def default(self, request: Request) -> None:
        """Fill in what the rules give on this operation: on create all of them, on update those that say so."""
        for rule in self._rules.get(request.kind, ()):
            if request.operation == "CREATE" or (request.operation == "UPDATE" and getattr(rule, "defaults_updates", False)):
                rule.default(request)

    def faults(self, request: Request) -> list[FieldError]:
        """All faults of all rules. Raises Forbidden."""
        return [fault for rule in self._rules.get(request.kind, ()) for fault in rule.validate(request)]

    def admit(self, request: Request) -> Obj:
        """The object as it may be stored. Raises Invalid with all faults, or Forbidden."""
        self.default(request)
        if faults := self.faults(request):
            raise Invalid.of(request.kind.kind, request.obj.get("metadata", {}).get("name", ""), faults)
        return request.obj

    def advice(self, request: Request) -> list[str]:
        """What the author of an object that is let in had better know, a sentence each."""
        return [said for rule in self._rules.get(request.kind, ()) if isinstance(rule, Advising) for said in rule.advise(request)]


admission = Admission()

__all__ = ["Admission", "Advising", "Forbidden", "Operation", "PlainRules", "Request", "Rules", "admission"]
