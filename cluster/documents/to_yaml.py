"""Objects as YAML that people and kubectl read."""

from __future__ import annotations

from typing import Any

import yaml

from cluster.port import Obj


def dump(obj: Obj, *, width: int = 130) -> str:
    """An object in the order of its fields, without anchors: what appears twice is written twice."""
    return str(yaml.dump(obj, Dumper=_Plain, sort_keys=False, width=width, allow_unicode=True))


class _Plain(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


_Plain.add_multi_representer(str, _Plain.represent_str)  # a sentence that knows how it was made is a text
