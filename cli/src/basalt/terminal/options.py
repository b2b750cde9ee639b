"""Options that many commands have, each as one decorator; and names that a shell can complete."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from basalt.client.errors import BasaltError
from basalt.terminal import config
from basalt.terminal.exits import Missing, Partial
from basalt.terminal.session import Session
from basalt.terminal.show import FORMATS, Output

F = TypeVar("F", bound=Callable[..., Any])
Names = Callable[[Session, str], Iterable[tuple[str, str]]]
PATIENCE = 2.0
"""Seconds that a shell's completion may take."""
_TOOLS = ("vcctl", "vsub", "vjobs", "vsuspend", "vresume", "vcancel", "vqueues")


def is_volcano() -> bool:
    """Whether the program was called by one of the names of Volcano's tools."""
    return click.get_current_context().find_root().info_name in _TOOLS


def connected(command: F) -> F:
    """Which server: the command gets a `Session` as its first argument."""

    @click.option("-s", "--server", "--master", default="", metavar="URL", help="the portal's address, over the context's")
    @click.option("-k", "--kubeconfig", default="", metavar="FILE", help="a kubeconfig of the portal, in place of a context")
    @click.option(
        "--context", "context_name", default="", shell_complete=contexts, help="the context to use, over the current one"
    )
    @wraps(command)
    def with_session(*args: Any, server: str, kubeconfig: str, context_name: str, **kwargs: Any) -> Any:
        session = Session(server, kubeconfig, context_name)
        try:
            return command(session, *args, **kwargs)
        finally:
            if "client" in vars(session):
                session.client.close()

    return with_session  # type: ignore[return-value]


def printed(command: F) -> F:
    """How to print: the command gets `output`."""

    @click.option("-o", "--output", "form", type=click.Choice(FORMATS), default="table", help="how to print  [table]")
    @click.option("--no-headers", is_flag=True, help="no titles over the columns")
    @wraps(command)
    def with_output(*args: Any, form: str, no_headers: bool, **kwargs: Any) -> Any:
        return command(*args, output=Output(form, not no_headers), **kwargs)

    return with_output  # type: ignore[return-value]


def namespaced(*flags: str) -> Callable[[F], F]:
    """Which namespace; short and long flag, since Volcano's short tools have -N where its others have -n."""
    return click.option(
        *(flags or ("-n", "--namespace")), "namespace", default=None, help="the namespace  [the context's, or default]"
    )


def everywhere(command: F) -> F:
    """All namespaces at once."""
    return click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="in all namespaces")(command)


def labelled(command: F) -> F:
    """Only what has these labels."""
    return click.option(
        "-l", "--label-selector", "labels", default="", help="by labels, as kubectl: key=value, key in (a,b), !key"
    )(command)


def named(kind: str, *, flags: Sequence[str] = ("-N", "--name")) -> Callable[[F], F]:
    """Names of things, as arguments or by Volcano's option: the command gets `names`."""

    def decorate(command: F) -> F:
        @click.argument("arguments", nargs=-1, metavar="[NAME]...", shell_complete=_of_kind(kind))
        @click.option(*flags, "option", default="", shell_complete=_of_kind(kind), help=f"the name of the {kind}")
        @wraps(command)
        def with_names(*args: Any, arguments: tuple[str, ...], option: str, **kwargs: Any) -> Any:
            return command(*args, names=[*([option] if option else []), *arguments], **kwargs)

        return with_names  # type: ignore[return-value]

    return decorate


def one(names: Sequence[str], missing: str) -> str:
    """The one name that was given. Raises Missing."""
    if len(names) != 1:
        raise Missing(missing if not names else f"one name is taken, not {len(names)}: {', '.join(names)}")
    return names[0]


def each(names: Sequence[str], missing: str, work: Callable[[str], None]) -> None:
    """Do the same to several; what one refuses does not stop the others. Raises Partial with every refusal, or the only one."""
    if not names:
        raise Missing(missing)
    refused: list[tuple[str, BasaltError]] = []
    for name in names:
        try:
            work(name)
        except BasaltError as error:
            refused.append((name, error))
    if not refused:
        return
    if len(names) == 1:
        raise refused[0][1]
    told = "; ".join(f"{name}: {error.message}" for name, error in refused)
    raise Partial(f"{len(refused)} of {len(names)} were refused: {told}")


# --- completion ---


def completer(find: Names) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Names for a shell: quick, and silent when the server does not answer."""

    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        asked = ctx.params
        session = Session(
            asked.get("server") or "", asked.get("kubeconfig") or "", asked.get("context_name") or "", timeout=PATIENCE
        )
        try:
            found = list(find(session, asked.get("namespace") or ""))
        except BasaltError:
            return []
        return [CompletionItem(name, help=text) for name, text in found if name.startswith(incomplete)]

    return complete


def _jobs(session: Session, namespace: str) -> Iterable[tuple[str, str]]:
    rows = session.client.jobs.list(namespace=session.namespace(namespace), limit=500)
    return [(row["name"], row["phase"]) for row in rows]


def _queues(session: Session, _: str) -> Iterable[tuple[str, str]]:
    return [(row["name"], row["state"]) for row in session.client.queues.list()]


def _flows(session: Session, namespace: str) -> Iterable[tuple[str, str]]:
    return [(row["name"], row["phase"]) for row in session.client.flows.list(namespace=session.namespace(namespace), limit=500)]


def _templates(session: Session, namespace: str) -> Iterable[tuple[str, str]]:
    return [
        (row["name"], row["queue"]) for row in session.client.templates.list(namespace=session.namespace(namespace), limit=500)
    ]


def _nodes(session: Session, _: str) -> Iterable[tuple[str, str]]:
    return [(row["name"], "cordoned" if row["cordoned"] else "") for row in session.client.nodes.list(limit=500)]


def _contexts(_: Session, __: str) -> Iterable[tuple[str, str]]:
    return [(name, context.server) for name, context in config.load().contexts.items()]


jobs, queues, contexts = completer(_jobs), completer(_queues), completer(_contexts)
_KINDS = {
    "job": jobs,
    "queue": queues,
    "jobflow": completer(_flows),
    "jobtemplate": completer(_templates),
    "node": completer(_nodes),
}


def _of_kind(kind: str) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    return _KINDS[kind]
