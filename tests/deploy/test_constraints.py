"""The versions that go into the image are those that the requirements allow, and there is one for each."""

from __future__ import annotations

import re
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]


def test_every_requirement_has_a_version_that_it_allows() -> None:
    lines = (ROOT / "deploy" / "constraints.txt").read_text().splitlines()
    pinned = {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines if "==" in line)}
    for line in (ROOT / "requirements.txt").read_text().splitlines():
        text = re.sub(r"\s+#.*|^#.*", "", line)
        if text:
            wanted = Requirement(text)
            version = pinned.get(canonicalize_name(wanted.name))
            assert version is not None, f"{wanted.name} is not in deploy/constraints.txt: its first lines say how it is made"
            assert wanted.specifier.contains(version), f"deploy/constraints.txt has {wanted.name} {version}, which {text} refuses"


def test_every_line_is_one_version() -> None:
    for line in (ROOT / "deploy" / "constraints.txt").read_text().splitlines():
        assert re.fullmatch(r"#.*|[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line), line
