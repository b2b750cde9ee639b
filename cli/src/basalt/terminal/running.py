"""From the command line to an exit code: what goes wrong is said in words, what, where and what to do, never as a traceback."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from basalt.client.errors import BasaltError
from basalt.terminal.exits import Exit, code_of


class Verb(click.Command):
    """A command whose errors know which command it was."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BasaltError as error:
            error.path = ctx.command_path  # type: ignore[attr-defined]
            raise


class Verbs(click.Group):
    """A group of them. Commands come in the order in which they were added."""

    command_class = Verb
    group_class = type

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


def run(command: click.Command, prog: str, *, volcano: bool = False) -> NoReturn:
    """Run a command with the program's arguments, and exit."""
    sys.exit(code(command, prog, sys.argv[1:], volcano=volcano))


def code(command: click.Command, prog: str, args: Sequence[str], *, volcano: bool = False) -> int:
    """Run a command; its exit code. With `volcano`, errors are told as Volcano's tools do: on stdout, and the code is 255."""
    _never_fail_to_print()
    try:
        result = command.main(args=list(args), prog_name=prog, standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else Exit.OK
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except click.ClickException as wrong:
        wrong.show()
        return wrong.exit_code
    except (KeyboardInterrupt, click.exceptions.Abort):
        click.echo("\nInterrupted.", err=True)
        return Exit.INTERRUPTED
    except BrokenPipeError:  # whoever read has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.OK
    except BasaltError as error:
        tell(error, volcano=volcano)
        return Exit.VOLCANO if volcano else code_of(error)


def _never_fail_to_print() -> None:
    """A terminal that knows fewer characters gets question marks in their place."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def tell(error: BasaltError, *, volcano: bool = False) -> None:
    """Say an error: what it is, each fault with its place, what to do."""
    in_order = sorted(error.faults, key=lambda fault: (fault.document or 0, fault.line or 0))
    told = list(dict.fromkeys(str(fault) for fault in in_order))
    message = error.message.rstrip()
    if volcano:
        verbs = " ".join(reversed(str(getattr(error, "path", "")).split(" ")[1:]))
        click.echo(f"Failed to{f' {verbs}' if verbs else ''}: {'; '.join([message, *told])}")
        return
    click.echo(f"{click.style('Error:', fg='red')} {message}", err=True)
    for fault in told:
        click.echo(f"  {fault}", err=True)
    if error.hint:
        click.echo(error.hint, err=True)


def warn(text: str) -> None:
    """A remark beside the output."""
    click.echo(text, err=True)
