"""Every command is in the documentation and in a test against a running Basalt; so is every exit code and error."""

import re
from pathlib import Path

import click
import pytest

from basalt.client import errors
from basalt.main import program
from basalt.terminal import exits
from basalt.terminal.exits import Exit, code_of
from tests.cli.program import NAMES, basalt
from tests.e2e.server import ROOT

GUIDE = (ROOT / "docs/cli.md").read_text()
TESTS = "".join(path.read_text() for path in Path(__file__).parent.glob("test_commands*.py"))


def leaves(group: click.Group, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for name, command in group.commands.items():
        found += leaves(command, (*path, name)) if isinstance(command, click.Group) else [(*path, name)]
    return found


COMMANDS = leaves(program)


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_is_in_the_guide_and_in_a_test(path):
    assert re.search(rf"\b{' '.join(path)}\b", GUIDE), "write of it in docs/cli.md"
    called = '", "'.join(path)
    assert f'("{called}"' in TESTS, "try it in a test of commands"


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_name_of_the_program_is_too(name):
    assert f"`{name}`" in GUIDE
    assert name == "basalt" or f'"{name}"' in TESTS


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_has_help(path):
    said = basalt(*path, "--help")
    assert "Usage: basalt" in said.out
    assert len(said.lines[2].split()) >= 2


def test_the_guides_exit_codes_are_the_programs():
    table = GUIDE.split("## Exit codes")[1].split("\n\n")[1]
    assert [int(row) for row in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)] == [int(code) for code in Exit]


def test_every_error_has_an_exit_code_of_the_table():
    kinds = [kind for module in (errors, exits) for kind in vars(module).values() if isinstance(kind, type)]
    of_ours = [kind for kind in kinds if issubclass(kind, errors.BasaltError) and kind is not errors.BasaltError]
    assert len(of_ours) >= 12
    assert all(code_of(kind("x")) not in (Exit.OK, Exit.FAILED) for kind in of_ours)
    assert code_of(errors.BasaltError("x")) == Exit.FAILED
