"""`manage.py scenario`: a line a case, and how it ends."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from tests.portal.cases import SUBMIT, text


def write(folder: Path, content: str) -> str:
    path = folder / "cases.yaml"
    path.write_text(content)
    return str(path)


def test_the_command_prints_a_line_a_case_and_fails_when_one_failed(tmp_path, capsys):
    good = text(f"- {SUBMIT}\n- schedule: until-quiet", "- running: {a: 2}\n- it feels quick")
    call_command("scenario", write(tmp_path, good))
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["passed  x", "for a person  x: it feels quick", "1 case: 1 passed, 1 for a person"]
    with pytest.raises(SystemExit) as status:
        call_command("scenario", write(tmp_path, good.replace("a: 2}\n", "a: 1}\n")))
    assert status.value.code == 1
    assert capsys.readouterr().out.splitlines()[0] == "failed  x: running a: 2, not 1"


def test_arguable_failures_are_counted_apart(tmp_path, capsys):
    bad = text("- settle: true", "- running: {a: 1}", more="  arguable: true\n")
    call_command("scenario", write(tmp_path, bad))
    assert capsys.readouterr().out.splitlines()[-1] == "1 case: 1 failed, arguable"


def test_a_wrong_file_is_told_with_file_and_line_and_nothing_is_played(tmp_path, capsys):
    with pytest.raises(CommandError, match=r"cases\.yaml, line 1: there is no case") as error:
        call_command("scenario", write(tmp_path, "# nothing\n"))
    assert error.value.returncode == 2
    with pytest.raises(CommandError, match="nowhere"):
        call_command("scenario", str(tmp_path / "nowhere"))
    assert capsys.readouterr().out == ""
