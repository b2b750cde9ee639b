"""Manifests from files: read as text, so that the server's faults name the file's own lines; looked at for kind and name."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from basalt.client.errors import Fault, Refused

LIMIT = 2**20
"""Bytes that the server takes at once."""


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a file. `text` keeps its lines where they are in the file, by empty lines before it."""

    source: str
    text: str
    obj: dict[str, Any]
    line: int

    @property
    def kind(self) -> str:
        return str(self.obj.get("kind") or "")

    @property
    def name(self) -> str:
        meta = self.obj.get("metadata")
        return str((meta.get("name") or meta.get("generateName") or "") if isinstance(meta, dict) else "")

    @property
    def namespace(self) -> str:
        meta = self.obj.get("metadata")
        return str((meta.get("namespace") or "") if isinstance(meta, dict) else "")


def read(source: str) -> str:
    """The text of a file, or of standard input (`-`). Raises Refused."""
    name = "standard input" if source == "-" else source
    try:
        raw = sys.stdin.buffer.read(LIMIT + 1) if source == "-" else _bytes(Path(source))
    except FileNotFoundError:
        raise Refused(f"There is no file {source}.") from None
    except OSError as error:
        raise Refused(f"{name} cannot be read: {error.strerror or error}.") from error
    if len(raw) > LIMIT:
        raise Refused(f"{name} has more than 1 MiB.", hint="Send it in parts.")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise Refused(f"{name}, line {line}: this is not UTF-8.") from None


def _bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(LIMIT + 1)


def files(sources: Sequence[str]) -> list[str]:
    """Files by name; a folder stands for the manifests in it. Raises Refused."""
    found: list[str] = []
    for source in sources:
        path = Path(source)
        if source != "-" and path.is_dir():
            inside = sorted(str(each) for each in path.iterdir() if each.suffix in (".yaml", ".yml", ".json"))
            if not inside:
                raise Refused(f"The folder {source} holds no .yaml, .yml or .json files.")
            found += inside
        else:
            found.append(source)
    return found


def documents(text: str, source: str) -> list[Document]:
    """The documents of a text. Raises Refused with the line that is no YAML."""
    read_as = _json if text.lstrip().startswith(("{", "[")) else _yaml
    found = list(read_as(text, source))
    if not found:
        raise Refused(f"{source} holds no manifest.")
    return found


def _json(text: str, source: str) -> Iterator[Document]:
    try:
        yield _document(text, json.loads(text), source, 1)
    except json.JSONDecodeError as error:
        try:
            yield from _yaml(text, source)
        except Refused:
            raise Refused(f"{source} is not JSON.", faults=[Fault("", error.msg, line=error.lineno)]) from None


def _yaml(text: str, source: str) -> Iterator[Document]:
    try:
        nodes = list(yaml.compose_all(text, Loader=_Loader))
        ends = [node.start_mark.line if node else 0 for node in nodes[1:]]
        lines = text.splitlines(keepends=True)
        for node, end in zip(nodes, [*ends, len(lines)]):
            if node is None:
                continue
            start = node.start_mark.line
            body = "".join(re.sub(r"^---(?=\s|$)", "", line) for line in lines[start:end])
            yield _document("\n" * start + body, _value(node), source, start + 1)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        detail = " ".join(
            str(part) for part in (getattr(error, "context", None), getattr(error, "problem", None)) if part
        ) or str(error)
        raise Refused(f"{source} is not YAML.", faults=[Fault("", detail, line=mark.line + 1 if mark else None)]) from None


def _value(node: yaml.Node) -> Any:
    loader = _Loader("")
    try:
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _document(text: str, value: Any, source: str, line: int) -> Document:
    if not isinstance(value, dict):
        raise Refused(
            f"{source} is no manifest.",
            faults=[Fault("", f"this is {_kind(value)}, not a mapping with apiVersion and kind", line=line)],
        )
    return Document(source, text, value, line)


def _kind(value: Any) -> str:
    return {list: "a list", str: "a text", int: "a number", float: "a number", bool: "true or false"}.get(
        type(value), "something else"
    )


class _Loader(yaml.SafeLoader):
    """Safe; dates stay text, as in Kubernetes."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


# --- edits: --set spec.tasks[0].replicas=4 ---


def edited(obj: dict[str, Any], edits: Iterable[str]) -> dict[str, Any]:
    """A manifest with values set: `path=value`, the value as YAML. Raises Refused."""
    found: dict[str, Any] = json.loads(json.dumps(obj))
    for edit in edits:
        path, equals, text = edit.partition("=")
        if not equals or not path:
            raise Refused(
                f"--set {edit!r} is no edit.", hint="Write it as --set spec.queue=research or --set 'spec.tasks[0].replicas=4'"
            )
        try:
            value = yaml.load(text, Loader=_Loader)  # noqa: S506 - derived from SafeLoader
        except yaml.YAMLError:
            value = text
        _put(found, _steps(path, edit), value, edit)
    return found


def _steps(path: str, edit: str) -> list[str | int]:
    """`spec.tasks[0].replicas` as keys and places; a key with dots in it goes into quotes: `metadata.labels."a.b/c"`."""
    steps: list[str | int] = []
    for part in re.findall(r'"[^"]+"(?:\[[0-9]+\])*|[^.]+', path):
        match = re.fullmatch(r'("[^"]+"|[^\[\]"]+)((?:\[[0-9]+\])*)', part)
        if match is None:
            raise Refused(f"--set {edit!r}: {part!r} is no step of a path.")
        steps.append(match[1].strip('"'))
        steps += [int(place) for place in re.findall(r"\[([0-9]+)\]", match[2])]
    return steps


def _put(obj: Any, steps: list[str | int], value: Any, edit: str) -> None:
    here = obj
    for step, following in zip(steps, [*steps[1:], None]):
        is_last = following is None
        if isinstance(step, int):
            if not isinstance(here, list) or step >= len(here):
                has = f"has {len(here)} entries" if isinstance(here, list) else "is no list"
                raise Refused(f"--set {edit!r}: there is no [{step}], what is there {has}.")
        elif not isinstance(here, dict):
            raise Refused(f"--set {edit!r}: {step!r} is below something that is no mapping.")
        elif step not in here and not is_last:
            here[step] = [] if isinstance(following, int) else {}
        if is_last:
            here[step] = value
        else:
            here = here[step]
