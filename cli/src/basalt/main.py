"""The program under each of its names."""

from __future__ import annotations

from typing import NoReturn

import click

from basalt import __version__
from basalt.commands import jobs, queues
from basalt.commands.completion import completion
from basalt.commands.explain import explain
from basalt.commands.flows import jobflow, jobtemplate
from basalt.commands.logs import logs
from basalt.commands.nodes import node
from basalt.commands.pods import pod
from basalt.commands.signing import context, login, logout
from basalt.commands.submit import apply, submit
from basalt.commands.top import top
from basalt.commands.version import version
from basalt.commands.wait import wait
from basalt.commands.watch import watch
from basalt.terminal.running import Verbs, run


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, message="%(version)s")
def program() -> None:
    """Batch jobs from the terminal: Volcano's verbs, and more. Begin with `basalt login`."""


for _command in (
    login, logout, context, submit, apply, explain, watch, wait, logs, top,
    jobs.job, queues.queue, jobflow, jobtemplate, pod, node, version, completion,
):  # fmt: skip
    program.add_command(_command)


def basalt() -> NoReturn:
    """`basalt`."""
    run(program, "basalt")


def vcctl() -> NoReturn:
    """The same, which tells errors as Volcano's vcctl does."""
    run(program, "vcctl", volcano=True)


def vsub() -> NoReturn:
    """Volcano's short `vsub`."""
    run(jobs.vsub, "vsub", volcano=True)


def vjobs() -> NoReturn:
    """Volcano's short `vjobs`."""
    run(jobs.vjobs, "vjobs", volcano=True)


def vsuspend() -> NoReturn:
    """Volcano's short `vsuspend`."""
    run(jobs.vsuspend, "vsuspend", volcano=True)


def vresume() -> NoReturn:
    """Volcano's short `vresume`."""
    run(jobs.vresume, "vresume", volcano=True)


def vcancel() -> NoReturn:
    """Volcano's short `vcancel`."""
    run(jobs.vcancel, "vcancel", volcano=True)


def vqueues() -> NoReturn:
    """Volcano's short `vqueues`."""
    run(queues.vqueues, "vqueues", volcano=True)
