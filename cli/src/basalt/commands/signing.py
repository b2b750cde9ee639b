"""`login`, `logout`, `context …`: who asks which server."""

from __future__ import annotations

import sys
from datetime import datetime
from urllib.parse import urlsplit

import click

from basalt.client import Client
from basalt.client.errors import BasaltError, SignedOut
from basalt.client.transport import checked_address
from basalt.terminal import config
from basalt.terminal.config import Context
from basalt.terminal.exits import Missing
from basalt.terminal.options import connected, contexts
from basalt.terminal.running import Verb, Verbs, warn
from basalt.terminal.session import Session
from basalt.terminal.table import Column, lines

HERE = "http://127.0.0.1:8000"


@click.command(cls=Verb)
@click.argument("server", default="")
@click.option("-u", "--username", default="", help="who signs in; asked when it is left out")
@click.option("--password-stdin", is_flag=True, help="read the password from standard input")
@click.option("--token-stdin", is_flag=True, help="read a token from standard input, in place of name and password")
@click.option("--name", default="", help="the context's name  [the server's]")
@click.option("-n", "--namespace", default="", help="the context's namespace  [default]")
@click.option("--ca", default="", type=click.Path(), help="certificates that the server is known by  [the system's]")
def login(server: str, username: str, password_stdin: bool, token_stdin: bool, name: str, namespace: str, ca: str) -> None:
    """Sign in, and remember it as a context, which becomes the current one."""
    known = config.load()
    before = known.contexts.get(name or known.current)
    server = checked_address(server or (before.server if before else "") or _asked("Server", HERE))
    name = name or urlsplit(server).netloc
    before = known.contexts.get(name)
    ca = ca or (before.ca if before else "")
    _in_the_clear(server)
    context = (
        _by_token(server, ca, sys.stdin.readline().strip())
        if token_stdin
        else _by_password(server, ca, username or _asked("User name", before.user if before else ""), from_stdin=password_stdin)
    )
    context.namespace = namespace or (before.namespace if before else "")
    with config.changing() as found:
        found.contexts[name] = context
        found.current = name
    click.echo(f"Signed in at {server} as {context.user}: context {name!r}.")


def _by_password(server: str, ca: str, user: str, *, from_stdin: bool) -> Context:
    password = sys.stdin.readline().rstrip("\r\n") if from_stdin else _secret(f"Password of {user}")
    with Client(server, ca=ca) as client:
        try:
            given = client.login(user, password)
        except SignedOut:
            raise SignedOut(f"Wrong name or password for {server}.", hint="A lost one is set anew by an administrator.") from None
    return Context(server=server, user=user, token=given["token"], expiry=given["expiry"] or "", ca=ca)


def _by_token(server: str, ca: str, token: str) -> Context:
    with Client(server, token, ca=ca) as client:
        return Context(server=server, user=client.about()["user"], token=token, ca=ca)


def _asked(what: str, default: str) -> str:
    if not sys.stdin.isatty():
        raise Missing(f"{what} is not given, and there is nobody to ask.", hint="Give it on the command line.")
    return str(click.prompt(what, default=default or None, err=True))


def _secret(what: str) -> str:
    if not sys.stdin.isatty():
        raise Missing("There is no terminal to ask for the password.", hint="Use --password-stdin or --token-stdin.")
    return str(click.prompt(what, hide_input=True, err=True))


def _in_the_clear(server: str) -> None:
    parts = urlsplit(server)
    if parts.scheme == "http" and parts.hostname not in ("127.0.0.1", "localhost", "::1"):
        warn(f"Warning: {server} is not encrypted: password and token can be read on the way.")


@click.command(cls=Verb)
@connected
def logout(session: Session) -> None:
    """End the current context's token, at the server and here."""
    context = session.context
    try:
        session.client.logout()
    except SignedOut:
        pass  # it held no more
    except BasaltError as error:
        warn(f"The server could not be told, the token holds until it expires: {error.message}")
    with config.changing() as found:
        for each in found.contexts.values():
            if each.server == context.server and each.token == context.token:
                each.token = each.expiry = ""
    click.echo(f"Signed out at {context.server}.")


@click.group(cls=Verbs)
def context() -> None:
    """Contexts: a server, a user and a namespace under one name."""


@context.command("list")
@click.option("--no-headers", is_flag=True, help="no titles over the columns")
def list_contexts(no_headers: bool) -> None:
    """List contexts; the current one has a star."""
    found = config.load()
    if not found.contexts:
        click.echo("No resources found")
        return
    rows = list(found.contexts.items())
    table: list[Column[tuple[str, Context]]] = [
        Column("Current", lambda row: "*" if row[0] == found.current else ""),
        Column("Name", lambda row: row[0]),
        Column("Server", lambda row: row[1].server),
        Column("User", lambda row: row[1].user or "-"),
        Column("Namespace", lambda row: row[1].namespace or "default"),
        Column("Signed-In-Until", lambda row: _until(row[1])),
    ]
    click.echo("\n".join(lines(table, rows, headers=not no_headers)))


def _until(context: Context) -> str:
    if not context.token:
        return "signed out"
    return datetime.fromisoformat(context.expiry).astimezone().strftime("%Y-%m-%d %H:%M") if context.expiry else "-"


@context.command()
@click.argument("name", shell_complete=contexts)
def use(name: str) -> None:
    """Make a context the current one."""
    with config.changing() as found:
        found.find(name, config.path())
        found.current = name
    click.echo(f"Switched to context {name!r}.")


@context.command("set")
@click.argument("name", shell_complete=contexts)
@click.option("--server", default=None, help="its address; a token of another server is forgotten")
@click.option("-n", "--namespace", default=None, help="its namespace")
@click.option("--ca", default=None, type=click.Path(), help="certificates that the server is known by; empty: the system's")
def set_context(name: str, server: str | None, namespace: str | None, ca: str | None) -> None:
    """Change a context, or make one."""
    address = checked_address(server) if server is not None else None
    with config.changing() as found:
        if name not in found.contexts and address is None:
            found.find(name, config.path())
        entry = found.contexts.setdefault(name, Context(server=address or ""))
        if address is not None and address != entry.server:
            entry.server, entry.token, entry.expiry = address, "", ""
        if namespace is not None:
            entry.namespace = namespace
        if ca is not None:
            entry.ca = ca
        found.current = found.current or name
    click.echo(f"Context {name!r} is set.")


@context.command("delete")
@click.argument("name", shell_complete=contexts)
def delete_context(name: str) -> None:
    """Forget a context with its token."""
    with config.changing() as found:
        found.find(name, config.path())
        del found.contexts[name]
        if found.current == name:
            found.current = ""
    click.echo(f"Context {name!r} is deleted.")
