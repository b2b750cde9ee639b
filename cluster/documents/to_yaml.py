"""Objects as YAML that people and kubectl read."""

from __future__ import annotations

import re
from typing import Any

import yaml

from cluster.port import Obj


def dump(obj: Obj, *, width: int = 130) -> str:
    """An object in the order of its fields, without anchors: what appears twice is written twice."""
    return str(yaml.dump(obj, Dumper=_Plain, sort_keys=False, width=width, allow_unicode=True))


class _Plain(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


RARE_BREAKS = re.compile("[\x85\u2028\u2029]")
"""What YAML 1.1 folds like a new line: written as it is, some of it reads as a space."""


def _represent_text(dumper: _Plain, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"' if RARE_BREAKS.search(text) else None)


_Plain.add_representer(str, _represent_text)
_Plain.add_multi_representer(str, _represent_text)  # a sentence that knows how it was made is a text
