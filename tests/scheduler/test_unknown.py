"""Arguments that do nothing are told, with their line and what was meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler import conf
from scheduler.framework import registry
from scheduler.unknown import unknown_arguments

TEXT = """\
actions: "enqueue, allocate, preempt"
tiers:
- plugins:
  - name: binpack
    arguments:
      binpack.wieght: 3
      binpack.resources: nvidia.com/gpu
      binpack.resources.nvidia.com/gpu: 5
      binpack.resources.nvidia.com/gpus: 5
  - name: gang
    arguments:
      color: blue
  - name: predicates
    arguments:
      volumebinding.bindTimeoutSeconds: 30
  - name: tdm
    arguments:
      tdm.revocable-zone.rz1: 10:00-21:00
configurations:
- name: preempt
  arguments:
    enableTopologyAwarePreemptoin: true
"""


def test_each_argument_that_nobody_asks_for_is_told_with_its_line_and_the_likely_one():
    assert [str(fault) for fault in unknown_arguments(conf.load(TEXT))] == [
        "line 6: binpack: argument binpack.wieght is unknown and does nothing; did you mean binpack.weight?",
        "line 9: binpack: argument binpack.resources.nvidia.com/gpus is unknown and does nothing; "
        "did you mean binpack.resources.nvidia.com/gpu?",
        "line 12: gang: argument color is unknown and does nothing; it has no arguments",
        "line 22: preempt: argument enableTopologyAwarePreemptoin is unknown and does nothing; "
        "did you mean enableTopologyAwarePreemption?",
    ]


@pytest.mark.parametrize("name", sorted({"binpack", "capacity", "extender", "nodeorder", "usage", "sla", "deviceshare"}))
def test_a_plugin_without_arguments_has_no_unknown_ones(name):
    assert name in registry.plugins
    assert unknown_arguments(conf.load(f'actions: "allocate"\ntiers:\n- plugins:\n  - name: {name}\n')) == []


def test_the_file_that_comes_with_the_program_has_none():
    text = (Path(__file__).parents[2] / "deploy" / "volcano-scheduler.conf").read_text()
    assert unknown_arguments(conf.load(text)) == []
