"""`completion`: what a shell needs to complete commands, options, and the names of jobs, queues and contexts."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from basalt.terminal.running import Verb

HOW = {
    "bash": 'eval "$({prog} completion bash)"    # in ~/.bashrc',
    "zsh": 'eval "$({prog} completion zsh)"    # in ~/.zshrc',
    "fish": "{prog} completion fish | source    # in ~/.config/fish/config.fish",
}


@click.command(
    cls=Verb, help="Print what a shell needs to complete names.\n\n\b\n" + "\n".join(HOW.values()).format(prog="basalt")
)
@click.argument("shell", type=click.Choice(tuple(HOW)))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """What the shell is to read; its help is above, since it shows each shell's way."""
    root = ctx.find_root()
    prog = root.info_name or "basalt"
    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(root.command, {}, prog, f"_{prog.upper()}_COMPLETE").source())
