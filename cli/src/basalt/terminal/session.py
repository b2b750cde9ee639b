"""Which server a command talks to, as whom, and in which namespace; found when it is first needed."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from basalt.client import Client
from basalt.client.errors import Refused, SignedOut
from basalt.client.rows import About
from basalt.terminal import config
from basalt.terminal.config import Context
from basalt.terminal.exits import ConfigError

WITH_TOKEN = "/kubernetes/with-token/"  # noqa: S105 - part of an address


@dataclass
class Session:
    """What a command was told of the connection by its options; the environment and the configuration say the rest."""

    server: str = ""
    kubeconfig: str = ""
    context_name: str = ""
    timeout: float = 30.0

    @cached_property
    def context(self) -> Context:
        """In this order: -k, --context, BASALT_CONTEXT, the current one; -s and BASALT_SERVER, BASALT_TOKEN go over it."""
        found = self._base()
        server = self.server or ("" if self.kubeconfig else os.environ.get("BASALT_SERVER", ""))
        token = "" if self.kubeconfig else os.environ.get("BASALT_TOKEN", "")
        if server and server.rstrip("/") != found.server:
            found = Context(server=server, token=token or self._token_of(server), ca=found.ca, namespace=found.namespace)
        if not found.server:
            raise ConfigError(
                "No server is known yet.",
                hint="Sign in: basalt login http://127.0.0.1:8000 (or set BASALT_SERVER and BASALT_TOKEN)",
            )
        return Context(
            server=found.server,
            user=found.user,
            token=token or found.token,
            expiry="" if token else found.expiry,
            namespace=found.namespace,
            ca=os.environ.get("BASALT_CA", "") or found.ca,
        )

    def _base(self) -> Context:
        if self.kubeconfig:
            return of_kubeconfig(Path(self.kubeconfig).expanduser())
        name = self.context_name or os.environ.get("BASALT_CONTEXT", "")
        if not name and (self.server or os.environ.get("BASALT_SERVER")) and not config.path().exists():
            return Context(server="")
        known = config.load()
        if warning := config.exposed():
            print(f"Warning: {warning}", file=sys.stderr)  # noqa: T201
        name = name or known.current
        return known.find(name, config.path()) if name else Context(server="")

    def _token_of(self, server: str) -> str:
        """The token of the context of that address, if there is one: -s names a server, not a user."""
        known = config.load().contexts.values() if config.path().exists() else ()
        return next((context.token for context in known if context.server == server.rstrip("/")), "")

    @cached_property
    def client(self) -> Client:
        """The client of that server. Raises ConfigError, SignedOut."""
        context = self.context
        if context.expiry and context.token and _is_over(context.expiry):
            raise SignedOut(
                f"The token for {context.server} has expired at {context.expiry}.",
                hint=f"Sign in again: basalt login {context.server}",
            )
        if not context.token:
            raise SignedOut(f"You are not signed in at {context.server}.", hint=f"Sign in: basalt login {context.server}")
        return Client(context.server, context.token, ca=context.ca, timeout=self.timeout)

    @cached_property
    def about(self) -> About:
        """What the server says of itself; asked once."""
        return self.client.about()

    @cached_property
    def now(self) -> datetime:
        """The cluster's time when it was first asked."""
        return datetime.fromisoformat(self.about["now"])

    def namespace(self, asked: str | None) -> str:
        """The namespace that was asked for, else the context's, else `default`."""
        return asked or self.context.namespace or "default"


def _is_over(expiry: str) -> bool:
    try:
        at = datetime.fromisoformat(expiry)
    except ValueError:
        return False
    return (at if at.tzinfo else at.replace(tzinfo=UTC)) < datetime.now(UTC)


def of_kubeconfig(path: Path) -> Context:
    """The portal that a kubeconfig names (its server is the portal's address with /kubernetes). Raises ConfigError."""
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
        name = found["current-context"]
        chosen = _named(found["contexts"], name)["context"]
        cluster = _named(found["clusters"], chosen["cluster"])["cluster"]
        user = _named(found["users"], chosen["user"])["user"] or {}
        server, ca = str(cluster["server"]), str(cluster.get("certificate-authority") or "")
    except FileNotFoundError:
        raise ConfigError(f"There is no kubeconfig {path}.") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError, KeyError, TypeError, StopIteration) as error:
        raise ConfigError(f"{path} is no kubeconfig that can be read: {type(error).__name__}: {error}.") from None
    token = str(user.get("token") or "")
    address, found_token = server, ""
    if WITH_TOKEN in server:
        address, _, found_token = server.partition(WITH_TOKEN)
    elif server.rstrip("/").endswith("/kubernetes"):
        address = server.rstrip("/").removesuffix("/kubernetes")
    else:
        raise Refused(
            f"{server}, which {path} names, is an API server and no Basalt.",
            hint="This program talks to the portal: name it with -s, or use a kubeconfig from `manage.py token --kubeconfig`.",
        )
    return Context(server=address, token=token or found_token.strip("/"), namespace=str(chosen.get("namespace") or ""), ca=ca)


def _named(entries: Any, name: Any) -> Any:
    return next(entry for entry in entries if entry["name"] == name)
