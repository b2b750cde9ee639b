"""The command line as a person meets it: arguments in, exit code and text out."""

from __future__ import annotations

import contextlib
import io
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from basalt.commands import jobs, queues
from basalt.main import program
from basalt.terminal import running

LONGEST = 120
NAMES = {
    "basalt": program,
    "vcctl": program,
    "vsub": jobs.vsub,
    "vjobs": jobs.vjobs,
    "vsuspend": jobs.vsuspend,
    "vresume": jobs.vresume,
    "vcancel": jobs.vcancel,
    "vqueues": queues.vqueues,
}


@dataclass(frozen=True)
class Result:
    """What a command said, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


def call(*args: str, prog: str = "basalt", stdin: str = "") -> Result:
    """Run a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with _limit(LONGEST), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), _stdin(stdin):
        code = running.code(NAMES[prog], prog, args, volcano=prog != "basalt")
    return Result(int(code), out.getvalue(), err.getvalue())


def basalt(*args: str, stdin: str = "", code: int = 0) -> Result:
    """Run `basalt …`, which must end with this exit code."""
    result = call(*args, stdin=stdin)
    assert result.code == code, result
    return result


@contextlib.contextmanager
def _limit(seconds: int) -> Iterator[None]:
    """A command that does not end is a failure, and not a test that hangs."""

    def over(*_: object) -> None:
        raise AssertionError(f"the command did not end within {seconds} s")

    before = signal.signal(signal.SIGALRM, over)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def _stdin(text: str) -> Iterator[None]:
    before = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8")
    try:
        yield
    finally:
        sys.stdin = before
