"""`version`: of this program, and of the server when there is one."""

from __future__ import annotations

import platform
import sys

import click

from basalt import __version__
from basalt.client.errors import BasaltError
from basalt.terminal.options import connected
from basalt.terminal.running import Verb
from basalt.terminal.session import Session


@click.command(cls=Verb)
@connected
@click.option("--client", "client_only", is_flag=True, help="of this program alone")
def version(session: Session, client_only: bool) -> None:
    """Print versions."""
    click.echo("API Version: v1alpha1")
    click.echo(f"Version: {__version__}")
    click.echo(f"Python Version: {platform.python_version()}")
    click.echo(f"OS/Arch: {sys.platform}/{platform.machine()}")
    if client_only:
        return
    try:
        about = session.about
        click.echo(
            f"Server: {session.client.server} version {about['version']} ({about['cluster']} cluster), user {about['user']}"
        )
    except BasaltError as error:
        click.echo(f"Server: {error.message}", err=True)
