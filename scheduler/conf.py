"""The scheduler's configuration: Volcano's `volcano-scheduler.conf`, read strictly.

Spelling is Volcano's to the letter, its switches included. Whatever is wrong is reported with its line, everything at
once, and nothing of such a file is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import yaml

from cluster.durations import parse_duration
from cluster.said import said
from scheduler.arguments import Arguments, ConfError, Fault
from scheduler.framework import registry

__all__ = [
    "DEFAULT", "LONGEST", "SWITCHES", "Arguments", "ConfError", "Configuration", "Fault", "PluginOption", "as_kept", "first",
    "load",
]  # fmt: skip

DEFAULT = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
"""

SWITCHES: Mapping[str, bool] = MappingProxyType(
    dict.fromkeys(
        (
            "enableJobOrder", "enableJobReady", "enableJobPipelined", "enableTaskOrder", "enablePreemptable",
            "enableReclaimable", "enablePreemptive", "enableQueueOrder", "enablePredicate", "enableBestNode",
            "enableNodeOrder", "enableTargetJob", "enableReservedNodes", "enableJobEnqueued", "enabledVictim",
            "enableJobStarving", "enabledOverused", "enabledAllocatable", "enabledHyperNodeOrder",
            "enabledSubJobReady", "enabledSubJobPipelined", "enabledSubJobOrder", "enabledHyperNodeGradient",
        ),
        True,
    )
    | {"enableHierarchy": False, "enableNamespaceOrder": False, "enabledClusterOrder": False}
)  # fmt: skip
"""Every switch and its default. Some begin with `enable`, some with `enabled`."""

LONGEST = 100_000
"""Characters of a configuration."""
_MOST = 10_000
_DIGITS = 100
"""Characters of a number, more than any has that can be counted."""
_FAULTS = 100
"""Faults that are told; a text can have as many as characters."""
_METRICS_INTERVAL = "30s"
_METRICS = {
    "type", "address", "interval", "tls.insecureSkipVerify",
    *(f"elasticsearch.{key}" for key in ("index", "username", "password", "hostnameFieldName")),
}  # fmt: skip
_SOURCES = ("prometheus", "elasticsearch")


@dataclass(frozen=True, slots=True)
class PluginOption:
    """A plugin as one tier lists it."""

    name: str
    switches: Mapping[str, bool] = field(default_factory=dict)
    arguments: Arguments = field(default_factory=Arguments)
    line: int = 0

    def on(self, switch: str) -> bool:
        """Whether a switch is on, by what is written or by its default."""
        return self.switches.get(switch, SWITCHES[switch])


@dataclass(frozen=True, slots=True)
class Configuration:
    """Actions in order, tiers of plugins in order, arguments by action."""

    actions: tuple[str, ...]
    tiers: tuple[tuple[PluginOption, ...], ...]
    arguments: Mapping[str, Arguments] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)

    def plugins(self) -> Iterator[PluginOption]:
        """All plugins, tier by tier."""
        for tier in self.tiers:
            yield from tier

    def metrics_interval(self) -> float:
        """Seconds between two measurements of the nodes."""
        return parse_duration(str(self.metrics.get("interval") or _METRICS_INTERVAL))

    def reads_metrics(self) -> bool:
        """Whether a plugin looks at what nodes are measured to use."""
        return any(option.name in registry.READ_METRICS for option in self.plugins())

    def action_arguments(self, action: str) -> Arguments:
        """Arguments of an action; empty when none are given."""
        return self.arguments.get(action) or Arguments(action)


def _integers(node: yaml.Node) -> Iterator[int]:
    """The whole numbers anywhere in a value; what stands in itself is looked at once."""
    seen, ahead = set[int](), [node]
    while ahead:
        each = ahead.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, yaml.ScalarNode) and each.tag == "tag:yaml.org,2002:int":
            yield int(yaml.SafeLoader("").construct_document(each)) if len(each.value) < _DIGITS else 2**63
        elif isinstance(each, yaml.SequenceNode):
            ahead += each.value
        elif isinstance(each, yaml.MappingNode):
            ahead += [part for pair in each.value for part in pair]


def _unfolded(node: yaml.Node, known: dict[int, int]) -> int:
    """How many values there are when all that is repeated by name is written out; what stands in itself counts as one."""
    if id(node) not in known:
        known[id(node)] = 1
        known[id(node)] += sum(_unfolded(part, known) for part in _inner(node))
    return known[id(node)]


def _inner(node: yaml.Node) -> Iterator[yaml.Node]:
    """The values right inside a value."""
    if not isinstance(node, yaml.ScalarNode):
        yield from (part for each in node.value for part in (each if isinstance(each, tuple) else (each,)))


def as_kept(text: str) -> str:
    """A text from outside as a database holds it, none of which has a NUL character."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")


def first(faults: list[Fault]) -> list[Fault]:
    """The first of the faults by line, and how many more there are."""
    told = sorted(faults, key=lambda fault: fault.line)[:_FAULTS]
    more = len(faults) - len(told)
    return [*told, Fault(0, said("and %(count)s more faults", count=more))] if more else told


def load(text: str = DEFAULT) -> Configuration:
    """Read and check a whole configuration. Raises ConfError with its faults, the first of them where there are very many."""
    if len(text) > LONGEST:
        raise ConfError(Fault(0, said("A configuration has at most %(count)s characters", count=LONGEST)))
    registry.load_builtin()
    return _Reader().read(text)


class _Reader:
    """One reading of one text; collects faults and raises them together at the end."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self._sizes: dict[int, int] = {}

    def read(self, text: str) -> Configuration:
        try:
            root = yaml.compose(text, Loader=yaml.SafeLoader)
        except RecursionError:
            raise ConfError(Fault(0, said("not YAML: %(problem)s", problem=said("values are nested too deep")))) from None
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            problem = getattr(error, "problem", None) or str(error)
            raise ConfError(Fault(mark.line + 1 if mark else 0, said("not YAML: %(problem)s", problem=problem))) from None
        if root is None:
            raise ConfError(Fault(0, said("the configuration is empty: it needs actions and tiers")))
        if (grown := self._grown(root)) is not None:
            told = said("the value unfolds to more than %(most)s values", most=_MOST)
            raise ConfError(Fault(grown.start_mark.line + 1, told))
        fields = self._mapping(root, said("the configuration"), {"actions", "tiers", "configurations", "metrics"})
        conf = Configuration(
            self._actions(fields.get("actions"), root),
            self._tiers(fields.get("tiers"), root),
            self._configurations(fields.get("configurations")),
            self._metrics(fields.get("metrics")),
        )
        if not self.faults:
            self._try_out(conf)
        if self.faults:
            raise ConfError(*first(self.faults))
        return conf

    def _grown(self, root: yaml.Node) -> yaml.Node | None:
        """The innermost value that unfolds to too many."""
        grown = None
        ahead = [root]
        while ahead:
            node = ahead.pop()
            if node is not grown and _unfolded(node, self._sizes) > _MOST:
                grown, ahead = node, list(_inner(node))
        return grown

    def _fault(self, node: yaml.Node, message: str) -> None:
        self.faults.append(Fault(node.start_mark.line + 1, message))

    def _mapping(self, node: yaml.Node, what: str, known: set[str] | None = None) -> dict[str, yaml.Node]:
        if not isinstance(node, yaml.MappingNode):
            self._fault(node, said("%(what)s must be a mapping of names to values", what=what))
            return {}
        found: dict[str, yaml.Node] = {}
        for key, value in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else ""
            if not name or key.tag != "tag:yaml.org,2002:str":
                self._fault(key, said("%(what)s: a name must be a text", what=what))
            elif name in found:
                self._fault(key, said("%(what)s: %(name)r is given twice", what=what, name=name))
            elif known is not None and name not in known:
                self._fault(
                    key,
                    said(
                        "%(what)s: %(name)r is unknown; known are %(known)s", what=what, name=name, known=", ".join(sorted(known))
                    ),
                )
            else:
                found[name] = value
        return found

    def _list(self, node: yaml.Node, what: str) -> list[yaml.Node]:
        if not isinstance(node, yaml.SequenceNode):
            self._fault(node, said("%(what)s must be a list", what=what))
            return []
        return list(node.value)

    def _text(self, node: yaml.Node, what: str) -> str:
        if not isinstance(node, yaml.ScalarNode) or node.tag != "tag:yaml.org,2002:str":
            self._fault(node, said("%(what)s must be a text", what=what))
            return ""
        return str(node.value)

    def _value(self, node: yaml.Node) -> Any:
        try:
            if any(abs(number) >= 2**63 for number in _integers(node)):
                return self._fault(node, said("a number here is too large to be counted"))
            return yaml.SafeLoader("").construct_document(node)
        except (yaml.YAMLError, ValueError) as error:
            self._fault(node, said("not a value: %(problem)s", problem=getattr(error, "problem", error)))
            return None

    def _actions(self, node: yaml.Node | None, root: yaml.Node) -> tuple[str, ...]:
        if node is None:
            self._fault(root, said('actions is missing: for example actions: "enqueue, allocate, backfill"'))
            return ()
        names = [name.strip() for name in self._text(node, "actions").split(",")]
        for name in names:
            if name not in registry.actions:
                self._fault(
                    node,
                    said(
                        "action %(name)r is unknown; known are %(actions)s",
                        name=name,
                        actions=", ".join(sorted(registry.actions)),
                    ),
                )
        return tuple(names)

    def _tiers(self, node: yaml.Node | None, root: yaml.Node) -> tuple[tuple[PluginOption, ...], ...]:
        if node is None:
            self._fault(root, said("tiers is missing: a list of tiers, each with its plugins"))
            return ()
        tiers, seen = [], set[str]()
        for number, tier in enumerate(self._list(node, "tiers"), 1):
            fields = self._mapping(tier, said("tier %(number)s", number=number), {"plugins"})
            entries = (
                self._list(fields["plugins"], said("plugins of tier %(number)s", number=number)) if "plugins" in fields else []
            )
            options = [option for entry in entries if (option := self._plugin(entry, number, seen)) is not None]
            self._refuse_clash(options)
            tiers.append(tuple(options))
        return tuple(tiers)

    def _plugin(self, node: yaml.Node, tier: int, seen: set[str]) -> PluginOption | None:
        fields = self._mapping(node, said("plugin of tier %(tier)s", tier=tier), {"name", "arguments", *SWITCHES})
        if "name" not in fields:
            self._fault(node, said("plugin of tier %(tier)s has no name", tier=tier))
            return None
        name = self._text(fields["name"], "name")
        if name in seen:
            self._fault(node, said("plugin %(name)r is listed twice", name=name))
        elif name and name not in registry.plugins:
            self._fault(
                node,
                said("plugin %(name)r is unknown; known are %(plugins)s", name=name, plugins=", ".join(sorted(registry.plugins))),
            )
        seen.add(name)
        switches = {}
        for switch in SWITCHES.keys() & fields.keys():
            value = self._value(fields[switch])
            if isinstance(value, bool):
                switches[switch] = value
            else:
                self._fault(fields[switch], said("%(switch)s must be true or false", switch=switch))
        return PluginOption(name, switches, self._arguments(name, fields.get("arguments")), node.start_mark.line + 1)

    def _arguments(self, owner: str, node: yaml.Node | None) -> Arguments:
        if node is None:
            return Arguments(owner)
        fields = self._mapping(node, said("arguments of %(owner)s", owner=owner))
        lines = {key: value.start_mark.line + 1 for key, value in fields.items()}
        return Arguments(owner, {key: self._value(value) for key, value in fields.items()}, lines)

    def _refuse_clash(self, tier: list[PluginOption]) -> None:
        by_name = {option.name: option for option in tier}
        drf = by_name.get("drf")
        if drf is not None and "proportion" in by_name and drf.on("enableHierarchy"):
            message = said("drf with enableHierarchy and proportion both order queues: put them into different tiers")
            self.faults.append(Fault(drf.line, message))

    def _metrics(self, node: yaml.Node | None) -> dict[str, Any]:
        """Where measurements come from: a monitoring server's address, how it is reached, and how often it is asked."""
        if node is None:
            return {}
        fields = self._mapping(node, "metrics", _METRICS)
        found = {key: self._value(value) for key, value in fields.items()}
        if "address" in fields and not str(found["address"]).startswith(("http://", "https://")):
            self._fault(fields["address"], said("metrics: address must begin with http:// or https://"))
        if "type" in fields and found["type"] not in _SOURCES:
            self._fault(
                fields["type"],
                said(
                    "metrics: type %(type)r is not known; known are %(sources)s", type=found["type"], sources=", ".join(_SOURCES)
                ),
            )
        for key in fields.keys() - {"address", "type", "interval"}:
            if not isinstance(found[key], str if key.startswith("elastic") else (str, bool)):
                self._fault(fields[key], said("metrics: %(key)s must be a text; put it in quotes", key=key))
        if str(found.get("tls.insecureSkipVerify", "false")).lower() not in ("true", "false"):
            self._fault(fields["tls.insecureSkipVerify"], said("metrics: tls.insecureSkipVerify must be true or false"))
        if "interval" in fields:
            try:
                if parse_duration(str(found["interval"])) <= 0:
                    raise ValueError(said("it must be longer than nothing"))
            except ValueError as error:
                self._fault(fields["interval"], said("metrics: interval: %(error)s", error=error))
        return found

    def _configurations(self, node: yaml.Node | None) -> dict[str, Arguments]:
        found: dict[str, Arguments] = {}
        for entry in self._list(node, "configurations") if node is not None else ():
            fields = self._mapping(entry, said("configuration of an action"), {"name", "arguments"})
            name = self._text(fields["name"], "name") if "name" in fields else ""
            if name not in registry.actions:
                self._fault(
                    entry,
                    said("%(name)r is no action; known are %(actions)s", name=name, actions=", ".join(sorted(registry.actions))),
                )
            elif name in found:
                self._fault(entry, said("action %(name)r is configured twice", name=name))
            found[name] = self._arguments(name, fields.get("arguments"))
        return found

    def _try_out(self, conf: Configuration) -> None:
        """Make every plugin and action once: their constructors check their arguments."""
        makers: list[tuple[Any, Arguments]] = [(registry.plugins[o.name], o.arguments) for o in conf.plugins()]
        makers += [(registry.actions[name], conf.action_arguments(name)) for name in conf.actions]
        for make, arguments in makers:
            try:
                make(arguments)
            except ConfError as error:
                self.faults.extend(error.faults)
