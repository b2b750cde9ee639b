"""Scenario files of one case, and how it went."""

from __future__ import annotations

import textwrap

from portal.scenario import Outcome, load, play

SETUP = "{nodes: [{name: n1, cpu: 4, memory: 8Gi}, {name: n2, cpu: 4, memory: 8Gi}]}"
SUBMIT = "submit: {job: a, min: 2, tasks: {w: {replicas: 2, cpu: 1}}}"


def text(steps: str, expect: str, setup: str = SETUP, more: str = "") -> str:
    body = f"- id: x\n  setup: {setup}\n{more}  steps:\n{textwrap.indent(steps.strip(), '  ')}\n"
    return f"{body}  expect:\n{textwrap.indent(expect.strip(), '  ')}\n"


def played(steps: str, expect: str, setup: str = SETUP) -> Outcome:
    (case,) = load(text(steps, expect, setup))
    return play(case)


def seen(steps: str, expect: str, setup: str = SETUP) -> str:
    return "; ".join(played(steps, expect, setup).seen)
