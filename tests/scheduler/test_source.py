"""The configuration's file: read again when it changes, and never a broken version of it in force."""

from __future__ import annotations

import os

import pytest

from scheduler.conf import DEFAULT, ConfError
from scheduler.source import ConfSource

GOOD = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: gang\n'


def write(path, content, at):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    os.utime(path, (at, at))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "volcano-scheduler.conf"
    write(path, GOOD, 1)
    return path


@pytest.mark.parametrize(
    ("content", "line", "words"),
    [
        (GOOD.replace("gang", "gan"), 4, "'gan' is unknown"),
        (GOOD.encode() + b"# \xff\n", 5, "no UTF-8"),
        ("", 0, "empty"),
    ],
)
def test_a_broken_version_is_told_with_its_line_and_the_good_one_stays(file, content, line, words):
    source = ConfSource(file, 10.0)
    write(file, content, 2)
    assert not source.reload(20.0)
    (fault,) = source.state.faults
    assert fault.line == line
    assert words in fault.message
    assert (source.state.text, source.state.since, source.current.actions) == (GOOD, 10.0, ("allocate",))
    before = source.state
    assert not source.reload(30.0)
    assert source.state is before


def test_what_is_told_of_a_broken_version_can_be_kept_by_a_database(file):
    source = ConfSource(file, 10.0)
    write(file, f"{GOOD}# a\0b\n", 2)
    assert not source.reload(20.0)
    assert source.state.broken == f"{GOOD}# a\N{REPLACEMENT CHARACTER}b\n"
    assert len(source.state.faults) == 1


def test_a_file_that_is_gone_is_told_and_taken_again_when_it_is_back(file):
    source = ConfSource(file, 10.0)
    file.unlink()
    assert not source.reload(20.0)
    assert "cannot be read" in source.state.faults[0].message
    write(file, GOOD.replace("allocate", "enqueue"), 3)
    assert source.reload(30.0)
    assert (source.state.faults, source.state.since, source.current.actions) == ((), 30.0, ("enqueue",))


def test_without_a_good_version_there_is_no_start(tmp_path):
    with pytest.raises(OSError, match="absent"):
        ConfSource(tmp_path / "absent")
    bad = tmp_path / "bad"
    bad.write_text("actions: 3\n")
    with pytest.raises(ConfError):
        ConfSource(bad)


def test_the_built_in_configuration_has_no_file():
    source = ConfSource(None, 5.0)
    assert (source.state.source, source.state.text) == ("", DEFAULT)
    assert not source.reload(6.0)
