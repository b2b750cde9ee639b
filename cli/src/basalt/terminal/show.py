"""What `-o` asks for: a table, a wider one, the objects as JSON or YAML, or their names."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import click
import yaml

from basalt.terminal.table import Column, lines

R = TypeVar("R")
FORMATS = ("table", "wide", "json", "yaml", "name")


@dataclass(frozen=True, slots=True)
class Output:
    """How a command prints."""

    form: str = "table"
    headers: bool = True

    @property
    def whole(self) -> bool:
        """Whether the objects themselves are printed."""
        return self.form in ("json", "yaml")

    @property
    def include(self) -> str:
        """What a list asks for, so that it carries what is printed."""
        return "manifest" if self.whole else ""

    def rows(self, rows: Sequence[R], columns: Sequence[Column[R]], kind: str) -> None:
        """Print a list. Nothing in it: `No resources found`, as Volcano's tools say it."""
        if self.whole:
            data(as_list([_manifest(row) for row in rows]), self.form)
        elif self.form == "name":
            for row in rows:
                click.echo(f"{kind}/{row['name']}")  # type: ignore[index]
        elif not rows:
            click.echo("No resources found")
        else:
            shown = [column for column in columns if self.form == "wide" or not column.wide]
            click.echo("\n".join(lines(shown, rows, headers=self.headers)))

    def one(self, row: R, columns: Sequence[Column[R]], kind: str) -> None:
        """Print one thing."""
        if self.whole:
            data(_manifest(row), self.form)
        else:
            self.rows([row], columns, kind)


def data(value: Any, form: str) -> None:
    """Print a value as JSON or YAML."""
    text = json.dumps(value, indent=2, ensure_ascii=False) if form == "json" else as_yaml(value).rstrip("\n")
    click.echo(text)


def as_yaml(value: Any) -> str:
    """A value as YAML in its own order."""
    return str(yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=False, width=120))


def as_list(manifests: Sequence[Any]) -> dict[str, Any]:
    """Objects as kubectl prints several."""
    return {"apiVersion": "v1", "kind": "List", "items": [manifest for manifest in manifests if manifest]}


def _manifest(row: Any) -> Any:
    return row.get("manifest") or {}


class _Dumper(yaml.SafeDumper):
    """Without anchors, and with scripts as blocks."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = '"' if any(rare in text for rare in "\x85\u2028\u2029") else "|" if "\n" in text else None  # read as a space else
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
